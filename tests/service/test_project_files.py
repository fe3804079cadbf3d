"""A project file of a stranger: it brings content, and neither limits nor secrets nor trouble."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import findling
from findling.domain.errors import InvalidValueError, UntrustedSettingError
from findling.domain.plans import KNOBS
from findling.domain.strangers import LOWERED, PROJECT_SETTINGS
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import SETTINGS, get_row, load_settings
from tests.processes import run_process

HIGHER = {
    "index.max_seconds": 86400.0,
    "index.max_file_size": "10GB",
    "rerank.depth": 5000,
}


def write(folder: Path, name: str, value: object) -> Path:
    file = folder / ".findling.toml"
    section, key = name.split(".")
    shown = f'"{value}"' if isinstance(value, str) else value
    file.write_text(f"[{section}]\n{key} = {shown}\n")
    return file


def load(folder: Path, environ: Mapping[str, str] = {}) -> findling.Settings:
    return load_settings(folder, environ={"FINDLING_CONFIG": str(folder / "user.toml"), **environ})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_the_gate_names_settings_that_there_are() -> None:
    in_profiles = {knob.row for knob in KNOBS.values() if knob.profile}
    assert {setting.name for setting in SETTINGS} | in_profiles >= PROJECT_SETTINGS
    for name in LOWERED - {"search.overfetch"}:
        assert get_row(name).kind in ("count", "number", "size")


@pytest.mark.parametrize("name", ["index.workers", "snapshot.keep", "semantic.threads", "remote.timeout_s"])
def test_what_is_not_on_the_list_is_refused(project: Path, name: str) -> None:
    file = write(project, name, get_row(name).default)
    with pytest.raises(UntrustedSettingError, match=name) as caught:
        load(project)
    assert str(file) in caught.value.message


@pytest.mark.parametrize("name", sorted(HIGHER))
def test_a_project_raises_no_limit(project: Path, name: str) -> None:
    write(project, name, HIGHER[name])
    with pytest.raises(UntrustedSettingError, match=f"{name} is .*, above your own"):
        load(project)
    (project / ".findling.toml").rename(project / "user.toml")
    assert load(project)[name] > (get_row(name).default or 0)


@pytest.mark.parametrize("name", sorted(LOWERED - {"search.overfetch"}))
def test_a_project_lowers_a_limit(project: Path, name: str) -> None:
    setting = get_row(name)
    lower = max(setting.minimum, 1)
    write(project, name, int(lower) if setting.kind != "number" else lower)
    assert load(project)[name] == lower


@pytest.mark.parametrize("cut", ["semantic:2:characters", "overlapping:1000/999:words", "fixed:49:tokens"])
def test_a_project_does_not_cut_texts_into_a_flood(project: Path, cut: str) -> None:
    (project / ".findling.toml").write_text(f'[chunk]\npreset = "{cut}"\n')
    with pytest.raises(UntrustedSettingError, match="a flood of chunks"):
        load(project)
    (project / ".findling.toml").rename(project / "user.toml")
    load(project)
    (project / ".findling.toml").write_text('[chunk]\npreset = "overlapping:300/60:words"\n')
    assert load(project)["chunk.preset"] == "overlapping:300/60:words"


def test_no_quota_of_the_user_is_lifted(project: Path) -> None:
    (project / "user.toml").write_text("[quota]\nresources = 100\n")
    for value in (0, 101):
        write(project, "quota.resources", value)
        with pytest.raises(UntrustedSettingError, match=r"quota\.resources"):
            load(project)
    write(project, "quota.resources", 99)
    assert load(project)["quota.resources"] == 99


SECRETS = (".env", "deploy/id_rsa", "deploy/server.key", ".ssh/config", ".kube/config")


def test_a_project_includes_no_secret_and_the_user_may(project: Path) -> None:
    for name in (*SECRETS, "notes.md", "build/report.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("password hunter2 stands here\n")
    included = ", ".join(f'"{name}"' for name in (*SECRETS, "build/report.md", ".ssh/", "*"))
    (project / ".findling.toml").write_text(f"[index]\nhidden = true\ninclude = [{included}]\n")
    home = {"store.home": str(project / "home")}
    with open_engine(project, settings=load(project).override(home, "test")) as engine:
        found, left_out = engine.preview()
    assert {"notes.md", "build/report.md"} <= set(found)
    assert not set(SECRETS) & set(found)
    assert {entry.path for entry in left_out if entry.reason == "secret"} == {
        ".env",
        "deploy/id_rsa",
        "deploy/server.key",
        ".ssh/",
        ".kube/",
    }
    (project / ".findling.toml").rename(project / "user.toml")
    with open_engine(project, settings=load(project).override(home, "test")) as engine:
        assert set(SECRETS) <= set(engine.preview()[0])


BAD_FILES = {
    "large": "# " + "x" * 10_000_000,
    "nested lists": "x = " + "[" * 30_000 + "]" * 30_000,
    "nested tables": "x = " + "{a=" * 10_000 + "1" + "}" * 10_000,
    "a long name": ".".join("a" * 32_000) + " = 1",
    "a deep table": "[search.a.b.c.d.e.f.g.h.i]\nx = 1",
    "a long number": "search.limit = " + "9" * 60_000,
}


@pytest.mark.parametrize("name", sorted(BAD_FILES))
def test_a_file_without_measure_is_a_clear_error(project: Path, name: str) -> None:
    """It once took more than a minute, or ended in a traceback."""
    (project / ".findling.toml").write_text(BAD_FILES[name])
    with pytest.raises(InvalidValueError, match=r"\.findling\.toml") as caught:
        load(project)
    assert len(caught.value.message) < 2000


def test_the_command_line_names_such_a_file(project: Path) -> None:
    (project / ".findling.toml").write_text(BAD_FILES["nested lists"])
    environ = {"HOME": str(project), "FINDLING_HOME": str(project / "home"), "PATH": ""}
    command = [sys.executable, "-m", "findling", "config", "show"]
    done = run_process(command, cwd=project, env=environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert ".findling.toml nests tables or lists too deeply" in done.stderr
    assert "Traceback" not in done.stderr
