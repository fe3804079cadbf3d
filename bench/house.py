"""The figures of the house: how far a query travels, how large the source tree is, what a search from the shell costs.

    python bench/house.py [--rounds 7] [--json FILE]

Frames and modules are counted by the interpreter's profiler during a second search, when nothing is imported any more.
Over HTTP the deepest frames of each thread add up. Statements are those that a PostgreSQL server of its own is sent.
The peer of the shell is `python -c "import click, sqlite3"` in the same run, interleaved; both by CPU time.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import ast
import json
import os
import resource
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from io import StringIO
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, Self

from tests.meta.structure import PACKAGE, circles, folder_sizes, imports_between, modules
from tests.meta.test_limits import code_lines

NOTES = {
    "index.md": "# Index\n\nA stale index is noticed by the times of its folders.\n",
    "token.md": "# Tokens\n\nEvery login makes a session token, which expires after a day.\n",
    "search.py": "def search(query):\n    '''Find the passages that answer a query.'''\n    return []\n",
}
LEG = str(PACKAGE / "stores" / "keyword" / "leg.py")
SEAMS = ("stores/postgres", "sources/documents", "testing", "integrations", "pipelines/evaluation")
"""Rooms that could be distributions of their own."""


class Trace:
    """The functions of findling that run while it is active, in this thread and in those that begin after it."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.frames = 0
        self.deepest: Counter[int] = Counter()
        """Frames by thread, until the keyword leg is reached."""
        self._is_active = False
        threading.setprofile(self._note)

    def __enter__(self) -> Self:
        self._is_active = True
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_active = False
        sys.setprofile(None)

    @property
    def modules(self) -> set[str]:
        """The modules that were entered."""
        return {file for file, _ in self.calls}

    def count(self, module: str, name: str) -> int:
        """How often a function ran."""
        return sum(calls for (file, found), calls in self.calls.items() if file.endswith(module) and found == name)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not self._is_active or not file.startswith(str(PACKAGE)):
            return
        name = frame.f_code.co_name
        self.calls[file, name] += 1
        if not self.frames:
            depth, thread = _depth(frame), threading.get_ident()
            self.deepest[thread] = max(self.deepest[thread], depth)
            self.frames = depth if file == LEG and name == "search" else 0


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "tree")
        root.mkdir()
        for name, text in NOTES.items():
            (root / name).write_text(text)
        figures = {**size_of_tree(), **size_of_interface(), **keyword_shell(root), **hybrid_http(root)}
        figures |= statements(Path(place, "server"))
        figures |= shell_ratio(root, given.rounds)
    for name, value in figures.items():
        print(f"{name:<60} {value:>8}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    return 0


def size_of_tree() -> dict[str, float]:
    """Lines, modules, folders and circles."""
    texts = {path: path.read_text(encoding="utf-8") for path in modules().values()}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: code_lines(text, trees[path]) for path, text in texts.items()}
    core = [count for path, count in lines.items() if not path.relative_to(PACKAGE).as_posix().startswith(SEAMS)]
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    sizes = [(node.end_lineno or 0) - node.lineno + 1 for node in functions]
    return {
        "lines in src": sum(text.count("\n") for text in texts.values()),
        "code lines": sum(lines.values()),
        "code lines without seams": sum(core),
        "functions above 60 lines": sum(size > 60 for size in sizes),
        "functions above 40 lines": sum(size > 40 for size in sizes),
        "functions with more than 25 ways": sum(ways(node) > 25 for node in functions),
        "modules in src": len(texts),
        "files in the largest folder": max(folder_sizes().values()),
        "import circles": len(circles(imports_between())),
    }


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


def ways(function: ast.AST) -> int:
    """The cyclomatic number of a function."""
    nodes = list(ast.walk(function))
    joined = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + joined + sum(isinstance(node, BRANCHES) for node in nodes)


def size_of_interface() -> dict[str, float]:
    """Settings, leaf commands and options."""
    import click

    from findling.faces.cli.main import cli
    from findling.service.settings.setting_list import SETTINGS

    leaves, options = 0, 0
    open_commands: list[click.Command] = [cli]
    while open_commands:
        command = open_commands.pop()
        options += sum(isinstance(parameter, click.Option) for parameter in command.params)
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = [command.get_command(context, name) for name in command.list_commands(context)]
            open_commands += [one for one in inner if one is not None]
        else:
            leaves += 1
    return {"settings": len(SETTINGS), "leaf commands": leaves, "options": options}


def keyword_shell(root: Path) -> dict[str, float]:
    """A search by words through the command line, in this process."""
    from findling.faces.cli.main import run

    os.environ |= _environment(root)

    def ask() -> None:
        with redirect_stdout(StringIO()):
            assert run(["search", "--mode", "keyword", "session token", str(root)]) == 0

    trace = _traced(ask, Trace())
    return {"frames from argv to the keyword leg": trace.frames, "modules entered, keyword, shell": len(trace.modules)}


def hybrid_http(root: Path) -> dict[str, float]:
    """A hybrid search over HTTP, in this process."""
    from tests.faces.http_servers import Client, in_process

    trace = Trace()
    with in_process(root, {"search.mode": "hybrid", "semantic.refine": "never"}) as (host, app):
        host.index()
        client = Client(app)
        number = iter(range(20))

        def ask() -> None:
            # Another query each time: an answer that is kept is no search.
            response = client.get(f"/v1/search?q=stale+index+ext:md+{next(number)}")
            assert response.status_code == 200, response.text

        trace = _traced(ask, trace)
    return {
        "frames from HTTP to the keyword leg": sum(trace.deepest.values()),
        "threads from HTTP to the keyword leg": len(trace.deepest),
        "modules entered, hybrid, HTTP": len(trace.modules),
        "parses of a query, HTTP": trace.count("text/query/parser.py", "parse"),
        "plans of a query, HTTP": trace.count("service/workspace/scope.py", "prepared"),
    }


def statements(place: Path) -> dict[str, float]:
    """Statements that a PostgreSQL server of its own is sent, by warm searches and by commands of the shell."""
    import findling
    from findling.faces.cli.main import run
    from tests.postgres_servers import PostgresServer
    from tests.stores.postgres_legs import noted_statements, ordinary_place

    root = place / "tree"
    root.mkdir(parents=True)
    for number in range(30):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nThe heron of Delia {number} sleeps in the reed.\n")
    server = PostgresServer()
    was_at, before = Path.cwd(), dict(os.environ)
    os.environ |= _environment(root) | {"FINDLING_STORE_URL": ordinary_place(server)}
    os.chdir(root)
    try:
        with noted_statements() as asked:

            def sent(*command: str) -> int:
                asked.clear()
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    assert run(list(command)) == 0
                return len(asked)

            for command in (["index"], ["refine"], ["search", "heron"], ["search", "where does Delia sleep"]):
                sent(*command)
            figures = {
                "shell, default": sent("search", "where does the heron sleep"),
                "shell, nothing changed": sent("index"),
                "remember": sent("remember", "The boat is green."),
            }
            sent("search", "boat")
            with findling.open(".") as engine:
                for mode in ("keyword", "hybrid"):
                    for _ in range(3):
                        asked.clear()
                        engine.search("where does the heron sleep", changes={"mode": mode})
                    figures[f"warm, {mode}"] = len(asked)
    finally:
        os.chdir(was_at)
        os.environ.clear()
        os.environ |= before
        server.close()
    return {f"statements: {name}": count for name, count in figures.items()}


def shell_ratio(root: Path, rounds: int) -> dict[str, float]:
    """CPU time of a search by words from the shell, against an interpreter that imports what it needs at least."""
    search = [sys.executable, "-m", "findling", "search", "--mode", "keyword", "session token", str(root)]
    peer = [sys.executable, "-c", "import click, sqlite3"]
    costs = [(_cpu(search), _cpu(peer)) for _ in range(rounds)]
    ours, theirs = median(cost for cost, _ in costs), median(cost for _, cost in costs)
    return {"keyword search of the shell, CPU ms": round(1000 * ours), "against the peer": round(ours / theirs, 2)}


def _traced(ask: Callable[[], None], trace: Trace) -> Trace:
    """The shortest way of eight: a question may look at what has changed, or have the model read what is unread."""
    ask()
    ways = []
    for _ in range(8):
        trace.calls, trace.deepest, trace.frames = Counter(), Counter(), 0
        with trace:
            ask()
        ways.append(copy(trace))
    return min(ways, key=lambda way: len(way.modules))


def _depth(frame: FrameType | None) -> int:
    """Frames of findling from the one that began to this one; frames of libraries do not count."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith(str(PACKAGE))
        frame = frame.f_back
    return count


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Where bytecode may not be written, a child compiles some 100 modules anew.
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, timeout=60, env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment(root: Path) -> dict[str, str]:
    home = root.parent
    return {
        "FINDLING_HOME": str(home / "home"),
        "FINDLING_CONFIG": str(home / "none.toml"),
        "FINDLING_SEMANTIC_REFINE": "never",
    }


if __name__ == "__main__":
    sys.exit(main())
