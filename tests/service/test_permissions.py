"""Every way to be let in or kept out, through everything that answers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import CorruptError, InvalidValueError, NotFoundError
from findling.domain.resources import Resource
from findling.domain.sight import Rights
from findling.service.engine.engine import Viewer
from findling.service.settings.settings import load_settings
from tests.counts import tries

ANN = "user:ann"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[findling.Engine]:
    (tmp_path / "tree").mkdir()
    own = {"store.home": str(tmp_path / "home")}
    with findling.open(tmp_path / "tree", settings=load_settings(tmp_path / "tree").override(own, "test")) as engine:
        engine.permissions.join(ANN, "group:eng")
        engine.permissions.join("group:eng", "group:staff")
        engine.permissions.join("group:staff", "role:reader")
        _add(engine, "note:mine", (ANN,), "A cat sleeps upon the carpet.")
        yield engine


def _add(engine: findling.Engine, rid: str, visibility: tuple[str, ...] | None, text: str, path: str = "") -> None:
    engine.add([(Resource(rid=rid, type="note", title="Quokka", path=path, visibility=visibility), text)])


Change = Callable[[findling.Engine], object]


def _nothing(engine: findling.Engine) -> None:
    """Leave it as it is."""


def _revoked(engine: findling.Engine) -> None:
    engine.permissions.share("note:x", "group:eng")
    assert engine.as_caller(ANN).search("quokka").total, "a search while it may be seen"
    engine.permissions.unshare("note:x", "group:eng")


def _left(engine: findling.Engine) -> None:
    assert engine.as_caller(ANN).search("quokka").total
    engine.permissions.leave("group:eng", "group:staff")


def _denied_for_a_while(engine: findling.Engine) -> None:
    engine.permissions.deny("note:x", ANN)
    engine.permissions.undeny("note:x", ANN)


def _nearer_for_others(engine: findling.Engine) -> None:
    engine.permissions.share("path:docs", ANN)
    engine.permissions.share("path:docs/plans", "user:bob")


ROWS: list[tuple[str, tuple[str, ...] | None, Change, bool]] = [
    ("allowed by name", (ANN,), _nothing, True),
    ("allowed by group", ("group:eng",), _nothing, True),
    ("allowed by a group of a group", ("group:staff",), _nothing, True),
    ("allowed by a role of a group of a group", ("role:reader",), _nothing, True),
    ("allowed to everyone", ("everyone",), _nothing, True),
    ("allowed to others", ("user:bob", "group:ops"), _nothing, False),
    ("a name that only begins so", ("user:an", "user:anna", "group:en"), _nothing, False),
    ("another case", ("user:Ann", "user:ANN"), _nothing, False),
    ("denied beats allowed", (ANN, "!user:ann"), _nothing, False),
    ("denied by a group of a group", (ANN, "!group:staff"), _nothing, False),
    ("denied to everyone", ("everyone", "!everyone"), _nothing, False),
    ("denied to others", ("group:eng", "!user:bob"), _nothing, True),
    ("only denials let nobody in", ("!user:bob",), _nothing, False),
    ("an empty list is nobody", (), _nothing, False),
    ("unset is the owner's", None, _nothing, False),
    ("shared by name", (), lambda e: e.permissions.share("note:x", ANN), True),
    ("shared with a group", None, lambda e: e.permissions.share("note:x", "group:staff"), True),
    ("shared with others", None, lambda e: e.permissions.share("note:x", "group:ops"), False),
    ("shared and denied", (ANN,), lambda e: e.permissions.deny("note:x", "group:eng"), False),
    (
        "denied and taken back",
        (ANN,),
        lambda e: (e.permissions.deny("note:x", ANN), e.permissions.undeny("note:x", ANN)),
        True,
    ),
    ("shared and revoked", (), _revoked, False),
    ("left the group", ("group:staff",), _left, False),
    ("the folder is shared", None, lambda e: e.permissions.share("path:docs", "group:eng"), True),
    ("the folder above is shared", None, lambda e: e.permissions.share("path:docs/plans", "group:eng"), True),
    (
        "a folder that is named alike is shared",
        None,
        lambda e: e.permissions.share("path:docs/plan", "group:eng"),
        False,
    ),
    (
        "the nearest folder decides",
        None,
        lambda e: (e.permissions.share("path:docs", ANN), e.permissions.share("path:docs/plans", "user:bob")),
        False,
    ),
    (
        "an own list counts more than the folder's",
        ("user:bob",),
        lambda e: e.permissions.share("path:docs", ANN),
        False,
    ),
    ("the folder is denied", (ANN,), lambda e: e.permissions.deny("path:docs", "group:staff"), False),
    ("the file itself is shared", None, lambda e: e.permissions.share("path:docs/plans/x.md", ANN), True),
]


def _search(mode: str) -> Callable[[Viewer], bool]:
    return lambda viewer: "note:x" in [hit.rid for hit in viewer.search("quokka zebra", plan=findling.Plan(mode=mode))]


def _fetched(viewer: Viewer) -> bool:
    try:
        return viewer.fetch("note:x").rid == "note:x"
    except NotFoundError:
        return False


def _explained(viewer: Viewer) -> bool:
    try:
        return viewer.explain("zebra", "note:x").found
    except NotFoundError:
        return False


ENDPOINTS: dict[str, Callable[[Viewer], bool]] = {
    "keyword": _search("keyword"),
    "hybrid": _search("hybrid"),
    "semantic": _search("semantic"),
    "browse": lambda viewer: "note:x" in [hit.rid for hit in viewer.search("type:note")],
    "count": lambda viewer: viewer.search("zebra").total == 1,
    "facets": lambda viewer: viewer.search("zebra", facets=("type",)).facets["type"] == {"note": 1},
    "fetch": _fetched,
    "explain": _explained,
    "similar": lambda viewer: "note:x" in [hit.rid for hit in viewer.similar("note:mine")],
    "suggest": lambda viewer: any("zebra" in one.text for one in viewer.suggest("zeb")),
    "did you mean": lambda viewer: bool(viewer.search("zebrra", plan=findling.Plan(mode="keyword")).did_you_mean),
    "ls": lambda viewer: "note:x" in [resource.rid for resource in viewer.ls()],
}


@pytest.mark.parametrize(
    ("number", "visibility", "change", "expected"),
    [(number, *row[1:]) for number, row in enumerate(ROWS)],
    ids=[row[0] for row in ROWS],
)
def test_every_right_through_everything_that_answers(
    engine: findling.Engine, number: int, visibility: tuple[str, ...] | None, change: Change, expected: bool
) -> None:
    # A third of the ways to each right, in turns: every way meets ten rights.
    turns = tries(1, short=3)
    ways = dict(list(ENDPOINTS.items())[number % turns :: turns])
    _add(engine, "note:x", visibility, "A cat sleeps upon the carpet beside a zebra.", "docs/plans/x.md")
    change(engine)
    told = {name: ask(engine.as_caller(ANN)) for name, ask in ways.items()}
    assert told == dict.fromkeys(ways, expected)
    assert engine.permissions.check([ANN], "note:x").may_see is expected
    assert engine.search("zebra", refresh=False).total == 1, "the owner sees everything"


def test_the_policy_may_show_what_is_unset(engine: findling.Engine) -> None:
    _add(engine, "note:x", None, "zebra", "docs/x.md")
    opened = findling.open(engine.root, settings=engine._settings.override({"permissions.unset": "public"}, "test"))
    with opened as public:
        assert public.as_caller("user:stranger").search("zebra").total == 1
        assert public.as_caller().search("zebra").total == 0, "nobody sees nothing at all"
        public.permissions.deny("note:x", "user:stranger")
        assert public.as_caller("user:stranger").search("zebra").total == 0


def test_nobody_finds_nothing(engine: findling.Engine) -> None:
    _add(engine, "note:x", ("everyone",), "zebra")
    nobody = engine.as_caller()
    assert nobody.search("zebra").total == 0
    assert list(nobody.ls()) == []
    assert engine.as_caller("role:unheard-of").search("zebra").total == 1, "anybody is everyone"


@pytest.mark.parametrize(
    "name", ["ann", "user:", "user: ann", "user:a\nb", "group", "admin:x", "", "user:e\u0301", "everyone "]
)
def test_what_is_no_principal_is_an_error(engine: findling.Engine, name: str) -> None:
    with pytest.raises(InvalidValueError, match="is no principal"):
        engine.as_caller(name)
    with pytest.raises(InvalidValueError, match="is no principal"):
        engine.search("zebra", refresh=False, principals=(name,))
    with pytest.raises(InvalidValueError, match="is no principal"):
        engine.permissions.share("note:mine", name)


def test_a_group_is_no_member_of_itself(engine: findling.Engine) -> None:
    for member, group in (("group:eng", "group:eng"), ("role:reader", "group:eng"), ("group:staff", "group:eng")):
        with pytest.raises(InvalidValueError):
            engine.permissions.join(member, group)
    with pytest.raises(InvalidValueError, match="nobody can be a member of user:bob"):
        engine.permissions.join(ANN, "user:bob")


def test_a_circle_that_is_there_all_the_same_ends(engine: findling.Engine) -> None:
    from findling.domain.permissions import Relation

    with engine._files.writing():
        engine._files.store.write_relations([Relation("role:reader", "member", "group:eng")])
    _add(engine, "note:x", ("group:staff",), "zebra")
    assert engine.as_caller("role:reader").search("zebra").total == 1


def test_a_change_by_another_process_counts_from_the_next_search_on(engine: findling.Engine) -> None:
    _add(engine, "note:x", (), "zebra")
    viewer = engine.as_caller(ANN)
    with findling.open(engine.root, settings=engine._settings) as other:
        for _ in range(3):
            other.permissions.share("note:x", "group:staff")
            assert viewer.search("zebra").total == 1
            other.permissions.unshare("note:x", "group:staff")
            assert viewer.search("zebra").total == 0


def test_what_is_hidden_and_what_is_not_there_give_one_error(engine: findling.Engine) -> None:
    _add(engine, "note:hidden", ("user:bob",), "zebra", "docs/hidden.md")
    viewer = engine.as_caller(ANN)
    for hidden, absent in (("note:hidden", "note:absent"), ("docs/hidden.md", "docs/absent.md")):
        for ask in (viewer.fetch, viewer.similar, lambda name: viewer.explain("zebra", name)):
            told = []
            for name in (hidden, absent):
                with pytest.raises(NotFoundError) as caught:
                    ask(name)
                told.append((caught.value.message.replace(name, "NAME"), caught.value.hint))
            assert told[0] == told[1]


def test_a_view_that_is_damaged_is_made_anew(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    assert engine.as_caller(ANN).search("zebra").total == 1
    engine.close()
    for file in (engine.home / "views").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    assert engine.as_caller(ANN).search("zebra").total == 1


def test_a_workspace_that_cannot_be_written_answers(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    (engine.home / "views").write_text("in the way")
    assert engine.as_caller(ANN).search("zebra").total == 1


def test_names_of_files_and_folders_as_people_type_them(engine: findling.Engine) -> None:
    _add(engine, "note:x", None, "zebra", "docs/plans/x.md")
    permissions = engine.permissions
    assert permissions.target("docs/plans/") == "path:docs/plans"
    assert permissions.target("./docs") == "path:docs"
    assert permissions.target("note:x") == "note:x"
    assert permissions.target("docs/plans/../plans/x.md") == "path:docs/plans/x.md"
    assert permissions.target(".") == "path:."
    for name in ("docs/plan", "../elsewhere"):
        with pytest.raises(NotFoundError, match=f"there is no {name} here"):
            permissions.target(name)


def test_a_folder_can_be_shared_before_it_is_indexed(engine: findling.Engine) -> None:
    (engine.root / "later").mkdir()
    assert engine.permissions.target("later") == "path:later"


def test_the_whole_workspace_is_a_folder(engine: findling.Engine) -> None:
    _add(engine, "note:x", None, "zebra", "docs/x.md")
    _add(engine, "note:y", None, "zebra")
    engine.permissions.share("path:.", ANN)
    assert [hit.rid for hit in engine.as_caller(ANN).search("zebra")] == ["note:x"]
    engine.permissions.share("path:docs", "user:bob")
    assert engine.permissions.overridden("path:docs") == ("path:.", ANN)
    assert engine.as_caller(ANN).search("zebra").total == 0


def test_a_verdict_says_what_it_goes_by(engine: findling.Engine) -> None:
    def why(principal: str) -> str:
        return engine.permissions.check([principal], "note:x").reason

    _add(engine, "note:x", None, "zebra", "docs/x.md")
    assert why(ANN) == "nobody was given a right to it"
    engine.permissions.share("path:docs", "group:staff")
    assert why(ANN) == "path:docs is shared with group:staff"
    assert why("user:bob") == "path:docs is shared with group:staff"
    engine.permissions.share("note:x", "user:bob")
    assert why("user:bob") == "it was shared with user:bob"
    engine.permissions.deny("path:.", "group:eng")
    assert why(ANN) == "denied by a right to path:."
    _add(engine, "note:x", ("user:zoe", "!user:bob"), "zebra", "docs/x.md")
    assert why("user:bob") == "denied by its own list: user:zoe, !user:bob"
    assert why("user:zoe") == "its own list names user:zoe"


def test_a_list_that_is_none_is_refused(engine: findling.Engine) -> None:
    for entry in ("ann", "USER:ann", "! user:ann", ""):
        with pytest.raises(InvalidValueError, match="is no principal"):
            _add(engine, "note:x", (entry,), "zebra")
    assert engine.search("zebra", refresh=False).total == 0


def test_what_was_shared_of_something_is_not_shared_of_what_gets_its_id(engine: findling.Engine) -> None:
    _add(engine, "note:x", (), "zebra")
    engine.permissions.share("note:x", ANN)
    assert engine.as_caller(ANN).search("zebra").total == 1
    (view,) = (engine.home / "views").glob("*/held")
    engine.writer.put((), ["note:x"])
    assert not view.exists(), "what was deleted stays in no index of a caller"
    _add(engine, "note:x", (), "zebra")
    assert engine.as_caller(ANN).search("zebra").total == 0


def test_threads_of_one_engine_search_while_another_writes(engine: findling.Engine) -> None:
    _add(engine, "note:0", (ANN,), "zebra")
    errors: list[BaseException] = []
    is_over = threading.Event()

    def search(ask: Callable[[], object]) -> None:
        try:
            while not is_over.is_set():
                ask()
        except BaseException as error:  # whatever it is, the test tells of it
            errors.append(error)

    viewer = engine.as_caller(ANN)
    asks: list[Callable[[], object]] = [
        lambda: engine.search("zebra", refresh=False),
        lambda: viewer.search("zebra"),
        lambda: viewer.suggest("zeb"),
    ]
    threads = [threading.Thread(target=search, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    for number in range(1, 12):
        _add(engine, f"note:{number}", (ANN,), "zebra")
    is_over.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert engine.search("zebra", refresh=False, limit=50).total == 12
    assert viewer.search("zebra", limit=50).total == 12


def test_a_list_that_cannot_be_understood_lets_nobody_in() -> None:
    rights = Rights([ANN], [], unset_is_public=True)
    for entries in (("ann",), ("",), ("user:ann ",), ("*",), ("everyone", "! user:ann"), ("everyone", "!ann"), ("!",)):
        assert not rights.may_see("note:x", "", entries), entries


@pytest.mark.parametrize(
    "name", ["path:docs/", "path:./docs", "path:/docs", "path:", "path:docs//x", "path:../docs", ""]
)
def test_a_right_to_a_folder_that_is_written_in_another_way_is_an_error(engine: findling.Engine, name: str) -> None:
    with pytest.raises(InvalidValueError):
        engine.permissions.deny(name, ANN)


def test_nobody_opens_what_lies_in_the_current_folder(
    engine: findling.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    assert engine.as_caller(ANN).search("zebra").total == 1
    (view,) = (engine.home / "views").glob("*/")
    monkeypatch.chdir(view)
    assert engine.as_caller("user:stranger").search("zebra").total == 0
    (tmp_path / "keyword").mkdir()
    (tmp_path / "keyword" / "meta.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert engine.as_caller("user:stranger").search("zebra").total == 0


def test_a_segment_that_another_process_replaces_while_it_is_opened(
    engine: findling.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from findling.stores.keyword.class_segments import ClassSegments

    _add(engine, "note:x", (ANN,), "zebra")
    _add(engine, "note:y", (), "walrus")
    viewer = engine.as_caller(ANN)
    assert viewer.search("zebra").total == 1
    opened, turns = ClassSegments._open, []

    def opening(own: ClassSegments, names: frozenset[str]) -> object:
        turns.append(names)
        if len(turns) == 1:  # the segments are chosen, and not yet open
            with findling.open(engine.root, settings=engine._settings) as other:
                other.permissions.deny("note:x", ANN)
                other.permissions.share("note:y", ANN)
                assert other.as_caller(ANN).search("walrus").total == 1
                other.writer.put((), ["note:x"])
        return opened(own, names)

    engine.opened.views.close()
    monkeypatch.setattr(ClassSegments, "_open", opening)
    assert viewer.search("zebra").total == 0
    assert len(turns) > 2
    assert viewer.search("walrus").total == 1
    assert not viewer.suggest("zeb")


def test_what_is_written_during_a_search_is_not_half_seen(
    engine: findling.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    viewer, store = engine.as_caller(ANN), engine._files.store
    documents = type(store).documents
    is_done: list[bool] = []

    def denied_meanwhile(own: object, numbers: object) -> object:
        if not is_done:
            is_done.append(True)
            with findling.open(engine.root, settings=engine._settings) as other:
                other.permissions.deny("note:x", ANN)
        return documents(own, numbers)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store), "documents", denied_meanwhile)
    assert viewer.search("zebra").total == 0
    assert is_done


def test_a_view_that_is_damaged_while_it_is_open_is_made_anew(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN,), "zebra " * 50)
    viewer = engine.as_caller(ANN)
    assert viewer.search("zebra").total == 1
    before = (engine.home / "keyword" / "meta.json").read_bytes()
    for file in (engine.home / "views").rglob("*.*"):
        if file.suffix in (".idx", ".pos", ".fast", ".term"):
            file.write_bytes(b"\x00" * file.stat().st_size)
    assert viewer.search("zebra").total == 1
    assert (engine.home / "keyword" / "meta.json").read_bytes() == before, "the owner's leg is sound"


def test_a_note_that_is_cut_off_is_none(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    assert engine.as_caller(ANN).search("zebra").total == 1
    engine.close()
    (note,) = (engine.home / "views").glob("*/held")
    note.write_bytes(note.read_bytes()[:16])
    assert engine.as_caller(ANN).search("zebra").total == 1


def test_a_relation_that_is_not_understood_is_damage(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN,), "zebra")
    engine.permissions.deny("note:x", ANN)
    engine.close()
    with sqlite3.connect(engine.home / "index.sqlite") as connection:
        connection.execute("UPDATE relations SET relation = 'DENIED' WHERE relation = 'denied'")
    with pytest.raises(CorruptError, match="DENIED"):
        engine.as_caller(ANN).search("zebra")
    with sqlite3.connect(engine.home / "index.sqlite") as connection:
        connection.execute("DROP TABLE relations")
    with pytest.raises(CorruptError):
        engine.as_caller(ANN).search("zebra")


def test_a_guess_does_not_show_that_others_have_written_it(tmp_path: Path) -> None:
    """A passage that a model has read for somebody else has its vector at once; nobody may tell by that."""
    told: list[dict[str, Any]] = []
    for hidden in ("The merger closes in May.", "Something else altogether."):
        root = tmp_path / str(len(told))
        root.mkdir()
        own = {"store.home": str(root / "home")}
        with findling.open(root, settings=load_settings(root).override(own, "test")) as engine:
            _add(engine, "note:mine", (ANN,), "A cat sleeps upon the carpet.")
            _add(engine, "note:hidden", ("user:bob",), hidden)
            engine.refine()
            viewer = engine.as_caller(ANN)
            assert viewer.search("cat").meaning["speed"] == "refined"
            _add(engine, "note:guess", (ANN,), "The merger closes in May.")
            answer = viewer.search("when does the merger close").to_dict()
            answer.pop("timings_ms")
            told.append(answer)
            engine.refine()
            assert viewer.search("cat").meaning["speed"] == "refined"
    assert told[0] == told[1]


def test_a_viewer_reads_no_files_and_tells_of_none(engine: findling.Engine) -> None:
    (engine.root / "secret.md").write_text("zebra")
    viewer = engine.as_caller(ANN)
    with pytest.raises(TypeError):
        viewer.search("zebra", on_progress=print)
    viewer.search("zebra")
    assert engine.search("zebra", refresh=False).total == 0


def test_lists_of_others_are_not_handed_out(engine: findling.Engine) -> None:
    _add(engine, "note:x", (ANN, "user:bob"), "zebra")
    assert {resource.visibility for resource in engine.as_caller(ANN).ls()} == {None}


def test_no_resource_goes_by_the_name_of_a_folder(engine: findling.Engine) -> None:
    """Deleting such a resource once dropped the rights to the folder, and so showed it to readers of its parent."""
    _add(engine, "note:pay", None, "A quokka earns much.", "docs/pay/list.md")
    engine.permissions.share("path:docs", ANN)
    engine.permissions.share("path:docs/pay", "user:boss")
    for rid in ("path:docs/pay", "path:", "log:accesses"):
        with pytest.raises(InvalidValueError, match="is no id of a resource"):
            _add(engine, rid, (ANN,), "A guess.")
    assert "note:pay" not in {hit.rid for hit in engine.as_caller(ANN).search("quokka earns")}
