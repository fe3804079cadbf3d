from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.results import Degradation, Hit, Line, Receipt, ScorePart, SearchAnswer, TermMatch
from findling.faces.cli.output.json_output import answer_document, answer_stream, dump
from findling.faces.cli.output.rendering import View, highlight, make_view, render_files, render_text, render_vimgrep

ROOT = Path("/srv/project")
PIPED = View(ROOT, here=ROOT)
COLORED = View(ROOT, here=ROOT, color=True, terminal=True)


def make_hit(path: str, *lines: Line, score: float = 0.5, heading: tuple[str, ...] = (), **given: object) -> Hit:
    values: dict[str, object] = {
        "id": "00000000000000aa",
        "rid": f"file:{path}",
        "path": path,
        "type": "file",
        "title": "",
        "heading": heading,
        "line_start": lines[0].number if lines else 1,
        "line_end": lines[-1].number if lines else 1,
        "score": score,
        "lines": lines,
        "line": next((line.number for line in lines if line.spans), lines[0].number if lines else 1),
        "receipt": Receipt(keyword_rank=1, keyword_score=7.3125, fused_score=0.58, final_score=score),
    }
    return Hit(**{**values, **given})  # type: ignore[arg-type]


def make_answer(*hits: Hit, **given: object) -> SearchAnswer:
    values: dict[str, object] = {"query": "login", "understood_as": "login", "total": len(hits), "strategy": "keyword"}
    return SearchAnswer(**{**values, "hits": hits, **given})  # type: ignore[arg-type]


LOGIN = make_hit(
    "src/app/auth.py",
    Line(number=41, text="def login(user):", spans=((4, 9),)),
    Line(number=42, text="\ttoken = create_session(user)  "),
    score=0.62,
    heading=("def login(user)",),
)
GUIDE = make_hit("docs/guide.md", Line(number=9, text="Every login makes a token.", spans=((6, 11),)), score=0.58)
LOGOUT = make_hit(
    "src/app/auth.py",
    Line(number=99, text="# undo the login", spans=((11, 16),)),
    Line(number=100, text=""),
    score=0.31,
    heading=("class Session", "def logout()"),
)
ANSWER = make_answer(LOGIN, GUIDE, LOGOUT)


def test_text_is_grouped_by_file_and_verbatim() -> None:
    assert render_text(ANSWER, PIPED) == (
        "src/app/auth.py:41  def login(user)                                       0.62\n"
        "  41 │ def login(user):\n"
        "  42 │ \ttoken = create_session(user)  \n"
        "src/app/auth.py:99  class Session › def logout()                          0.31\n"
        "   99 │ # undo the login\n"
        "  100 │\n"
        "\n"
        "docs/guide.md:9                                                           0.58\n"
        "  9 │ Every login makes a token.\n"
    )


def test_colors_add_nothing_but_escapes() -> None:
    colored = render_text(ANSWER, COLORED)
    assert "\x1b[1;31mlogin\x1b[0m(user)" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == render_text(ANSWER, PIPED)
    assert "\x1b" not in render_text(ANSWER, PIPED)


def test_the_first_line_points_at_the_match() -> None:
    hit = make_hit("a.md", Line(number=7, text="before"), Line(number=8, text="login", spans=((0, 5),)))
    assert render_text(make_answer(hit), PIPED).startswith("a.md:8 ")


def test_explain_shows_the_receipt_and_the_plan() -> None:
    receipt = Receipt(
        keyword_rank=2,
        keyword_score=7.3125,
        words=0.58,
        fused_score=0.58,
        final_score=0.58,
        matches=(
            TermMatch(term="login", field="body", forms=("login", "logins"), count=3),
            TermMatch(term="login", field="title", forms=("login",), count=1),
        ),
        parts=(
            ScorePart(
                leg="keyword",
                rank=2,
                raw=7.3125,
                normalised=0.58,
                weight=1.0,
                value=0.58,
                measure="BM25",
                evidence=0.58,
            ),
        ),
        missing=("token",),
    )
    answer = make_answer(
        make_hit("docs/guide.md", Line(number=9, text="logins"), score=0.58, receipt=receipt),
        total=127,
        degraded=(Degradation(what="another process is indexing", fix="findling index"),),
        timings_ms={"parse": 0.123, "keyword": 4.0},
        plan={
            "because": "plain words rank",
            "legs": ["keyword"],
            "forms": {"login": ["login", "logins"]},
            "filters": {},
        },
    )
    assert render_text(answer, PIPED._replace(explain=True)) == (
        "docs/guide.md:9                                                           0.58\n"
        "  9 │ logins\n"
        "  why: keyword rank 2, BM25 7.312; score 0.58\n"
        "       0.580 by keyword = 0.58\n"
        "       login ×3 in body as login, logins\n"
        "       login ×1 in title\n"
        "       missing: token\n"
        "\n"
        "plan\n"
        "  understood as login, ranked: plain words rank\n"
        "  searched by its words\n"
        "  127 matches; quality good; 4 ms\n"
        "  degraded: another process is indexing; findling index\n"
    )


def test_vimgrep_counts_columns_in_bytes() -> None:
    hit = make_hit(
        "a.md",
        Line(number=3, text="größe login", spans=((6, 11),)),
        Line(number=4, text="context"),
        Line(number=5, text="login login\r", spans=((0, 5), (6, 11))),
    )
    assert render_vimgrep(make_answer(hit, make_hit("b.md", Line(number=1, text="title only"))), PIPED) == (
        "a.md:3:9:größe login\na.md:5:1:login login\nb.md:1:1:title only\n"
    )


def test_files_come_once_and_best_first() -> None:
    assert render_files(ANSWER, PIPED) == "src/app/auth.py\ndocs/guide.md\n"


def test_an_empty_answer_is_empty() -> None:
    for render in (render_text, render_files, render_vimgrep):
        assert render(make_answer(), PIPED) == ""


@pytest.mark.parametrize(
    ("text", "spans", "wanted"),
    [
        ("plain", [], "plain"),
        ("a login b", [(2, 7)], "a [login] b"),
        ("login login", [(6, 11), (0, 5)], "[login] [login]"),
        ("東京都の地図", [(0, 2)], "[東京]都の地図"),
        ("cafe\u0301 noir", [(0, 4)], "[cafe\u0301] noir"),
        ("e\u0301a", [(1, 3)], "[e\u0301a]"),
        ("👩‍💻 codes", [(0, 1)], "[👩‍]💻 codes"),
        ("overlap", [(0, 4), (2, 7)], "[over][lap]"),
        ("inside", [(0, 6), (1, 3)], "[inside]"),
        ("beyond", [(3, 99)], "bey[ond]"),
        ("none", [(2, 2)], "none"),
    ],
)
def test_highlighting(text: str, spans: list[tuple[int, int]], wanted: str) -> None:
    assert highlight(text, spans, "[", "]") == wanted


@given(st.text(alphabet="ae\u0301\u200d東😀 "), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_highlighting_only_adds_marks(text: str, spans: list[tuple[int, int]]) -> None:
    marked = highlight(text, spans, "[", "]")
    assert marked.replace("[", "").replace("]", "") == text
    assert re.fullmatch(r"([^\[\]]*\[[^\[\]]+\])*[^\[\]]*", marked)


def test_wide_letters_do_not_push_the_score() -> None:
    rows = [render_text(make_answer(make_hit(f"{name}.md", score=0.5)), PIPED) for name in ("ab", "東")]
    assert rows[0].index("0.50") == rows[1].index("0.50") + 1


def test_a_long_line_is_cut_around_its_match() -> None:
    text = "x" * 5000 + "login" + "y" * 5000
    hit = make_hit("a.min.js", Line(number=1, text=text, spans=((5000, 5005),)))
    row = render_text(make_answer(hit), COLORED._replace(terminal=False)).splitlines()[1]
    assert "x\x1b[1;31mlogin\x1b[0my" in row
    assert len(row) < 500
    assert row.count("…") == 2
    assert text in render_vimgrep(make_answer(hit), PIPED)


def test_a_file_cannot_drive_the_terminal() -> None:
    hit = make_hit(
        "evil\x1b[2J.md", Line(number=1, text="\x1b]0;owned\x07 login\x9b", spans=((11, 16),)), heading=("\x1b[31m",)
    )
    colored = render_text(make_answer(hit), COLORED)
    assert set(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[\d;]*m", "", colored))) == set()
    assert "\x1b[1;31mlogin\x1b[0m" in colored
    assert "\x1b]0;owned\x07 login\x9b" in render_text(make_answer(hit), PIPED)


def test_links_only_where_they_work() -> None:
    view = COLORED._replace(editor_uri="edit://{path}?{line}", root=ROOT / "a b", here=ROOT / "a b")
    text = render_text(make_answer(GUIDE), view)
    address = "edit:///srv/project/a%20b/docs/guide.md?9"
    assert text.startswith(f"\x1b]8;;{address}\x1b\\\x1b[35mdocs/guide.md:9\x1b[0m\x1b]8;;\x1b\\")
    assert address not in render_text(make_answer(GUIDE), view._replace(color=False))
    assert address not in render_text(make_answer(GUIDE), view._replace(terminal=False))


def test_paths_are_seen_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    for folder in (root / "docs", root / "src", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    answer = make_answer(GUIDE)
    for folder, wanted in (
        (root, "docs/guide.md"),
        (tmp_path, "project/docs/guide.md"),
        (root / "docs", "guide.md"),
        (root / "src", "../docs/guide.md"),
        (tmp_path / "elsewhere", "../project/docs/guide.md"),
    ):
        monkeypatch.chdir(folder)
        shown = render_files(answer, make_view(root, color=False, terminal=False)).strip()
        assert shown == wanted
        assert (folder / shown).resolve() == root / "docs" / "guide.md"
    monkeypatch.chdir(tmp_path)
    assert render_files(answer, make_view(Path("/"), color=False, terminal=False)) == "/docs/guide.md\n"


def test_a_root_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("login\n")
    view = make_view(tmp_path / "notes.txt", color=False, terminal=False)
    assert render_files(make_answer(make_hit("notes.txt")), view) == "notes.txt\n"


def test_what_is_no_file_goes_by_its_id() -> None:
    hit = make_hit("", Line(number=3, text="login"), rid="chat:7", type="chat")
    assert render_text(make_answer(hit), PIPED).startswith("chat:7:3 ")


def test_json_documents() -> None:
    document = json.loads(dump(answer_document(ANSWER, ROOT)))
    assert list(document)[:3] == ["schema", "root", "query"]
    assert (document["schema"], document["root"]) == (6, str(ROOT))
    assert document["hits"][0]["path"] == "src/app/auth.py"
    assert document["hits"][0]["lines"][0] == {
        "number": 41,
        "text": "def login(user):",
        "spans": [[4, 9]],
        "place": "",
    }
    assert json.loads(dump(answer_document(make_answer(), ROOT)))["hits"] == []


def test_json_streams() -> None:
    pieces = [json.loads(dump(piece)) for piece in answer_stream(ANSWER, ROOT)]
    assert [piece["kind"] for piece in pieces] == ["hit", "hit", "hit", "summary"]
    assert all(list(piece)[:4] == ["schema", "kind", "query", "root"] for piece in pieces)
    assert {piece["schema"] for piece in pieces} == {6}
    assert pieces[1]["score"] == 0.58
    assert (pieces[3]["total"], pieces[3]["shown"], "hits" in pieces[3]) == (3, 3, False)
    assert [piece["kind"] for piece in answer_stream(make_answer(), ROOT)] == ["summary"]


def test_json_holds_any_path() -> None:
    assert json.loads(dump({"path": "größe"})) == {"path": "größe"}
    assert "größe" in dump({"path": "größe"})
    text = dump({"path": "bad\udcff"})
    assert text.isascii()
    assert json.loads(text) == {"path": "bad\udcff"}
    with pytest.raises(TypeError):
        dump({"value": object()})


def test_a_hit_in_a_document_names_its_place_instead_of_a_line() -> None:
    page = Line(number=0, text="The login page", spans=((4, 9),), place="p. 12")
    following = Line(number=0, text="and more", place="p. 13")
    text = render_text(make_answer(make_hit("report.pdf", page, following, place="p. 12", heading=("Intro",))), PIPED)
    head, *rows = text.splitlines()
    assert head.startswith("report.pdf p. 12  Intro  ")
    assert rows == ["  p. 12 │ The login page", "  p. 13 │ and more"]


def test_a_document_without_places_shows_no_numbers() -> None:
    hit = make_hit("letter.docx", Line(number=0, text="Dear login", spans=((5, 10),)))
    assert render_text(make_answer(hit), PIPED).splitlines()[1:] == ["   │ Dear login"]
    assert render_text(make_answer(hit), PIPED).startswith("letter.docx  ")
    assert render_vimgrep(make_answer(hit), PIPED) == "letter.docx:1:6:Dear login\n"
