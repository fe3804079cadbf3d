"""An answer claims nothing that was not done, and an empty one says what keeps it empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.ports import TruthStore
from findling.domain.queries import Filters, SearchRequest, Word
from findling.domain.reports import GrepRequest
from findling.domain.resources import Resource
from findling.domain.results import Degradation, SearchAnswer
from findling.pipelines.retrieve.query_planner import understand
from findling.service.engine.engine import Engine, open_engine
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from tests.memory_store import MemoryStore

TEXTS = {
    "pool.md": "# Pool\n\nThe connection pool waits for a connection.\n",
    "cache.md": "# Cache\n\nThe cache keeps a connection to redis.\n",
    "cat.md": "# Pets\n\nThe feline dozed off upon the rug.\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "root"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


def ask(engine: Engine, query: str, **knobs: object) -> SearchAnswer:
    plan = Plan(**{"mode": "keyword", **knobs})  # type: ignore[arg-type]
    return engine.search(query, refresh=False, plan=plan)


def test_nothing_is_respelled_inside_quotes(engine: Engine) -> None:
    answer = ask(engine, '"connection poool"')
    assert not answer.hits
    (meant,) = answer.did_you_mean
    assert (meant.applied, meant.query) == (False, '"connection pool"')
    (meant,) = ask(engine, "poool NEAR waits").did_you_mean
    assert not meant.applied


def test_one_suggestion_puts_all_words_right(engine: Engine) -> None:
    answer = ask(engine, "conection poool -path:poool/x", words="all", typos="suggest")
    assert {meant.query for meant in answer.did_you_mean} == {"connection pool -path:poool/x"}


def test_a_query_that_is_meant_is_told_once_to_an_agent(engine: Engine) -> None:
    from findling.faces.mcp.tools.tool_results import describe_search

    answer = ask(engine, '"conection poool"')
    assert len(answer.did_you_mean) == 2
    assert describe_search(answer, None, {})["did_you_mean"] == ['"connection pool"']


def test_a_name_in_another_style_is_not_unknown(engine: Engine) -> None:
    (engine.root / "code.py").write_text("def get_user_name(x):\n    return x\n")
    engine.index()
    assert ask(engine, "getUserName zebra").unknown_terms == ("zebra",)
    assert ask(engine, "getUserNaming zebra").unknown_terms == ("getUserNaming", "zebra")


def test_an_expression_that_matches_no_letter_says_so(engine: Engine) -> None:
    for query in ("/^$/", r"/\b/", "/(?=pool)/"):
        answer = ask(engine, query)
        assert not answer.hits
        (said,) = answer.notes
        assert (
            said
            == f"{query} matches nothing but places between letters; findling grep '{query[1:-1]}' lists such lines"
        )
    assert "nothing here has all of /^z$/" in ask(engine, "/^z$/").notes


def test_a_folder_that_a_rule_leaves_out_is_named_with_the_option_that_adds_it(engine: Engine, tmp_path: Path) -> None:
    root, settings = engine.root, Settings().override({"store.home": str(tmp_path / "home")}, "test")
    (root / "node_modules" / "pkg").mkdir(parents=True)
    (root / "node_modules" / "pkg" / "index.js").write_text("function pooled() {}\n")
    (root / "empty").mkdir()
    engine.index()
    for folder in ("node_modules", "node_modules/pkg"):
        with open_engine(root / folder, settings=settings) as opened:
            for answer in (
                ask(opened, "pooled"),
                opened.exact.grep(GrepRequest(patterns=("pooled",)), refresh=False),
                opened.exact.refs("pooled", refresh=False),
                opened.exact.glob(["*.js"], refresh=False),
            ):
                said = [one for one in answer.degraded if "is not indexed" in one.what]
                assert [one.fix for one in said] == [f"findling config add index.include /{folder}"], answer
                assert "(node_modules)" in said[0].what
    with open_engine(root / "empty", settings=settings) as opened:
        assert not [one for one in ask(opened, "pooled").degraded if "is not indexed" in one.what]
    included = settings.override({"index.include": ("/node_modules",)}, "test")
    with open_engine(root / "node_modules", settings=included) as opened:
        assert opened.search("pooled").hits


def test_what_the_glossary_knows_is_no_error_of_spelling(engine: Engine) -> None:
    engine.glossary.add("connection", ["conexion"])
    answer = ask(engine, "conexion")
    assert answer.hits and not answer.did_you_mean
    assert not answer.unknown_terms or answer.unknown_terms == ("conexion",)


def test_common_words_are_no_errors_of_spelling(engine: Engine) -> None:
    assert not ask(engine, "what does the cache do").did_you_mean


def test_an_alias_does_not_take_the_boost_of_a_title(engine: Engine) -> None:
    engine.add([(Resource(rid="n:1", type="note", title="auth"), "who may do what")])
    before = ask(engine, "auth", exact_boost=5.0).hits[0]
    engine.glossary.add("auth", ["authentication", "sign-in"])
    after = ask(engine, "auth", exact_boost=5.0).hits[0]
    assert [step.name for step in after.receipt.steps] == [step.name for step in before.receipt.steps] != []


def test_an_exclusion_that_empties_an_answer_is_named(engine: Engine) -> None:
    assert ask(engine, "connection -the").notes == ("2 passages match without what is excluded",)
    assert ask(engine, "pool -cahce").notes == ("-cahce excludes nothing: nothing says so",)


def test_what_is_excluded_in_words_gets_a_hint(engine: Engine) -> None:
    assert ask(engine, "the connection, excluding redis?").notes == ('to leave it out, write -"redis"',)
    assert not ask(engine, "connection without redis").notes


def test_hits_that_score_too_little_are_told(engine: Engine) -> None:
    answer = engine.search("connection", refresh=False, min_score=0.999, plan=Plan(mode="keyword"))
    assert (answer.total, answer.hits) == (2, ())
    assert "none scores enough" in answer.notes[0]


def test_a_word_that_one_field_lacks_is_not_unknown(engine: Engine) -> None:
    assert ask(engine, "title:waits").unknown_terms == ()
    assert ask(engine, "waitzz").unknown_terms == ("waitzz",)


def test_neighbours_escape_the_pattern_and_are_accounted_for(engine: Engine) -> None:
    strict = engine.search("cat sleeping on carpet", refresh=False, profile="strict")
    assert not strict.hits
    assert strict.related[0].path == "cat.md"
    assert strict.meaning["speed"] == "instant"
    barred = engine.search("cat sleeping on carpet", refresh=False, profile="strict", exclude_pattern="feline")
    assert "cat.md" not in [hit.path for hit in barred.related]
    junk = engine.search("asdfqwerzxcv", refresh=False, profile="strict")
    assert (len(junk.hits), len(junk.related)) == (0, 3), "the nearest passages are named, and are no hits"


def test_a_passage_without_content_is_no_hit_by_its_heading(tmp_path: Path) -> None:
    """A file with the query as its heading and 50,000 brackets took the first 107 places."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "brackets.md").write_text("# rotate the tokens\n\n" + ("[]{}()" * 12 + "\n") * 800)
    (root / "tokens.md").write_text("To rotate the tokens, ask the operator.\n")
    settings = Settings().override({"store.home": str(tmp_path / "home"), "semantic.refine": "never"}, "test")
    with open_engine(root, settings=settings) as engine:
        engine.index()
        hits = engine.search("rotate the tokens", limit=50, plan=Plan(mode="keyword")).hits
    assert [hit.path for hit in hits if hit.path == "tokens.md"] == ["tokens.md"]
    assert len(hits) <= 2


def test_a_query_of_conditions_alone_has_no_meaning(engine: Engine) -> None:
    answer = engine.search("title:pool", refresh=False)
    assert [hit.path for hit in answer] == ["pool.md"]
    assert all(part.leg == "keyword" or part.raw for hit in answer for part in hit.receipt.parts)


def test_a_description_counts_and_stands_in_the_receipt(engine: Engine) -> None:
    engine.add([(Resource(rid="t:1", type="tool", fields={"description": "counts quokkas"}), "does something")])
    (hit,) = ask(engine, "quokkas")
    assert [(match.field, match.term) for match in hit.receipt.matches] == [("description", "quokkas")]
    assert not hit.receipt.missing


@pytest.mark.parametrize("fields", [{"system": 7}, {"supersedes": ["d:1"]}, {"name": None}])
def test_a_field_that_is_no_text_is_refused_before_anything_is_written(engine: Engine, fields: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError, match="d:1"):
        engine.add([(Resource(rid="d:1", type="decision", fields=fields), "text")])
    assert ask(engine, "pool").hits
    assert all(check.ok for check in engine.check())


def test_what_is_excluded_is_not_what_a_model_reads() -> None:
    query = 'how do I "rate limit" the logger -java -(oven (rug) pipeline) ext:py'
    question = understand(SearchRequest(query=query), Plan(), MemoryStore())
    assert question.text == "how do I rate limit the logger"
    assert question.reading == "ranked"


@pytest.mark.parametrize("is_folder_indexed", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "reason", "fix"),
    [
        ("huge.log", b"okapi\n" * 800_000, "larger than the limit", "findling config set index.max_file_size 5MB"),
        ("blob.md", bytes(range(256)) * 20, "not text", "findling status --list skipped"),
    ],
)
def test_a_file_that_was_named_and_is_left_out_says_why(
    tmp_path: Path, name: str, content: bytes, reason: str, fix: str, is_folder_indexed: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "cat.md").write_text(TEXTS["cat.md"])
    (root / name).write_bytes(content)
    settings = Settings().override({"store.home": str(tmp_path / "home"), "semantic.refine": "never"}, "test")
    if is_folder_indexed:
        with open_engine(root, settings=settings) as whole:
            assert whole.search("feline").degraded == ()
    with open_engine(root / name, settings=settings) as opened:
        (note,) = opened.search("okapi").degraded
        assert f"{root / name} is not indexed: {reason}" in note.what
        assert note.fix == fix
        assert opened.search("okapi", principals=("user:ada",)).degraded == ()


def test_a_rule_that_leaves_a_named_file_out_can_be_overridden(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "node_modules").mkdir(parents=True)
    (root / "cat.md").write_text(TEXTS["cat.md"])
    (root / "node_modules" / "m.js").write_text("okapi()\n")
    settings = Settings().override({"store.home": str(tmp_path / "home"), "semantic.refine": "never"}, "test")
    with open_engine(root, settings=settings) as whole:
        whole.index()
    with open_engine(root / "node_modules" / "m.js", settings=settings) as opened:
        (note,) = opened.search("okapi").degraded
    command, _, value = note.fix.rpartition(" ")
    assert command == "findling config add index.include"
    included = settings.override({"index.include": (value,)}, "test")
    with open_engine(root / "node_modules" / "m.js", settings=included) as opened:
        assert [hit.path for hit in opened.search("okapi")] == ["node_modules/m.js"]


def test_files_that_are_too_large_are_named_by_answers_about_their_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "logs").mkdir(parents=True)
    (root / "logs" / "small.log").write_text("ocelot\n")
    (root / "logs" / "huge.log").write_bytes(b"solar\n" * 800_000)
    (root / "huge.py").write_bytes(b"solar()\n" * 600_000)
    settings = Settings().override({"store.home": str(tmp_path / "home"), "semantic.refine": "never"}, "test")
    limit = "findling config set index.max_file_size 5MB"
    log, code = "1 file left out as too large: logs/huge.log", "1 file left out as too large: huge.py"
    both = "2 files left out as too large: huge.py, logs/huge.log"
    with open_engine(root, settings=settings) as whole:
        whole.index()
    with open_engine(root, settings=settings) as whole, open_engine(root / "logs", settings=settings) as logs:
        for answer, told in (
            (whole.exact.grep(GrepRequest(patterns=("solar",))), both),
            (logs.exact.grep(GrepRequest(patterns=("solar",))), log),
            (logs.exact.grep(GrepRequest(patterns=("ocelot",))), log),  # a complete answer lacks lines, too
            (whole.exact.grep(GrepRequest(patterns=("solar",), globs=("*.py",))), code),
            (whole.exact.grep(GrepRequest(patterns=("solar",), globs=("*.md",))), ""),
            (whole.exact.refs("solar"), code),
            (logs.exact.refs("solar"), ""),
            (logs.exact.glob(["huge*"]), log),
            (logs.exact.glob(["small*"]), ""),
            (logs.search("solar"), log),
            (logs.search("ocelot"), ""),
        ):
            assert [(one.what, one.fix) for one in answer.degraded] == ([(told, limit)] if told else []), answer
        # Others learn nothing of what is left out.
        other = ("user:ada",)
        for answer in (
            logs.exact.grep(GrepRequest(patterns=("solar",), principals=other)),
            logs.exact.refs("solar", principals=other),
            logs.exact.glob(["huge*"], principals=other),
            logs.search("solar", principals=other),
        ):
            assert not [one for one in answer.degraded if "too large" in one.what]


@pytest.mark.parametrize(("limit", "shown"), [(3, 3), (40, 28), (0, 0)])
def test_passages_that_go_while_they_are_read_are_noted_where_nothing_stands_in_their_place(
    limit: int, shown: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (engine.root / f"{number}.md").write_text(f"# Heron {number}\n\nThe heron of pond {number} sleeps.\n")
    engine.index()
    files, level = engine.opened.files, OpenedWorkspace.level_leg

    def while_another_process_writes(self: OpenedWorkspace, at: TruthStore | None = None) -> Degradation | None:
        note = level(self, at)
        best = files.leg.search(Word("heron"), Filters(), 1).hits[0][0]
        gone = files.store.chunks([best])[best].resource.rid
        with files.queue.locked(30.0):
            files.store.write([], [gone])
        return note

    monkeypatch.setattr(OpenedWorkspace, "level_leg", while_another_process_writes)
    answer = engine.search("heron", refresh=False, limit=limit, changes={"mode": "keyword"})
    assert len(answer.hits) == shown
    assert [note.fix for note in answer.degraded] == ["ask again"] * (shown < limit)
