"""Encodings by the names and numbers that documents give them, and the characters that come in two halves."""

from __future__ import annotations

import codecs
import re

__all__ = ["codec_of_charset", "codec_of_code_page", "decode_bytes", "paired_surrogates"]


def decode_bytes(data: bytes, code_page: int) -> str:
    """The text of bytes in a Windows code page; what the page lacks becomes a replacement character."""
    return data.decode(codec_of_code_page(code_page), "replace")


def codec_of_code_page(code_page: int) -> str:
    """Python's codec for a Windows code page; Western Windows (1252) for pages that Python does not know."""
    if name := _NAMED.get(code_page):
        return name
    for name in (f"cp{code_page}", f"iso8859-{code_page - 28590}"):
        try:
            return codecs.lookup(name).name
        except LookupError:
            continue
    return "cp1252"


def codec_of_charset(name: str) -> str:
    """Python's codec for what pages and mails mean by the name of a character set; empty when there is none."""
    try:
        codec = codecs.lookup(name.strip("\"' ")).name
    except (LookupError, ValueError):  # the latter for a name with a zero in it
        return ""
    return _WIDER_CODECS.get(codec, codec)


def paired_surrogates(text: str) -> str:
    """The text with characters beyond 16 bits made whole from their two halves; a half alone is none."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


_SURROGATE = re.compile("[\ud800-\udfff]")

# What these names mean in practice is the larger set around them, as every browser and mail program reads them.
_WIDER_CODECS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
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
