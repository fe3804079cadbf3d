"""Forms in PDF files: what was filled in, as `name: value`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]

from findling.sources.extraction.extracted import TextBuilder
from findling.sources.extraction.xml_events import Element, StopReadingError, read_elements

__all__ = ["decode_utf16", "field_line", "pdf_string", "write_form_data"]


def field_line(form: Any, widget: Any) -> str:
    """`name: value` of a form field; empty when nothing was filled in.

    Half-merged files have fields without a form around them; those say their name and value themselves.
    """
    if not form:
        name, value = (pdf_string(pdfium_c.FPDFAnnot_GetStringValue, widget, key).strip() for key in (b"T", b"V"))
        return _line(name, value)
    if pdfium_c.FPDFAnnot_GetFormFieldType(form, widget) in _CHOICES and not pdfium_c.FPDFAnnot_IsChecked(form, widget):
        return ""
    value = pdf_string(pdfium_c.FPDFAnnot_GetFormFieldValue, form, widget).strip()
    name = pdf_string(pdfium_c.FPDFAnnot_GetFormFieldAlternateName, form, widget) or pdf_string(
        pdfium_c.FPDFAnnot_GetFormFieldName, form, widget
    )
    return _line(name, value)


def write_form_data(builder: TextBuilder, document: Any) -> None:
    """Write the values of an XFA form; the pages of such a file often only ask to wait for Acrobat."""
    is_first = True

    def receive(element: Element, around: Sequence[Element]) -> None:
        nonlocal is_first
        if builder.full:
            raise StopReadingError
        if not element.text or not any(outer.name == "data" for outer in around):
            return
        if is_first:
            builder.place("form")
            builder.section("Form")
            is_first = False
        builder.line(_line(element.name, element.text))

    for index in range(max(0, pdfium_c.FPDF_GetXFAPacketCount(document))):
        if _packet_name(document, index) in _DATA_PACKETS:
            read_elements(_packet(document, index).decode("utf-8", "replace"), receive)
    builder.end_paragraph()


def pdf_string(read: Callable[..., int], *of: Any) -> str:
    """A string that pdfium hands out in UTF-16, after telling how many bytes it takes."""
    size = read(*of, None, 0)
    buffer = (ctypes.c_ushort * ((size + 1) // 2))()
    read(*of, buffer, size)
    return decode_utf16(memoryview(buffer)).rstrip("\0")


def decode_utf16(utf16: memoryview) -> str:
    """The text in 16-bit units; halves of pairs are left out."""
    return utf16.tobytes().decode("utf-16-le", "ignore")


_CHOICES = frozenset({pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON})
_DATA_PACKETS = (b"datasets", b"")
"""The packet with the values; a form in one piece has a packet without a name."""


def _line(name: str, value: str) -> str:
    return f"{name}: {value}" if name and value else value


def _packet_name(document: Any, index: int) -> bytes:
    size = pdfium_c.FPDF_GetXFAPacketName(document, index, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 1))
    pdfium_c.FPDF_GetXFAPacketName(document, index, buffer, size)
    return buffer.value


def _packet(document: Any, index: int) -> bytes:
    size = ctypes.c_ulong()
    if not pdfium_c.FPDF_GetXFAPacketContent(document, index, None, 0, size):
        return b""
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    pdfium_c.FPDF_GetXFAPacketContent(document, index, buffer, size.value, size)
    return buffer.raw[: size.value]
