from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError, UsageError
from findling.service.settings.setting_files import format_value, read_file, set_value, unset_value
from findling.service.settings.settings import user_file

HAND_WRITTEN = """\
# my settings
[search]   # how much
limit = 5   # few = good
# none
context=2

[index]
exclude = [
  "*.log",  # noise
  # generated
  "out#1/"  # last
]  # end
hidden = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "config.toml"
    made.write_text(HAND_WRITTEN)
    return made


def test_a_value_changes_and_every_other_letter_stays(file: Path) -> None:
    set_value(file, "search.limit", 7)
    assert file.read_text() == HAND_WRITTEN.replace("limit = 5 ", "limit = 7 ")


def test_a_new_value_joins_its_table(file: Path) -> None:
    set_value(file, "search.refresh", "never")
    assert file.read_text() == HAND_WRITTEN.replace("context=2\n", 'context=2\nrefresh = "never"\n')


def test_a_new_table_comes_last(file: Path) -> None:
    set_value(file, "watch.wait_s", 1.5)
    assert file.read_text() == HAND_WRITTEN + "\n[watch]\nwait_s = 1.5\n"


def test_a_list_keeps_its_comments(file: Path) -> None:
    set_value(file, "index.exclude", ("*.log", "out#1/", "new"))
    assert file.read_text() == HAND_WRITTEN.replace('"out#1/"  # last\n', '"out#1/",  # last\n  "new",\n')
    set_value(file, "index.exclude", ("out#1/",))
    assert file.read_text() == HAND_WRITTEN.replace('  "*.log",  # noise\n', "").replace('1/"', '1/",')


def test_a_list_in_another_order_is_written_anew(file: Path) -> None:
    set_value(file, "index.exclude", ("out#1/", "*.log"))
    assert 'exclude = ["out#1/", "*.log"]  # end\nhidden' in file.read_text()


def test_a_value_goes_and_every_other_letter_stays(file: Path) -> None:
    assert unset_value(file, "search.context")
    assert file.read_text() == HAND_WRITTEN.replace("context=2\n", "")
    assert not unset_value(file, "search.context")
    assert not unset_value(file, "watch.wait_s")
    assert unset_value(file, "index.exclude")
    assert read_file(file) == {"search": {"limit": 5}, "index": {"hidden": False}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[search]\nlimit = 9\n"),
        ("# only this", "# only this\n\n[search]\nlimit = 9\n"),
        ("search.context = 1\n[index]\n", "search.context = 1\nsearch.limit = 9\n[index]\n"),
        ("search.limit = 1 # a\r\n", "search.limit = 9 # a\r\n"),
        ("[search]\r\ncontext = 1", "[search]\r\ncontext = 1\r\nlimit = 9\r\n"),
        ('"search" . "limit"=\t1', '"search" . "limit"=\t9\n'),
        ("[ search ]\n[index]\nhidden = true\n", "[ search ]\nlimit = 9\n[index]\nhidden = true\n"),
        ("# \u2028 [search]\n[search]\nlimit = 1\n", "# \u2028 [search]\n[search]\nlimit = 9\n"),
    ],
)
def test_many_ways_to_write_a_file(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(before.encode())
    set_value(file, "search.limit", 9)
    assert file.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("search = { limit = 1, context = 2 }\n", "search.refresh", "never"),
        ("search = 3\n", "search.limit", 4),
        ("[search.deep]\nx = 1\n", "search.limit", 4),
        ("", "store.home", "\ud800"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(tmp_path: Path, text: str, name: str, value: object) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(InvalidValueError, match="cannot change"):
        set_value(file, name, value)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_a_broken_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[search\n")
    with pytest.raises(InvalidValueError, match="not valid TOML"):
        set_value(file, "search.limit", 3)
    with pytest.raises(InvalidValueError, match="not valid TOML"):
        unset_value(file, "search.limit")
    assert file.read_text() == "[search\n"


def test_a_missing_file_is_made_with_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "config.toml"
    assert not unset_value(file, "search.limit")
    assert not file.parent.exists()
    set_value(file, "search.limit", 3)
    assert file.read_text() == "[search]\nlimit = 3\n"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    real.write_text("")
    real.chmod(0o640)
    link.symlink_to(real)
    set_value(link, "search.limit", 3)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert read_file(real) == {"search": {"limit": 3}}


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot write"):
        set_value(tmp_path / "config.toml", "search.limit", 3)


def test_a_file_below_a_file_cannot_be_written(file: Path) -> None:
    with pytest.raises(UsageError, match="cannot"):
        set_value(file / "config.toml", "search.limit", 3)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="platformdirs itself answers there")
def test_the_user_file_is_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from platformdirs import user_config_path

    for base in (None, str(tmp_path)):
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        if base is not None:
            monkeypatch.setenv("XDG_CONFIG_HOME", base)
        environ = {name: value for name, value in os.environ.items() if name != "FINDLING_CONFIG"}
        assert user_file(environ) == user_config_path("findling") / "config.toml"


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
NAMES = st.sampled_from(["search.limit", "search.context", "index.exclude", "index.hidden", "watch.wait_s"])


@given(VALUES)
def test_every_value_parses_back(value: object) -> None:
    assert tomllib.loads(f"x = {format_value(value)}") == {"x": value}


@given(st.lists(st.tuples(NAMES, st.one_of(st.none(), VALUES)), max_size=8))
def test_any_row_of_changes_ends_as_a_plain_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, object]]
) -> None:
    file = tmp_path_factory.mktemp("edits") / "config.toml"
    file.write_text(HAND_WRITTEN)
    wanted: dict[str, object] = {"search.limit": 5, "search.context": 2, "index.hidden": False}
    wanted["index.exclude"] = ["*.log", "out#1/"]
    for name, value in changes:
        if value is None:
            assert unset_value(file, name) == (name in wanted)
            wanted.pop(name, None)
        else:
            set_value(file, name, value)
            wanted[name] = value
    holds = {f"{section}.{key}": value for section, table in read_file(file).items() for key, value in table.items()}
    assert holds == wanted
    for comment in ("# my settings\n[search]   # how much\n", "# none\n"):
        assert comment in file.read_text()
