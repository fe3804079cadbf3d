"""A fifth leg with files: four files of the package, and a search makes it, asks it, keeps it up and checks it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import findling
from tests.processes import run_process

LEG = '''
"""The letters of every chunk."""

from __future__ import annotations

import json
from pathlib import Path


class LettersLeg:
    def __init__(self, folder, store_id):
        self.file, self.store_id, self.texts, self.reached = folder / "letters.json", store_id, {}, 0
        if self.file.exists():
            owner, self.reached, texts = json.loads(self.file.read_text())
            self.texts = {int(cid): text for cid, text in texts.items()} if owner == store_id else {}
            self.reached *= owner == store_id

    def seq(self):
        return self.reached

    def is_current(self):
        return True

    def apply(self, changes):
        for change in changes:
            for cid in change.dropped:
                self.texts.pop(cid, None)
            if change.document is not None:
                text = change.document.text
                self.texts |= {one.cid: (change.number, text[one.start : one.end]) for one in change.document.chunks}

    def commit(self, seq):
        self.reached = seq
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps([self.store_id, seq, self.texts]))

    def within(self, numbers):
        seen = LettersLeg(Path("nowhere"), self.store_id)
        seen.texts = {cid: one for cid, one in self.texts.items() if one[0] in numbers}
        return seen

    def clear(self):
        self.texts, self.reached = {}, 0

    def close(self):
        pass
'''

RETRIEVER = '''
"""Finding by letters."""

from findling.domain.results import Evidence


class LettersRetriever:
    name, least = "letters", 1.0

    def __init__(self, leg):
        self.leg = leg

    def search(self, query, limit, also=()):
        found = [cid for cid, (_, text) in self.leg.texts.items() if query.text in text]
        return {cid: Evidence("letters", 1.0, 0.5, 0.9, "to the letter", "letters") for cid in found[:limit]}

    def second_look(self, query, best):
        return {}


def bind_letters(legs, meaning):
    leg = legs.leg("letters") if legs.leg is not None else None
    return None if leg is None else LettersRetriever(leg)
'''

AT_PLACE = '''class LettersLegs(FolderLegs):
    """The letters."""

    name = "letters"

    def open(self, store_id: str, key: str = "", size: int = 0) -> Any:
        from findling.stores.letters import LettersLeg

        return LettersLeg(self.folder(), store_id)


_KINDS: tuple[type[FolderLegs], ...] = (LettersLegs, '''

LINE = """    "letters": LegKind("letters", MODES, bind_letters),
    EXPANSION: LegKind("""
IMPORT = """from findling.pipelines.retrieve.letters_leg import bind_letters

KEYWORD, SEMANTIC, EXACT,"""

ASKED = """
import json, sys
from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.stores.local.maintenance import measure_parts


def shown(answer):
    return {hit.rid: [part.leg for part in hit.receipt.parts] for hit in answer.hits}

with open_engine(sys.argv[1]) as engine:
    engine.index()
    engine.add([(Resource(rid="note:1", type="note", title="One", visibility=("user:ann",)), "The reconnection Pool.")])
    before = shown(engine.search("nnectionPo", mode="keyword")), engine.opened.lacks_leg
    engine.opened.level_wanted()
    told = {
        "before": before,
        "after": [shown(engine.search("nnectionPo", mode="keyword")), engine.opened.lacks_leg],
        "ann": shown(engine.as_caller("user:ann").search("nnection Po")),
        "joe": shown(engine.as_caller("user:joe").search("nnectionPo")),
    }
    engine.add([(Resource(rid="note:2", type="note", title="Two"), "AnotherConnectionPool.")])
    told["behind"] = [one.detail for one in engine.check() if one.name == "letters leg"]
    engine.opened.level_wanted()
    told["check"] = [one.detail for one in engine.check() if one.name == "letters leg"]
    told["kept up"] = sorted(shown(engine.search("nnectionPo", mode="keyword")))
    told["measured"] = measure_parts(engine.home)["letters leg"] > 0
    engine.repair()
    told["repaired"] = sorted(shown(engine.search("nnectionPo", mode="keyword")))
    engine.opened.files.backend.legs["letters"].discard()
    told["gone"] = engine.opened.files.backend.legs["letters"].exists()
print(json.dumps(told))
"""


def test_a_leg_with_files_is_four_files(tmp_path: Path) -> None:
    package = tmp_path / "sources" / "findling"
    shutil.copytree(Path(findling.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "stores" / "letters.py").write_text(LEG)
    (package / "pipelines" / "retrieve" / "letters_leg.py").write_text(RETRIEVER)
    _put(package / "stores" / "local" / "legs.py", "_KINDS: tuple[type[FolderLegs], ...] = (", AT_PLACE)
    registry = package / "pipelines" / "retrieve" / "legs.py"
    _put(registry, "    EXPANSION: LegKind(", LINE)
    _put(registry, "KEYWORD, SEMANTIC, EXACT,", IMPORT)
    root = tmp_path / "tree"
    root.mkdir()
    (root / "pool.py").write_text("class ConnectionPool:\n    pass\n")
    environ = {
        "HOME": str(tmp_path),
        "USERPROFILE": str(tmp_path),
        "PYTHONPATH": str(package.parent),
        "FINDLING_SEMANTIC_MODEL": "none",
    }
    done = run_process([sys.executable, "-c", ASKED, str(root)], cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    found = {"file:pool.py": ["letters"]}
    assert "letters" in told["ann"].pop("note:1")
    assert told == {
        "before": [{}, True],
        "after": [found, False],
        "ann": {},
        "joe": {},
        "behind": ["behind, the next search that asks it brings it up"],
        "check": ["in step"],
        "kept up": ["file:pool.py", "note:2"],
        "measured": True,
        "repaired": ["file:pool.py", "note:2"],
        "gone": False,
    }


def _put(file: Path, at: str, text: str) -> None:
    was = file.read_text()
    assert was.count(at) == 1, file
    file.write_text(was.replace(at, text))
