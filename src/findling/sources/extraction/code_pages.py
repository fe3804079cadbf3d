"""The numbers that Microsoft formats give to encodings."""

from __future__ import annotations

import codecs

__all__ = ["codec_of", "decode_bytes"]


def decode_bytes(data: bytes, code_page: int) -> str:
    """The text of bytes in a Windows code page; what the page lacks becomes a replacement character."""
    return data.decode(codec_of(code_page), "replace")


def codec_of(code_page: int) -> str:
    """Python's codec for a Windows code page; Western Windows (1252) for pages that Python does not know."""
    if name := _NAMED.get(code_page):
        return name
    for name in (f"cp{code_page}", f"iso8859-{code_page - 28590}"):
        try:
            return codecs.lookup(name).name
        except LookupError:
            continue
    return "cp1252"


_NAMED = {
    936: "gb18030",  # holds all of GBK and more
    949: "cp949",
    1200: "utf-16-le",
    1201: "utf-16-be",
    1361: "johab",
    10000: "mac-roman",
    10001: "shift-jis",
    10006: "mac-greek",
    10007: "mac-cyrillic",
    10029: "mac-latin2",
    10079: "mac-iceland",
    10081: "mac-turkish",
    20127: "ascii",
    20866: "koi8-r",
    20932: "euc-jp",
    20936: "gb2312",
    21866: "koi8-u",
    28591: "cp1252",  # as browsers do: real Latin-1 has control characters where people meant quotes
    50220: "iso2022-jp",
    50221: "iso2022-jp",
    50222: "iso2022-jp",
    50225: "iso2022-kr",
    51932: "euc-jp",
    51936: "gb2312",
    51949: "euc-kr",
    52936: "hz",
    54936: "gb18030",
    65000: "utf-7",
    65001: "utf-8",
}
