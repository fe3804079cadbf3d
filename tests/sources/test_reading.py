"""Reading files as text: encodings, limits, and things that are no files."""

from __future__ import annotations

import errno
import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.sources.files.discovery import REASONS
from findling.sources.files.file_text import UnreadableError, decode, read_bytes
from tests.processes import PATIENCE_S

LIMIT = 1 << 20
RUSSIAN = "Привет, мир.\nВторая строка, ещё немного слов.\n" * 5
CHINESE = "東京は日本の首都です。\n大阪も大きい。\n" * 5


def read(directory: Path, data: bytes, max_size: int = LIMIT) -> tuple[str, str]:
    file = directory / "file"
    file.write_bytes(data)
    return decode(read_bytes(str(file), max_size)[0])


def reason(directory: Path, data: bytes, max_size: int = LIMIT) -> str:
    with pytest.raises(UnreadableError) as caught:
        read(directory, data, max_size)
    assert caught.value.reason in REASONS
    return caught.value.reason


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        (b"plain\r\nlines\rand\n", "plain\r\nlines\rand\n", "utf-8"),
        ("Zürich 東京 🙂".encode(), "Zürich 東京 🙂", "utf-8"),
        (b"\xef\xbb\xbfmarked", "marked", "utf-8"),
        (b"\xff\xfe" + "a\r\né".encode("utf-16-le"), "a\r\né", "utf-16-le"),
        (b"\xfe\xff" + "a\r\né".encode("utf-16-be"), "a\r\né", "utf-16-be"),
        (b"\xff\xfe\0\0" + "é🙂".encode("utf-32-le"), "é🙂", "utf-32-le"),
        (b"\0\0\xfe\xff" + "é🙂".encode("utf-32-be"), "é🙂", "utf-32-be"),
        ("plain words\r\n".encode("utf-16-le"), "plain words\r\n", "utf-16-le"),
        ("plain words\r\n".encode("utf-16-be"), "plain words\r\n", "utf-16-be"),
        (RUSSIAN.encode("utf-16-le"), RUSSIAN, "utf-16-le"),
        (RUSSIAN.encode("utf-16-be"), RUSSIAN, "utf-16-be"),
        (CHINESE.encode("utf-16-le"), CHINESE, "utf-16-le"),
        ("naïve café – “quoted”".encode("cp1252"), "naïve café – “quoted”", "cp1252"),
        (b"caf\xe9 \x81", "café \x81", "latin-1"),
    ],
)
def test_decoding(tmp_path: Path, data: bytes, text: str, encoding: str) -> None:
    assert read(tmp_path, data) == (text, encoding)


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"text with one \0 byte in it",
        b"\xef\xbb\xbfmarked text with one \0 byte in it",
        bytes(range(256)) * 4,
        random.Random(1).randbytes(4096),
        random.Random(2).randbytes(4096).replace(b"\0", b"\1"),
        b"".join(number.to_bytes(2, "little") for number in range(1, 200)),
        "odd".encode("utf-16-le") + b"x",
        "a lone \ud800 surrogate".encode("utf-16-le", "surrogatepass"),
    ],
)
def test_binary(tmp_path: Path, data: bytes) -> None:
    assert reason(tmp_path, data) == "binary"


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa\xff", b"\xff\xfea", b"\xff\xfe\0\0a\0\0"])
def test_content_that_breaks_its_own_mark_is_undecodable(tmp_path: Path, data: bytes) -> None:
    assert reason(tmp_path, data) == "undecodable"


@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_comes_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    found = read(tmp_path_factory.getbasetemp(), text.encode())
    assert found[0] == text.removeprefix("\ufeff")


@given(data=st.binary(max_size=200))
def test_any_bytes_give_text_or_a_reason(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    try:
        found = read(tmp_path_factory.getbasetemp(), data)
    except UnreadableError as error:
        assert error.reason in ("binary", "undecodable")
    else:
        assert "\0" not in found[0]


def test_limit_is_the_largest_size_that_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, b"12345", max_size=5)[0] == "12345"
    assert reason(tmp_path, b"123456", max_size=5) == "too-large"


def test_sparse_gigabyte_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.txt"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 30)
    with pytest.raises(UnreadableError, match=r"too-large: 1073741824 bytes"):
        read_bytes(str(file), LIMIT)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs files whose size says 0")
def test_file_that_holds_more_than_its_size_says_is_read_to_its_end() -> None:
    assert b"VmPeak" in read_bytes("/proc/self/status", LIMIT)[0]
    with pytest.raises(UnreadableError) as caught:
        read_bytes("/proc/self/status", 100)
    assert caught.value.reason == "too-large"


def test_fifo_does_not_block(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.txt"
    os.mkfifo(fifo)
    reasons: list[str] = []

    def attempt() -> None:
        with pytest.raises(UnreadableError) as caught:
            read_bytes(str(fifo), LIMIT)
        reasons.append(caught.value.reason)

    reader = threading.Thread(target=attempt, daemon=True)
    reader.start()
    reader.join(timeout=PATIENCE_S)
    assert reasons == ["special"]


def test_directories_missing_files_and_loops_have_their_reasons(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    expected = {".": "special", "missing": "unreadable", "loop": "unreadable"}
    found = {}
    for name in expected:
        with pytest.raises(UnreadableError) as caught:
            read_bytes(str(tmp_path / name), LIMIT)
        found[name] = caught.value.reason
    assert found == expected
    assert caught.value.detail == os.strerror(errno.ELOOP)


def test_symlink_is_followed_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"text")
    (tmp_path / "link").symlink_to("real")
    assert read_bytes(str(tmp_path / "link"), LIMIT)[0] == b"text"
    with pytest.raises(UnreadableError):
        read_bytes(str(tmp_path / "link"), LIMIT, follow_symlink=False)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("shift_jis", "これは日本語の文章です。検索エンジンは文書を読みます。"),
        ("gb18030", "这是一个中文文档，搜索引擎可以读取它。数据库连接超时。"),
        ("euc_kr", "이것은 한국어 문서입니다. 검색 엔진이 읽습니다."),
        ("big5", "這是一個中文文件，搜尋引擎可以讀取它。"),
        ("cp1251", "Это русский документ. Поисковая система читает его."),
        ("iso8859_7", "Αυτό είναι ένα ελληνικό κείμενο για αναζήτηση."),
        ("cp1252", "Größe der Häuser, naïve café – “quoted” £5"),
    ],
)
def test_older_encodings_are_found_out(encoding: str, text: str) -> None:
    assert decode(f"{text}\n".encode(encoding) * 5)[0] == f"{text}\n" * 5
