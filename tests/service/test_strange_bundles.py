"""A bundle of a stranger: content comes in, and nothing else unless the owner says so by its name."""

from __future__ import annotations

import base64
import io
import json
import random
import shutil
import sys
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import findling
from findling.domain.errors import CorruptError, FindlingError, InvalidValueError, UsageError
from findling.domain.permissions import Relation
from findling.domain.resources import Resource
from findling.domain.strangers import TRUSTS
from findling.service.engine.engine import open_engine
from findling.service.export.bundles import export_bundle, import_bundle
from findling.stores.bundle.bundle import FILES, Bundle
from tests.counts import tries
from tests.processes import run_process

EVE = "user:eve"
Rows = dict[str, list[Any]]


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "permissions.unset": "public"}
    return findling.Settings().override(own, "test")


@pytest.fixture
def sound(tmp_path: Path, settings: findling.Settings) -> Path:
    """A bundle of a workspace with files, items, rights and a glossary."""
    (tmp_path / "tree" / "docs").mkdir(parents=True)
    for name in ("a", "b", "docs/c"):
        (tmp_path / "tree" / f"{name}.md").write_text(f"# Note {name}\n\nThe harbour pilot of {name} waits.\n")
    with open_engine(tmp_path / "tree", settings=settings) as engine:
        engine.index()
        engine.add([(Resource(rid="decision:1", type="decision", visibility=("user:ana",)), "The pilot decides.")])
        engine.memories.remember("The pilot likes tea.")
        engine.glossary.add("pilot", ["lotse"])
        engine.permissions.share("path:docs", "user:ana")
        engine.permissions.join("user:ana", "group:crew")
        export_bundle(engine, tmp_path / "sound")
    return tmp_path / "sound"


def read(bundle: Path) -> Rows:
    return {name: [json.loads(line) for line in (bundle / name).read_text().splitlines()] for name in FILES}


def crafted(sound: Path, change: Callable[[Rows], object], name: str = "crafted") -> Path:
    """The bundle with other lines, whose checksums are right."""
    rows = read(sound)
    change(rows)
    lines = {file: "".join(f"{json.dumps(row)}\n" for row in rows[file]).encode() for file in FILES}
    return sealed(sound, lines, name)


def sealed(sound: Path, data: dict[str, bytes], name: str = "crafted") -> Path:
    target = sound.with_name(name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(sound, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["counts"]["files"] = data.get("resources.jsonl", b"").count(b'"file:')
    for file, content in data.items():
        (target / file).write_bytes(content)
        manifest["files"][file] |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def resource(rows: Rows, rid: str = "decision:1") -> dict[str, Any]:
    return next(row for row in rows["resources.jsonl"] if row["rid"] == rid)


def test_content_comes_in_and_its_owner_alone_sees_it(sound: Path, settings: findling.Settings) -> None:
    report = import_bundle(sound, workspace="copy", settings=settings)
    assert (report.root, report.counts["resources"]) == (None, 5)
    assert {trust: len(what) for trust, what in report.left_out.items()} == {"rights": 2, "root": 1, "survey": 1}
    with open_engine(".", workspace="copy", settings=settings) as engine:
        assert len(engine.search("pilot").hits) == 5
        assert engine.permissions.relations() == []
        for who in (EVE, "user:ana", "group:crew"):
            assert not engine.as_caller(who).search("pilot").hits, "although permissions.unset is public"
        engine.permissions.share("file:a.md", EVE)
        assert [hit.rid for hit in engine.as_caller(EVE).search("pilot")] == ["file:a.md"]


def test_each_trust_takes_its_own(sound: Path, settings: findling.Settings) -> None:
    rights = import_bundle(sound, workspace="rights", trust=["rights"], settings=settings)
    assert (rights.root, sorted(rights.left_out)) == (None, ["root", "survey"])
    with open_engine(".", workspace="rights", settings=settings) as engine:
        assert len(engine.permissions.relations()) == 2
        assert [hit.rid for hit in engine.as_caller("user:ana").search("decides")] == ["decision:1"]
    root = import_bundle(sound, workspace="root", trust=["root", "survey"], settings=settings)
    assert (root.root, sorted(root.left_out)) == (sound.parent / "tree", ["rights"])
    with pytest.raises(UsageError, match="'everything' is nothing that a bundle can be trusted with"):
        import_bundle(sound, workspace="no", trust=["everything"], settings=settings)


def test_a_bundle_does_not_choose_what_is_followed(sound: Path, settings: findling.Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which nobody has said here"):
        import_bundle(sound, settings=settings)

    def elsewhere(rows: Rows) -> None:
        rows["meta.json"][0] |= {"root": str(tmp_path / "secret"), "kept": {"root": str(tmp_path / "secret"), "x": "y"}}
        rows["meta.json"][0]["seq"] = 7

    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "plan.md").write_text("The pilot sells the ship.\n")
    report = import_bundle(crafted(sound, elsewhere), workspace="copy", trust=["survey"], settings=settings)
    assert report.root is None
    assert set(report.left_out[""]) == {"meta.json 'seq'", "meta.json kept 'root'", "meta.json kept 'x'"}
    with open_engine(".", workspace="copy", settings=settings) as engine:
        assert engine.writer.store.get_meta("root") == ""
        assert not engine.search("ship").hits


def chain(rows: Rows, secret: Path) -> None:
    """Rights to everything for everyone, and a root that was never shared."""
    rows["relations.jsonl"] += [
        {"subject": "everyone", "relation": "viewer", "object": "path:."},
        {"subject": "everyone", "relation": "viewer", "object": "path:"},
        {"subject": EVE, "relation": "viewer", "object": "memory:own"},
        {"subject": EVE, "relation": "member", "object": "group:crew"},
    ]
    rows["meta.json"][0] |= {"root": str(secret), "kept": {"root": str(secret)}}
    for row in rows["resources.jsonl"]:
        row["visibility"] = ["everyone"]


@pytest.mark.parametrize("trust", [(), ("rights",), tuple(TRUSTS)], ids="+".join)
@pytest.mark.parametrize("merge", [False, True])
def test_no_caller_reads_what_was_never_shared(
    sound: Path, settings: findling.Settings, tmp_path: Path, merge: bool, trust: tuple[str, ...]
) -> None:
    """The owner imports, searches once, and a caller once read any file of the disk."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "plan.md").write_text("The pilot sells the ship.\n")
    settings = settings.override({"permissions.unset": "owner"}, "test")
    with open_engine(secret, workspace="copy", settings=settings) as engine:
        if merge:
            engine.memories.remember("The pilot keeps the ship.", id="own")
            engine.permissions.share("memory:own", "group:crew")
    bundle = crafted(sound, lambda rows: chain(rows, secret))
    if merge and "root" not in trust:
        with pytest.raises(InvalidValueError, match="are not those that the workspace indexes"):
            import_bundle(bundle, workspace="copy", merge=merge, trust=trust, settings=settings)
        bundle = crafted(sound, lambda rows: chain(without_files(rows), secret))
    import_bundle(bundle, workspace="copy", merge=merge, trust=trust, settings=settings)
    with open_engine(".", workspace="copy", settings=settings) as engine:
        engine.search("pilot")
        seen = engine.as_caller(EVE)
        if not trust:
            assert not list(seen.ls())
        assert not [hit.rid for hit in seen.search("ship")]
        assert "memory:own" not in {one.rid for one in seen.ls()}


def without_files(rows: Rows) -> Rows:
    rows["resources.jsonl"] = [row for row in rows["resources.jsonl"] if not row["rid"].startswith("file:")]
    return rows


def test_a_merge_changes_no_right_to_what_is_here(sound: Path, settings: findling.Settings) -> None:
    """Neither opens it anything, nor shows it to anybody under an id that was shared."""
    with open_engine(".", workspace="here", settings=settings) as engine:
        engine.add([(Resource(rid="decision:1", type="decision", visibility=(EVE,)), "Something of our own.")])
        engine.add([(Resource(rid="decision:2", type="decision", visibility=(EVE,)), "The pilot decides twice.")])
        engine.permissions.share("decision:1", "group:crew")
        before = [one for one in engine.permissions.relations() if one.object != "decision:1"]

    def same(rows: Rows) -> None:
        without_files(rows)
        twin = {**resource(rows), "rid": "decision:2", "text": "The pilot decides twice.", "visibility": None}
        twin["chunks"] = [{**twin["chunks"][0], "span": [0, 24]}]
        rows["resources.jsonl"].append(twin)

    bundle = crafted(sound, same)
    with pytest.raises(InvalidValueError, match=r"decision:1, 'Something of our own\.', to"):
        import_bundle(bundle, workspace="here", merge=True, settings=settings)
    import_bundle(bundle, workspace="here", merge=True, replaces=True, settings=settings)
    with open_engine(".", workspace="here", settings=settings) as engine:
        assert engine.permissions.relations() == before
        assert [one.rid for one in engine.as_caller(EVE).ls()] == ["decision:2"], "the same text keeps its list"
        assert not list(engine.as_caller("group:crew").ls())


def test_a_merge_neither_forges_nor_supersedes_a_memory_unasked(
    sound: Path, settings: findling.Settings, tmp_path: Path
) -> None:
    """A stranger's text took the place of ours unnamed, and history showed only the forged one."""
    for name, code, fields in (("here", "1234", {}), ("there", "9999", {"supersedes": "memory:rent"})):
        with open_engine(".", workspace=name, settings=settings) as engine:
            engine.memories.remember(f"The code of the door is {code}.", id="door")
            engine.add([(Resource(rid="memory:new", type="memory", fields=fields), f"Rent is news to {name}.")])
            if name == "here":
                engine.memories.remember("The rent is 840 euros.", id="rent")
            else:
                export_bundle(engine, tmp_path / "forged")
    with pytest.raises(InvalidValueError) as refused:
        import_bundle(tmp_path / "forged", workspace="here", merge=True, settings=settings)
    told = str(refused.value)
    assert "would change 3 resources" in told
    assert "memory:door, 'The code of the door is 1234.', to 'The code of the door is 9999.'" in told
    assert "memory:rent, 'The rent is 840 euros.', superseded by memory:new" in told
    with open_engine(".", workspace="here", settings=settings) as engine:
        assert engine.memories.get("door").text == "The code of the door is 1234."
        assert not engine.writer.store.successors(["memory:rent"])
    for _ in range(2):
        report = import_bundle(tmp_path / "forged", workspace="here", merge=True, replaces=True, settings=settings)
    assert report.replaced == ()
    with open_engine(".", workspace="here", settings=settings) as engine:
        states = [(one.text, one.why) for one in engine.memories.history("door")]
        assert states == [("The code of the door is 9999.", ""), ("The code of the door is 1234.", "import")]


def vector(numbers: int, **changes: object) -> dict[str, Any]:
    row = np.full(numbers, numbers**-0.5, "<f4")
    text = base64.b64encode(row.tobytes()).decode()
    return {"id": "x", "digest": "00", "model": "m", "dim": numbers, "vector": text, **changes}


def put(name: str, **values: Any) -> Callable[[Rows], object]:
    return lambda rows: resource(rows, name).update(values)


def with_vectors(*vectors: dict[str, Any]) -> Callable[[Rows], object]:
    def change(rows: Rows) -> None:
        digest = resource(rows)["chunks"][0]["digest"]
        rows["vectors.jsonl"] = [{**one, "digest": digest} for one in vectors]

    return change


HOSTILE: dict[str, Callable[[Rows], object]] = {
    "a path that leads out": put("file:a.md", rid="file:../../../etc/passwd", path="../../../etc/passwd"),
    "an absolute path": put("file:a.md", rid="file:/etc/passwd", path="/etc/passwd"),
    "a drive letter": put("file:a.md", rid="file:C:\\boot.ini", path="C:\\boot.ini"),
    "backslashes that lead out": put("file:a.md", rid="file:..\\x.md", path="..\\x.md"),
    "a zero byte": put("file:a.md", rid="file:a\0.md", path="a\0.md"),
    "an id of another path": put("file:a.md", path="b2.md"),
    "an item's path that leads out": put("decision:1", path="docs/../../x"),
    "an id that is a folder": put("decision:1", rid="path:."),
    "an id that is a log": put("decision:1", rid="log:accesses"),
    "an id twice": lambda rows: rows["resources.jsonl"].append(resource(rows)),
    "no text": put("decision:1", text=7),
    "a principal that is none": put("decision:1", visibility=["root"]),
    "a time without end": put("decision:1", updated_at=1e300),
    "a chunk of nothing": put("decision:1", chunks=[{"cid": "0"}]),
    "chunks that repeat the text": put(
        "decision:1",
        chunks=[
            {"cid": f"{n:x}", "digest": "", "ordinal": n, "span": [0, 18], "lines": [1, 1], "heading": [], "places": []}
            for n in range(9999)
        ],
    ),
    "a vector of a million numbers": with_vectors(vector(30_000)),
    "vectors of two lengths": with_vectors(vector(4), vector(5)),
    "a long vector": with_vectors(vector(4, vector=base64.b64encode(np.full(4, 9, "<f4").tobytes()).decode())),
    "a vector of no numbers": with_vectors(
        vector(4, vector=base64.b64encode(np.full(4, np.nan, "<f4").tobytes()).decode())
    ),
    "a right of nobody": lambda rows: rows["relations.jsonl"].append({"subject": "", "relation": "x", "object": "y"}),
    "an access of no number": lambda rows: rows["accesses.jsonl"].append({"rid": "a", "count": 1, "last_at": 1e300}),
    "an access beyond measure": lambda rows: rows["accesses.jsonl"].append({"rid": "a", "count": 2**70, "last_at": 1}),
    "a survey of no times": lambda rows: rows["meta.json"][0]["folders"].update({"": 2**70}),
    "a reason that is none": lambda rows: rows["meta.json"][0]["skipped"].append(["x", "because", "", 0, 0]),
}


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    sound: Path, settings: findling.Settings, what: str
) -> None:
    bundle = crafted(sound, HOSTILE[what])
    with pytest.raises(CorruptError):
        import_bundle(bundle, workspace="copy", trust=TRUSTS, settings=settings)
    assert not (Path(settings["store.home"]) / "copy").exists()


def test_vectors_of_another_length_end_no_search(sound: Path, settings: findling.Settings) -> None:
    """A model that is chosen later finds them; a million numbers once ended every search in a traceback."""
    from findling.models.local.instant import InstantEmbedder
    from findling.pipelines.indexing.fanout import RefinedLeg
    from findling.stores.vectors.vector_matrix import VectorMatrix

    model = InstantEmbedder()
    import_bundle(crafted(sound, with_vectors(vector(7, model="later"))), workspace="copy", settings=settings)
    with open_engine(".", workspace="copy", settings=settings) as engine:
        store = engine.writer.store
        assert store.models() == {"later": 1}
        matrix = VectorMatrix.open(engine.home / "vectors-x", made_for="x", dimensions=model.dimensions)
        leg = RefinedLeg(matrix, store, "later")
        with pytest.raises(CorruptError, match="not as its model makes them"):
            leg.commit(store.seq())
        leg.close()


def test_deep_and_long_lines_are_told(sound: Path, settings: findling.Settings) -> None:
    for file, line in (
        ("resources.jsonl", b"[" * 100_000),
        ("meta.json", b'{"a":' * 100_000),
        ("relations.jsonl", b'"' + b"x" * (1 << 17) + b'"'),
        ("accesses.jsonl", b'{"rid": "a", "count": 1, "last_at": NaN}\n'),
    ):
        with pytest.raises(CorruptError, match=file):
            import_bundle(sealed(sound, {file: line}), workspace="copy", settings=settings)
    (sound / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(CorruptError, match=r"manifest\.json"):
        Bundle.open(sound)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
def test_a_member_is_a_file(sound: Path, settings: findling.Settings, tmp_path: Path) -> None:
    import os

    real = tmp_path / "elsewhere.jsonl"
    (sound / "relations.jsonl").rename(real)
    (sound / "relations.jsonl").symlink_to(real)
    with pytest.raises(CorruptError, match=r"relations\.jsonl"):
        import_bundle(sound, workspace="copy", settings=settings)
    (sound / "relations.jsonl").unlink()
    os.mkfifo(sound / "relations.jsonl")
    with pytest.raises(CorruptError, match=r"relations\.jsonl"):
        import_bundle(sound, workspace="copy", settings=settings)


def test_an_archive_does_not_unpack_without_bound(sound: Path, settings: findling.Settings) -> None:
    zeros = b" " * (80 << 20)
    manifest = json.loads((sound / "manifest.json").read_text())
    manifest["files"]["bm25.jsonl"] |= {"sha256": sha256(zeros).hexdigest(), "bytes": len(zeros)}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in FILES:
            archive.writestr(file, zeros if file == "bm25.jsonl" else (sound / file).read_bytes())
        archive.writestr("manifest.json", json.dumps(manifest))
    bomb = sound.with_name("bomb.zip")
    bomb.write_bytes(data.getvalue())
    with pytest.raises(CorruptError, match=r"bm25\.jsonl .* unpacks to"):
        import_bundle(bomb, workspace="copy", settings=settings)


def mutated(rows: Rows, chance: random.Random) -> None:
    """One value of the bundle is another one, or is gone."""
    at: Any = rows[chance.choice(FILES)]
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        values: list[Any] = [
            None,
            "",
            "x",
            -1,
            0,
            2**64,
            1e308,
            True,
            [],
            {},
            [[]],
            "\0",
            "../x",
            ["user:eve"],
            "\ud800",
        ]
        if chance.random() < 0.2:
            del at[key]
        else:
            at[key] = chance.choice(values)
        return


def test_mutants_are_taken_or_refused_and_lose_nothing(sound: Path, settings: findling.Settings) -> None:
    """Bundles with one to three wrong values, merged into one workspace: each is whole, or an error of ours."""
    with open_engine(".", workspace="here", settings=settings) as engine:
        engine.memories.remember("Our own anchor holds.", id="own", visibility=["user:ana"])
        engine.permissions.share("memory:own", "user:bob")
    chance = random.Random(14)
    outcomes = []
    for number in range(tries(200, short=40)):

        def change(rows: Rows) -> None:
            without_files(rows)
            rows["meta.json"][0]["root"] = ""
            for _ in range(chance.randint(1, 3)):
                mutated(rows, chance)

        bundle = crafted(sound, change)
        with open_engine(".", workspace="here", settings=settings) as engine:
            before = engine.writer.store.seq(), engine.permissions.relations()
        try:
            import_bundle(bundle, workspace="here", merge=True, settings=settings)
            outcomes.append(True)
        except FindlingError as error:
            outcomes.append(False)
            assert error.message
            with open_engine(".", workspace="here", settings=settings) as engine:
                assert (engine.writer.store.seq(), engine.permissions.relations()) == before, number
    assert {True, False} == set(outcomes)
    with open_engine(".", workspace="here", settings=settings) as engine:
        assert [hit.rid for hit in engine.search("anchor", plan=findling.Plan(mode="keyword"))] == ["memory:own"]
        assert engine.permissions.relations() == [Relation("user:bob", "viewer", "memory:own")]
        assert [one.rid for one in engine.as_caller("user:bob").ls()] == ["memory:own"]
        assert not list(engine.as_caller(EVE).ls())
        assert engine.search("pilot").hits


def test_the_command_names_what_it_leaves_out(sound: Path, settings: findling.Settings) -> None:
    environ = {"HOME": str(sound.parent), "FINDLING_HOME": settings["store.home"], "PATH": ""}
    command = [sys.executable, "-m", "findling", "import", str(sound), "--workspace", "copy"]
    done = run_process(command, env=environ)
    assert done.returncode == 0, done.stderr
    assert "left out: lists of who may see a resource, 2 relations\n  try: --trust rights" in done.stderr
    assert "it has no files to follow" in done.stdout
    again = run_process([*command, "--merge", "--trust", "rights,sight"], env=environ)
    assert (again.returncode, again.stdout) == (2, "")
    assert "'sight' is nothing that a bundle can be trusted with" in again.stderr
