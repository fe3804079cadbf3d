"""The table of properties: a query field that is declared there works everywhere, without another change."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import findling
from findling.domain.queries import COMPARED
from findling.domain.resources import Resource
from tests.meta.structure import PACKAGE, modules, syntax
from tests.postgres_servers import PostgresServer
from tests.processes import run_process
from tests.stores.postgres_legs import ordinary_place

ROW = """_PROPERTIES = (
    Property("status", "fields.status", "list", "status:open", "the state it is in", "stage", facet=True),
"""

ASKED = """
import json, sys
from pathlib import Path
from findling.domain.queries import Field, Filters, Word, All
from findling.domain.resources import Resource
from findling.faces.http.request.bodies import SearchBody
from findling.service.engine.engine import open_engine
from findling.service.export.browser_bundle import export_html
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.postgres.server.migrations import create_workspace
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.truth.store import PostgresStore
from findling.stores.sqlite.store import SqliteStore
from findling.testing.keyword_leg import catch_up
from tests.memory_store import MemoryStore
from findling.testing.samples import line_document
from findling.text.query.parser import parse
from findling.integrations.haystack import _read_filters

folder, place = Path(sys.argv[1]), parse_place(sys.argv[2])
documents = [
    line_document(rid, ["a falcon"], fields={"status": status} if status else {})
    for rid, status in (("a", "Open"), ("b", "done, open"), ("c", "done"), ("d", ""))
]
create_workspace(place)
stores = {"memory": MemoryStore(), "sqlite": SqliteStore.open(folder / "truth"), "postgres": PostgresStore.open(place)}
legs = {"tantivy": TantivyLeg.open(folder / "keyword", store_id="test")}
rids = {chunk.cid: document.resource.rid for document in documents for chunk in document.chunks}
asked = Filters(where=parse("status:open").node)
found = {}
for name, store in stores.items():
    store.write(documents)
    numbers = {change.number: change.rid for change in store.changes(0)}
    found[name] = "".join(sorted(numbers[number] for number in store.matching(asked)))
for name, leg in legs.items():
    catch_up(stores["memory"], leg)
    for node, filters in ((Word("falcon"), asked), (All((Word("falcon"), asked.where)), Filters())):
        found[name] = found.get(name, "") + "".join(sorted(rids[cid] for cid, _ in leg.search(node, filters, 9).hits))
for one in (*stores.values(), *legs.values()):
    one.close()

engine = open_engine(folder / "project")
engine.index()
engine.add([(Resource(rid="decision:1", type="decision", title="One", fields={"status": "open"}), "Eagles, at last.")])
answer = engine.search("eagles status:OPEN", facets=("status",))
explained = engine.explain("eagles status:done", "decision:1")
export_html(engine, folder / "page.html")
engine.close()
print(json.dumps({
    "found": found,
    "answer": [[hit.rid for hit in answer.hits], answer.understood_as, dict(answer.facets["status"])],
    "explained": [list(one) for one in explained.filters],
    "near": parse("stage:open").notes,
    "haystack": repr(_read_filters({"field": "meta.status", "operator": "==", "value": "open"}).where),
    "facets": SearchBody.model_json_schema()["properties"]["facets"]["items"]["enum"][0],
    "page": '{"name": "status", "attribute": "fields.status"' in (folder / "page.html").read_text("utf-8"),
}))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package and its docs with one more line in the table, and nothing else changed."""
    folder = tmp_path_factory.mktemp("sources")
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(findling.__file__).parent, folder / "findling", ignore=leave_out)
    shutil.copytree(PACKAGE.parents[1] / "docs", folder / "docs", ignore=leave_out)
    table = folder / "findling" / "domain" / "queries.py"
    text = table.read_text("utf-8")
    assert text.count("_PROPERTIES = (\n") == 1
    table.write_text(text.replace("_PROPERTIES = (\n", ROW, 1), "utf-8")
    return folder


def run_in(sources: Path, folder: Path, *arguments: str) -> str:
    home = {"HOME": str(sources), "USERPROFILE": str(sources), "FINDLING_CONFIG": str(folder / "none.toml")}
    environ = {
        **home,
        "PYTHONPATH": os.pathsep.join((str(sources), str(PACKAGE.parents[1]))),
        "FINDLING_SEMANTIC_MODEL": "none",
        "COLUMNS": "200",
    }
    done = run_process([sys.executable, *arguments], cwd=folder, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_field_of_the_table_is_understood_everywhere(sources: Path, tmp_path: Path, postgres: PostgresServer) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.md").write_text("# Notes\n\nEagles fly.\n")
    shown = json.loads(run_in(sources, tmp_path, "-c", ASKED, str(tmp_path), ordinary_place(postgres)))
    assert shown == {
        "found": {"memory": "ab", "sqlite": "ab", "postgres": "ab", "tantivy": "abab"},
        "answer": [["decision:1"], "eagles AND status:OPEN", {"open": 1}],
        "explained": [["status:done", False]],
        "near": ["stage:open is read as words: there is no field stage:, but status:"],
        "haystack": "Field(name='status', values=('open',))",
        "facets": "status",
        "page": True,
    }


def test_a_field_of_the_table_stands_in_help_and_reference(sources: Path, tmp_path: Path) -> None:
    assert "Count matches by status, type, ext," in run_in(
        sources, tmp_path, "-m", "findling", "search", "--help", "--all"
    )
    run_in(sources, tmp_path, str(sources / "docs" / "generate.py"))
    page = (sources / "docs" / "reference" / "query-fields.md").read_text("utf-8")
    assert "| `status:open` | the state it is in | `facet` |" in page


def test_no_other_module_lists_the_fields() -> None:
    """A list, tuple, set or table of such names, and not only of attributes of a resource, is a second table."""
    names, own = set(COMPARED), set(COMPARED) - {one.name for one in fields(Resource)}
    known = {"domain/queries.py": "the table itself", "faces/cli/request/request_builder.py": "options"}
    found = set()
    for path in modules().values():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
                held = {one.value for one in ast.iter_child_nodes(node) if isinstance(one, ast.Constant)}
                if held & own and len(held & names) > 1:
                    found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= known.keys(), "see PROPERTIES in domain/queries.py"
