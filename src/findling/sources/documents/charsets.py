"""Encodings by the names and numbers that documents give them, and the characters that come in two halves."""

from __future__ import annotations

import codecs
import re

from findling.sources.files.file_text import BYTE_ORDER_MARKS, UnreadableError, decode

# Browsers and mail programs read these names as the larger set around them.
_WIDER_CODECS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
# GB 18030 holds all of GBK and more. Real Latin-1 (28591) has control characters where people meant quotes.
_NAMED = {
    936: "gb18030", 949: "cp949", 1200: "utf-16-le", 1201: "utf-16-be", 1361: "johab", 10000: "mac-roman",
    10001: "shift-jis", 10006: "mac-greek", 10007: "mac-cyrillic", 10029: "mac-latin2", 10079: "mac-iceland",
    10081: "mac-turkish", 20127: "ascii", 20866: "koi8-r", 20932: "euc-jp", 20936: "gb2312", 21866: "koi8-u",
    28591: "cp1252", 50220: "iso2022-jp", 50221: "iso2022-jp", 50222: "iso2022-jp", 50225: "iso2022-kr",
    51932: "euc-jp", 51936: "gb2312", 51949: "euc-kr", 52936: "hz", 54936: "gb18030", 65000: "utf-7", 65001: "utf-8",
}  # fmt: skip
_HEAD_SIZE = 8192
_META = re.compile(rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"""\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)
# Python also knows codecs that are no character sets of pages, such as `unicode_escape` and `utf-7`.
_CHARACTER_SETS = re.compile(r"cp\d|iso8859|iso2022|koi8|mac|gb|big5|euc_|shift_jis|johab|hz|tis|ptcp|kz1048|utf-8")
_SEVEN_BIT_SETS = ("iso2022", "hz")
_MAX_WRONG_SHARE = 0.1  # of the characters beyond ASCII; a false character set gives half of them wrong


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


def decode_html(data: bytes) -> str:
    """The text of a page's bytes, whatever they say about themselves. Raises `UnreadableError`."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    if b"\0" in data:
        try:
            return decode(data)[0]
        except UnreadableError:
            data = data.replace(b"\0", b"")
    declared = _declared_charset(data[:_HEAD_SIZE])
    for charset in (declared,) if declared.startswith(_SEVEN_BIT_SETS) else ("utf-8", declared):
        if charset and (text := _decode_mostly(data, charset)) is not None:
            return text
    try:
        return decode(data)[0]
    except UnreadableError as error:
        raise UnreadableError("damaged", "not a text file") from error


def _declared_charset(head: bytes) -> str:
    """The codec for the character set that the page names, empty when it names none that exists."""
    declaration = _META.search(head) or _XML_DECLARATION.match(head)
    if not declaration:
        return ""
    codec = codec_of_charset(declaration[1].decode("ascii", "replace"))
    return codec if _CHARACTER_SETS.match(codec) else ""


def _decode_mostly(data: bytes, charset: str) -> str | None:
    """The text, if nearly all characters beyond ASCII make sense in the character set."""
    text = data.decode(charset, errors="replace")
    wrong = text.count("\ufffd")
    if not wrong:
        return text
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text if wrong <= _MAX_WRONG_SHARE * beyond_ascii else None
