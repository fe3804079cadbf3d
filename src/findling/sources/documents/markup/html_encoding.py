"""The characters of an HTML page: by its byte order mark, its own word, or what its bytes can be."""

from __future__ import annotations

import codecs
import re

from findling.sources.documents.charsets import codec_of_charset
from findling.sources.files.file_text import UnreadableError, decode

__all__ = ["decode_html"]

_HEAD_SIZE = 8192
_META = re.compile(rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"""\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)
# Python also knows codecs that are no character sets of pages, such as `unicode_escape` and `utf-7`.
_CHARACTER_SETS = re.compile(r"cp\d|iso8859|iso2022|koi8|mac|gb|big5|euc_|shift_jis|johab|hz|tis|ptcp|kz1048|utf-8")
_SEVEN_BIT_SETS = ("iso2022", "hz")
_MAX_WRONG_SHARE = 0.1  # of the characters beyond ASCII; a false character set gives half of them wrong


def decode_html(data: bytes) -> str:
    """The text of a page's bytes, whatever they say about themselves. Raises `UnreadableError`."""
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode_marked(data)
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


def _decode_marked(data: bytes) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :].decode(errors="replace")
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return data.decode("utf-32", errors="replace")
    return data.decode("utf-16", errors="replace")


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
