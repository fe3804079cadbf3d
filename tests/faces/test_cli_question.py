"""Asking on the command line: profiles, plans, the project's context, explanations, the glossary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]


def test_what_was_understood_is_in_every_answer(project: Path, findling: Findling) -> None:
    code, out, _ = findling("login (token OR basket)", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["understood_as"] == "(login OR token OR basket) AND (token OR basket)"
    assert (document["reading"], document["strategy"], document["quality"]) == ("ranked", "keyword", "good")
    assert document["degraded"] == []
    assert document["plan"]["because"].startswith("token OR basket has to be there")
    assert document["plan"]["route"]["kind"] == "simple"
    assert {hit["path"] for hit in document["hits"]} == {"src/auth.py", "docs/guide.md", "src/shop.ts"}


def test_conditions_stand_in_the_query(project: Path, findling: Findling) -> None:
    assert findling("session ext:py", "-l")[1] == "src/auth.py\n"
    assert findling("session -path:src", "-l")[1] == "docs/guide.md\n"
    assert findling("in:heading guide", "-l")[1] == "docs/guide.md\n"
    code, out, err = findling("path:docs", "-l")
    assert (code, set(out.split()), err) == (0, {"docs/guide.md", "docs/index.md"}, "")
    code, out, err = findling("before:soon session", "-l")
    assert code == 0
    assert "before: takes a day such as" in err


def test_a_typo_is_searched_for_and_said(project: Path, findling: Findling) -> None:
    code, out, err = findling("sesion", "-l")
    assert (code, "docs/guide.md" in out) == (0, True)
    assert "nobody wrote sesion: searched for session as well" in err
    code, out, err = findling("sesion", "--profile", "strict")
    assert (code, out) == (1, "")
    assert "did you mean session for sesion?" in err
    assert "try: findling session" in err


def test_neighbours_of_an_empty_answer_stand_apart(project: Path, findling: Findling) -> None:
    question = ("--profile", "strict", "user authentication credentials")
    code, out, err = findling(*question)
    assert (code, out) == (1, "")
    assert "not a match, but near in meaning:\n" in err
    assert "login" in err
    document = json.loads(findling(*question, "--json")[1])
    assert document["hits"] == [] and document["related"]
    assert document["total"] == 0


def test_what_is_demanded_and_not_there_is_relaxed_apart(project: Path, findling: Findling) -> None:
    question = '"token session" login'
    code, out, err = findling(question)
    assert (code, out) == (1, "")
    assert 'nothing has "token session"' in err
    assert "relaxed, without what is demanded:\n" in err
    document = json.loads(findling(question, "--json")[1])
    assert (document["hits"], document["total"]) == ([], 0)
    assert {"src/auth.py", "docs/guide.md"} <= {hit["path"] for hit in document["relaxed"]}
    for strict in (("--set", "search.relax=false"), ("--profile", "strict")):
        code, out, err = findling(question, *strict)
        assert (code, out, "relaxed" in err) == (1, "", False)


def test_a_plan_is_carried_out_again(project: Path, findling: Findling, tmp_path: Path) -> None:
    _, out, _ = findling("login token", "--set", "search.words=all", "-e", "md", "-k", "1", "--json")
    first = json.loads(out)
    saved = tmp_path / "answer.json"
    saved.write_text(out)
    again = json.loads(findling("search", "--plan", str(saved), "--json")[1])
    for part in ("hits", "understood_as", "plan"):
        assert again[part] == first[part]
    saved.write_text(json.dumps(first["plan"]))
    assert json.loads(findling("search", "--plan", str(saved), "--json")[1])["hits"] == first["hits"]
    other = json.loads(findling("search", "--plan", str(saved), "signing", "--json")[1])
    assert other["understood_as"] == "signing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": {"mood": "good"}}, "mood"),
        ({"plan": {"mode": "psychic"}}, "psychic"),
        ({"plan": {}, "wish": 1}, "wish"),
        ({"plan": {}, "limit": "many"}, "limit 'many'"),
        ({"plan": {}, "filters": {"colour": ["red"]}}, "colour"),
        ({}, "holds no plan"),
        ([], "holds no plan"),
    ],
)
def test_a_plan_that_cannot_be_used_is_named(
    project: Path, findling: Findling, tmp_path: Path, change: object, message: str
) -> None:
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(change))
    code, out, err = findling("search", "--plan", str(saved), "login")
    assert (code, out) == (2, "")
    assert message in err


def test_a_plan_and_options_that_contradict_it(project: Path, findling: Findling, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    saved.write_text("{}")
    assert "--plan says all that --ext would say" in findling("search", "--plan", str(saved), "-e", "py", "q")[2]
    assert "there is no file nowhere.json" in findling("search", "--plan", "nowhere.json", "q")[2]
    for change in ("search.mode=semantic", "rerank.depth=3"):
        code, _, err = findling("search", "--plan", str(saved), "--set", change, "q")
        assert (code, f"--plan says all that --set {change} would say" in err) == (2, True)
    saved.write_text("{")
    assert "is no JSON" in findling("search", "--plan", str(saved), "q")[2]


def test_a_plan_finds_the_same_wherever_it_is_carried_out_again(
    project: Path, findling: Findling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index")
    saved = tmp_path / "answer.json"
    for words, found in ((("session", "docs"), {"docs/guide.md"}), (("session",), {"docs/guide.md", "src/auth.py"})):
        saved.write_text(findling(*words, "--json")[1])
        for folder in ("docs", "src", "."):
            monkeypatch.chdir(project / folder)
            again = findling("search", "--plan", str(saved), "-l")[1]
            assert {Path(line).resolve().relative_to(project).as_posix() for line in again.split()} == found
        assert findling("search", "--plan", str(saved), "docs", "-l")[1] == "docs/guide.md\n"
        assert findling("search", "--plan", str(saved), "session", "src", "-l")[1] == "src/auth.py\n"


def test_a_single_word_beside_a_plan_is_a_path_if_there_is_one(
    project: Path, findling: Findling, tmp_path: Path
) -> None:
    saved = tmp_path / "answer.json"
    saved.write_text(findling("session", "--json")[1])
    answer = json.loads(findling("search", "--plan", str(saved), "src", "--json")[1])
    assert (answer["query"], [hit["path"] for hit in answer["hits"]]) == ("session", ["src/auth.py"])
    for query in ("basket", "basket " * 100, "~basket"):
        assert json.loads(findling("search", "--plan", str(saved), query, "--json")[1])["query"] == query
    assert json.loads(findling("search", "--plan", str(saved), "docs", ".", "--json")[1])["query"] == "docs"


def test_settings_that_no_plan_has_a_say_in_may_stand_beside_one(
    project: Path, findling: Findling, tmp_path: Path
) -> None:
    saved = tmp_path / "answer.json"
    saved.write_text(findling("session", "--json")[1])
    assert (
        findling("search", "--plan", str(saved), "--set", "search.snippet_lines=1", "--set", "index.hidden=true")[0]
        == 0
    )


def test_profiles_of_ones_own(project: Path, findling: Findling, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[profiles.exact]\nbase = "strict"\ntypos = "ignore"\n')
    code, _, err = findling("sesion", "--profile", "exact")
    assert (code, "did you mean" in err) == (1, False)
    code, _, err = findling("session", "--profile", "exakt")
    assert code == 2
    assert "no profile is called exakt" in err and "exact" in err


def test_the_project_file_scopes_every_search_and_says_so(project: Path, findling: Findling) -> None:
    (project / ".findling.toml").write_text('[context]\npath = "docs"\n')
    code, out, err = findling("session", "-l")
    assert (code, out) == (0, "docs/guide.md\n")
    assert "searched in the context of project file" in err and "path docs" in err
    assert json.loads(findling("session", "--json")[1])["scope"]["path"] == "docs"
    assert set(findling("session", "--no-context", "-l")[1].split()) == {"docs/guide.md", "src/auth.py"}
    assert findling("session", "src", "-l")[1] == "src/auth.py\n"
    (project / ".findling.toml").write_text('[context]\npath = "../.."\n')
    code, _, err = findling("session")
    assert (code, "lies outside" in err) == (2, True)
    (project / ".findling.toml").write_text('[context]\npath = "nowhere"\n')
    code, _, err = findling("session")
    assert (code, "nowhere, which is not there" in err) == (2, True)
    (project / ".findling.toml").write_text('[context]\ntypes = ["decision"]\nsystem = ["auth"]\n')
    code, out, err = findling("session")
    assert (code, out) == (1, "")
    assert "types decision; system auth" in err.replace("system auth; types decision", "types decision; system auth")
    assert "passages match without the filters" in err


def test_what_is_told_of_the_context_is_what_was_searched(project: Path, findling: Findling) -> None:
    (project / ".findling.toml").write_text('[context]\npath = "docs"\ntypes = ["file"]\n')
    code, out, err = findling("session", ".", "-l")
    assert (code, set(out.split())) == (0, {"docs/guide.md", "src/auth.py"})
    assert "types file" in err and "path" not in err
    _, _, err = findling("session", "--type", "file")
    assert "path docs" in err and "types" not in err
    assert findling("session", ".", "--type", "file")[2] == ""


@pytest.fixture
def notes(project: Path, home: Path, findling: Findling) -> Path:
    """Private notes with a workspace of their own, which the project's file names."""
    root = home / "notes"
    root.mkdir()
    (root / "diary.md").write_text("A private session.\n")
    assert findling("index", str(root), "--workspace", "notes")[0] == 0
    (project / ".findling.toml").write_text('[context]\nworkspace = "notes"\n')
    return root


def test_a_project_file_does_not_open_the_private_notes(project: Path, notes: Path, findling: Findling) -> None:
    for command in (
        ("session",),
        ("session", "."),
        ("search", "session", "--explain-hit", "diary.md"),
        ("glossary", "list"),
    ):
        code, out, err = findling(*command)
        assert (code, out) == (2, "")
        assert f"{project / '.findling.toml'} names the workspace notes, which does not hold {project}" in err
        assert "--no-context, or --workspace notes" in err
    assert set(findling("session", "--no-context", "-l")[1].split()) == {"docs/guide.md", "src/auth.py"}
    assert "diary.md" in findling("session", "--workspace", "notes", "-l")[1]


def test_a_project_file_does_not_choose_what_is_indexed_or_forgotten(
    project: Path, notes: Path, findling: Findling
) -> None:
    assert findling("index")[0] == 0
    assert "auth.py" in findling("ls")[1]
    assert findling("forget", "--everything", "--force")[0] == 0
    assert "diary.md" in findling("session", "--workspace", "notes", "-l")[1]


def test_a_workspace_that_was_named_is_searched_as_a_whole_whatever_path_the_context_has(
    project: Path, notes: Path, findling: Findling
) -> None:
    (project / ".findling.toml").write_text('[context]\npath = "docs"\n')
    code, out, err = findling("session", "--workspace", "notes", "-l")
    assert (code, "diary.md" in out, err) == (0, True, "")


def test_explain(project: Path, findling: Findling) -> None:
    code, out, _ = findling("search", "session", "--explain-hit", "docs/guide.md")
    assert code == 0
    assert out.startswith("docs/guide.md is hit ")
    assert "keyword: rank" in out and "why: keyword rank" in out
    code, out, _ = findling("search", "session", "--explain-hit", "docs/index.md")
    assert code == 1
    assert "docs/index.md is not among the 2 hits\n  because it does not have session\n" in out
    code, out, _ = findling("search", "session ext:py", "--explain-hit", "docs/guide.md:5", "--json")
    document = json.loads(out)
    assert (code, document["found"], document["schema"]) == (1, False, 6)
    assert document["filters"] == [["ext:py", False]]
    code, out, err = findling("search", "session", "--explain-hit", "nothing.md")
    assert (code, out) == (2, "")
    assert "there is no nothing.md in the index" in err
    hit = json.loads(findling("session", "--json")[1])["hits"][0]
    assert findling("search", "session", "--explain-hit", hit["id"])[0] == 0


def test_the_glossary_from_the_queue_to_the_receipt(project: Path, findling: Findling) -> None:
    (project / "docs" / "sso.md").write_text("Single sign-on (SSO) is what we plan.\n\nPlans of SSO are old.\n")
    (project / "docs" / "plan.md").write_text("We want single sign-on.\n")
    findling("index")
    code, out, _ = findling("glossary", "list", "pending")
    assert (code, "SSO" in out, "acronym" in out) == (0, True, True)
    assert findling("SSO -path:sso", "-l")[0] == 1
    assert findling("glossary", "set", "SSO", "approved")[0] == 0
    code, out, _ = findling("SSO -path:sso", "--explain")
    assert code == 0
    assert "for SSO: the glossary's group Single sign-on" in out
    assert findling("glossary", "list", "pending")[0] == 1
