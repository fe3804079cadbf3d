"""A real tree to measure on: the sources and documentation of well-known packages, fetched by name.

Only files that both findling and its peer index by default are laid out (text, code, markdown and reStructuredText, no
empty files, none above the peer's 2 MB), and folders that the peer leaves out by name get an underscore, so that both
read the very same bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

__all__ = ["make_tree", "source_tree", "unpack"]

SOURCES = ("Django==5.2.8", "Sphinx==8.2.3", "docutils==0.22.2", "mypy==1.18.2", "pytest==8.4.2")
WHEELS = ("SQLAlchemy==2.0.44", "Twisted==25.5.0", "ansible-core==2.19.3", "networkx==3.5", "sympy==1.14.0")
EXTENSIONS = frozenset(".py .pyi .rst .txt .md .js .css .toml .cfg .yml .yaml .ini .c .h .sh".split())
LEFT_OUT_BY_PEER = frozenset(
    "build dist env out output tmp log logs vendor bin obj packages target venv coverage site-packages".split()
)
MOST_BYTES = 2_000_000
PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")


def make_tree(work: Path, every: int = 1) -> Path:
    """The tree below `work`, fetched and laid out on first use; with `every`, one of so many of its files."""
    if every > 1:
        return _make_sample(make_tree(work), work / f"tree-{every}", every)
    tree, archives = work / "tree", work / "archives"
    if not (tree / ".complete").exists():
        archives.mkdir(parents=True, exist_ok=True)
        _download(archives)
        shutil.rmtree(tree, ignore_errors=True)
        for archive in sorted(archives.iterdir()):
            for name, data in _members(archive):
                _lay_out(tree, name, data)
        (tree / ".complete").touch()
    return tree


def unpack(work: Path, requirements: Sequence[str]) -> Path:
    """The folder below `work` that holds source distributions (`name==1.0`), each fetched and unpacked on first use."""
    unpacked, archives = work / "unpacked", work / "archives-unpacked"
    for requirement in requirements:
        folder = unpacked / requirement.replace("==", "-")
        if folder.exists():
            continue
        archives.mkdir(parents=True, exist_ok=True)
        if not (archive := archives / f"{folder.name}.tar.gz").exists():
            subprocess.run([*PIP, "--dest", str(archives), "--no-binary", ":all:", requirement], check=True)
        with tarfile.open(archive) as source:
            source.extractall(unpacked, filter="data")
    return unpacked


def source_tree(work: Path, requirements: Sequence[str], keep: frozenset[str] = EXTENSIONS) -> Path:
    """A tree below `work` of the files with these endings in source distributions, laid out on first use."""
    tree = work / "tree"
    if not (tree / ".complete").exists():
        unpacked = unpack(work, requirements)
        for file in sorted(path for path in unpacked.rglob("*") if path.is_file() and path.suffix.lower() in keep):
            _lay_out(tree, file.relative_to(unpacked).as_posix(), file.read_bytes())
        (tree / ".complete").touch()
    return tree


def _make_sample(tree: Path, sample: Path, every: int) -> Path:
    if not (sample / ".complete").exists():
        shutil.rmtree(sample, ignore_errors=True)
        for file in sorted(path for path in tree.rglob("*") if path.is_file() and path.name != ".complete")[::every]:
            target = sample / file.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        (sample / ".complete").touch()
    return sample


def _download(archives: Path) -> None:
    pip = [*PIP, "--dest", str(archives)]
    subprocess.run([*pip, "--no-binary", ":all:", *SOURCES], check=True)
    plain = ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"]
    subprocess.run([*pip, *plain, *WHEELS], check=True)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir():
                    yield f"{archive.name.split('-')[0]}/{entry.filename}", wheel.read(entry)
        return
    with tarfile.open(archive) as source:
        for member in source:
            file = source.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file.read()


def _lay_out(tree: Path, name: str, data: bytes) -> None:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") or part == ".." for part in parts)
    if hidden or PurePosixPath(name).suffix.lower() not in EXTENSIONS or not 0 < len(data) <= MOST_BYTES:
        return
    renamed = [f"{part}_" if part in LEFT_OUT_BY_PEER or part.endswith(".egg-info") else part for part in parts]
    target = tree.joinpath(*renamed)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
