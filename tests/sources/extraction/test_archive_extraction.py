"""Archives are listed, never opened."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.sources.documents.data.archive_list import extract
from findling.sources.documents.document_formats import extract as extract_any
from findling.sources.extracted import Source
from findling.sources.files.file_text import UnreadableError

LISTING = "docs\ndocs/über.txt (5 bytes)\nbig.bin (12,345 bytes)"


def tar_of(*members: tuple[str, int | None]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, size in members:
            info = tarfile.TarInfo(name)
            info.size = size or 0
            info.type = tarfile.DIRTYPE if size is None else tarfile.REGTYPE
            archive.addfile(info, io.BytesIO(bytes(size or 0)))
    return target.getvalue()


def zip_of(*members: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"a comment"
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


TAR = tar_of(("docs", None), ("docs/über.txt", 5), ("big.bin", 12345))


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        (bytes, "a.tar"),
        (gzip.compress, "a.tgz"),
        (bz2.compress, "a.tar.bz2"),
        (lzma.compress, "a.tar.xz"),
        (lambda data: lzma.compress(data, lzma.FORMAT_ALONE), "a.tar.lzma"),
    ],
)
def test_tar(pack: Callable[[bytes], bytes], name: str) -> None:
    extracted = extract(Source(pack(TAR), name))
    assert extracted.text == LISTING
    assert not extracted.places
    assert not extracted.fields


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz"])
def test_every_archive_that_tar_makes_is_known_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("words")
    pack = "gz" if name.endswith("gz") else name.rpartition(".tar")[2].strip(".")
    with tarfile.TarFile.open(tmp_path / name, f"w:{pack}") as tar:  # type: ignore[call-overload]
        tar.add(tmp_path / "notes.txt", "docs/notes.txt")
    assert extract_any(Source((tmp_path / name).read_bytes(), name)).text == "docs/notes.txt (5 bytes)"


@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz")])
def test_a_packed_file_is_listed_with_its_size(pack: Callable[[bytes], bytes], suffix: str) -> None:
    data = pack(b"one file only" * 100)
    assert extract_any(Source(data, f"changelog.{suffix}")).text == "changelog (1,300 bytes)"
    with pytest.raises(UnreadableError, match="damaged: no tar archive"):
        extract_any(Source(data, f"a.tar.{suffix}"))


def test_a_damaged_archive_says_what_is_wrong() -> None:
    with pytest.raises(UnreadableError, match="damaged: cannot be unpacked"):
        extract_any(Source(b"\x1f\x8b" + bytes(100), "changelog.gz"))


def test_zip() -> None:
    data = zip_of(("docs/", b""), ("docs/über.txt", b"12345"), ("a.bin", bytes(2000)))
    extracted = extract(Source(data, "a.zip"))
    assert extracted.text.split("\n")[:3] == ["docs/", "docs/über.txt (5 bytes)", "a.bin (2,000 bytes)"]
    assert extracted.text.endswith("a comment")
    assert extract(Source(b"#!/bin/sh\n" + data, "a.jar")).text == extracted.text


def test_an_encrypted_zip_is_listed() -> None:
    data = bytearray(zip_of(("secret.txt", b"words")))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + offset] |= 1
    assert extract(Source(bytes(data), "a.zip")).text.startswith("secret.txt (5 bytes)")


def test_long_lists_are_cut() -> None:
    names = [(f"file{number}", b"") for number in range(5003)]
    lines = extract(Source(zip_of(*names), "a.zip")).text.split("\n")
    assert lines[4999] == "file4999 (0 bytes)"
    assert lines[5000] == "… 3 more"
    packed = gzip.compress(tar_of(*[(name, 0) for name, _ in names]), 1)
    extracted = extract(Source(packed, "a.tgz"))
    assert extracted.text.split("\n")[4999:] == ["file4999 (0 bytes)", "… more"]
    assert "incomplete" in extracted.fields


def test_a_packed_tar_is_unpacked_up_to_a_bound() -> None:
    data = gzip.compress(tar_of(("first", 1), ("huge", 80 << 20), ("after", 1)), 1)
    extracted = extract(Source(data, "a.tgz"))
    assert extracted.text.split("\n")[:2] == ["first (1 bytes)", "huge (83,886,080 bytes)"]
    assert "after" not in extracted.text
    assert "incomplete" in extracted.fields


def test_a_cut_off_tar_lists_its_beginning() -> None:
    packed = gzip.compress(tar_of(*[(f"file{number}", 100_000) for number in range(30)]), 0)
    extracted = extract(Source(packed[: len(packed) // 2], "a.tgz"))
    assert extracted.text.startswith("file0 (100,000 bytes)\nfile1 ")
    assert "file29" not in extracted.text
    assert "incomplete" in extracted.fields


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"7z\xbc\xaf\x27\x1c" + bytes(100), "unsupported: 7z"),
        (b"Rar!\x1a\x07\x00" + bytes(100), "unsupported: RAR"),
        (b"\x1f\x8b" + bytes(100), "damaged"),
        (b"PK\x03\x04 broken", "damaged"),
        (b"no archive at all", "damaged"),
        (b"", "damaged"),
        (zip_of()[:-9].replace(b"\x09\x00", b"\x00\x00"), "no-text"),
        (bytes(10240), "damaged"),
    ],
)
def test_what_cannot_be_listed(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        extract(Source(data, "a.zip"))


def test_a_tar_without_members_has_no_text() -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        extract(Source(tar_of(), "a.tar"))
