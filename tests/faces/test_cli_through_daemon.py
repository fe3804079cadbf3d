"""A search says the same whether a daemon answers it or the command itself."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from findling.domain.results import SearchAnswer
from findling.faces.cli.commands.find.search import _unread
from findling.faces.cli.commands.index.status import _describe_meaning
from findling.faces.cli.main import run
from findling.models.locating import locate
from findling.service.client.daemon import DaemonClient
from findling.service.client.daemon_state import read_state, write_state
from findling.service.settings.portable_settings import settings_document
from findling.service.settings.settings import Settings
from tests.faces.daemons import Daemon, be_patient, daemon_of
from tests.faces.test_cli_startup import LIST_MODULES
from tests.faces.test_daemon import eventually
from tests.processes import run_process
from tests.service.test_daemon_state import listening

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")

Findling = Callable[..., tuple[int, str, str]]

OWN_FILE = """
[profiles.mine]
mode = "keyword"
limit = 2
"""

PROJECT_FILE = """
[search]
snippet_lines = 2
[context]
types = ["file"]
[profiles.brief]
base = "auto"
limit = 1
[types.recipe]
weights = { title = 9.0 }
fields = { dish = "title", steps = { place = "body", heading = "Steps" } }
"""

FILES = {
    "src/auth.py": "import os\n\n\ndef login(user):\n    token = create_session(user)\n    return token\n",
    "src/shop.ts": "export function basket(user: string) {\n  return user;\n}\n",
    "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\n\n## Tokens\n\nKept.\n",
    "docs/index.md": "# The index\n\nHow a stale index is noticed: by its session.\n",
    "team/kitchen/notes.md": "# Kitchen\n\nThe session of the cooks. Every token is a spoon.\n",
    "team/.findling.toml": PROJECT_FILE,
    "umläute/größe.txt": "Ein Token für die Sitzung.\n",
}


class Served(NamedTuple):
    """A daemon, the folder that it serves, and the variables under which it runs."""

    daemon: Daemon
    root: Path
    environ: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("through")
    root, home = folder / "root", folder / "workspaces"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (folder / "config.toml").write_text(OWN_FILE)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    environ |= {
        "HOME": str(folder),
        "TERM": "xterm",
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": str(folder / "config.toml"),
        "FINDLING_SEARCH_MODE": "keyword",  # some say otherwise: to load the model takes a while each time
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEMANTIC_THREADS": "1",
    }
    recipe = {"type": "recipe", "id": "1", "dish": "Session soup", "steps": "Stir the token."}
    decision = {"type": "decision", "id": "7", "title": "Keep the session token", "rationale": "It is simple."}
    (folder / "items.jsonl").write_text(f"{json.dumps(recipe)}\n{json.dumps(decision)}\n")
    (folder / "fact.json").write_text(json.dumps(decision))
    with pytest.MonkeyPatch.context() as patch:
        use(environ, patch)
        patch.chdir(root)
        for args in (
            ["index"],
            ["permissions", "share", "docs/", "user:ann"],
            ["index", "--workspace", "docs", "docs"],
            ["index", "--workspace", "mixed", "team"],
            ["add", str(folder / "items.jsonl"), "--workspace", "mixed"],  # in the folder whose file declares the type
            ["workspaces", "create", "facts"],
            ["add", str(folder / "fact.json"), "--workspace", "facts"],
            *[["refine", *options] for options in ([], ["--workspace", "docs"], ["--workspace", "mixed"])],
            ["refine", "--workspace", "facts"],
        ):
            patch.chdir(root / "team" if args[0] == "add" and "mixed" in args else root)
            assert run(args) == 0, args
        patch.chdir(root)
    with daemon_of(home, root, "--no-watch", environ=environ) as daemon:
        assert eventually(lambda: daemon.about()["ready"]), "it counts documents once, when it gets ready"
        yield Served(daemon, root, environ)


@pytest.fixture(autouse=True)
def here(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    use(served.environ, monkeypatch)
    be_patient(monkeypatch)
    monkeypatch.chdir(served.root)


def use(environ: dict[str, str], patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FINDLING_")]:
        patch.delenv(name)
    for name, value in environ.items():
        patch.setenv(name, value)


def asked(daemon: Daemon) -> int:
    count: int = daemon.about()["total_queries"]
    return count


def both(served: Served, findling: Findling, *args: str, questions: int = 1) -> tuple[int, str, str]:
    """The answer of the daemon, after a check that it answered and that the command itself says the same."""
    before = asked(served.daemon)
    through = findling("search", *args)
    assert asked(served.daemon) - before == questions, through
    alone = findling("search", "--set", "serve.use=never", *args)
    assert asked(served.daemon) - before == questions, "nobody asked the daemon"
    assert without_times(through) == without_times(alone)
    return through


def without_times(outcome: tuple[int, str, str]) -> tuple[int, Any, str]:
    """The parts that must not differ: all but durations and the answering process."""
    code, out, err = outcome
    err = "".join(line for line in err.splitlines(True) if "answered by the daemon" not in line)
    lines = out.splitlines()
    if out.startswith(("{", "[")):
        documents = (
            [json.loads(out)] if len(lines) < 2 or not lines[0].endswith("}") else [json.loads(x) for x in lines]
        )
        for document in documents:
            for answer in document if isinstance(document, list) else [document]:
                answer.pop("timings_ms", None)
                answer.pop("served_by", None)
        return code, json.dumps(documents), err
    return code, re.sub(r"(?m)\d+ ms$", "", out), err


@pytest.mark.parametrize(
    "args",
    [
        ("session token",),
        ("session token", "-k", "1"),
        ("session token", "-k", "2", "-C", "1"),
        ("session token", "--json"),
        ("session token", "--format", "jsonl"),
        ("session token", "--files"),
        ("session token", "--format", "vimgrep"),
        ("session token", "--set", "output.color=always"),
        ("session token", "--explain"),
        ("session token", "--explain", "--json"),
        ("session token", "--mode", "hybrid"),
        ("session token", "--mode", "hybrid", "--explain", "--json"),
        ("session token", "--mode", "semantic", "--json"),
        ("session token", "--set", "search.limit=1"),
        ("session token", "--set", "search.typos=ignore", "--json"),
        ("session token", "--mode", "hybrid", "--set", "search.alpha=0.9", "--set", "search.fusion=rrf", "--json"),
        ("session token", "--set", "search.words=all"),
        ("session token", "--set", "search.min_score=0.5"),
        ("session token", "--profile", "mine", "--json"),
        ("session token", "--as", "user:ann", "--mode", "hybrid", "--json"),
        ("session token", "--as", "user:nobody"),
        ("session token", "-e", "md"),
        ("session token -ext:md", "--json"),
        ("session token -/sp+oon/",),
        ("session token", "--path", "docs"),
        ("session token lang:markdown", "--type", "file"),
        ("session token tag:none",),
        ("session token author:nobody",),
        ("session token after:2001-01-31 before:2101-01-31",),
        ("session token before:2001-01-31",),
        ("session token", "--set", "search.heads=false"),
        ("session token", "--set", "search.group=resource", "--json"),
        ("session token", "--facet", "ext", "--facet", "path"),
        ("session token", "--facet", "ext", "--json"),
        ("session token", "--no-index"),
        ("session token", "docs"),
        ("session token", "docs/guide.md"),
        ("session token", "./docs/../src"),
        ("session token", "team"),
        ("session token", "team", "--no-context"),
        ("session token", "team", "--profile", "brief"),
        ("session token", "--workspace", "docs", "--json"),
        ("session token", "--workspace", "docs", "docs"),
        ("session token", "--workspace", "facts", "--json"),
        ("session token", "--workspace", "facts", "--facet", "type"),
        ("soup", "--workspace", "mixed", "--mode", "hybrid", "--json"),
        ("Größe der Sitzung", "umläute"),
        ('"session token" -spoon',),
        ("login ext:py OR ext:md",),
        ("sesion tokn",),
        ("qwertyuiop",),
        ("qwertyuiop", "--json"),
        ("-e", "md", "--", "-token session"),
    ],
    ids=" ".join,
)
def test_every_option_means_the_same(served: Served, findling: Findling, args: tuple[str, ...]) -> None:
    assert both(served, findling, *args)[0] in (0, 1)


def counted(daemon: Daemon, name: str) -> int:
    count: int = daemon.about()[name]
    return count


def is_kept(answer: tuple[int, str, str]) -> bool:
    return list(json.loads(answer[1])["timings_ms"]) == ["kept"]


def test_a_question_that_is_asked_again_is_answered_from_what_is_kept(
    served: Served, findling: Findling, tmp_path: Path
) -> None:
    note = tmp_path / "soup" / "note.md"
    note.parent.mkdir()
    note.write_text("A spoon for the soup.\n")
    assert findling("index", str(note.parent))[0] == 0
    asking = ("search", "spoon", str(note.parent), "--json")
    first = findling(*asking)
    kept = counted(served.daemon, "cache_hits")
    # The run that indexed may still be closing its log, which changes the version of the store once more.
    again = next(answer for answer in (findling(*asking) for _ in range(10)) if is_kept(answer))
    assert counted(served.daemon, "cache_hits") == kept + 1
    assert without_times(again) == without_times(first)
    note.write_text("Another spoon for the soup of the cooks.\n")
    assert "Another spoon" in findling(*asking)[1]
    assert counted(served.daemon, "cache_hits") == kept + 1


@pytest.mark.parametrize(
    "args",
    [
        ("search", "session token", "--explain-hit", "docs/guide.md", "--json"),
        ("search", "qwertyuiop", "--explain-hit", "docs/guide.md"),
        ("search", "session token", "--explain-hit", "nowhere.md"),
        ("fetch", "docs/guide.md:5", "--json"),
        ("fetch", "docs/guide.md", "--as", "user:nobody"),
        ("similar", "docs/guide.md", "--json"),
        ("similar", "docs/guide.md", "--as", "user:ann", "-k", "2"),
        ("similar", "decision:7", ".", "--workspace", "facts"),
        ("suggest", "tok", "--json"),
        ("suggest", "tok", "docs"),
    ],
    ids=" ".join,
)
def test_other_questions_get_the_same_answer(
    served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    asked_for: list[str] = []
    monkeypatch.setattr(DaemonClient, "_ask", _noting(DaemonClient._ask, asked_for))
    through = findling(*args)
    assert asked_for == ["explain" if "--explain-hit" in args else args[0]], "the daemon was asked"
    monkeypatch.setenv("FINDLING_SERVE_USE", "never")
    alone = findling(*args)
    assert len(asked_for) == 1, "nobody asked the daemon"
    assert without_times(through) == without_times(alone)


def _noting(ask: Callable[..., Any], verbs: list[str]) -> Callable[..., Any]:
    def noting(client: DaemonClient, verb: str, *given: Any, **options: Any) -> Any:
        verbs.append(verb)
        return ask(client, verb, *given, **options)

    return noting


@pytest.mark.parametrize("folder", ["", "docs", "team", "team/kitchen", "src", ".."])
@pytest.mark.parametrize("options", [(), ("--workspace", "docs"), ("--workspace", "mixed")], ids=" ".join)
def test_every_folder_means_the_same(
    served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch, folder: str, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(served.root / folder)
    if folder == ".." and not options:  # nothing is indexed there, and nothing may be
        options = ("--no-index",)
        assert findling("session token", *options) == findling("session token", *options, "--set", "serve.use=never")
        return
    both(served, findling, "session token", *options)


def test_a_context_in_the_environment_means_the_same(
    served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDLING_CONTEXT_PATH", "docs")
    _, _, err = both(served, findling, "session token")
    assert "searched in the context of env FINDLING_CONTEXT_PATH: path docs" in err
    monkeypatch.setenv("FINDLING_CONTEXT_TYPES", "decision,file")
    _, _, err = both(served, findling, "session token")
    assert "types decision, file" in err


def test_several_questions_and_pages(served: Served, findling: Findling, tmp_path: Path) -> None:
    lines = ["session token", "qwertyuiop", "login"] * 12
    (tmp_path / "queries").write_text("\n".join(lines))
    for options in (
        (),
        ("--json",),
        (
            "--format",
            "jsonl",
        ),
        ("--files",),
    ):
        both(served, findling, "-Q", str(tmp_path / "queries"), *options, questions=len(lines))
    first = json.loads(both(served, findling, "session token", "-k", "1", "--json")[1])
    assert first["next_cursor"]
    second = both(served, findling, "session token", "-k", "1", "--cursor", first["next_cursor"], "--json")
    assert json.loads(second[1])["hits"][0]["id"] != first["hits"][0]["id"]


def test_a_plan_means_the_same(served: Served, findling: Findling, tmp_path: Path) -> None:
    found = findling("session token", "docs", "-e", "md", "--set", "search.words=all", "--json")[1]
    (tmp_path / "plan.json").write_text(found)
    again = json.loads(both(served, findling, "--plan", str(tmp_path / "plan.json"), "--json")[1])
    assert [hit["id"] for hit in again["hits"]] == [hit["id"] for hit in json.loads(found)["hits"]]


@pytest.mark.parametrize(
    "args",
    [
        ("session", "--workspace", "nope"),
        ("session", "--profile", "nope"),
        ("session", "--set", "search.nope=1"),
        ("session", "--as", "nobody"),
        ("session", "--facet", "nope"),
        ("session", "--cursor", "nope"),
        ("session", "nowhere"),
        ("session", "/usr", "--workspace", "docs"),
        ("session", "--mode", "semantic", "--set", "semantic.model=nope"),
    ],
    ids=" ".join,
)
def test_errors_are_the_same(findling: Findling, args: tuple[str, ...]) -> None:
    alone = findling("search", *args, "--set", "serve.use=never")
    assert without_times(findling("search", *args)) == without_times(alone)


def test_explain_says_who_answered(served: Served, findling: Findling) -> None:
    assert f"answered by the daemon of process {served.daemon.state.pid}" in findling("login", "--explain")[2]
    assert "answered by" not in findling("login")[2]
    assert json.loads(findling("login", "--json")[1])["served_by"] == f"the daemon of process {served.daemon.state.pid}"
    assert json.loads(findling("login", "--json", "--set", "serve.use=never")[1])["served_by"] == ""


def test_nobody_is_asked_against_the_settings(
    served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asked(served.daemon)
    monkeypatch.setenv("FINDLING_SERVE_USE", "never")
    assert findling("login")[0] == 0
    assert asked(served.daemon) == before


def test_a_file_that_was_saved_just_now_is_found(served: Served, findling: Findling) -> None:
    file = served.root / "docs" / "new.md"
    for number in range(5):
        word = f"walrus{'x' * number}"
        file.write_text(f"# New\n\nA {word}.\n")
        assert findling(word, "--files")[1] == "docs/new.md\n"
    file.unlink()
    assert findling(word, "--files", "--set", "search.typos=ignore")[0] == 1


def test_a_path_that_is_no_utf8_comes_through(served: Served, findling: Findling) -> None:
    name = os.fsdecode(b"docs/caf\xe9.md")
    try:
        (served.root / name).write_text("# Walnut\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    try:
        both(served, findling, "walnut")
    finally:
        (served.root / name).unlink()


def test_what_is_not_indexed_is_indexed_by_the_command(served: Served, findling: Findling, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.txt").write_text("a walrus\n")
    before = asked(served.daemon)
    code, out, err = findling("walrus", str(tmp_path / "new"), "--files", "--explain")
    assert (code, out) == (0, f"{os.path.relpath(tmp_path / 'new' / 'a.txt')}\n") or out.endswith("a.txt\n")
    assert "searched here: the daemon leaves this to the command line" in err
    assert asked(served.daemon) == before
    findling("walrus", str(tmp_path / "new"))
    assert asked(served.daemon) == before + 1, "and now the daemon knows it"


def test_a_daemon_of_another_version_is_left_alone(served: Served, findling: Findling) -> None:
    state = read_state(served.daemon.home)
    assert state is not None
    before = asked(served.daemon)
    try:
        write_state(served.daemon.home, state._replace(version="0.0.1"))
        code, _, err = findling("login", "--explain")
        assert code == 0
        assert "searched here: the daemon is findling 0.0.1" in err
        assert "0.0.1" not in findling("login")[2]
    finally:
        write_state(served.daemon.home, state)
    assert asked(served.daemon) == before


def test_status_tells_of_the_daemon(served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    findling("login")
    state = served.daemon.state
    line = next(line for line in findling("status")[1].splitlines() if line.startswith("daemon:"))
    assert f"process {state.pid} at {state.address}, since " in line
    assert "ms on average" in line
    told = json.loads(findling("status", "--json")[1])["daemon"]
    assert told["pid"] == state.pid
    assert told["total_queries"] > 0
    assert set(told["legs"]) == {"keyword", "vectors", "model"}
    assert told["legs"]["keyword"] is True
    assert (told["documents"], told["ready"]) == (len(FILES) - 1, True)
    monkeypatch.setenv("FINDLING_HOME", str(served.root.parent / "other"))
    findling("index")
    assert json.loads(findling("status", "--json")[1])["daemon"] is None
    assert "daemon:" not in findling("status")[1]


@pytest.mark.parametrize(
    "content", [b"[]", b"null", b'"x"', b"{}", b'{"pid": "1"}', b'{"answers": [[]], "reading": null}']
)
def test_a_peer_that_answers_something_else_is_left_alone(served: Served, findling: Findling, content: bytes) -> None:
    state = read_state(served.daemon.home)
    assert state is not None
    path = served.root.parent / "peer"
    try:
        write_state(served.daemon.home, state._replace(socket=str(path)))
        with listening(path, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content)) as heard:
            code, _, err = findling("login", "--explain")
            assert (code, "searched here: the daemon answers in another way" in err) == (0, True), err
            assert json.loads(findling("status", "--json")[1])["daemon"] is None
            assert findling("status")[0] == 0
        assert len(heard) == 3
    finally:
        write_state(served.daemon.home, state)
        path.unlink(missing_ok=True)


def test_a_relative_path_in_a_setting_is_one_of_the_command(
    served: Served, findling: Findling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mm").symlink_to(locate("minilm", tmp_path).model.parent)
    monkeypatch.chdir(tmp_path)

    def with_model(spec: str, *options: str) -> tuple[int, str, str]:
        return findling(
            "session token", str(served.root), "--mode", "semantic", f"--set=semantic.model={spec}", *options
        )

    before = asked(served.daemon)
    for spec in ("./mm", "mm"):
        found = with_model(spec)
        assert f"{tmp_path}/mm holds no tokenizer.json" in found[2], "it is found, and looked into"
        assert without_times(found) == without_times(with_model(str(tmp_path / "mm"), "--set", "serve.use=never"))
    assert asked(served.daemon) == before + 2


def test_paths_in_settings_mean_the_same_in_every_folder(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "own").mkdir(parents=True)
    (tmp_path / "minilm").mkdir()
    home = served.environ["HOME"]
    expected = {
        "semantic.model": {
            "./mm": f"{tmp_path}/mm",
            "../mm": f"{tmp_path}/../mm",
            "~/mm": f"{home}/mm",
            "org/own": f"{tmp_path}/org/own",
            "m.onnx": f"{tmp_path}/m.onnx",
            **{name: name for name in ("org/other", "/mm", "minilm", "openai:a/b", "ollama:.x", "none", "auto")},
        },
        "rerank.model": {"./mm": f"{tmp_path}/mm", "none": "none"},
        "store.home": {"own": f"{tmp_path}/own", "~/.ai": f"{home}/.ai", "": ""},
        "search.profile": {"./mm": "./mm"},
    }
    for name, values in expected.items():
        for given, meant in values.items():
            document = settings_document(Settings().override({name: given}, "flag"))
            assert document["values"][name] == [meant, "flag"], (name, given)


def test_a_model_that_has_not_read_everything_has_not_read_100_percent() -> None:
    meaning = {"model": "minilm", "coverage": 0.9991, "sent_to": ""}
    answer = SearchAnswer(query="q", understood_as="q", hits=(), total=0, strategy="hybrid", meaning=meaning)
    assert _unread(answer).startswith("minilm has read 99% of")
    account = {"instant": False, "refining": False, "reranker": "none", "problems": [], "read": 9991, "of": 10000}
    account |= {"withheld": 0, "speed": 0.0, "seconds_left": None, "waiting": "", "readers": []}
    assert "(99%)" in _describe_meaning({**meaning, **account})
    assert "findling refine reads the rest" in _describe_meaning({**meaning, **account})
    assert "(100%)" in _describe_meaning({**meaning, **account, "read": 10000})
    reading = account | {"refining": True, "speed": 4.13, "seconds_left": 125}
    told = "(99%, read on in the background, 4.1/s, about 2:05 left)"
    assert _describe_meaning({**meaning, **reading}).endswith(told)
    assert _describe_meaning({**meaning, **account, "withheld": 9}).endswith("; 9 kept private")


def test_a_search_through_the_daemon_imports_little(served: Served) -> None:
    command = [sys.executable, "-c", LIST_MODULES, "session token"]
    before = asked(served.daemon)
    done = run_process(command, env=served.environ, cwd=served.root)
    assert done.returncode == 0, done.stderr
    assert asked(served.daemon) == before + 1
    loaded = set(done.stderr.splitlines())
    heavy = {
        "Stemmer",
        "asyncio",
        "concurrent.futures",
        "difflib",
        "email",
        "fastapi",
        "findling.faces.cli.output.progress",
        "findling.models.remote.providers",
        "findling.pipelines.answer.search",
        "findling.service.engine.engine",
        "findling.stores.keyword.leg",
        "http",
        "logging",
        "msgspec",
        "numpy",
        "onnxruntime",
        "sqlite3",
        "ssl",
        "subprocess",
        "tantivy",
        "uvicorn",
    }
    assert loaded & heavy == set()
