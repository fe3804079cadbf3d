from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, UnknownSettingError, UntrustedSettingError, UsageError
from findling.service.settings.setting_list import KNOB_ROWS, REMOVED, variable_of
from findling.service.settings.settings import (
    ENVIRONMENT,
    SETTINGS,
    Settings,
    get_row,
    get_setting,
    load_settings,
    parse_text,
)
from tests.processes import run_process


class Place:
    """A home with a user file, and a repository in it with a project file."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "work" / "project"
        self.user_file = folder / "config.toml"
        self.project_file = self.project / ".findling.toml"
        (self.project / ".git").mkdir(parents=True)

    def load(self, environ: Mapping[str, str] = {}, path: Path | None = None) -> Settings:
        return load_settings(path or self.project, environ={"FINDLING_CONFIG": str(self.user_file), **environ})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("USERPROFILE", str(made.home))
    return made


def test_declarations_are_consistent() -> None:
    names = [setting.name for setting in SETTINGS]
    variables = [setting.variable for setting in SETTINGS] + [variable.name for variable in ENVIRONMENT]
    assert len(set(names)) == len(names)
    assert len(set(variables)) == len(variables)
    assert {variable.setting for variable in ENVIRONMENT} <= {*names, ""}
    for setting in SETTINGS:
        assert setting.help.endswith("."), setting.name
        assert Settings().override({setting.name: setting.default}, "test")[setting.name] == setting.default


def test_defaults_without_any_file(place: Place) -> None:
    settings = place.load()
    assert settings == Settings()
    assert settings["search.limit"] == 10
    assert {settings.origin(name) for name in settings} == {"default"}


def test_precedence_and_origin(place: Place) -> None:
    """Each layer is added in turn, and wins over all that were there before."""
    settings = place.load()
    assert (settings["search.limit"], settings.origin("search.limit")) == (10, "default")

    place.user_file.write_text("[search]\nlimit = 11\ncontext = 1\n")
    settings = place.load()
    assert (settings["search.limit"], settings.origin("search.limit")) == (11, f"user file {place.user_file}")

    place.project_file.write_text("search.limit = 12\n")
    settings = place.load()
    assert (settings["search.limit"], settings.origin("search.limit")) == (12, f"project file {place.project_file}")

    settings = place.load({"FINDLING_SEARCH_LIMIT": "13"})
    assert (settings["search.limit"], settings.origin("search.limit")) == (13, "env FINDLING_SEARCH_LIMIT")

    settings = settings.override_text("search.limit", "14", "flag --limit")
    assert (settings["search.limit"], settings.origin("search.limit")) == (14, "flag --limit")

    assert (settings["search.context"], settings.origin("search.context")) == (1, f"user file {place.user_file}")
    assert settings.origin("chunk.preset") == "default"


def test_override_leaves_the_original_alone() -> None:
    before = Settings()
    after = before.override({"search.limit": 3}, "test")
    assert (before["search.limit"], before.origin("search.limit")) == (10, "default")
    assert after["search.limit"] == 3
    with pytest.raises(TypeError):
        after["search.limit"] = 4  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[index]\nmax_file_size = '2MB'", 2 << 20),
        ("[index]\nmax_file_size = 1_000", 1000),
        ("index = { max_file_size = '1.5 KiB' }", 1536),
    ],
)
def test_sizes(place: Place, text: str, value: int) -> None:
    place.user_file.write_text(text)
    assert place.load()["index.max_file_size"] == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("index.hidden", "yes", True),
        ("index.hidden", "0", False),
        ("index.exclude", "*.log, build/ ,", ("*.log", "build/")),
        ("index.exclude", "", ()),
        ("search.min_score", "1", 1.0),
        ("search.alpha", "auto", None),
        ("index.max_file_size", "3 g", 3 << 30),
        ("search.refresh", "never", "never"),
        ("workspace.name", "my-notes_2.old", "my-notes_2.old"),
        ("store.home", "/srv/find ling", "/srv/find ling"),
        ("search.types", "memory, decision", ("memory", "decision")),
        ("search.alpha", "0.2", 0.2),
        ("context.system", "billing,login", ("billing", "login")),
    ],
)
def test_text_values(name: str, text: str, value: object) -> None:
    assert parse_text(get_row(name), text, "test") == value


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("search.limit", "ten", "whole number of at least 0"),
        ("search.limit", "-1", "at least 0"),
        ("search.limit", "1.5", "whole number"),
        ("search.alpha", "1.1", "at least 0 and at most 1"),
        ("search.min_score", "nan", "number"),
        ("search.min_score", "inf", "number"),
        ("index.max_file_size", "4 parsecs", "size such as 4MB"),
        ("index.max_file_size", "MB", "size such as 4MB"),
        ("index.hidden", "maybe", "true or false"),
        ("search.refresh", "sometimes", "auto or never"),
        ("workspace.name", "../elsewhere", "letters, digits"),
        ("workspace.name", "..", "letters, digits"),
        ("workspace.name", "C:", "letters, digits"),
        ("search.words", "some", "auto or any or all"),
        ("search.typos", "fix", "correct or suggest or ignore"),
        ("search.min_score", "1.5", "at least 0 and at most 1"),
        ("context.workspace", "../elsewhere", "letters, digits"),
    ],
)
def test_bad_values_in_the_environment(place: Place, name: str, value: str, wanted: str) -> None:
    variable = variable_of(name)
    with pytest.raises(InvalidValueError) as caught:
        place.load({variable: value})
    assert variable in caught.value.message
    assert name in caught.value.message
    assert wanted in caught.value.message
    assert value in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "[search]\nlimit = '10'",
        "[search]\nlimit = true",
        "[search]\nlimit = 10.0",
        f"[search]\nmin_score = {10**400}",
        "[index]\nhidden = 1",
        "[index]\nexclude = '*.log'",
        "[index]\nexclude = ['*.log', 3]",
        "[index]\nexclude = ['']",
        "[index.hidden]",
        "[output]\ncolor = 3",
    ],
)
def test_a_file_must_use_the_right_type(place: Place, text: str) -> None:
    place.user_file.write_text(text)
    with pytest.raises(InvalidValueError, match=r"config\.toml"):
        place.load()


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("[search]\nlimt = 3", "search.limt", "search.limit"),
        ("[serch]\nlimit = 3", "serch.limit", "search.limit"),
        ("[index.exclude]\nlogs = true", "index.exclude.logs", "index.exclude"),
        ("limit = 3", "limit", "search.limit"),
        ("[zzz]", "zzz", "remove it from there"),
    ],
)
def test_unknown_keys_are_errors(place: Place, text: str, key: str, hint: str) -> None:
    for file in (place.user_file, place.project_file):
        file.write_text(text)
        with pytest.raises(UnknownSettingError) as caught:
            place.load()
        assert str(file) in caught.value.message
        assert key in caught.value.message
        assert hint in caught.value.hint
        file.unlink()


def test_settings_carry_the_profiles_of_the_files(place: Place) -> None:
    assert place.load().profiles == {}
    place.user_file.write_text("[search]\nlimit = 3\n[profiles.mine]\nlimit = 5\n")
    place.project_file.write_text("[profiles.theirs]\n")
    settings = place.load()
    assert settings.profiles == {"mine": {"search.limit": 5}, "theirs": {}}
    assert settings.profile_origin("theirs") == f"project file {place.project_file}"
    assert (settings["search.limit"], len(settings)) == (3, len(SETTINGS) + len(KNOB_ROWS))
    with pytest.raises(KeyError):
        settings.profile_origin("strict")


def test_settings_tell_the_project_file_that_a_value_comes_from(place: Place) -> None:
    place.user_file.write_text("search.limit = 3\n")
    place.project_file.write_text('context.path = "docs"\n')
    settings = place.load()
    assert settings.project_file("context.path") == place.project_file
    assert settings.project_file("search.limit") is None
    assert settings.override({"context.path": "src"}, "flag --set").project_file("context.path") is None


def test_what_looks_like_profiles_is_unknown(place: Place) -> None:
    place.user_file.write_text("[profile.mine]\nlimit = 5\n")
    with pytest.raises(UnknownSettingError, match=r"profile\.mine\.limit"):
        place.load()
    with pytest.raises(UnknownSettingError) as caught:
        get_setting("profiles.mine.limit")
    assert caught.value.hint == "write it into the table [profiles.mine] of a settings file"


def test_an_empty_section_is_fine(place: Place) -> None:
    place.user_file.write_text("[search]\n")
    assert place.load() == Settings()


def test_unknown_variables_are_errors(place: Place) -> None:
    with pytest.raises(UnknownSettingError, match="FINDLING_SERCH_LIMIT") as caught:
        place.load({"FINDLING_SERCH_LIMIT": "3"})
    assert "FINDLING_SEARCH_LIMIT" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("items.user_folder", "findling sync --user-folder"),
        ("search.affinity", "[profiles.NAME.affinities]"),
        ("keyword.weight_title", "[profiles.NAME.weights] with title"),
        ("chunk.size", "chunk.preset"),
        ("serve.refresh_s", "watch.wait_s"),
    ],
)
def test_a_setting_of_an_earlier_version_is_named_with_what_replaces_it(place: Place, name: str, instead: str) -> None:
    section, key = name.split(".")
    ways = {
        place.user_file: f"{name};",
        place.project_file: f"--project {name}, in its folder;",
    }
    for file, way in ways.items():
        file.write_text(f"[{section}]\n{key} = 3\n")
        with pytest.raises(UnknownSettingError) as caught:
            place.load()
        assert f"{file}: {name} is no setting any more" in caught.value.message
        assert f"findling config remove {way}" in caught.value.hint and instead in caught.value.hint
        file.unlink()
    with pytest.raises(UnknownSettingError) as caught:
        place.load({variable_of(name): "3"})
    assert variable_of(name) in caught.value.message
    assert f"unset {variable_of(name)}; " in caught.value.hint and instead in caught.value.hint


@pytest.mark.parametrize("name", ["search.rrf_k", "rerank.depth", "search.min_score"])
def test_a_knob_counts_where_files_and_the_environment_still_set_it(place: Place, name: str) -> None:
    section, key = name.split(".")
    place.user_file.write_text(f"[{section}]\n{key} = 1\n")
    assert (place.load()[name], place.load().origin(name)) == (1, f"user file {place.user_file}")
    assert place.load({variable_of(name): "0"}).origin(name) == f"env {variable_of(name)}"
    with pytest.raises(UnknownSettingError, match=f"{name} is no setting any more") as caught:
        get_setting(name)
    told = name.removeprefix("search.")
    assert f"[profiles.NAME] with {told} = VALUE" in caught.value.hint and f"--set {name}=VALUE" in caught.value.hint
    place.user_file.write_text(f"[profiles.mine]\n{told} = 1\n")
    assert place.load().profiles["mine"] == {name: 1}


def test_every_removed_setting_is_gone_and_says_what_there_is_instead() -> None:
    names = {setting.name for setting in SETTINGS}
    assert not names & REMOVED.keys()
    assert all(REMOVED.values())


def test_empty_variables_count_as_not_set(place: Place) -> None:
    assert place.load({"FINDLING_SEARCH_LIMIT": ""}).origin("search.limit") == "default"


def test_short_variables(place: Place) -> None:
    settings = place.load({"FINDLING_HOME": "/a", "FINDLING_STORE_HOME": "/b", "FINDLING_WORKSPACE": "notes"})
    assert (settings["store.home"], settings.origin("store.home")) == ("/a", "env FINDLING_HOME")
    assert (settings["workspace.name"], settings.origin("workspace.name")) == ("notes", "env FINDLING_WORKSPACE")


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS if setting.user_only])
def test_a_project_may_not_set_what_is_the_users(place: Place, name: str) -> None:
    section, key = name.split(".")
    setting = get_setting(name)
    numbers = dict.fromkeys(("count", "number", "size"), str(setting.default))
    written = {"switch": "true", "patterns": "['x']", **numbers}
    value = written.get(setting.kind, f"'{[*setting.choices, 'x'][0]}'")
    place.project_file.write_text(f"[{section}]\n{key} = {value}\n")
    with pytest.raises(UntrustedSettingError) as caught:
        place.load()
    assert str(place.project_file) in caught.value.message
    assert name in caught.value.message
    place.project_file.rename(place.user_file)
    assert place.load().origin(name) == f"user file {place.user_file}"


def test_the_project_file_is_found_upwards(place: Place) -> None:
    deep = place.project / "src" / "deep"
    deep.mkdir(parents=True)
    (deep / "note.txt").write_text("x")
    place.project_file.write_text("search.limit = 12\n")
    assert place.load(path=deep)["search.limit"] == 12
    assert place.load(path=deep / "note.txt")["search.limit"] == 12
    (deep / ".findling.toml").write_text("search.limit = 7\n")
    assert place.load(path=deep)["search.limit"] == 7


def test_the_walk_upwards_stops(place: Place) -> None:
    """Neither above a repository's top nor above the home folder."""
    (place.project.parent / ".findling.toml").write_text("search.limit = 66\n")
    assert place.load()["search.limit"] == 10
    (place.project / ".git").rmdir()
    assert place.load()["search.limit"] == 66
    (place.project.parent / ".findling.toml").rename(place.home.parent / ".findling.toml")
    assert place.load()["search.limit"] == 10


def test_a_dotenv_file_is_never_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.project / ".env").write_text("FINDLING_SEARCH_LIMIT=66\n")
    monkeypatch.chdir(place.project)
    assert load_settings(environ={"FINDLING_CONFIG": str(place.user_file)})["search.limit"] == 10


@pytest.mark.parametrize("data", [b"[search\n", b"limit = \n", b"\xff\xfe"])
def test_a_broken_file_is_named(place: Place, data: bytes) -> None:
    place.user_file.write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"config\.toml"):
        place.load()


def test_a_file_that_cannot_be_read_is_named(place: Place) -> None:
    place.user_file.mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*config\.toml"):
        place.load()


def test_text_is_checked_like_any_value() -> None:
    with pytest.raises(InvalidValueError, match=r"search\.limit must be a whole number of at least 0, not -1"):
        parse_text(get_setting("search.limit"), "-1", "config set")


def test_unknown_names_are_errors_in_code_too() -> None:
    with pytest.raises(KeyError):
        Settings()["search.limt"]
    with pytest.raises(UnknownSettingError, match=r"flag --x: no setting is called search\.limt"):
        Settings().override({"search.limt": 1}, "flag --x")


def test_nothing_is_parsed_when_there_is_no_file(tmp_path: Path) -> None:
    code = "import sys; from findling.service.settings.settings import load_settings; load_settings('.', environ={}); "
    code += "print(*{'tomllib', 'difflib', 'json', 'platformdirs'} & set(sys.modules))"
    environ = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    done = run_process([sys.executable, "-c", code], cwd=tmp_path, env=environ)
    assert (done.stdout.split(), done.stderr) == ([], "")
