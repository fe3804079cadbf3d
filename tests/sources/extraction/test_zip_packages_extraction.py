"""Zip files and XML from strangers: what they hold is read within bounds, what is wrong with them is said."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from findling.sources.documents.containers import zip_packages
from findling.sources.documents.containers.xml_tree import attribute_of, number_of, parse_xml
from findling.sources.documents.containers.zip_packages import OLE_MAGIC, Package
from findling.sources.files.file_text import UnreadableError


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def patched(data: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """`data` with bytes after the first signature replaced."""
    start = data.index(signature) + offset
    return data[:start] + value + data[start + len(value) :]


def test_a_member_is_read_and_a_missing_one_is_none() -> None:
    archive = Package(zipped({"word/document.xml": b"<a/>"}))
    assert archive.part("word/document.xml") == b"<a/>"
    assert archive.part("word/styles.xml") is None
    assert archive.has("word/document.xml")
    assert not archive.has("word/styles.xml")


@pytest.mark.parametrize("name", ["Word/Document.XML", "/word/document.xml", "word\\document.xml"])
def test_names_of_members_match_without_case_and_with_any_slash(name: str) -> None:
    assert Package(zipped({"word/document.xml": b"x"})).part(name) == b"x"
    assert Package(zipped({name: b"x"})).part("word/document.xml") == b"x"


@pytest.mark.parametrize("data", [b"", b"PK", b"just words", zipped({"a": b"b"})[:-5], OLE_MAGIC + bytes(600)])
def test_what_is_no_zip_file_is_damaged(data: bytes) -> None:
    with pytest.raises(UnreadableError) as caught:
        Package(data)
    assert caught.value.reason == "damaged"
    assert caught.value.detail


def test_an_encrypted_office_package_is_encrypted() -> None:
    with pytest.raises(UnreadableError) as caught:
        Package(OLE_MAGIC + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600))
    assert caught.value.reason == "encrypted"


def test_an_encrypted_member_is_encrypted() -> None:
    data = zipped({"a.xml": b"<a/>"})
    data = patched(data, b"PK\x01\x02", 8, struct.pack("<H", 1))
    with pytest.raises(UnreadableError) as caught:
        Package(data).part("a.xml")
    assert caught.value.reason == "encrypted"


def test_a_wrong_checksum_is_damage() -> None:
    data = zipped({"a.xml": b"<some>content</some>"}, zipfile.ZIP_STORED).replace(b"content", b"c0ntent")
    with pytest.raises(UnreadableError, match=r"damaged: cannot unpack a\.xml"):
        Package(data).part("a.xml")


def test_a_broken_stream_is_damage() -> None:
    data = bytearray(zipped({"a.xml": b"<some>content</some>" * 100}))
    data[40:50] = b"\xff" * 10
    with pytest.raises(UnreadableError, match="damaged"):
        Package(bytes(data)).part("a.xml")


def test_a_method_that_unpacks_without_bound_is_not_tried() -> None:
    with pytest.raises(UnreadableError) as caught:
        Package(zipped({"a.xml": b"<a/>"}, zipfile.ZIP_BZIP2)).part("a.xml")
    assert caught.value.reason == "unsupported"


def test_a_member_larger_than_the_bound_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_packages, "MAX_MEMBER_BYTES", 1 << 20)
    with pytest.raises(UnreadableError, match="too-large: unpacks to more than 1 MB"):
        Package(zipped({"bomb.xml": bytes((1 << 20) + 1)})).part("bomb.xml")


def test_all_members_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_packages, "MAX_UNPACKED_BYTES", 2 << 20)
    archive = Package(zipped({f"{number}.xml": bytes(1 << 20) for number in range(3)}))
    assert archive.part("0.xml")
    assert archive.part("1.xml")
    with pytest.raises(UnreadableError, match="too-large: unpacks to more than 2 MB"):
        archive.part("2.xml")


def test_a_member_that_lies_about_its_size_is_damage() -> None:
    data = zipped({"a.xml": bytes(1 << 20)})
    data = patched(data, b"PK\x01\x02", 24, struct.pack("<L", 10))
    with pytest.raises(UnreadableError, match="damaged"):
        Package(data).part("a.xml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_that_declares_entities_is_refused(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY x "boom">]><a>&x;</a>'
    with pytest.raises(UnreadableError, match="damaged: declares XML entities"):
        parse_xml(text.encode(encoding))


def test_xml_that_only_speaks_of_entities_is_read() -> None:
    assert parse_xml(b"<a><![CDATA[<!ENTITY x 'y'>]]></a>").text == "<!ENTITY x 'y'>"


@pytest.mark.parametrize(
    "data",
    [b"", b"words", b"<a><b></a>", b"<a>&undeclared;</a>", b'<?xml version="1.0" encoding="klingon"?><a/>', b"\0\0\0"],
)
def test_malformed_xml_is_damaged(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="damaged: malformed XML"):
        parse_xml(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\n <?xml version='1.0'?><a>b</a>", "b"),
        (b"<a>be&#11;fore\x0b and &#xB;after&#x1F;</a>", "before and after"),
        (b"<a>caf\xe9!</a>", "caf\ufffd!"),
        (b"<?xml version='1.0' encoding='iso-8859-1'?><a>caf\xe9&#2;</a>", "café"),
        ("<?xml version='1.0' encoding='utf-16'?><a>ü</a>".encode("utf-16"), "ü"),
    ],
)
def test_xml_with_forbidden_characters_is_read_without_them(data: bytes, text: str) -> None:
    assert parse_xml(data).text == text


def test_xml_may_nest_as_deep_as_it_likes() -> None:
    root = parse_xml(b"<a>" * 50_000 + b"x" + b"</a>" * 50_000)
    assert sum(1 for _ in root.iter()) == 50_000


def test_broken_side_parts_are_as_good_as_missing() -> None:
    archive = Package(zipped({"good.xml": b"<a/>", "bad.xml": b"<a>"}))
    assert [archive.side_xml(name).tag for name in ("none.xml", "bad.xml", "good.xml")] == ["", "", "a"]
    assert archive.xml("none.xml") is None
    with pytest.raises(UnreadableError, match="damaged"):
        archive.xml("bad.xml")


def test_an_attribute_is_found_in_any_namespace() -> None:
    element = parse_xml(b'<a xmlns:w="urn:w" w:val="1" other="2"/>')
    assert [attribute_of(element, name) for name in ("val", "other", "none")] == ["1", "2", ""]


@pytest.mark.parametrize(
    ("value", "number"),
    [("12", 12), ("999999999", 999999999), ("1" * 5000, None), ("-1", None), ("²", None), ("", None)],
)
def test_a_number_is_bounded(value: str, number: int | None) -> None:
    assert number_of(parse_xml(f'<a xmlns:w="urn:w" w:val="{value}"/>'.encode()), "val") == number
