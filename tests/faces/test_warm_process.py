"""A search says the same whether the warm process does it or the shell itself, and nothing goes wrong in between."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from findling import __version__
from findling.faces.cli.main import run
from findling.pipelines.indexing.freshness import UNSURE_NS
from findling.service.client.daemon_state import daemon_folder
from findling.service.client.warm_process import WARM_PROCESS
from findling.service.client.warm_shell import FOLDER, SOCKET, warm_folder
from findling.service.workspace.workspace import home_folder
from findling.sources.files import still_folders
from findling.sources.files.watching import file_system
from tests.counts import IS_LONG, sample
from tests.faces.warm_processes import (
    ALONE,
    ASK,
    SHELL,
    Shown,
    Warm,
    eventually,
    in_terminal,
    is_warm,
    listens,
    warm_of,
)
from tests.postgres_servers import PostgresServer
from tests.processes import BoundedProcess, on_mains, run_process
from tests.stores.postgres_legs import ordinary_place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the warm process is for Linux")

FILES = {
    "src/auth.py": "import os\n\n\ndef login(user):\n    token = create_session(user)\n    return token\n",
    "src/shop.ts": "export function basket(user: string) {\n  return user;\n}\n",
    "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\n\n## Tokens\n\nKept.\n",
    "docs/index.md": "# The index\n\nHow a stale index is noticed: by its session.\n",
    "team/notes.md": "# Kitchen\n\nThe session of the cooks. Every token is a spoon.\n",
    "umläute/größe.txt": "Ein Token für die Sitzung.\n",
    "queries.txt": "session\nno such wordlet\ntoken\n",
}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("warm")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    environ |= {
        "HOME": str(folder),
        "TERM": "xterm",
        "FINDLING_CONFIG": str(folder / "config.toml"),
        "FINDLING_HOME": str(folder / "workspaces"),
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEMANTIC_MODEL": "none",
    }
    environ.pop("CI", None)
    root = folder / "root"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for args in (["index"], ["remember", "--here", "The session token is kept for a day."]):
        run_process([*SHELL, *args], env=environ, cwd=root, check=True)
    with warm_of(folder / "workspaces", environ) as process:
        yield process


@pytest.fixture
def root(warm: Warm) -> Path:
    return warm.home.with_name("root")


@pytest.fixture
def here(
    warm: Warm, root: Path, findling_aloud: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Shown]:
    """Run a command in this process, with the variables and the folder of a shell: a process takes 0.2 s more."""

    def call(*args: str, **variables: str) -> Shown:
        environ = warm.environ | variables | {"FINDLING_SERVE_AUTO": "never"}
        with monkeypatch.context() as shell:
            for name in set(os.environ) - set(environ):
                shell.delenv(name)
            for name, value in environ.items():
                shell.setenv(name, value)
            shell.chdir(root)
            return findling_aloud(*args)

    return call


def without_times(text: str) -> str:
    """The text without what differs from run to run: durations, and the moment of the search."""
    text = re.sub(r'"timings_ms": ?\{[^}]*\}', '"timings_ms": {}', text)
    text = re.sub(r"(never accessed|accessed .*) so far", "accessed so far", text)
    text = re.sub(r"\b\d+(\.\d+)? (m?s)\b", r"? \2", text)
    return re.sub(r"(planned|keyword|vectors|fuse|assemble|refresh|total)\S* \d+\.\d+", r"\1 ?", text)


COMMANDS = [
    "session",
    "session token",
    "search session -k 1",
    "session docs",
    "session ../root/src",
    "session --json",
    "session token --format jsonl",
    "session --format vimgrep",
    "session -l",
    "-e py session",
    "session --mode keyword",
    "session --mode semantic",
    "session --mode hybrid --weak",
    "session --color always",
    "session -C 2",
    "'\"session token\"'",
    "session OR basket",
    "xyzzyplugh",
    "sesion",
    "session --explain",
    "session --facet ext --json",
    "session --explain-hit docs/guide.md",
    "session --set search.limit=2",
    "session --set no.such=1",
    "session --nonsense",
    "session no/such/place",
    "session --no-index",
    "--workspace nowhere session",
    "-Q queries.txt",
    "-Q queries.txt --json",
    "Sitzung umläute",
    "fetch docs/guide.md",
    "fetch nothing-like-it",
    "similar docs/guide.md",
    "related docs/guide.md",
    "related",
    "suggest ses",
    "grep -i -C 1 SESSION",
    "grep --json token docs",
    "grep xyzzyplugh",
    "grep (",
    "glob '*.md'",
    "session --all -k 1",
    "recall session",
    "search --help",
    "mcp --print-skill",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_the_same_in_the_warm_process(
    warm: Warm, root: Path, here: Callable[..., Shown], command: str
) -> None:
    args = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", command)]
    alone, asked = here(*args), warm.asked(*args, cwd=root)
    assert asked[0] != ALONE, "the warm process has not done it"
    assert (asked[0], *map(without_times, asked[1:])) == (alone[0], *map(without_times, alone[1:]))


@pytest.mark.parametrize("folder", ["docs", "umläute", "."])
def test_paths_are_seen_from_the_folder_of_the_shell(warm: Warm, root: Path, folder: str) -> None:
    args = ("spoon", "..")
    alone, asked = warm.alone(*args, cwd=root / folder), warm.asked(*args, cwd=root / folder)
    assert asked[:2] == alone[:2]


@pytest.mark.parametrize(
    "variables",
    [
        {"FINDLING_SEARCH_LIMIT": "1"},
        {"FINDLING_SEARCH_MODE": "nonsense"},
        {"FORCE_COLOR": "1"},
        {"COLUMNS": "40"},
        {"TZ": "Asia/Tokyo"},
        {"FINDLING_OUTPUT_EDITOR_URI": "vscode"},
    ],
    ids=str,
)
def test_variables_of_the_shell_count(
    warm: Warm, root: Path, here: Callable[..., Shown], variables: dict[str, str]
) -> None:
    args = ("session", "--explain")
    # The clock of a process keeps the zone of its start.
    alone = warm.alone(*args, cwd=root, **variables) if "TZ" in variables else here(*args, **variables)
    asked = warm.asked(*args, cwd=root, **variables)
    assert asked[0] != ALONE
    assert (asked[0], *map(without_times, asked[1:])) == (alone[0], *map(without_times, alone[1:]))


def test_a_variable_without_a_name_changes_nothing(warm: Warm, root: Path) -> None:
    asked = warm.asked("spoon", "-l", cwd=root, **{"": "nameless"})
    assert asked == (0, "team/notes.md\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_says_the_same(warm: Warm, root: Path, closed: str) -> None:
    """The line to the process had the number of the stream: stdin was read from it, and an answer written to it."""
    needs = {"<&-": ["-Q", "-", "-l"], ">&-": ["spoon", "-l"], "2>&-": ["sesion", "-l"]}
    for args in needs.values() if IS_LONG else [needs[closed]]:
        command = ["sh", "-c", f'"$@" {closed}', "sh", *SHELL, *args]
        alone, asked = (
            run_process(command, env=warm.environ | {"FINDLING_SERVE_AUTO": wish}, cwd=root)
            for wish in ("never", "always")
        )
        assert (asked.returncode, asked.stdout, asked.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_stdin_is_that_of_the_shell(warm: Warm, root: Path) -> None:
    lines = "session\ntoken\n"
    asked = warm.asked("-Q", "-", "--json", stdin=lines, cwd=root)
    assert [one["query"] for one in json.loads(asked[1])] == ["session", "token"]
    assert without_times(asked[1]) == without_times(warm.alone("-Q", "-", "--json", stdin=lines, cwd=root)[1])


@pytest.mark.parametrize(
    "command",
    sample(
        ["session token", "xyzzyplugh", "session --explain", "fetch docs/guide.md", "grep session", "sesion"], short=3
    ),
)
def test_a_terminal_shows_the_same(warm: Warm, root: Path, command: str) -> None:
    alone = in_terminal([*SHELL, *command.split()], {**warm.environ, "FINDLING_SERVE_AUTO": "never"}, root)
    asked = in_terminal([*ASK, *command.split()], warm.environ | {"FINDLING_SERVE_AUTO": "auto"}, root)
    assert asked[0] != ALONE
    assert (asked[0], without_times(asked[1])) == (alone[0], without_times(alone[1]))


def test_the_progress_of_an_index_run_is_shown(warm: Warm, tmp_path: Path) -> None:
    shown = {}
    for name, command, wish in (("one", ASK, "always"), ("two", SHELL, "never")):
        folder = tmp_path / name
        shutil.copytree(warm.home.with_name("root"), folder)
        code, text = in_terminal([*command, "session"], warm.environ | {"FINDLING_SERVE_AUTO": wish}, folder)
        assert code == 0
        assert "findling: indexing " in text
        # Bars are drawn over each other, and how many there are depends on the machine.
        lines = [
            line.rpartition("\r")[2] for line in text.replace(f"/{name}", "/tree").replace("\r\n", "\n").split("\n")
        ]
        shown[name] = without_times("\n".join(lines))
    assert shown["one"] == shown["two"]


@pytest.fixture
def waiting(warm: Warm, root: Path) -> Iterator[BoundedProcess]:
    """A shell whose question the warm process has begun with: it waits for more of it on stdin."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with BoundedProcess([*SHELL, "-Q", "-"], env=warm.environ, cwd=root, **streams) as process:
        assert eventually(lambda: forks_in(warm, root))
        # A fork that has not read yet would leave the question to the shell.
        pipe = process.stdin
        assert pipe is not None
        pipe.write("session\n")
        pipe.flush()
        assert eventually(lambda: not unread_bytes(pipe.fileno()))
        yield process
        process.kill()


def unread_bytes(pipe: int) -> int:
    """The number of bytes in a pipe that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def forks_in(warm: Warm, root: Path) -> list[int]:
    """The forks of a warm process that have the place of a shell in this folder."""
    found, pid = [], warm.process.pid
    for fork in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            if Path(f"/proc/{fork}/cwd").readlink() == root:
                found.append(int(fork))
    return found


def test_ctrl_c_ends_the_question_and_not_the_process(warm: Warm, root: Path, waiting: BoundedProcess) -> None:
    waiting.send_signal(signal.SIGINT)
    waiting.wait()
    out, err = waiting.communicate()
    assert (waiting.returncode, out, err) == (-signal.SIGINT, "", "findling: interrupted\n")
    assert warm.asked("session", cwd=root)[0] == 0


def test_a_shell_that_is_killed_takes_its_question_along(warm: Warm, root: Path, waiting: BoundedProcess) -> None:
    (fork,) = forks_in(warm, root)
    waiting.kill()
    assert eventually(lambda: not Path(f"/proc/{fork}/exe").exists())
    assert warm.asked("session", cwd=root)[0] == 0


def test_a_question_survives_the_end_of_the_process(
    warm: Warm, root: Path, here: Callable[..., Shown], tmp_path: Path
) -> None:
    with warm_of(tmp_path / "home", warm.environ) as other:
        assert here("index", FINDLING_HOME=str(other.home))[0] == 0
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with BoundedProcess([*SHELL, "-Q", "-", "-l"], env=other.environ, cwd=root, **streams) as shell:
            assert eventually(lambda: forks_in(other, root))
            other.process.kill()
            other.process.wait()
            out, _ = shell.communicate("spoon\n")
            assert (shell.returncode, out.split()) == (0, ["team/notes.md"])
        # Its socket is still there, and nobody listens.
        assert (other.home / FOLDER / SOCKET).is_socket()
        assert other.asked("spoon", cwd=root)[0] == ALONE
        done = run_process([*SHELL, "spoon", "-l"], env=other.environ | {"FINDLING_SERVE_AUTO": "auto"}, cwd=root)
        assert done.stdout.split() == ["team/notes.md"]


def test_a_process_that_hangs_is_given_up(warm: Warm, root: Path) -> None:
    warm.process.send_signal(signal.SIGSTOP)
    try:
        done = run_process([*SHELL, "spoon", "-l"], env=warm.environ, cwd=root)
    finally:
        warm.process.send_signal(signal.SIGCONT)
    assert (done.returncode, done.stdout.split()) == (0, ["team/notes.md"])
    assert warm.asked("spoon", cwd=root)[0] == 0


def test_a_question_that_hangs_is_given_up(warm: Warm, root: Path, waiting: BoundedProcess) -> None:
    (fork,) = forks_in(warm, root)
    os.kill(fork, signal.SIGSTOP)
    _, err = waiting.communicate()
    assert waiting.returncode == 2, "stdin was read, so the question cannot be asked again"
    assert "the warm process was ended" in err


def test_a_pause_of_the_machine_is_no_silence(warm: Warm, root: Path, waiting: BoundedProcess) -> None:
    """A container that is paused stops the question as long as its shell; that killed it."""
    processes = (waiting.pid, *forks_in(warm, root))
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(6.0)  # more than a shell's patience
    for pid in processes:
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
    out, err = waiting.communicate("spoon\n")
    assert (waiting.returncode, err) == (0, "")
    assert "team/notes.md" in out


@pytest.mark.parametrize(
    "limits", ["umask 077", "ulimit -n 200", "nice", "chrt --idle 0", "export LC_ALL=C", "export FINDLING_CORE=off"]
)
def test_a_shell_of_another_standing_is_left_alone(warm: Warm, root: Path, limits: str) -> None:
    command = f'{limits} "$@"' if limits in ("nice", "chrt --idle 0") else f'{limits}; "$@"'
    done = run_process(["sh", "-c", command, "sh", *ASK, "session"], env=warm.environ, cwd=root)
    assert done.returncode == ALONE
    assert warm.asked("session", cwd=root)[0] == 0


SANDBOX = """
import ctypes, os, struct, sys
call = ctypes.CDLL(None).syscall
rules = call(444, struct.pack("<Q", 1 << 10), 8, 0)  # landlock_create_ruleset: no FIFO may be made
if rules < 0 or call(446, rules, 0):  # landlock_restrict_self
    sys.exit(98)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only for root a sandbox is all that differs"
)
def test_a_shell_in_a_sandbox_of_landlock_is_left_alone(warm: Warm, root: Path) -> None:
    """Such a sandbox stands nowhere in /proc: a fork read for it what it may not read."""
    done = run_process([sys.executable, "-c", SANDBOX, *ASK, "session"], env=warm.environ, cwd=root)
    if done.returncode == 98:
        pytest.skip("the kernel has no Landlock")
    assert done.returncode == ALONE
    assert warm.asked("session", cwd=root)[0] == 0


STRANGER = """
import _socket, os, sys
from findling.service.client import warm_shell as place
asking = place
folder, uid = sys.argv[1], 65534
os.setegid(uid), os.seteuid(uid)
assert place.reach(folder, place.SOCKET) is None, "a socket of another user"
place.peer_of = lambda line: (0, uid)
line = place.reach(folder, place.SOCKET)
assert line is not None, "it can be reached"
print(asking._begin(line, ["findling", "session"]))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_is_neither_asked_nor_answered(warm: Warm) -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with warm_of(Path(folder) / "home", warm.environ) as other:
            for path in (other.home, other.home / FOLDER, other.home / FOLDER / SOCKET):
                path.chmod(0o777)
            done = run_process([sys.executable, "-c", STRANGER, str(other.home / FOLDER)], env=other.environ)
            assert (done.stdout, done.stderr) == ("0\n", "")


def test_only_its_owner_reaches_the_socket(warm: Warm) -> None:
    folder = warm.home / FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / SOCKET).stat().st_mode & 0o777 == 0o600


def test_scripts_and_test_services_do_without(warm: Warm, root: Path) -> None:
    assert warm.asked("session", cwd=root, FINDLING_SERVE_AUTO="auto")[0] == ALONE
    assert warm.asked("session", cwd=root, FINDLING_SERVE_AUTO="never")[0] == ALONE
    assert warm.asked("session", "--set", "serve.use=never", cwd=root)[0] == ALONE
    assert warm.asked("status", cwd=root)[0] == ALONE
    environ = warm.environ | {"FINDLING_SERVE_AUTO": "auto", "CI": "true"}
    assert in_terminal([*ASK, "session"], environ, root)[0] == ALONE


def test_a_shell_that_asks_loads_little(warm: Warm, root: Path) -> None:
    code = (
        "import os, sys; from findling.__main__ import ask_warm; code = ask_warm()\n"
        "os.write(1, '\\n'.join(sys.modules).encode()); os._exit(99 if code is None else 0)"
    )
    bare = run_process([sys.executable, "-c", "import sys; print('\\n'.join(sys.modules))"], check=True)
    done = run_process([sys.executable, "-c", code, "spoon", "-l"], env=warm.environ, cwd=root, check=True)
    first, *modules = done.stdout.split("\n")
    assert first == "team/notes.md"
    loaded = {name for name in modules if not name.startswith("findling")} - set(bare.stdout.split())
    assert loaded <= {"_socket", "__future__"}
    assert len(modules) - len(bare.stdout.split()) < 16


def test_a_process_with_a_second_thread_makes_room_for_another(warm: Warm, root: Path, tmp_path: Path) -> None:
    busy = "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); "
    command = [*WARM_PROCESS[:-1], busy + WARM_PROCESS[-1], str(tmp_path)]
    environ = warm.environ | {"FINDLING_HOME": str(tmp_path)}
    with BoundedProcess(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            listens(tmp_path)
            assert process.wait() == 0, "it stays, and refuses"
        finally:
            process.kill()
    with warm_of(tmp_path, warm.environ) as another:
        assert another.asked("session", str(root))[0] == 0


def test_there_is_one_process_for_a_home(warm: Warm) -> None:
    done = run_process([*WARM_PROCESS, str(warm.home)], env=warm.environ)
    assert done.returncode == 0
    listens(warm.home)


def test_an_idle_process_leaves(warm: Warm, tmp_path: Path) -> None:
    with warm_of(tmp_path / "home", warm.environ, idle_s=0.5) as other:
        assert other.process.wait() == 0
        assert not (other.home / FOLDER / SOCKET).exists()


@pytest.mark.parametrize("name", ["home", "home" * 30])
def test_a_process_of_a_deleted_home_leaves_the_next_one_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    """It stayed, for the path was there again; ten minutes later it removed the socket of the other process.

    The address of a long path followed the home that was renamed. One that had just begun to listen took the next
    one's socket for its own.
    """
    with warm_of(tmp_path / name, warm.environ) as first:
        first.process.send_signal(signal.SIGSTOP)  # it does not look in between
        (tmp_path / name).rename(tmp_path / "gone")
        with warm_of(tmp_path / name, warm.environ) as second:
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait() == 0
            assert second.process.poll() is None
            listens(second.home)


def test_a_process_leaves_when_its_index_is_dropped(warm: Warm, root: Path, tmp_path: Path) -> None:
    with warm_of(tmp_path / "home", warm.environ) as other:
        assert other.asked("spoon", cwd=root)[0] == 0
        assert other.process.poll() is None
        run_process([*SHELL, "forget", "--everything", "--force"], env=other.environ, cwd=root, check=True)
        assert other.process.wait() == 0


def test_a_setting_ends_it(warm: Warm, root: Path, here: Callable[..., Shown], tmp_path: Path) -> None:
    own = {"FINDLING_CONFIG": str(tmp_path / "config.toml")}
    with warm_of(tmp_path / "home", warm.environ | own) as other:
        asked = own | {"FINDLING_SERVE_AUTO": ""}
        (other.home / FOLDER / "always").symlink_to(SOCKET)
        assert here("config", "set", "serve.auto", "always", **own)[0] == 0
        assert other.asked("spoon", cwd=root, **asked)[0] == 0
        assert here("config", "set", "serve.auto", "never", **own)[0] == 0
        assert other.asked("spoon", cwd=root, **asked)[0] == ALONE
        assert other.process.wait() == 0


def test_a_changed_program_is_not_asked(warm: Warm, root: Path, tmp_path: Path) -> None:
    package = tmp_path / "src" / "findling"
    source = Path(sys.modules["findling"].__file__ or "").parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.pyc.*", "golden"))
    environ = warm.environ | {"PYTHONPATH": str(tmp_path / "src")}
    assert warm.asked("spoon", cwd=root, **environ)[0] == ALONE, "another installation"
    assert warm.process.poll() is None
    with warm_of(tmp_path / "home", environ) as other:
        assert other.asked("spoon", cwd=root)[0] == 0
        changed = package / "faces" / "cli" / "output" / "rendering.py"
        changed.write_text(changed.read_text() + "\n# another version\n")
        assert other.asked("spoon", cwd=root)[0] == ALONE
        assert other.process.wait() == 0


def test_another_version_is_not_asked(warm: Warm, root: Path, tmp_path: Path) -> None:
    with warm_of(tmp_path / "home", warm.environ) as other:
        code = f"import findling; findling.__version__ = '{__version__}.1'; {ASK[-1]}"
        assert run_process([*ASK[:-1], code, "spoon"], env=other.environ, cwd=root).returncode == ALONE
        assert other.process.wait() == 0, "one of the two is old, and the other one starts a new process"


def test_a_search_in_a_terminal_starts_one_and_says_so_once(warm: Warm, root: Path, tmp_path: Path) -> None:
    environ = {**warm.environ, "FINDLING_HOME": str(tmp_path / "home"), "FINDLING_SERVE_AUTO": "auto"}
    told = "a process stays for ten minutes"
    try:
        assert told in in_terminal([*SHELL, "spoon"], environ, root)[1]
        listens(tmp_path / "home")
        assert in_terminal([*ASK, "spoon"], environ, root)[0] == 0
    finally:
        stopped = run_process([*SHELL, "serve", "--stop"], env=environ)
    assert "the warm process" in stopped.stderr
    assert stopped.returncode == 0
    assert eventually(lambda: not is_warm(tmp_path / "home"))
    try:
        assert told not in in_terminal([*SHELL, "spoon"], environ, root)[1], "once is enough"
        listens(tmp_path / "home")
    finally:
        run_process([*SHELL, "serve", "--stop"], env=environ)
    assert eventually(lambda: not (tmp_path / "home" / FOLDER / SOCKET).exists())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make such a container")
def test_a_process_in_another_container_is_not_stopped(warm: Warm, tmp_path: Path) -> None:
    """Its number is 0 there, and a signal to 0 reaches the whole group of the command."""
    command = ["unshare", "--pid", "--fork", *SHELL, "serve", "--stop"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with BoundedProcess(command, env=warm.environ, start_new_session=True, **streams) as process:
        _, err = process.communicate()
    if "unshare failed" in err:
        pytest.skip("a container cannot be made here")
    assert (process.returncode, "in another container" in err) == (1, True)
    assert warm.process.poll() is None


def test_a_home_that_a_settings_file_names_has_one_too(warm: Warm, root: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[store]\nhome = "{tmp_path / "elsewhere"}"\n')
    environ = {**warm.environ, "HOME": str(tmp_path), "FINDLING_CONFIG": str(tmp_path / "config.toml")}
    del environ["FINDLING_HOME"]
    try:
        run_process([*SHELL, "spoon"], env=environ, cwd=root, check=True)
        listens(tmp_path / "elsewhere")
        assert run_process([*ASK, "spoon"], env=environ, cwd=root).returncode == 0
    finally:
        stopped = run_process([*SHELL, "serve", "--stop"], env=environ)
    assert stopped.returncode == 0


def test_an_index_run_of_another_process_does_not_wait(warm: Warm, root: Path) -> None:
    assert warm.asked("spoon", cwd=root)[0] == 0
    (root / "new.md").write_text("A zebra crossing.\n")
    try:
        run_process([*SHELL, "index"], env=warm.environ, cwd=root, check=True)
        assert warm.asked("zebra", "-l", cwd=root)[1].split() == ["new.md"]
        (root / "new.md").write_text("An ostrich farm.\n")
        assert warm.asked("ostrich", "-l", cwd=root)[1].split() == ["new.md"], "the fork has looked at the files"
    finally:
        (root / "new.md").unlink()


def test_a_watched_tree_shows_every_change_at_once(warm: Warm, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(320):
        (tree / f"note{number}.md").write_text(f"word{number}\n")
    if file_system(tree) not in still_folders._TELLING:
        pytest.skip("changes on this disk may pass unnoticed")
    time.sleep(2 * UNSURE_NS / 1e9)

    def found(word: str) -> tuple[int, str]:
        return warm.asked(word, "--mode", "keyword", "-l", cwd=tree)[:2]

    def is_watched() -> bool:
        assert found("word7") == (0, "note7.md\n")
        for one in Path(f"/proc/{warm.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since
                if "inotify" in str(one.readlink()):
                    return True
        return False

    assert eventually(is_watched), "no fork has left its look to the process"
    for word in ("okapi", "quagga", "kiwi"):
        assert found(word) == (1, "")
        (tree / "new.md").write_text(f"{word}\n")
        assert found(word) == (0, "new.md\n")
    (tree / "new.md").unlink()
    assert found("kiwi") == (1, "")


def test_mcp_over_stdio_is_served_through_the_same_socket(warm: Warm, root: Path) -> None:
    if find_spec("mcp") is None:
        pytest.skip("without the library of MCP")
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    code, out, err = warm.asked("mcp", stdin=json.dumps(opening) + "\n", cwd=root)
    assert code == 0, err
    assert json.loads(out)["result"]["serverInfo"]["name"] == "findling"


def test_shell_and_engine_agree_on_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for home in ("", "~/mine", "relative", str(tmp_path / "a" / ".." / "b")):
        environ = {"FINDLING_HOME": home}
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        assert Path(warm_folder(environ)).resolve() == daemon_folder(home_folder(home)).resolve()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("FINDLING_HOME", raising=False)
    assert warm_folder(os.environ) == str(daemon_folder(home_folder("")))


@on_mains
def test_a_searched_folder_brings_no_modules(
    root: Path, warm: Warm, here: Callable[..., Shown], tmp_path: Path
) -> None:
    """Processes in the background run in the searched folder; a `click.py` there was imported."""
    (tmp_path / "click.py").write_text("import pathlib; pathlib.Path(__file__).with_name('ran').touch()\n")
    (tmp_path / "note.md").write_text("A zebra crossing.\n")
    own = {"FINDLING_SEMANTIC_MODEL": "auto", "FINDLING_HOME": str(tmp_path / "home")}
    environ = warm.environ | own | {"FINDLING_SERVE_AUTO": "never", "FINDLING_SEMANTIC_REFINE": "background"}
    code = "from findling.__main__ import main; main()"
    run_process([sys.executable, "-P", "-c", code, "zebra", str(tmp_path)], env=environ, cwd=root, check=True)

    def has_read() -> bool:
        meaning = json.loads(here("status", str(tmp_path), "--json", **own)[1])["meaning"]
        return meaning["read"] == meaning["of"] or (tmp_path / "ran").exists()

    assert eventually(has_read)
    assert not (tmp_path / "ran").exists()


def test_the_kit_of_a_search_can_be_loaded() -> None:
    code = "import json, sys; from findling.service.client.warm_kit import describe_kit, load_kit; "
    code += "load_kit(json.load(sys.stdin)); print(json.dumps(describe_kit()))"
    kit = {"modules": ["findling.text.analysis.wordpieces", "no.such.module"], "models": [["x", [], "/no/model", None]]}
    kit |= {"tables": ["findling.text.analysis.wordpieces:bert_vocabulary", "findling.nowhere:table"]}
    done = run_process([sys.executable, "-c", code], stdin=json.dumps(kit), check=True)
    loaded = json.loads(done.stdout)
    assert "findling.text.analysis.wordpieces:bert_vocabulary" in loaded["tables"]
    assert "findling.text.analysis.wordpieces" in loaded["modules"]


def test_a_search_in_postgresql_is_done_by_the_warm_process(
    warm: Warm, root: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Every one of them loaded the driver by itself, which takes longer than the search."""
    own = {**warm.environ, "FINDLING_STORE_URL": ordinary_place(postgres)}
    with warm_of(tmp_path / "home", own) as other:
        run_process([*SHELL, "index"], env=other.environ, cwd=root, check=True)
        (code, out, err), alone = other.asked("spoon", cwd=root), other.alone("spoon", cwd=root)
        assert (code, without_times(out), err) == (0, without_times(alone[1]), "")
        assert eventually(lambda: "psycopg_binary" in Path(f"/proc/{other.process.pid}/maps").read_text())
        assert other.asked("spoon", cwd=root)[0] == 0
        assert other.asked("spoon", cwd=root, PSYCOPG_IMPL="python")[0] == ALONE
        assert other.process.poll() is None


def test_run_in_a_program_starts_nothing(project: Path) -> None:
    assert run(["login"]) == 0
    assert not (Path(os.environ["FINDLING_HOME"]) / FOLDER).exists()
