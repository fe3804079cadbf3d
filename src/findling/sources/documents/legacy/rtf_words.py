"""The words of RTF that matter for its text."""

from __future__ import annotations

__all__ = [
    "ASIDES",
    "CODE_PAGES_OF_CHARSETS",
    "FLAGGED_DESTINATIONS",
    "INFO_TEXTS",
    "INFO_TIMES",
    "SKIPPED_DESTINATIONS",
    "SYMBOLS",
    "TIME_UNITS",
]

SYMBOLS = {
    "bullet": "•",
    "emdash": "—",
    "emspace": " ",
    "endash": "–",
    "enspace": " ",
    "ldblquote": "“",
    "line": "\n",
    "lquote": "‘",
    "qmspace": " ",
    "rdblquote": "”",
    "rquote": "’",
    "tab": "\t",
}

ASIDES = frozenset("annotation footer footerf footerl footerr footnote header headerf headerl headerr shptxt".split())
"""Texts beside the main one."""

SKIPPED_DESTINATIONS = frozenset(
    "aftncn aftnsep aftnsepc atnauthor atndate atnicn atnid atnparent atnref atntime bkmkend bkmkstart colortbl"
    " datafield falt fldinst ftncn ftnsep ftnsepc generator listoverridetable listtable mmathPict nonesttables"
    " nonshppict objclass objdata objname panose pict pn pntxta pntxtb revtbl rsidtbl sn sp sv tc"
    " themedata upr xe".split()
)
"""Groups whose text is not for readers."""

FLAGGED_DESTINATIONS = frozenset(
    "annotation htmltag moMath moMathPara nesttableprops shpinst shppict shptxt ud".split()
)
"""Groups marked as optional that hold text all the same."""

INFO_TEXTS = frozenset("author keywords subject title".split())
INFO_TIMES = frozenset("creatim revtim".split())
TIME_UNITS = frozenset("yr mo dy hr min sec".split())

CODE_PAGES_OF_CHARSETS = {
    0: 1252,
    2: 1252,
    77: 10000,
    78: 10001,
    128: 932,
    129: 949,
    130: 1361,
    134: 936,
    136: 950,
    161: 1253,
    162: 1254,
    163: 1258,
    177: 1255,
    178: 1256,
    186: 1257,
    204: 1251,
    222: 874,
    238: 1250,
    254: 437,
    255: 850,
}
"""The encoding of a font's characters; a font of charset 1 takes that of the document."""
