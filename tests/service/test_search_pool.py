"""Search processes behind a host: the same answers, what has changed holds at once, and limits that end a process."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.budgets import WorkBudget, current_budget
from findling.domain.errors import InvalidValueError, NotFoundError, OverdueError, WorkerError
from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import Filters, SearchRequest
from findling.domain.results import Hit, Receipt, SearchAnswer
from findling.domain.values import changed
from findling.faces.http.base.json_text import answer_text, encoded
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.index.model_choice import ModelTable
from findling.service.server.engine_pool import Host
from findling.service.server.search_pool import PooledIndex, SearchPool, process_count
from findling.service.server.search_process import PackedAnswer
from findling.service.workspace.workspace import locate
from tests.counts import tries
from tests.processes import PATIENCE_S, run_process

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no search processes")

ANN = Caller("ann", ("user:ann",), frozenset({"read"}))

REQUESTS = (
    SearchRequest(query="parse a date header"),
    SearchRequest(query="decode", limit=30, context=2),
    SearchRequest(query='"charset" -multipart', filters=Filters(ext=("py",)), facets=("ext", "path")),
    SearchRequest(query="how are attachments encoded", changes={"mode": "semantic"}),
    SearchRequest(query="encodr erors", explain=True),
    SearchRequest(query="nothingofthekind quux"),
    SearchRequest(query="policy", changes={"collapse": True, "diversity": 0.5, "group": "resource"}),
    SearchRequest(query=""),
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> findling.Settings:
    home = tmp_path_factory.mktemp("home")
    return findling.Settings().override({"store.home": str(home), "semantic.model": "none"}, "test")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, settings: findling.Settings) -> Path:
    """The sources of a package of the standard library, of which another caller may see a part."""
    import email

    root = tmp_path_factory.mktemp("sources") / "email"
    shutil.copytree(Path(email.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    with findling.open(root, settings=settings) as engine:
        engine.index()
        engine.permissions.share("path:mime", "user:ann")
        engine.permissions.share("path:charset.py", "user:ann")
    return root


@pytest.fixture(scope="module")
def hosts(tree: Path, settings: findling.Settings) -> Iterator[tuple[Host, Host]]:
    alone, pooled = Host(settings, tree), Host(settings, tree, processes=2, encode=encoded)
    yield alone, pooled
    alone.close()
    pooled.close()


def replace_times(answer: SearchAnswer) -> SearchAnswer:
    return changed(answer, timings_ms={})


def told(answer: Any) -> str:
    """All of an answer as text, but for times."""
    document = answer.to_dict() if hasattr(answer, "to_dict") else repr(answer)
    if isinstance(document, dict):
        document.pop("timings_ms", None)
    return json.dumps(document, default=str)


@pytest.mark.parametrize("caller", [OWNER, ANN], ids=["owner", "limited"])
def test_answers_are_the_same(hosts: tuple[Host, Host], caller: Caller) -> None:
    found = []
    for host in hosts:
        with host.client(caller) as client:
            found.append([told(client.search(request)) for request in REQUESTS])
    assert found[0] == found[1]
    assert any('"hits": [{' in one for one in found[0])


@pytest.mark.parametrize("caller", [OWNER, ANN], ids=["owner", "limited"])
def test_packed_hits_are_the_same_text_and_the_same_objects(hosts: tuple[Host, Host], caller: Caller) -> None:
    for request in REQUESTS:
        texts, answers = [], []
        for host in hosts:
            for _ in range(2):  # the second one is from the cache
                with host.client(caller) as client:
                    answer = replace_times(client.search(request))
                texts.append(answer_text(answer, caller, ""))
                answers.append(answer)
        assert [type(one) for one in answers] == [SearchAnswer] * 2 + [PackedAnswer] * 2
        assert len(set(texts)) == 1
        assert all("hits" not in vars(one) for one in answers[2:])
        assert {repr(one.hits) for one in answers} == {repr(answers[0].hits)}
        assert len({answer_text(one, caller, "") for one in answers}) == 1, "also when they were read"
        read = replace(answers[2], hits=answers[2].hits[:1])
        assert answer_text(read, caller, "") == answer_text(replace(answers[0], hits=answers[0].hits[:1]), caller, "")


def test_hits_whose_paths_are_no_text_are_packed() -> None:
    hit = Hit(
        id="1",
        rid="2",
        path=os.fsdecode(b"caf\xe9.txt"),
        type="file",
        title="",
        heading=(),
        line_start=1,
        line_end=1,
        score=0.5,
        lines=(),
        receipt=Receipt(fused_score=0.5, final_score=0.5),
    )
    answer = SearchAnswer(query="é", understood_as="é", hits=(hit,), total=1, strategy="keyword")
    packed = PackedAnswer.of(answer, encoded)
    assert json.loads(answer_text(packed, OWNER, "")) == json.loads(answer_text(answer, OWNER, ""))
    assert packed.hits == (hit,)


@pytest.mark.parametrize("caller", [OWNER, ANN], ids=["owner", "limited"])
def test_other_verbs_answer_the_same(hosts: tuple[Host, Host], caller: Caller) -> None:
    found = []
    for host in hosts:
        with host.client(caller) as client:
            first = client.search("charset").hits[0]
            answers = [
                client.fetch(first.id, context=2),
                client.similar("charset.py"),
                client.explain("charset", first.path),
                client.suggest("char"),
                client.texts([first]),
                [one.rid for one in client.ls()],
            ]
            found.append([told(answer) for answer in answers])
            with pytest.raises(NotFoundError) as caught:
                client.fetch("nowhere.py")
            found[-1].append(f"{caught.value.message} {caught.value.hint}")
    assert found[0] == found[1]


def test_an_error_of_a_question_is_that_of_the_question(hosts: tuple[Host, Host]) -> None:
    for host in hosts:
        with host.client(OWNER) as client, pytest.raises(InvalidValueError, match="limit"):
            client.search("charset", limit=-1)


def test_a_change_holds_with_the_next_question(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "open.md").write_text("The roadmap for spring.\n")
    (root / "plan.md").write_text("The roadmap for autumn.\n")
    values = {"store.home": str(tmp_path / "home"), "semantic.model": "none"}
    settings = findling.Settings().override(values, "test")
    with findling.open(root, settings=settings) as engine:
        engine.index()
    host = Host(settings, root, processes=2)

    def paths(caller: Caller, query: str, **options: Any) -> list[str]:
        with host.client(caller) as client:
            return sorted(hit.path for hit in client.search(query, **options).hits)

    try:
        assert (paths(OWNER, "roadmap"), paths(ANN, "roadmap")) == (["open.md", "plan.md"], [])
        # Each change is made in this process, or in another one that the host does not know of.
        with findling.open(root, settings=settings) as engine:
            engine.permissions.share("path:open.md", "user:ann")
        assert paths(ANN, "roadmap") == ["open.md"]
        (root / "new.md").write_text("Another roadmap, for winter.\n")
        host.index()
        assert paths(OWNER, "roadmap") == ["new.md", "open.md", "plan.md"]
        assert paths(ANN, "roadmap") == ["open.md"]
        (root / "new.md").unlink()
        with findling.open(root, settings=settings) as engine:
            engine.index()
            engine.permissions.unshare("path:open.md", "user:ann")
        assert paths(OWNER, "roadmap") == ["open.md", "plan.md"]
        assert paths(ANN, "roadmap") == []
        assert paths(OWNER, "Fahrplan", changes={"mode": "keyword"}) == []
        with findling.open(root, settings=settings) as engine:
            engine.glossary.add("Fahrplan", ["roadmap"])
        assert paths(OWNER, "Fahrplan", changes={"mode": "keyword"}) == ["open.md", "plan.md"]
        with findling.open(root, settings=settings) as engine:
            engine.forget_everything()
            engine.index()
        assert paths(OWNER, "autumn", changes={"mode": "keyword"}) == ["plan.md"]
    finally:
        host.close()


# Limits


@pytest.fixture(params=[1], ids=["1 process"])
def pool(request: pytest.FixtureRequest) -> Iterator[SearchPool]:
    made = SearchPool(request.param, memory=256 << 20)
    yield made
    made.close()


@pytest.fixture
def index(tree: Path, settings: findling.Settings, pool: SearchPool) -> Iterator[PooledIndex]:
    place = locate(tree, home=Path(settings["store.home"]))
    opened = PooledIndex(place, settings, ModelTable(), pool)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def lasting(tree: Path, settings: findling.Settings) -> Iterator[PooledIndex]:
    """One process for all tests after which a pool can answer: to start one takes half a second."""
    pool = SearchPool(1, memory=256 << 20)
    opened = PooledIndex(locate(tree, home=Path(settings["store.home"])), settings, ModelTable(), pool)
    yield opened
    opened.close()
    pool.close()


def process_id(legs: Retrievers) -> int:
    return os.getpid()


def compute(legs: Retrievers) -> None:
    while True:
        pass


def compute_a_little(legs: Retrievers) -> None:
    while current_budget().cpu_s < 0.2:
        pass
    current_budget().refuse("nothing more was done")
    current_budget().take("read", 100, "")


def sleep(legs: Retrievers) -> None:
    time.sleep(PATIENCE_S)


def take_memory(legs: Retrievers) -> int:
    return len(bytearray(1 << 30))


def crash(legs: Retrievers) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def crash_once(legs: Retrievers, mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


_numbers = count()


def take_a_number(legs: Retrievers) -> int:
    return next(_numbers)


def meet(legs: Retrievers, folder: Path) -> tuple[int, bool]:
    """The process, once another one is at it, too; and whether it was warm before."""
    # Words, meaning, and the order of code: a rehearsal by words alone leaves numpy to the first question.
    used = {f"findling.{name}" for name in ("pipelines.retrieve.resource_order", "stores.vectors.vector_scan")}
    has_searched = used <= sys.modules.keys() and gc.get_freeze_count() > 0
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + PATIENCE_S
    while len(list(folder.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return os.getpid(), has_searched


def fail(legs: Retrievers) -> None:
    raise ZeroDivisionError("a fault")


def read(index: PooledIndex, verb: Callable[..., Any], *args: Any, budget: WorkBudget | None = None) -> Any:
    from findling.domain.budgets import spending

    with spending(budget or WorkBudget()):
        return index.read(None, [], verb, *args)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("verb", "budget", "reason"),
    [
        (sleep, WorkBudget(longest_s=0.5), "within 0.5 s"),
        (compute, WorkBudget(cpu_s=0.1), "computing"),
        pytest.param(
            take_memory,
            WorkBudget(),
            "memory",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits it"),
        ),
    ],
    ids=["time", "computing", "memory"],
)
def test_a_process_that_takes_too_much_is_replaced(
    lasting: PooledIndex, verb: Callable[..., Any], budget: WorkBudget, reason: str
) -> None:
    before = read(lasting, process_id)
    with pytest.raises(OverdueError, match=reason):
        read(lasting, verb, budget=budget)
    assert is_gone(before)
    assert read(lasting, process_id) != before


@pytest.mark.parametrize("pool", [2], indirect=True)
def test_others_are_answered_while_one_takes_too_long(index: PooledIndex) -> None:
    with ThreadPoolExecutor(1) as other:
        stuck = other.submit(read, index, sleep, budget=WorkBudget(longest_s=5.0))
        ids: list[int] = []
        while not stuck.done() and len(ids) < 20:
            ids.append(read(index, process_id))
        with pytest.raises(OverdueError):
            stuck.result()
    assert ids


def test_calls_are_begun_in_the_order_in_which_they_came(lasting: PooledIndex) -> None:
    callers, overtaken, latest = 6, [], [read(lasting, take_a_number)]

    def ask() -> None:
        for _ in range(tries(100, short=30)):
            before = latest[0]
            number = read(lasting, take_a_number)
            overtaken.append(number - before)
            latest[0] = max(latest[0], number)

    with ThreadPoolExecutor(callers) as several:
        for asking in [several.submit(ask) for _ in range(callers)]:
            asking.result()
    # Before a call come those that were there; a thread that was not on a core may have asked later than it thinks.
    overtaken.sort()
    assert overtaken[len(overtaken) * 9 // 10] <= callers + 1


@pytest.mark.parametrize("pool", [2], indirect=True)
def test_a_front_that_is_warm_has_two_processes_that_have_searched(index: PooledIndex, tmp_path: Path) -> None:
    index.warm_up([])
    with ThreadPoolExecutor(2) as several:
        met = [one.result() for one in [several.submit(read, index, meet, tmp_path) for _ in range(2)]]
    assert len({pid for pid, _ in met}) == 2
    assert [has_searched for _, has_searched in met] == [True, True]


def test_a_process_that_dies_for_no_fault_of_the_question_is_asked_again(lasting: PooledIndex, tmp_path: Path) -> None:
    assert read(lasting, crash_once, tmp_path / "mark") == "done"


def test_a_question_that_kills_its_process_is_an_error(lasting: PooledIndex) -> None:
    with pytest.raises(WorkerError, match="signal 11"):
        read(lasting, crash)
    assert read(lasting, process_id) > 0


def test_a_fault_is_told_with_its_trace_and_costs_no_process(lasting: PooledIndex) -> None:
    before = read(lasting, process_id)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a fault"):
        read(lasting, fail)
    assert read(lasting, process_id) == before


def test_without_any_process_the_front_answers(index: PooledIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert index.warm_up([])
    assert read(index, process_id) == os.getpid()
    monkeypatch.undo()
    assert read(index, process_id) != os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere so large a stack may be given")
def test_without_any_thread_the_front_answers(index: PooledIndex) -> None:
    """The pool waited for ever for a start that had never begun."""
    before = threading.stack_size(1 << 46)  # more than an address space has
    try:
        assert read(index, process_id) == os.getpid()
    finally:
        threading.stack_size(before)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(read, index, process_id).result(PATIENCE_S) != os.getpid()


def test_the_budget_of_a_question_is_drawn_on(lasting: PooledIndex) -> None:
    budget = WorkBudget(cpu_s=50.0, read=150)
    read(lasting, compute_a_little, budget=budget)
    assert 0.2 <= budget.cpu_s < 50
    assert budget.refused == ["nothing more was done"]
    assert budget.left["read"] == 50


def test_processes_end_when_they_are_idle_and_with_the_pool(index: PooledIndex, pool: SearchPool) -> None:
    first = read(index, process_id)
    pool.rest(3600.0)
    assert not is_gone(first)
    pool.rest(0.0)
    assert is_gone(first)
    second = read(index, process_id)
    pool.close()
    assert is_gone(second)
    with pytest.raises(findling.FindlingError, match="shutting down"):
        read(index, process_id)


def test_the_front_opens_no_vectors_that_are_in_step(tree: Path, settings: findling.Settings) -> None:
    code = f"""
import sys
import findling
from findling.domain.permissions import OWNER
from findling.service.server.engine_pool import Host

values = {{"store.home": {settings["store.home"]!r}, "semantic.model": "none"}}
host = Host(findling.Settings().override(values, "test"), {str(tree)!r}, processes=2)
host.warm_up()
with host.client(OWNER) as client:
    assert client.search("parse a date header").meaning["speed"] == "instant"
host.close()
print("numpy" in sys.modules)
"""
    done = run_process([sys.executable, "-c", code], check=True)
    assert done.stdout == "False\n"


def test_the_number_of_processes(settings: findling.Settings) -> None:
    assert process_count(settings.override({"index.workers": 1}, "test")) == 0
    assert process_count(settings.override({"index.workers": 3}, "test")) == 3
