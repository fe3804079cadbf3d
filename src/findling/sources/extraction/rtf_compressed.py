"""The compressed RTF of Outlook ([MS-OXRTFCP])."""

from __future__ import annotations

import struct

__all__ = ["decompress_rtf"]

_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096
_LARGEST = 16 << 20


def decompress_rtf(data: bytes) -> bytes:
    """The RTF in a compressed stream, as far as it can be unpacked; empty when it is none."""
    if len(data) < 16:
        return b""
    _, size, kind, _ = struct.unpack_from("<II4sI", data)
    if kind == _PLAIN:
        return data[16 : 16 + size]
    return _decompress(data, min(size, _LARGEST)) if kind == _COMPRESSED else b""


def _decompress(data: bytes, size: int) -> bytes:
    output = bytearray(_DICTIONARY)
    end = len(_DICTIONARY) + size
    at = 16
    while at < len(data) and len(output) < end:
        control = data[at]
        at += 1
        for bit in range(8):
            if not control >> bit & 1:
                output += data[at : at + 1]
                at += 1
                continue
            if at + 2 > len(data):
                return bytes(output[len(_DICTIONARY) : end])
            reference = data[at] << 8 | data[at + 1]
            at += 2
            back = (len(output) - (reference >> 4)) % _WINDOW
            if not back:  # a reference to the place of writing is the end
                return bytes(output[len(_DICTIONARY) : end])
            _copy(output, back, (reference & 0xF) + 2)
    return bytes(output[len(_DICTIONARY) : end])


def _copy(output: bytearray, back: int, count: int) -> None:
    """Repeat what was written `back` bytes ago, perhaps in this very call; before the start there are zeros."""
    for _ in range(count):
        output.append(output[-back] if back <= len(output) else 0)
