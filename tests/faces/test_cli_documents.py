"""`fetch`, `similar`, `related` and `suggest` on the command line, and answers with groups, messages and facets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.domain.results import Hit, Line, Passage, Receipt, SearchAnswer
from findling.faces.cli.output.rendering import View, render_text

Call = Callable[..., tuple[int, str, str]]
ROOT = Path("/srv/project")
PIPED = View(ROOT, here=ROOT)
COLORED = View(ROOT, here=ROOT, color=True, terminal=True)


@pytest.fixture
def indexed(project: Path, findling: Call) -> Path:
    (project / "docs" / "twin.md").write_text("# Guide two\n\n## Signing in\n\nEvery login makes a session token.\n")
    assert findling("index")[0] == 0
    return project


def test_fetch_prints_the_text_and_nothing_else(indexed: Path, findling: Call) -> None:
    text = (indexed / "docs" / "guide.md").read_text()
    assert findling("fetch", "docs/guide.md") == (0, text, "")
    assert findling("fetch", "file:docs/guide.md") == (0, text, "")


def test_fetch_takes_paths_as_they_are_seen_from_here(
    indexed: Path, findling: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(indexed / "docs")
    code, out, _ = findling("fetch", "../src/auth.py:4", str(indexed))
    assert (code, out.startswith("import os")) == (0, True)


def test_fetch_of_a_hit_is_its_passage(indexed: Path, findling: Call) -> None:
    _, out, _ = findling("search", "--json", "-k", "1", "create_session")
    (hit,) = json.loads(out)["hits"]
    _, out, _ = findling("fetch", hit["id"], "--json")
    document = json.loads(out)
    assert "create_session(user)" in document["text"]
    assert (document["path"], document["line_end"]) == ("src/auth.py", hit["line_end"])
    code, out, _ = findling("fetch", "src/auth.py:5", "--lines", "99")
    assert (code, out) == (0, (indexed / "src" / "auth.py").read_text())


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("fetch", "nothing.md"), "there is no nothing.md in the index"),
        (("similar", "nothing.md"), "there is no nothing.md in the index"),
        (("fetch", "docs/guide.md:99"), "has no line 99"),
        (("fetch", "docs/guide.md", "--lines", "-1"), "context -1"),
        (("suggest", " "), "there is no word"),
        (("suggest", "log", "-k", "-1"), "-1"),
    ],
)
def test_what_cannot_be_done_is_told(indexed: Path, findling: Call, args: tuple[str, ...], told: str) -> None:
    code, out, err = findling(*args)
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize("command", ["fetch", "similar", "suggest"])
def test_what_is_not_indexed_is_told(project: Path, findling: Call, command: str) -> None:
    code, _, err = findling(command, "login")
    assert code == 2 and "is not indexed" in err


def test_similar_shows_what_is_like_it(indexed: Path, findling: Call) -> None:
    code, out, _ = findling("similar", "docs/guide.md", "-k", "1")
    assert code == 0 and out.startswith("docs/twin.md:")
    code, out, _ = findling("similar", "docs/guide.md", "--json")
    answer = json.loads(out)
    assert answer["hits"][0]["path"] == "docs/twin.md"
    assert "docs/guide.md" not in {hit["path"] for hit in answer["hits"]}


def test_suggest_completes_by_the_line(indexed: Path, findling: Call) -> None:
    assert findling("suggest", "a sess") == (0, "a session\n", "")
    assert findling("suggest", "Gui", "-k", "1") == (0, "guide\n", "")
    assert findling("suggest", "sesion to") == (0, "session to\nsession token\n", "")
    assert findling("suggest", "zzzq") == (1, "", "")
    _, out, _ = findling("suggest", "guide t", "--json")
    assert {(one["kind"], one["text"]) for one in json.loads(out)["suggestions"]} >= {("title", "Guide two")}


def test_grouped_answers_show_the_other_passages(indexed: Path, findling: Call) -> None:
    long = "".join(
        f"## Part {n}\n\n" + ("A zebra here. " if n in (1, 6) else "") + "Other words. " * 150 + "\n\n"
        for n in range(8)
    )
    (indexed / "long.md").write_text(long)
    code, out, _ = findling("search", "zebra", "--set", "search.group=resource")
    assert code == 0 and out.count("long.md") == 1
    assert re.search(r"^  also \d+-\d+  A zebra here\.", out, re.MULTILINE)


def hit(**given: object) -> Hit:
    values: dict[str, object] = {
        "id": "00000000000000aa", "rid": "chat:slack/general/1", "path": "", "type": "chat", "title": "general",
        "heading": ("Ann, Bob", "2026-04-08 09:00 – 09:05"), "line_start": 0, "line_end": 0, "score": 0.5,
        "place": "Bob, 2026-04-08 09:01", "receipt": Receipt(fused_score=0.5, final_score=0.5),
        "lines": (Line(number=0, text="The falcon landed", spans=((4, 10),), place="Bob, 2026-04-08 09:01"),),
    }  # fmt: skip
    return Hit(**{**values, **given})  # type: ignore[arg-type]


def shown(*hits: Hit, view: View = PIPED, **given: object) -> str:
    values: dict[str, object] = {"query": "falcon", "understood_as": "falcon", "total": 1, "strategy": "keyword"}
    return render_text(SearchAnswer(**{**values, "hits": hits, **given}), view)  # type: ignore[arg-type]


AROUND = (
    Line(number=-1, text="Good morning", place="Ann, 2026-04-08 09:00"),
    Line(number=1, text="Feed it", place="Ann, 2026-04-08 09:02"),
)


def test_a_chat_shows_its_thread_who_spoke_when_and_what_was_said_around_it() -> None:
    assert shown(hit(around=AROUND)) == (
        "chat:slack/general/1 Bob, 2026-04-08 09:01  general                       0.50\n"
        "  Ann, 2026-04-08 09:00 │ Good morning\n"
        "  Bob, 2026-04-08 09:01 │ The falcon landed\n"
        "  Ann, 2026-04-08 09:02 │ Feed it\n"
    )


def test_lines_that_say_who_speaks_are_not_told_twice() -> None:
    def spoken(line: Line) -> Line:
        author, time = line.place.split(", ")
        return Line(number=line.number, text=f"[{time}] {author}: {line.text}", place=line.place)

    own = hit().lines[0]
    text = shown(
        hit(lines=(spoken(own), Line(number=0, text="at last", place=own.place)), around=tuple(map(spoken, AROUND)))
    )
    assert text.splitlines()[1:] == [
        "   │ [2026-04-08 09:00] Ann: Good morning",
        "   │ [2026-04-08 09:01] Bob: The falcon landed",
        "   │ at last",
        "   │ [2026-04-08 09:02] Ann: Feed it",
    ]


def test_a_message_that_is_shown_already_is_not_shown_around_itself() -> None:
    own = hit().lines[0]
    neighbour = Line(number=0, text=AROUND[1].text, place=AROUND[1].place)
    assert shown(hit(lines=(own, neighbour), around=AROUND)).count("Feed it") == 1


def test_what_stands_around_is_dim_and_colours_change_no_letter() -> None:
    passages = (
        Passage(id="b", rid="chat:slack/general/2", line_start=0, line_end=0, place="Cleo", score=0.4, lines=()),
    )
    coloured = shown(hit(around=AROUND, passages=passages), view=COLORED, facets={"type": {"chat": 1}})
    assert "\x1b[2m  Ann, 2026-04-08 09:00 │ Good morning\x1b[0m" in coloured
    plain = shown(hit(around=AROUND, passages=passages), facets={"type": {"chat": 1}})
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert "  also chat:slack/general/2 Cleo  \n" in plain


def test_other_passages_are_short_lines() -> None:
    line = Line(number=123, text="  and the falcon " + "x" * 200, spans=((10, 16),))
    passage = Passage(id="b", rid="file:a.md", line_start=120, line_end=131, place="", score=0.4, lines=(line,))
    text = shown(hit(type="file", rid="file:a.md", path="a.md", place="", line=3, passages=(passage,)))
    row = text.splitlines()[-1]
    assert row.startswith("  also 120-131  and the falcon xxx") and row.endswith("x…")
    assert len(row) < 125


def test_facets_follow_the_hits_a_line_each() -> None:
    text = shown(hit(), facets={"type": {"chat": 1200, "file": 3}, "tag": {}})
    assert text.endswith("\n\ntype: chat 1,200, file 3\ntag: none\n")


def test_what_a_chat_says_does_not_drive_the_terminal() -> None:
    evil = Line(number=-1, text="a\x1b[2Jb", place="Ev\x1bil")
    passage = Passage(id="b", rid="r\x1b", line_start=1, line_end=2, place="", score=0.4, lines=(evil,))
    text = shown(hit(around=(evil,), passages=(passage,)), view=COLORED, facets={"tag": {"t\x1b": 1}})
    assert "\x1b[2J" not in text and "Ev\x1b" not in text and "r\x1b " not in text and "t\x1b" not in text


def test_related_shows_paths_and_what_is_around_a_thing(project: Path, findling: Call) -> None:
    (project / "docs" / "Marie Curie.md").write_text("# Marie Curie\n\nShe founded the Radium Institute.\n")
    (project / "docs" / "Radium Institute.md").write_text("# Radium Institute\n\nIt stands in Paris.\n")
    assert findling("related", "marie curie", "Paris") == (
        0,
        "Marie Curie → Radium Institute → Paris\n"
        "  docs/Marie Curie.md:3  She founded the Radium Institute.\n"
        "  docs/Radium Institute.md:3  It stands in Paris.\n",
        "",
    )
    code, out, _ = findling("related", "docs/Marie Curie.md", "Paris", "--json")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, document["schema"])
    assert document["paths"][0]["names"] == ["docs/Marie Curie.md", "Radium Institute", "Paris"]
    assert [step["passage"]["line"] for step in document["paths"][0]["steps"]] == [3, 3]
    code, out, _ = findling("related", "Radium Institute", "", "docs", "-k", "1")
    assert code == 0
    assert out.splitlines()[0].startswith("Radium Institute → ")
    assert "documents with Radium Institute" in out
    code, out, err = findling("related", "Paris", "Bonn")
    assert (code, out) == (1, "")
    assert "nothing names Bonn" in err
    code, out, err = findling("related", "Paris", "login")
    assert (code, out) == (1, "")
    assert "nothing connects Paris with login" in err
    code, _, err = findling("related", "!!!")
    assert (code, "no letters" in err) == (2, True)
    _, out, _ = findling("search", "founded OR stands", "--facet", "entity")
    assert "entity: Radium Institute 2, Marie Curie 1, Paris 1" in out


def test_related_without_a_thing_lists_the_themes(project: Path, findling: Call) -> None:
    (project / "docs" / "Marie Curie.md").write_text("# Marie Curie\n\nShe founded the Radium Institute.\n")
    (project / "docs" / "Radium Institute.md").write_text("# Radium Institute\n\nMarie Curie led it.\n")
    code, out, err = findling("related")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith("Radium Institute, Marie Curie  (2 documents, 2 passages, ")
    assert second == "  Marie Curie led it."
    code, out, _ = findling("related", "--json")
    (theme,) = json.loads(out)["themes"]
    assert theme["id"] in first
    assert findling("related", "", "", "docs")[1].splitlines()[0] == first
    code, out, err = findling("related", "", "", "src")
    assert (code, out, "no two documents name the same thing" in err) == (1, "", True)
