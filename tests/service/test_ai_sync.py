"""`.ai` folders and the index stay in step, and an item of the project wins over the user's, visibly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError, PathNotFoundError
from findling.service.content.ai_sync import Shadow
from findling.service.content.items import WorkspaceItems
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    (tmp_path / "root").mkdir()
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


@pytest.fixture
def items(engine: Engine) -> WorkspaceItems:
    return WorkspaceItems(engine.writer)


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user" / ".ai"
    folder.mkdir(parents=True)
    return folder


def write(folder: Path, path: str, text: str) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def found(engine: Engine, query: str) -> list[str]:
    return list(dict.fromkeys(hit.rid for hit in engine.search(query, refresh=False)))


def test_new_changed_and_vanished_files(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    write(engine.root, ".ai/directives/release.md", "---\ndescription: Ship it\n---\nRun the smoke tests.\n")
    write(engine.root, ".ai/tools/rotate.py", '"""Rotate logs."""\n')
    write(user, "knowledge/ports.md", "# Ports\n\nThe gateway listens on 8443.\n")
    first = items.sync(engine.root, user)
    assert (first.added, first.changed, first.unchanged, first.deleted) == (3, 0, 0, 0)
    assert found(engine, "ship") == ["directive:project/release"]
    assert found(engine, "gateway") == ["knowledge:user/ports"]
    seq = engine.status().seq

    second = items.sync(engine.root, user)
    assert (second.added, second.changed, second.unchanged, second.deleted) == (0, 0, 3, 0)
    assert engine.status().seq == seq

    write(engine.root, ".ai/tools/rotate.py", '"""Rotate certificates."""\n')
    (user / "knowledge/ports.md").unlink()
    third = items.sync(engine.root, user)
    assert (third.added, third.changed, third.unchanged, third.deleted) == (0, 1, 1, 1)
    assert found(engine, "certificates") == ["tool:project/rotate"]
    assert found(engine, "gateway") == found(engine, "logs") == []


def test_the_project_wins_and_both_say_so(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    write(user, "directives/deploy/release.md", "Release by hand. Release, release.\n")
    items.sync(engine.root, user)
    assert found(engine, "release") == ["directive:user/deploy/release"]

    write(engine.root, ".ai/directives/deploy/release.md", "Release with the pipeline.\n")
    report = items.sync(engine.root, user)
    assert report.shadows == (Shadow("directive:project/deploy/release", "directive:user/deploy/release"),)
    assert found(engine, "release") == ["directive:project/deploy/release", "directive:user/deploy/release"]
    assert found(engine, "release is:head") == ["directive:project/deploy/release"]
    winner = items.get("directive:project/deploy/release").resource.fields
    loser = items.get("directive:user/deploy/release").resource.fields
    assert (winner["shadows"], loser["shadowed_by"]) == ("user", "project")

    (engine.root / ".ai/directives/deploy/release.md").unlink()
    assert items.sync(engine.root, user).shadows == ()
    assert found(engine, "release is:head") == ["directive:user/deploy/release"]
    assert "shadowed_by" not in items.get("directive:user/deploy/release").resource.fields


def test_a_hit_stands_on_the_line_of_the_file(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    write(engine.root, ".ai/directives/release.md", "---\nname: release\n---\n\n# Release\n\nRun the smoke tests.\n")
    items.sync(engine.root, user)
    (hit,) = engine.search("smoke", refresh=False)
    assert (hit.path, [line.number for line in hit.lines if line.spans]) == (".ai/directives/release.md", [7])


def test_what_somebody_added_stays(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    items.add([{"type": "tool", "id": "project/mine", "name": "mine", "body": "By hand."}])
    write(engine.root, ".ai/tools/other.py", '"""Other."""\n')
    assert items.sync(engine.root, user).deleted == 0
    assert items.get("tool:project/mine").resource.title == "mine"


def test_a_folder_that_leads_out_of_the_project_is_not_read(
    engine: Engine, items: WorkspaceItems, user: Path, tmp_path: Path
) -> None:
    write(tmp_path / "outside", "knowledge/secret.md", "Nothing for others.\n")
    (engine.root / ".ai").symlink_to(tmp_path / "outside")
    assert items.sync(engine.root, user).added == 0


def test_one_folder_for_both_scopes_is_read_once(engine: Engine, items: WorkspaceItems) -> None:
    write(engine.root, ".ai/tools/x.py", '"""X."""\n')
    report = items.sync(engine.root, engine.root / ".ai")
    assert (report.added, report.shadows) == (1, ())


def test_a_user_folder_that_is_not_there(engine: Engine, items: WorkspaceItems, tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError, match="there is no folder"):
        items.sync(engine.root, tmp_path / "nowhere")


def test_nothing_to_do_writes_nothing(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    assert str(items.sync(engine.root, user)) == "nothing found"
    assert not engine.home.exists()


def test_one_odd_file_does_not_keep_the_others_out(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    write(engine.root, ".ai/directives/deep.md", "+++\na = " + "[" * 5000 + "\n+++\nA narwhal.\n")
    write(engine.root, ".ai/knowledge/half.json", '{"name": "\\ud800", "text": "narwhal"}')
    write(engine.root, ".ai/directives/release.md", "A plain narwhal.\n")
    assert items.sync(engine.root, user).added == 3
    assert len(found(engine, "narwhal")) == 3


def test_what_an_answer_shows_can_be_fetched(engine: Engine, items: WorkspaceItems, user: Path) -> None:
    write(engine.root, ".ai/directives/deploy/release.md", "# Release\n\nRun the smoke tests.\n\n# After\n\nRest.\n")
    write(user, "directives/deploy/release.md", "Ask first.\n")
    items.sync(engine.root, user)
    (hit,) = engine.search("smoke", refresh=False)
    shown = f"{hit.path}:{hit.line_start}"
    assert shown == ".ai/directives/deploy/release.md:1"
    assert engine.fetch(shown).rid == engine.fetch(hit.path).rid == "directive:project/deploy/release"
    assert engine.explain("smoke", shown, refresh=False).found
    assert engine.similar(shown).understood_as == "like .ai/directives/deploy/release.md"
    with pytest.raises(InvalidValueError) as caught:
        engine.fetch(".ai/directives/deploy/release.md:99")
    assert caught.value.message == "directive:project/deploy/release has no line 99"
    with pytest.raises(NotFoundError):
        engine.fetch(".ai/directives/deploy")


def test_a_path_that_several_items_have_is_no_name(engine: Engine, items: WorkspaceItems) -> None:
    items.add([{"type": "task", "id": name, "title": name, "path": "plans/move"} for name in ("a", "b")])
    with pytest.raises(InvalidValueError) as caught:
        engine.fetch("plans/move")
    assert caught.value.message == "plans/move is the path of 2 ids: task:a, task:b"
    items.add([{"delete": "task:b"}])
    assert engine.fetch("plans/move").rid == "task:a"
