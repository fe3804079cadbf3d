"""Evidence about resources in whole answers: definitions, names, paths, pages, receipts and permissions."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest

import findling
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.settings.settings import Settings

FILES = {
    "app/session.py": "class Session:\n    def send(self, request):\n        return self.pool.take(request)\n",
    "app/client.py": "".join(
        f"def call_{n}(session, request):\n    # the session sends a request, the session pool\n"
        f"    return Session().send(request, session)\n\n\n" for n in range(40)
    ),
    "app/pool.py": "class Pool:\n    def take(self, request):\n        return request\n",
    "tests/test_session.py": "def test_session():\n    session = Session()\n    assert session.send(1), 'pool'\n",
    "README.md": "# Session\n\nA session sends a request. The session pool of a session is a pool.\n",
}  # fmt: skip


def settings(root: Path, **more: object) -> Settings:
    own: dict[str, object] = {
        "store.home": str(root.parent / "homes"),
        "search.mode": "keyword",
        "semantic.refine": "never",
    }
    own |= {"semantic.query_budget_ms": 0, **more}
    return Settings().override(own, "test")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[findling.Engine]:
    root = write(tmp_path / "tree", FILES)
    with findling.open(root, settings=settings(root)) as opened:
        opened.index()
        yield opened


def paths(answer: SearchAnswer) -> list[str]:
    return [hit.path for hit in answer.hits]


def test_the_definition_of_a_name_is_first_however_often_others_use_it(engine: findling.Engine) -> None:
    assert paths(engine.search("Session"))[0] == "app/session.py"
    assert paths(engine.search("Session", mode="hybrid"))[0] == "app/session.py"
    assert paths(engine.search("Pool"))[0] == "app/pool.py"


@pytest.mark.parametrize("query", ["{ Session.send(); }; // Things that effect", "Session -> ()", ":: Session"])
def test_marks_of_code_beside_a_name_are_no_names(engine: findling.Engine, query: str) -> None:
    assert "app/session.py" in paths(engine.search(query))


def test_a_name_may_be_counted_without_hits(engine: findling.Engine) -> None:
    answer = engine.search("Session", limit=0)
    assert not answer.hits
    assert answer.total == engine.search("Session").total > 0


def test_files_yield_to_others_and_tests_come_last_unless_asked_for(engine: findling.Engine) -> None:
    found = paths(engine.search("session pool request", limit=5))
    assert len(set(found)) >= 4
    assert found.index("tests/test_session.py") > found.index("app/session.py")
    assert paths(engine.search("test of the session pool"))[0] == "tests/test_session.py"


def test_the_plan_says_what_was_done_and_the_receipt_adds_up(engine: findling.Engine) -> None:
    answer = engine.search("how does the session pool send a request", limit=30)
    steps = {step["name"]: step["did"] for step in answer.plan["steps"]}
    assert "moved" in steps["resources"] and "held back" in steps["resources"]
    names = set()
    for hit in answer.hits:
        receipt = hit.receipt
        worth = max(receipt.words, receipt.meaning)
        assert worth * prod(step.factor for step in receipt.steps) == pytest.approx(receipt.final_score, abs=6e-5)
        names |= {step.name for step in receipt.steps}
    assert {"file name", "passages", "path", "repeated", "scale"} <= names
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize("query", ["session pool request", "Session", "send"])
def test_an_answer_begins_with_the_same_hits_whatever_its_length(
    engine: findling.Engine, query: str, mode: str
) -> None:
    whole = [hit.id for hit in engine.search(query, limit=40, mode=mode).hits]
    assert len(set(whole)) == len(whole)
    for limit in (1, 5, 10):
        assert [hit.id for hit in engine.search(query, limit=limit, mode=mode).hits] == whole[:limit]
    paged: list[str] = []
    cursor = ""
    while len(paged) < len(whole):
        answer = engine.search(SearchRequest(query=query, limit=7, cursor=cursor, changes={"mode": mode}))
        paged += [hit.id for hit in answer.hits]
        cursor = answer.next_cursor
        if not cursor:
            break
    assert paged[: len(whole)] == whole


def test_prose_is_left_to_its_words(tmp_path: Path) -> None:
    notes = {f"notes/{n}.md": f"# Note {n}\n\nA session of the pool, number {n}.\n" for n in range(20)}
    root = write(tmp_path / "tree", {**notes, "tests/session.md": "# Session\n\nsession session pool pool\n"})
    with findling.open(root, settings=settings(root)) as engine:
        engine.index()
        answer = engine.search("session pool")
        assert "resources" not in {step["name"] for step in answer.plan["steps"]}
        assert paths(answer)[0] == "tests/session.md"
        assert "resources" not in {step["name"] for step in engine.search("Session").plan["steps"]}


def test_code_without_the_word_is_not_lifted_above_the_document_that_has_it(tmp_path: Path) -> None:
    """`crepes` in a folder of recipes and code: evidence about code held the one recipe back."""
    colours = "".join(
        f"class Color{n}:\n    def tint(self, red, green, blue):\n        # the color and its shade of red or blue\n"
        f"        return self.color.blend(red, green, blue, {n})\n\n\n"
        for n in range(12)
    )
    files = {f"app/color_{n}.py": colours.replace("Color", f"Color{n}x") for n in range(6)}
    root = write(tmp_path / "tree", {**files, "notes/garden.md": "# Garden\n\nThe hues of the asters in autumn.\n"})
    with findling.open(root, settings=settings(root, **{"search.mode": "hybrid"})) as engine:
        engine.index()
        answer = engine.search("hues", limit=20)
        assert len(answer.hits) > 5, "code is near in meaning"
        assert paths(answer)[0] == "notes/garden.md"
        assert answer.hits[0].score > answer.hits[1].score
        assert "resources" not in answer.plan


def test_a_plan_without_a_router_keeps_the_order_of_words(engine: findling.Engine) -> None:
    answer = engine.search(SearchRequest(query="session pool", changes={"route": False}))
    assert "resources" not in {step["name"] for step in answer.plan["steps"]}


def test_what_a_caller_may_not_see_moves_nothing(tmp_path: Path) -> None:
    hidden = {
        f"secret/session{n}.py": "class Session:\n    pool = Pool()\n\n\nclass Pool:\n    pass\n" for n in range(9)
    }
    answers = []
    for world, files in (("with", {**FILES, **hidden}), ("without", FILES)):
        root = write(tmp_path / world / "tree", files)
        with findling.open(root, settings=settings(root, **{"permissions.unset": "public"})) as engine:
            engine.index()
            if world == "with":
                engine.permissions.deny("path:secret", "user:guest")
            found = [engine.search(q, principals=["user:guest"]) for q in ("Session", "session pool", "Pool")]
            answers.append([(hit.path, hit.score, hit.receipt) for answer in found for hit in answer.hits])
    assert answers[0] == answers[1]


LINES = {
    "sem.c": "static int sem_wait_own(sem_t* sem) {\n  lock(sem);\n  return 0;\n}\n\n"
    "static int sem_try_own(sem_t* sem) {\n  if (trylock(sem) != 0)\n    return EAGAIN;\n  return 0;\n}\n\n"
    "int sem_try(sem_t* sem) {\n  /* sem_try_own: sem_try_own(sem) */\n  return sem_try_own(sem);\n}\n",
    "auth.py": "class Auth:\n    def flow(self, request):\n        yield request\n\n\n"
    "class DigestAuth(Auth):\n    # DigestAuth has a flow, DigestAuth.flow\n    def flow(self, request):\n"
    "        yield self.sign(request)\n\n    def sign(self, request):\n        return DigestAuth.flow(request)\n",
    "parser.js": "function ContentParser (limit) {\n  this.limit = limit\n}\n\n"
    "ContentParser.prototype.add = function (ContentParser) {\n  return new ContentParser(ContentParser.limit)\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_hit_that_defines_the_asked_name_shows_the_line_of_the_definition(
    tmp_path: Path, mode: str, newline: str
) -> None:
    root = write(tmp_path / "tree", {name: text.replace("\n", newline) for name, text in LINES.items()})
    with findling.open(root, settings=settings(root)) as engine:
        engine.index()
        for query, path, line, symbol in (
            ("sem_try_own", "sem.c", 6, "sem_try_own"),
            ("semTryOwn", "sem.c", 6, "sem_try_own"),
            ("Auth.flow", "auth.py", 2, "Auth.flow"),
            ("DigestAuth.flow", "auth.py", 8, "DigestAuth.flow"),
            ("`DigestAuth.flow()`", "auth.py", 8, "DigestAuth.flow"),
            ("ContentParser", "parser.js", 1, "ContentParser"),
        ):
            hit = engine.search(query, mode=mode).hits[0]
            assert (hit.path, hit.line, hit.symbol) == (path, line, symbol), query
            assert line in [shown.number for shown in hit.lines], query


def test_of_a_qualified_name_only_the_definition_in_its_scope_counts(tmp_path: Path) -> None:
    body = "".join(f"        self.step_{n}(request, 'a long line of the body of the flow {n}')\n" for n in range(60))
    classes = "".join(f"class {name}:\n    def flow(self, request):\n{body}\n\n" for name in ("Basic", "Digest", "Net"))
    root = write(tmp_path / "tree", {"auth.py": classes, "use.py": "Digest.flow(Digest())\n"})
    with findling.open(root, settings=settings(root)) as engine:
        engine.index()
        hits = engine.search("Digest.flow").hits
        assert (hits[0].symbol, hits[0].line) == ("Digest.flow", 66)
        assert [hit.symbol for hit in hits if any(step.name == "definition" for step in hit.receipt.steps)] == [
            "Digest.flow"
        ]
        assert sum(step.name == "definition" for hit in engine.search("flow").hits for step in hit.receipt.steps) == 3


@pytest.mark.parametrize("suffix", ["rst", "md"])
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_name_that_code_defines_is_found_there_though_documents_have_it_more_often(
    tmp_path: Path, mode: str, suffix: str
) -> None:
    said = "A request begins a request. The request context of a Request keeps the request.\n"
    documents = {f"docs/part{n}.{suffix}": f"Request {n}\n=========\n\n{said * 3}" for n in range(80)}
    body = "".join(f"    def part_{n}(self, value):\n        return self.values[{n}], value\n\n" for n in range(20))
    wrappers = f"import typing\n\n\nclass Request(Base):\n    routing = None\n\n{body}\n\ndef error():\n    pass\n"
    root = write(tmp_path / "tree", {**documents, "src/wrappers.py": wrappers})
    with findling.open(root, settings=settings(root)) as engine:
        engine.index()
        for query in ("Request", "wrappers.Request", "`Request`"):
            first, *others = engine.search(query, mode=mode).hits
            assert (first.path, first.line, first.symbol) == ("src/wrappers.py", 4, "Request"), query
            assert all(hit.score <= first.score for hit in others), query
        # An everyday word, another case, and a sentence ask for what the documents say.
        for query in ("request", "REQUEST", "The Request context"):
            answer = engine.search(query, mode=mode)
            assert "resources" not in {step["name"] for step in answer.plan["steps"]}, query
            assert answer.hits[0].path.startswith("docs/"), query
