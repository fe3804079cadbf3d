from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_a_project_goes_out_and_comes_back(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    code, out, err = findling("export", str(home / "project.zip"))
    assert (code, err) == (0, "")
    assert out.startswith(f"{home / 'project.zip'}: 4 resources, 4 chunks, ")
    code, out, err = findling(
        "import", str(home / "project.zip"), "--trust", "rights,root,survey", "--workspace", "copy"
    )
    assert (code, err) == (0, "")
    assert out.endswith(f"4 resources, 4 chunks; 4 new or changed; it follows {project}\n")
    expected = json.loads(findling("search", "--json", "login token")[1])
    found = json.loads(findling("search", "--json", "--workspace", "copy", "login token")[1])
    assert found["hits"] == expected["hits"]
    assert found["hits"]


def test_reports_can_be_read_by_programs(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    report = json.loads(findling("export", str(home / "b"), ".", "--json")[1])
    assert (report["target"], report["counts"]["resources"], report["counts"]["files"]) == (str(home / "b"), 4, 4)
    assert report["size_bytes"] == sum(path.stat().st_size for path in (home / "b").iterdir())
    report = json.loads(
        findling("import", str(home / "b"), "--trust", "rights,root,survey", "--workspace", "copy", "--json")[1]
    )
    assert (report["changed"], report["root"], report["differing"]) == (4, str(project), {})


def test_what_is_there_stays_unless_it_may_go(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    assert findling("export", str(home / "b"))[0] == 0
    code, out, err = findling("export", str(home / "b"))
    assert (code, out) == (2, "")
    assert "is there already" in err and "--force" in err
    assert findling("export", str(home / "b"), "--force", "--no-vectors")[0] == 0
    code, out, err = findling("export", "--force", str(project / "docs"))
    assert (code, out) == (2, "")
    assert "no bundle" in err
    assert (project / "docs" / "guide.md").exists()
    code, out, err = findling("import", str(home / "b"), "--trust", "rights,root,survey")
    assert (code, out) == (2, "")
    assert "holds 4 resources" in err and "--merge" in err
    code, out, err = findling("import", str(home / "b"), "--trust", "rights,root,survey", "--merge")
    assert (code, err) == (0, "")
    assert "; nothing was new; " in out


def test_only_what_somebody_may_see(project: Path, home: Path, findling: Run) -> None:
    from findling import Resource, open  # noqa: A004 - the library's own word

    with open(project) as engine:
        engine.index()
        engine.add([(Resource(rid="memory:1", type="memory", visibility=("user:ana",)), "Ana likes tea.")])
    code, out, err = findling("export", str(home / "ana.zip"), "--as", "user:ana")
    assert (code, err) == (0, "")
    assert ": 1 resource, 1 chunk, " in out
    code, out, err = findling("export", str(home / "bad.zip"), "--as", "ana")
    assert (code, out) == (2, "")
    assert "'ana' is no principal" in err
    assert not (home / "bad.zip").exists()
    assert list(home.glob(".*.partial")) == []


def test_a_folder_gives_its_files_and_says_so(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    findling("remember", "--here", "The guide is due on Monday.")
    code, out, err = findling("export", str(home / "docs.zip"), "docs")
    assert (code, err.splitlines()[0]) == (0, f"findling: only the files of {project / 'docs'}")
    assert f"findling export {home / 'docs.zip'} {project}" in err
    files = sum(path.is_file() for path in (project / "docs").rglob("*"))
    assert f": {files} resource" in out
    assert findling("export", str(home / "all.zip"))[1].startswith(f"{home / 'all.zip'}: 5 resources")


def test_settings_that_differ_are_noted(
    project: Path, home: Path, findling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index")
    findling("export", str(home / "b"))
    monkeypatch.setenv("FINDLING_KEYWORD_UNIT", "page")
    code, _, err = findling("import", str(home / "b"), "--trust", "rights,root,survey", "--workspace", "copy")
    assert code == 0
    told = "answers may differ: keyword.unit was 'chunk' where the bundle was written, and is 'page' here"
    assert err == f"findling: {told}\n"


def test_a_damaged_bundle_is_refused(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    findling("export", str(home / "b"))
    resources = home / "b" / "resources.jsonl"
    resources.write_bytes(resources.read_bytes().replace(b"login", b"logon"))
    code, out, err = findling("import", str(home / "b"), "--trust", "rights,root,survey", "--workspace", "copy")
    assert (code, out) == (2, "")
    assert "resources.jsonl in the bundle" in err and "checksum" in err
    for args in (["import", str(home / "none")], ["import", str(project / "docs")], ["export", str(home / "no" / "b")]):
        code, out, err = findling(*args)
        assert (code, out) == (2, "")
        assert "try: " in err


def test_nothing_indexed_is_nothing_to_export(project: Path, home: Path, findling: Run) -> None:
    code, out, err = findling("export", str(home / "b"))
    assert (code, out) == (2, "")
    assert "is not indexed" in err
    assert not (home / "b").exists()


def test_a_page_for_the_browser(project: Path, home: Path, findling: Run) -> None:
    findling("index")
    code, out, err = findling("export", str(home / "page.html"))
    assert (code, err) == (0, "")
    assert out.startswith(f"{home / 'page.html'}: 4 documents, ")
    assert "<html" in (home / "page.html").read_text()[:2000]
    code, out, err = findling("export", "--no-vectors", str(home / "other.html"))
    assert (code, out) == (2, "")
    assert "a page goes with" in err
