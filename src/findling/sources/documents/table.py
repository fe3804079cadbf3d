"""The formats findling reads besides plain text, as data. A search loads this, so it loads nothing."""

from __future__ import annotations

from findling.domain.values import record


@record()
class Format:
    """One format. `version` is raised whenever its extractor gives other text: its files are then read again.

    `untrusted` formats are parsed only in worker processes, within limits of time and memory.
    """

    title: str
    module: str
    gives: str
    places: str = ""
    version: int = 1
    untrusted: bool = True


FORMATS: dict[str, Format] = {
    "archive": Format("Archives (ZIP, TAR)", "data.archive_list",
        "the names and sizes of what they hold; no content is read", version=2),
    "csv": Format("CSV, TSV", "data.csv_data", "every row as `header: value`, delimiter and header found out",
        "line of the file", version=2, untrusted=False),
    "doc": Format("Word 97–2003", "legacy.word97", "paragraphs, tables as rows, notes, headers and text boxes",
        version=2),
    "docx": Format("Word (DOCX)", "office.docx",
        "paragraphs, headings, lists, tables as rows, notes, comments, text boxes; deleted text is left out",
        "page, where Word has noted page breaks"),
    "epub": Format("EPUB", "markup.epub", "chapters in reading order with their headings", "chapter", version=2),
    "html": Format("HTML", "markup.html",
        "main text with headings, lists, tables as rows, code; no scripts, styles or navigation", "line of the file",
        version=2),
    "json": Format("JSON, JSON Lines", "data.json_data", "every key and value with its path, also in damaged files",
        "line of the file", version=2, untrusted=False),
    "mail": Format("Mail (EML, MBOX, MHTML)", "mail.mail",
        "subject, sender, recipients, date, body (also from HTML), attachments listed and read",
        "message, attachment and the place in it"),
    "msg": Format("Outlook message (MSG)", "mail.msg", "as mail, body also from compressed RTF", "attachment"),
    "notebook": Format("Jupyter notebook", "data.notebook", "text and code of all cells, outputs trimmed", "cell",
        untrusted=False),
    "opendocument": Format("OpenDocument text and slides", "office.opendocument",
        "paragraphs, headings, lists, tables as rows, notes, comments", "slide", version=2),
    "pdf": Format("PDF", "office.pdf",
        "text by page, tables of figures as rows, bookmarks as headings, notes, values of forms", "page",
        version=3),
    "ppt": Format("PowerPoint 97–2003", "legacy.powerpoint97", "titles, text and notes of the slides", "slide"),
    "pptx": Format("PowerPoint (PPTX)", "office.pptx",
        "titles, text, tables as rows, diagrams, notes and comments of the slides", "slide"),
    "rtf": Format("RTF", "legacy.rtf", "paragraphs, tables as rows, notes", version=2),
    "spreadsheet": Format("Excel (XLSX, XLSB, XLS from Excel 2 on), OpenDocument sheets", "office.spreadsheets",
        "every row of every sheet as `header: value`", "sheet and cell", version=2),
    "sqlite": Format("SQLite database", "data.sqlite_data", "rows of every table as `column: value`, 10,000 of each",
        "table and row"),
    "subtitles": Format("Subtitles (SRT, VTT, SBV, ASS, LRC)", "data.subtitles",
        "what is said, by whom where it says so", "time", untrusted=False),
    "svg": Format("SVG", "markup.xml", "titles, descriptions and text", "line of the file"),
    "xml": Format("XML, RSS, Atom", "markup.xml", "text and attributes of every element, also in damaged files",
        "line of the file", version=2),
}  # fmt: skip
"""Formats by the name that stands in a resource's `lang`."""

VERSIONS = " ".join(f"{lang}:{FORMATS[lang].version}" for lang in sorted(FORMATS))
"""Versions of all extractors, which an index compares with its own."""
