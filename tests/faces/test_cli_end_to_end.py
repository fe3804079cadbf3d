"""The command line on a real folder with a real index."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from findling.service.engine.engine import open_engine
from tests.counts import IS_LONG, sample
from tests.processes import PATIENCE_S, BoundedProcess, run_process

Findling = Callable[..., tuple[int, str, str]]

MAIN = "import sys; from findling.faces.cli.main import run; sys.exit(run())"


def spawn(*args: str, stdin: str = "", environ: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *args]
    return run_process(command, stdin=stdin, env={**os.environ, **environ})


def test_the_first_search_indexes(project: Path, findling: Findling) -> None:
    code, out, err = findling("login")
    assert (code, err) == (0, "")
    assert {row.split(":")[0] for row in out.splitlines() if re.match(r"\S+:\d+ ", row)} == {
        "src/auth.py",
        "docs/guide.md",
    }
    assert "│ def login(user):" in out
    assert "\x1b" not in out


def test_every_later_search_sees_what_has_changed(project: Path, findling: Findling) -> None:
    assert findling("zebra")[0] == 1
    (project / "docs" / "new.md").write_text("A zebra.\n")
    assert findling("zebra", "-l")[1] == "docs/new.md\n"
    (project / "docs" / "new.md").unlink()
    assert findling("--no-index", "-l", "zebra")[1] == "docs/new.md\n"
    assert findling("zebra")[0] == 1


def test_nothing_found(project: Path, findling: Findling) -> None:
    code, out, err = findling("xylophone")
    assert (code, out) == (1, "")
    assert err == 'findling: no match for "xylophone"; unknown terms: xylophone\n'


def test_a_mistyped_command_is_recognised(project: Path, findling: Findling) -> None:
    code, _, err = findling("statsu")
    assert code == 1
    assert "try: findling status" in err


def test_unknown_terms_are_told_beside_hits(project: Path, findling: Findling) -> None:
    code, out, err = findling("login xylophone")
    assert (code, bool(out)) == (0, True)
    assert err == "findling: unknown terms: xylophone\n"


def test_options_stand_anywhere(project: Path, findling: Findling) -> None:
    for args in (
        ["login", "docs", "-l", "-k", "5"],
        ["-l", "-k", "5", "login", "docs"],
        ["-k5", "login", "-l", "docs"],
        ["search", "login", "--limit=5", "docs", "--files"],
        ["-l", "--", "login", "docs"],
    ):
        assert findling(*args) == (0, "docs/guide.md\n", ""), args


def test_a_command_name_can_be_searched_for(project: Path, findling: Findling) -> None:
    for args in (["search", "index", "-l"], ["-l", "index"], ["-l", "--", "index"]):
        assert findling(*args)[1] == "docs/index.md\n"


def test_a_query_may_start_with_a_dash(project: Path, findling: Findling) -> None:
    assert findling("-l", "--", "-return login")[:2] == (0, "docs/guide.md\n")


FILTERS: dict[str, set[str]] = {
    "-e py|": {"src/auth.py"},
    "-e .md,.ts -e rs|": {"docs/guide.md", "src/shop.ts"},
    "--path src|": {"src/auth.py", "src/shop.ts"},
    "--path src/ --path ./docs|": {"src/auth.py", "src/shop.ts", "docs/guide.md"},
    "--type chat|": set(),
    "--set search.min_score=1|": set(),
    "|-ext:py": {"docs/guide.md", "src/shop.ts"},
    "|-/create_session|export/": {"docs/guide.md"},
    "|lang:python": {"src/auth.py"},
    "|after:2100-01-01": set(),
    "|before:2100-01-01": {"src/auth.py", "src/shop.ts", "docs/guide.md"},
    "|tag:x": set(),
    "|author:x": set(),
}
"""Options, and conditions of the query, with the files that they leave."""


def test_filters(project: Path, findling: Findling) -> None:
    for given, files in FILTERS.items():
        options, _, conditions = given.partition("|")
        code, out, _ = findling("-l", *options.split(), f"login basket {conditions}")
        assert (code, set(out.splitlines())) == (0 if files else 1, files), given


def test_a_path_narrows_the_search(project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    findling("index")
    assert findling("login", "docs", "-l")[1] == "docs/guide.md\n"
    assert findling("login", "src/auth.py", "-l")[1] == "src/auth.py\n"
    assert findling("login", "src", "-l", "--path", "auth.py")[1] == "src/auth.py\n"
    monkeypatch.chdir(project / "docs")
    shown = findling("login", "-l")[1].splitlines()
    assert [Path(path).resolve() for path in shown] == [(project / "docs" / "guide.md").resolve()]


def test_a_single_file_can_be_all_there_is(project: Path, findling: Findling) -> None:
    assert findling("login", "src/auth.py", "-l")[:2] == (0, "src/auth.py\n")
    assert findling("login", "src/auth.py", "--format", "vimgrep")[1].startswith("src/auth.py:4:5:def login(user):\n")


def test_context_and_limit(project: Path, findling: Findling) -> None:
    (project / "docs" / "long.md").write_text("".join(f"line {n}\n" for n in range(9)) + "quagga\nafter\n")
    assert "│ line 8" in findling("quagga", "-C", "1")[1]
    assert findling("login", "-k", "1")[1].count("│") >= 1
    assert len(json.loads(findling("login", "-k", "1", "--json")[1])["hits"]) == 1


def test_a_limit_of_nothing_counts_as_it_does_in_the_library(project: Path, findling: Findling) -> None:
    """The shell refused what HTTP and the library answer."""
    code, out, err = findling("login", "-k", "0")
    assert (code, out) == (0, "")
    assert "findling: 2 hits; none is shown, as --limit says" in err
    code, out, _ = findling("login", "-k", "0", "--json")
    assert (code, json.loads(out)["hits"], json.loads(out)["total"]) == (0, [], 2)
    with open_engine(project) as engine:
        answer = engine.search("login", limit=0)
        assert (answer.hits, answer.total) == ((), 2)
    code, out, err = findling("quagga", "-k", "0")
    assert (code, out) == (1, "")
    assert "no match" in err


def test_settings_reach_the_search(project: Path, findling: Findling) -> None:
    (project / ".findling.toml").write_text("[search]\nlimit = 1\n")
    assert len(json.loads(findling("login", "--json")[1])["hits"]) == 1
    assert len(json.loads(findling("login", "--json", "-k", "9")[1])["hits"]) == 2


def test_json(project: Path, findling: Findling) -> None:
    code, out, err = findling("login", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema"] == 6
    assert document["root"] == str(project.resolve())
    assert document["query"] == "login"
    hit = document["hits"][0]
    assert {"id", "path", "line_start", "line_end", "score", "lines", "receipt", "heading"} <= set(hit)
    for line in hit["lines"]:
        source = (project / hit["path"]).read_text().splitlines()
        assert source[line["number"] - 1] == line["text"]
    code, out, _ = findling("xylophone", "--json")
    assert code == 1
    assert json.loads(out)["hits"] == []


def test_jsonl(project: Path, findling: Findling) -> None:
    code, out, err = findling("login", "--format", "jsonl")
    pieces = [json.loads(row) for row in out.splitlines()]
    assert (code, err) == (0, "")
    assert [piece["kind"] for piece in pieces] == ["hit", "hit", "summary"]
    assert {piece["schema"] for piece in pieces} == {6}
    assert pieces[-1]["shown"] == 2


def test_several_queries(project: Path, findling: Findling) -> None:
    (project / "queries").write_text("login\nxylophone\nbasket\n")
    code, out, err = findling("-Q", "queries", "src", "--json")
    documents = json.loads(out)
    assert code == 0
    assert [document["query"] for document in documents] == ["login", "xylophone", "basket"]
    assert [bool(document["hits"]) for document in documents] == [True, False, True]
    assert 'no match for "xylophone"' in err

    code, out, _ = findling("--queries=queries", "--format", "jsonl", "src")
    summaries = [piece for piece in map(json.loads, out.splitlines()) if piece["kind"] == "summary"]
    assert [piece["query"] for piece in summaries] == ["login", "xylophone", "basket"]

    out = findling("-Q", "queries", "src")[1]
    assert [row for row in out.splitlines() if row.startswith("# ")] == ["# login", "# basket"]
    assert "\n\n# basket\n" in out
    assert findling("-Q", "queries", "src", "-l")[1] == "src/auth.py\nsrc/shop.ts\n"

    (project / "queries").write_text("xylophone\n")
    assert findling("-Q", "queries")[0] == 1
    assert isinstance(json.loads(findling("-Q", "queries", "--json")[1]), list)


def test_queries_from_stdin(project: Path) -> None:
    done = spawn("-Q", "-", "-l", "src", stdin="login\n")
    told = f"findling: indexing {project.resolve() / 'src'}: it has no index yet\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "src/auth.py\n", told)


def test_explain(project: Path, findling: Findling) -> None:
    out = findling("login", "--explain")[1]
    assert "why: keyword rank 1, BM25 " in out
    assert "login ×" in out
    assert re.search(r"^plan\n  understood as login, ranked: [^\n]+\n  searched by its words\n", out, re.M)
    assert re.search(r"matches; quality good; \d+ ms", out)


def test_no_index_without_an_index(project: Path, findling: Findling) -> None:
    code, out, err = findling("login", "--no-index")
    assert (code, out) == (2, "")
    assert "not indexed" in err
    assert "try: findling index" in err


def test_index_reports(project: Path, findling: Findling) -> None:
    code, out, err = findling("index")
    assert (code, err) == (0, "")
    assert out.startswith("4 new; ")
    assert "left out: " in out
    assert findling("index")[1].startswith("4 unchanged; ")
    assert findling("index", "--rebuild")[1].startswith("4 new; ")
    document = json.loads(findling("index", "--json")[1])
    assert (document["schema"], document["unchanged"], document["root"]) == (6, 4, str(project.resolve()))
    assert sum(document["skipped"].values()) >= 1


def test_a_dry_run_lists_and_leaves_nothing(project: Path, findling: Findling, tmp_path: Path) -> None:
    code, out, err = findling("index", "--dry-run")
    assert code == 0
    assert set(out.splitlines()) >= {"docs/guide.md", "docs/index.md", "src/auth.py", "src/shop.ts"}
    assert "files would be indexed" in err
    assert not list(tmp_path.glob("workspaces/*/*"))
    findling("config", "add", "--project", "index.exclude", "docs/")
    document = json.loads(findling("index", "--dry-run", "--json")[1])
    assert "docs/guide.md" not in document["paths"]
    assert "docs" in {entry["path"].rstrip("/") for entry in document["skipped"]}


def test_status_and_ls(project: Path, findling: Findling) -> None:
    code, _, err = findling("status")
    assert code == 2
    assert "try: findling index" in err
    findling("index")
    code, out, err = findling("status")
    assert (code, err) == (0, "")
    assert re.search(r"^resources: +4$", out, re.M)
    assert re.search(r"^keyword leg: +up to date$", out, re.M)
    document = json.loads(findling("status", "--json")[1])
    assert (document["schema"], document["resources"], document["root"]) == (6, 4, str(project.resolve()))
    assert any(row.startswith("blob.bin\t") for row in findling("status", "--list", "skipped")[1].splitlines())
    listed = json.loads(findling("status", "--list", "skipped", "--json")[1])["skipped_paths"]
    assert "blob.bin" in {entry["path"] for entry in listed}

    assert findling("ls") == (0, "docs/guide.md\ndocs/index.md\nsrc/auth.py\nsrc/shop.ts\n", "")
    assert findling("ls", "src")[1] == "src/auth.py\nsrc/shop.ts\n"
    assert [entry["path"] for entry in json.loads(findling("ls", "docs", "--json")[1])["resources"]] == [
        "docs/guide.md",
        "docs/index.md",
    ]


def test_forget_shows_first_and_acts_with_force(
    project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch
) -> None:
    findling("index")
    code, out, err = findling("forget", "docs")
    assert (code, out) == (2, "docs/guide.md\ndocs/index.md\n")
    assert "--force" in err
    assert len(findling("ls")[1].splitlines()) == 4
    monkeypatch.chdir(project / "src")
    assert findling("forget", "-f", "../docs")[0] == 0
    monkeypatch.chdir(project)
    assert findling("ls")[1] == "src/auth.py\nsrc/shop.ts\n"
    assert findling("forget", "-f", "docs")[0] == 1
    code, _, err = findling("forget", "-f", "../elsewhere")
    assert code == 2
    assert "does not lie below" in err


def test_forget_everything(project: Path, findling: Findling, tmp_path: Path) -> None:
    findling("index")
    assert findling("forget", "--everything")[0] == 2
    assert findling("status")[0] == 0
    assert findling("forget", "--everything", "--force")[0] == 0
    assert findling("status")[0] == 2
    assert not list(tmp_path.glob("workspaces/[!.]*"))
    assert (project / "src" / "auth.py").exists()


def test_doctor_and_repair(project: Path, findling: Findling) -> None:
    findling("index")
    code, out, _ = findling("doctor")
    assert code == 0
    assert all(row.startswith("ok ") for row in out.splitlines())
    assert all(check["ok"] for check in json.loads(findling("doctor", "--json")[1])["checks"])
    code, out, _ = findling("doctor", "--repair")
    assert code == 0
    assert out.startswith("rebuilt from 4 resources")
    assert findling("login", "-l")[0] == 0


def test_workspaces_are_apart(project: Path, findling: Findling, tmp_path: Path) -> None:
    assert findling("--workspace", "mine", "index")[0] == 0
    assert (tmp_path / "workspaces" / "mine").is_dir()
    assert findling("status")[0] == 2
    assert findling("status", "--workspace", "mine")[0] == 0
    assert findling("--workspace=mine", "login", "-l")[0] == 0


def test_a_home_folder_is_not_indexed_unasked(home: Path, project: Path, findling: Findling, tmp_path: Path) -> None:
    for args in (["login", str(home)], ["index", str(home)]):
        code, out, err = findling(*args)
        assert (code, out) == (2, "")
        assert f"try: findling index {home.resolve()} --yes" in err
    assert not list(tmp_path.glob("workspaces/*/*"))
    assert findling("index", str(home), "--yes")[0] == 0
    code, out, _ = findling("-l", "login", str(home))
    assert code == 0
    assert set(out.splitlines()) >= {"src/auth.py", "docs/guide.md"}


def test_forced_color(project: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mlogin\x1b[0m" in findling("login", "--set", "output.color=always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31mlogin\x1b[0m" in findling("login")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in findling("login")[1]


def test_an_ascii_stream_gets_ascii(project: Path) -> None:
    done = spawn("login", environ={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "| def login(user):" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("streams", "those"),
    [
        ("<&-", "login -Q"),
        (">&-", "login xylophone"),
        ("2>&-", "lgoin --nonsense"),
        ("<&- >&- 2>&-", "login -Q"),
        ("2>/dev/full", "lgoin --nonsense"),
    ],
)
def test_a_stream_that_is_closed_or_full_changes_no_exit_code(
    project: Path, findling: Findling, streams: str, those: str
) -> None:
    """An open file had the number of a closed stream; a note that could not be written ended the search."""
    command = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "findling"]
    assert findling("index")[0] == 0
    for args, code in ((["login"], 0), (["lgoin"], 0), (["xylophone"], 1), (["-Q", "-"], 2), (["--nonsense"], 2)):
        if not IS_LONG and args[0] not in those.split():
            continue  # the stream plays no part in it
        done = run_process([*command, *args])
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), args
        assert bool(done.stdout) == (code == 0 and ">&-" not in streams.replace("2>&-", ""))


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    for n in range(300):
        (project / "docs" / f"page{n}.md").write_text(f"login page {n}\n" * 50)
    command = [sys.executable, "-c", MAIN, "login", "-k", "300", "--format", "jsonl"]
    with BoundedProcess(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith('{"schema": 6, "kind": "hit"')
        process.stdout.close()
        assert process.stderr.read() == f"findling: indexing {project.resolve()}: it has no index yet\n"
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestOnATerminal:
    """The output that a person sees."""

    @staticmethod
    def play(*args: str, typed: bytes = b"", until: bytes = b"", each: str = "") -> tuple[int, str]:
        """The exit code and all that is shown. `typed` comes after `until`; with `each`, a key whenever it is shown."""
        import pty
        from termios import ICANON, tcgetattr

        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", MAIN, *args])
        seen, answered = b"", 0
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.05 if each else 1)[0]:
                # Python's input() misses a Ctrl-C that comes in the instant before it starts to read.
                if typed == b"\x03" and not until:
                    os.write(terminal, typed)
                # So does a key that comes in the instant before the terminal is set to single keys.
                if each and seen.count(each.encode()) > answered and not tcgetattr(terminal)[3] & ICANON:
                    os.write(terminal, typed[answered : answered + 1])
                    answered += 1
                continue
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
            if until and until in seen:
                os.write(terminal, typed)
                until = b""
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode().replace("\r\n", "\n")

    def test_a_first_search(self, project: Path) -> None:
        code, seen = self.play("login")
        assert code == 0
        # On a slow machine a bar is drawn in between, and wiped away.
        told = re.sub(r"\r[^\n]*\r", "", seen)
        assert f"findling: indexing {project.resolve()}: it has no index yet\nfindling: indexed 4 files" in told
        assert "\x1b[35msrc/auth.py:4\x1b[0m" in seen
        assert re.search(r"findling: 2 hits in \d+ ms\n$", seen)
        assert "indexing" not in self.play("login")[1]

    def test_one_key_settles_two_memories(self, project: Path) -> None:
        from findling.faces.cli.main import run

        for person, places in (("Ada", "Rust Osby"), ("Ben", "Kall Borna"), ("Eva", "Gmund Lind"), ("Ida", "Ulft Hof")):
            for place in places.split():
                assert run(["remember", f"{person} lives in {place}."]) == 0
        code, seen = self.play("memory", "review", typed=b"xsbon", each="q quit? ")
        assert code == 0
        assert seen.count("q quit? ") == 5  # x is no key
        told = [line for line in seen.splitlines() if line.startswith("findling: decided")]
        assert told == [
            f"findling: decided: {what}" for what in ("both hold", "the older one holds", "the newer one holds")
        ]
        for text in ("Ida lives in Hof.", "Ida lives in Ulft.", "Ada lives in Osby.", "Ada lives in Rust."):
            assert text in seen
        assert "findling memory review memory:" not in seen
        code, seen = self.play("memory", "review", typed=b"q", each="q quit? ")
        assert (code, seen.count("newer\n"), "Ida lives in Ulft." in seen, "decided" in seen) == (0, 1, True, False)
        for question, texts in (("Ben", ["Ben lives in Kall."]), ("Ada", ["Ada lives in Osby."])):
            found = self.play("recall", question)[1]
            assert [line.strip() for line in found.splitlines() if " lives in " in line] == texts
        assert " in Kall." in self.play("Ben lives", "--type", "memory", "-k", "1")[1]

    def test_a_home_folder_is_asked_for(self, home: Path, project: Path) -> None:
        code, seen = self.play("login", str(home), typed=b"n\n", until=b"[y/N]")
        assert code == 2
        assert "Index all of" in seen
        assert "was not indexed" in seen
        code, seen = self.play("login", str(home), typed=b"y\n", until=b"[y/N]")
        assert code == 0
        assert "auth.py:4" in seen

    def test_forgetting_is_asked_for(self, project: Path, findling: Findling) -> None:
        findling("index")
        code, seen = self.play("forget", "docs", typed=b"n\n", until=b"[y/N]")
        assert code == 1
        assert "docs/guide.md" in seen
        assert self.play("forget", "docs", typed=b"y\n", until=b"[y/N]")[0] == 0
        assert findling("ls", "src")[0] == 0
        assert "docs" not in findling("ls")[1]

    def test_control_c(self, home: Path, project: Path) -> None:
        code, seen = self.play("login", str(home), typed=b"\x03", until=b"[y/N]")
        assert code == 130
        assert seen.endswith("^C\nfindling: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")
def test_an_interrupt_ends_the_process_as_a_shell_expects(project: Path) -> None:
    """Interrupted while it reads queries that do not end. After a mere exit code, a loop of the shell would go on."""
    os.mkfifo("queries")
    command = [sys.executable, "-m", "findling", "--set", "serve.use=never", "-Q", "queries"]
    process = BoundedProcess(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process, Path("queries").open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "findling: interrupted\n")


EARLY = """
import os, signal, sys

module, sys.argv[1:] = sys.argv[1], ["login", "--set", "serve.use=never"]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from findling.__main__ import main
main()
"""
"""A search that is interrupted while it loads the module of this name."""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("module", ["findling.faces.cli.request.command_table", "click", "findling.faces.cli.main"])
def test_an_early_interrupt_shows_no_traceback(project: Path, module: str) -> None:
    done = run_process([sys.executable, "-c", EARLY, module])
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space")
@pytest.mark.parametrize("megabytes", sample([130, 160, 200, 240], short=3))
def test_too_little_memory_is_an_error_that_says_so(project: Path, findling: Findling, megabytes: int) -> None:
    """The outcome is an answer or an error of ours: neither a library's nor "nothing found"."""
    findling("index")
    search = (
        f"ulimit -v {megabytes * 1000}; exec {sys.executable} -m findling --set serve.use=never --mode hybrid login"
    )
    done = run_process(["sh", "-c", search])
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "ulimit -v" in done.stderr
