"""Profiles: what each changes, where own ones come from, and what wins over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from findling.domain.errors import FindlingError, InvalidValueError, UnknownSettingError, UntrustedSettingError
from findling.domain.plans import KNOBS, Plan
from findling.faces.cli.commands.admin.config import config
from findling.pipelines.retrieve.plan_files import read_plan
from findling.service.settings.setting_files import format_value, read_file
from findling.service.settings.settings import PROFILES, Settings, apply_profile, load_settings, plan_of, profile_names


class Place:
    """A user file and a project file."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        self.user_file = folder / "config.toml"
        self.project_file = self.project / ".findling.toml"

    def load(self, environ: Mapping[str, str] = {}) -> Settings:
        return load_settings(self.project, environ={"FINDLING_CONFIG": str(self.user_file), **environ})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_profiles_that_are_always_there() -> None:
    assert profile_names(Settings()) == [
        "auto",
        "keyword",
        "semantic",
        "hybrid",
        "strict",
        "deep",
        "memory",
        "decisions",
    ]
    plans = {name: plan_of(Settings(), name) for name in PROFILES}
    assert plans["auto"] == Plan()
    for mode in ("keyword", "semantic", "hybrid"):
        assert plans[mode] == Plan(profile=mode, mode=mode)
    assert plans["strict"] == Plan(
        profile="strict", words="all", meaning_finds=False, typos="suggest", relax=False, related=5
    )
    assert plans["deep"] == Plan(
        profile="deep",
        overfetch=5,
        feedback=True,
        expand="auto",
        budget_ms=2000,
        rerank_depth=20,
    )
    assert plans["memory"] == Plan(profile="memory", types=("memory",), alpha=0.7)
    assert plans["decisions"] == Plan(
        profile="decisions",
        types=("decision",),
        words="all",
        meaning_finds=False,
        heads=True,
        typos="suggest",
        relax=False,
        related=5,
    )


def test_every_knob_of_the_plan_has_a_setting_or_a_place_in_profiles(place: Place) -> None:
    """Each is written into a profile with another value than its default, and the plan has it."""
    others: dict[str, Any] = {
        "weights": {"name": 3.0},
        "affinities": {"ann": 0.5},
        "leg_weights": {"exact": 0.5},
        "alpha": 0.25,
        "rerank_depth": 7,
    }
    for name, knob in KNOBS.items():
        if not knob.profile:
            assert name in ("profile", "half_lives"), "the one names the plan, the other comes with types"
            continue
        if knob.kind == "switch":
            other: Any = not knob.default
        elif knob.choices:
            other = next(choice for choice in knob.choices if choice != knob.default)
            other = (other,) if knob.kind == "texts" else other
        elif knob.kind in ("count", "number") and name not in others:
            other = knob.default + 1 if knob.default + 1 <= knob.maximum else knob.maximum / 2
        else:
            other = others.get(name, ("mail",))
        table = knob.row.partition(".")[0]
        key = knob.row.partition(".")[2]
        shown = f"{{ {next(iter(other))} = {next(iter(other.values()))} }}" if isinstance(other, dict) else None
        where = "[profiles.mine]" if table == "search" else f"[profiles.mine.{table}]"
        place.user_file.write_text(f"{where}\n{key} = {shown or format_value(other)}\n")
        assert plan_of(place.load(), "mine") == replace(Plan(profile="mine"), **{name: other}), name


def test_the_former_name_of_weights_of_legs_is_told(place: Place) -> None:
    for own in ("]\nlegs = { exact = 0.5 }", ".legs]\nexact = 0.5", ']\nlegs = "server"'):
        place.user_file.write_text(f"[profiles.mine{own}\n")
        with pytest.raises(UnknownSettingError, match="profile mine sets legs, which is called leg_weights now"):
            place.load()
    place.user_file.write_text('[profiles.mine.search]\nlegs = "server"\n')
    with pytest.raises(UnknownSettingError, match=r"profile mine: search\.legs is no setting any more"):
        place.load()
    assert read_plan({"legs": {"exact": 0.5}}) == read_plan({"leg_weights": {"exact": 0.5}})
    assert read_plan({"legs": {}}) == Plan()


def test_own_profiles(place: Place) -> None:
    place.user_file.write_text(
        """
[search]
limit = 7
[profiles.papers]
base = "strict"
typos = "ignore"
[profiles.papers.weights]
title = 3
tags = 2
[profiles.fast]
search.mode = "keyword"
[profiles.plain]
""",
    )
    settings = place.load()
    assert profile_names(settings) == [*PROFILES, "papers", "fast", "plain"]
    assert settings.profiles["fast"] == {"search.mode": "keyword"}
    assert settings.profile_origin("fast") == f"user file {place.user_file}"
    assert settings["search.limit"] == 7
    assert plan_of(settings, "papers") == Plan(
        profile="papers",
        words="all",
        meaning_finds=False,
        typos="ignore",
        relax=False,
        related=5,
        weights={"title": 3.0, "tags": 2.0},
    )
    assert plan_of(settings, "plain") == Plan(profile="plain")
    assert settings.override({"search.limit": 3}, "flag --limit").profiles == settings.profiles


def test_the_profile_of_the_settings_is_followed(place: Place) -> None:
    place.project_file.write_text('search.profile = "decisions"\n')
    assert plan_of(place.load()).types == ("decision",)
    assert plan_of(place.load({"FINDLING_SEARCH_PROFILE": "deep"})).profile == "deep"
    assert plan_of(place.load(), "keyword") == Plan(profile="keyword", mode="keyword")


def test_a_profile_wins_over_files_and_yields_to_environment_and_flags(place: Place) -> None:
    place.user_file.write_text('[search]\nwords = "any"\nlimit = 1\n[profiles.heavy.weights]\ntitle = 3\n')
    place.project_file.write_text('search.mode = "semantic"\n')
    settings = place.load({"FINDLING_SEARCH_TYPOS": "ignore"}).override_text("search.mode", "keyword", "flag --mode")
    changed = apply_profile(settings.override({"search.profile": "strict"}, "user file x"), "strict")
    wanted = {
        "search.words": ("all", "profile strict"),
        "search.typos": ("ignore", "env FINDLING_SEARCH_TYPOS"),
        "search.mode": ("keyword", "flag --mode"),
        "search.limit": (1, f"user file {place.user_file}"),
    }
    assert {name: (changed[name], changed.origin(name)) for name in wanted} == wanted
    chosen = apply_profile(settings, "strict", is_chosen=True)
    assert chosen["search.typos"] == "suggest", "what is chosen for one search goes first"
    assert settings["search.words"] == "any", "the settings themselves stay"
    assert plan_of(settings, "heavy").weights == {"title": 3.0}


def test_a_profile_may_start_from_one_in_the_other_file(place: Place) -> None:
    place.user_file.write_text('[profiles.mine]\nbase = "deep"\n[profiles.second]\nbase = "mine"\nmode = "keyword"\n')
    place.project_file.write_text('[profiles.team]\nbase = "mine"\noverfetch = 4.0\n')
    settings = place.load()
    assert (plan_of(settings, "team").overfetch, plan_of(settings, "team").feedback) == (4, True)
    assert plan_of(settings, "second").feedback
    assert settings.profile_origin("mine") == f"user file {place.user_file}"
    assert settings.profile_origin("team") == f"project file {place.project_file}"


def test_a_profile_of_a_project_raises_no_limit(place: Place) -> None:
    place.project_file.write_text('[profiles.team]\nbase = "deep"\noverfetch = 500.0\n')
    with pytest.raises(UntrustedSettingError, match=r"profile team: search\.overfetch is 500\.0, above your own 5\.0"):
        place.load()


def test_a_project_does_not_replace_a_profile_of_the_user(place: Place) -> None:
    place.user_file.write_text('[profiles.private]\nbase = "strict"\n')
    place.project_file.write_text('[profiles.private]\ntypes = ["mail"]\n')
    with pytest.raises(UntrustedSettingError) as caught:
        place.load()
    assert caught.value.message == (
        f"project file {place.project_file}: profile private would replace the one of user file {place.user_file}"
    )
    assert caught.value.hint == "rename one of the two"


def test_a_profile_that_the_caller_chose_wins_over_the_environment_also_when_a_file_names_it(place: Place) -> None:
    place.user_file.write_text('search.profile = "strict"\n')
    settings = place.load({"FINDLING_SEARCH_TYPOS": "ignore"})
    assert plan_of(settings).typos == "ignore"
    assert plan_of(settings, "strict").typos == "suggest"
    assert plan_of(settings.override_text("search.profile", "strict", "flag --profile")).typos == "suggest"


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint"),
    [
        ("[profiles.mine]\nmod = 'keyword'", UnknownSettingError, "no setting is called search.mod", "search.mode"),
        ("[profiles.mine.keyword]\nk1 = 1", UnknownSettingError, "keyword.k1 is no setting any more", "always counts"),
        ("[profiles.mine]\nmode = 'words'", InvalidValueError, "search.mode must be hybrid or keyword", "remove it"),
        ("[profiles.mine]\nrelated = -1", InvalidValueError, "search.related must be a whole number", "remove it"),
        ("[profiles.mine]\nbase = 'strct'", InvalidValueError, "no profile is called strct", "strict instead?"),
        ("[profiles.mine]\nbase = 3", InvalidValueError, "no profile is called 3", "there are: auto"),
        ("[profiles.mine]\nbase = 'mine'", InvalidValueError, "is its own base: mine → mine", "base"),
        ("[profiles.mine]\nprofile = 'deep'", InvalidValueError, "sets search.profile", "search.*"),
        ("[profiles.mine]\nindex.hidden = true", InvalidValueError, "index.hidden, which is no matter of", "search.*"),
        ("[profiles.mine]\nmode = 'keyword'\nsearch.mode = 'hybrid'", InvalidValueError, "search.mode twice", "one"),
        ("[profiles.mine.serch]", UnknownSettingError, "no setting is called search.serch", ""),
    ],
)
def test_errors_name_file_and_profile(
    place: Place, text: str, kind: type[FindlingError], message: str, hint: str
) -> None:
    for file in (place.user_file, place.project_file):
        file.write_text(text)
        with pytest.raises(kind) as caught:
            place.load()
        assert f"file {file}: profile mine" in caught.value.message
        assert message in caught.value.message
        assert hint in caught.value.hint
        file.unlink()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.strict]\nmode = 'keyword'", "profile strict is always there"),
        ("[profiles]\nmode = 'keyword'", "profiles.mode must be a table"),
        ("profiles = 3", "profiles must be tables, not 3"),
        ("[profiles.'a b']", "profile 'a b' must be called by letters"),
        ("[profiles.a]\nbase = 'b'\n[profiles.b]\nbase = 'a'", "profile a is its own base: a → b → a"),
    ],
)
def test_tables_that_are_no_profiles(place: Place, text: str, message: str) -> None:
    place.user_file.write_text(text)
    with pytest.raises(InvalidValueError) as caught:
        place.load()
    assert f"user file {place.user_file}: {message}" in caught.value.message


def test_a_projects_profile_may_not_set_what_is_the_users(place: Place) -> None:
    place.project_file.write_text("[profiles.mine]\nchat.model = 'openai:x'\n")
    with pytest.raises(UntrustedSettingError, match=r"findling\.toml: profile mine sets chat\.model"):
        place.load()


def test_a_name_that_no_profile_has(place: Place) -> None:
    place.user_file.write_text("[profiles.papers]\n")
    with pytest.raises(InvalidValueError, match="no profile is called paper") as caught:
        plan_of(place.load(), "paper")
    assert caught.value.hint == "papers instead? there are: " + ", ".join([*PROFILES, "papers"])
    with pytest.raises(InvalidValueError, match="no profile is called zzz") as caught:
        plan_of(place.load({"FINDLING_SEARCH_PROFILE": "zzz"}))
    assert caught.value.hint.startswith("there are: ")


def test_an_alpha_is_a_share_or_auto(place: Place) -> None:
    place.user_file.write_text('[search]\nalpha = 0.5\n[profiles.mine]\nalpha = "auto"\n')
    assert (plan_of(place.load()).alpha, plan_of(place.load(), "mine").alpha) == (0.5, None)
    place.user_file.write_text("[profiles.mine]\nalpha = -0.5\n")
    with pytest.raises(InvalidValueError, match=r"search\.alpha must be a number of at least 0 and at most 1 or auto"):
        place.load()


def test_config_leaves_profiles_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '# mine\n[profiles.papers]\nmode = "keyword"  # words alone\nweights.title = 3\n'
    place.user_file.write_text(text)
    monkeypatch.setenv("FINDLING_CONFIG", str(place.user_file))
    monkeypatch.chdir(place.project)
    run = CliRunner()
    shown = run.invoke(config, ["show"], standalone_mode=False)
    assert "profiles" not in shown.output
    assert 'search.profile = "auto"' in shown.output
    assert run.invoke(config, ["set", "search.mode", "semantic"], standalone_mode=False).exception is None
    assert read_file(place.user_file)["search"] == {"mode": "semantic"}
    assert place.user_file.read_text().startswith(text)
    assert run.invoke(config, ["remove", "search.mode"], standalone_mode=False).exception is None
    assert plan_of(place.load(), "papers").mode == "keyword"
    refused = run.invoke(config, ["set", "profiles.papers.mode", "hybrid"], standalone_mode=False).exception
    assert isinstance(refused, UnknownSettingError)
    assert refused.hint == "write it into the table [profiles.papers] of a settings file"
