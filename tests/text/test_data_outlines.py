"""The outlines of TeX, YAML and TOML files."""

from __future__ import annotations

import random

import pytest

from findling.text.chunking.data_outlines import DATA_OUTLINES, latex, toml, yaml
from findling.text.chunking.outlines import Outline


def titles(outline: Outline) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in outline.headings]


def lines(text: str, outline: Outline) -> list[str]:
    """The line that each heading begins at; fails when one begins within a line."""
    starts = [heading.start for heading in outline.headings]
    assert all(start == 0 or text[start - 1] == "\n" for start in starts)
    return [text[start:].split("\n", 1)[0] for start in starts]


def blocks(text: str, outline: Outline) -> list[str]:
    return [text[start:end] for start, end in outline.blocks]


def test_latex_sections() -> None:
    text = r"""\documentclass{article}
\title{A \textbf{Bold} Title\thanks{for nothing}}
\begin{document}
\begin{abstract}
Short.
\end{abstract}
  \section*{Intro \& {Aims}}\label{sec:intro}
text \section[short]{The {\em long} name}
% \section{Not this}
50\% off \subsection{Cost of
two lines}
\paragraph{Detail.} text
\begin{frame}[fragile]{A slide}
"""
    outline = latex(text)
    assert titles(outline) == [
        (1, "A Bold Title"),
        (4, "Abstract"),
        (4, "Intro & Aims"),
        (4, "The long name"),
        (5, "Cost of two lines"),
        (7, "Detail."),
        (7, "A slide"),
    ]
    assert lines(text, outline)[2:4] == [
        r"  \section*{Intro \& {Aims}}\label{sec:intro}",
        r"text \section[short]{The {\em long} name}",
    ]


def test_latex_blocks_hide_headings() -> None:
    verbatim = "\\begin{verbatim}\n\\section{No}\n\\begin{equation}\n\\end{verbatim}"
    formula = "\\begin{align*}\nx\n\\end{align*} % end"
    text = f"\\chapter{{One}}\n{verbatim}\n\\section{{Two}}\n{formula}\n\\begin{{minted}}"
    outline = latex(text)
    assert titles(outline) == [(3, "One"), (4, "Two")]
    assert blocks(text, outline) == [verbatim, formula]


def test_two_latex_headings_on_a_line_begin_at_different_offsets() -> None:
    outline = latex("\\chapter{A}\\section{B}\n")
    assert [heading.start for heading in outline.headings] == [0, 11]


FILLER = "".join(f"    filler{number}: value of the filler\n" for number in range(25))
DEEP_FILLER = FILLER.replace("    ", "        ")


def test_yaml_keys_with_nested_blocks() -> None:
    text = (
        f"version: 3\nservices:\n  web: &anchor # why\n{FILLER}  'data base':\n{FILLER}  small:\n    a: 1\n"
        f"name: x\nempty:\nlast:\n{FILLER}"
    )
    outline = yaml(text)
    assert titles(outline) == [(1, "services"), (2, "web"), (2, "data base"), (2, ""), (1, ""), (1, "last")]
    assert lines(text, outline) == [
        "services:",
        "  web: &anchor # why",
        "  'data base':",
        "  small:",
        "name: x",
        "last:",
    ]


def test_yaml_items_that_begin_with_their_name() -> None:
    item = FILLER.replace("    ", "  ")
    text = f"steps:\n- name: 'Check out' # first\n{item}- name: Build it\n{item}- uses: other\n{item}after: 1\n"
    outline = yaml(text)
    assert titles(outline) == [(1, "steps"), (2, "Check out"), (2, "Build it"), (2, ""), (1, "")]
    assert lines(text, outline)[3:] == ["- uses: other", "after: 1"]


def test_yaml_headings_go_four_deep() -> None:
    keys = "".join(f"{'  ' * depth}k{depth}:\n" for depth in range(7))
    outline = yaml(keys + "".join(f"{'  ' * 7}x{number}: {'y' * 40}\n" for number in range(30)))
    assert titles(outline) == [(depth + 1, f"k{depth}") for depth in range(4)]


def test_yaml_block_scalars() -> None:
    scalar = "run: |-  # shell\n  key:\n    nested: 1\n\n  - name: no\n" + "  more words\n" * 60
    text = f"{scalar}next: >\n  folded\nitems:\n  - |\n    one\n  - note: >2\n      two\n    z: 1\n"
    outline = yaml(text)
    assert titles(outline) == []
    assert blocks(text, outline) == [
        scalar.rstrip("\n"),
        "next: >\n  folded",
        "  - |\n    one",
        "  - note: >2\n      two",
    ]


def test_yaml_documents_end_their_sections() -> None:
    text = f"spec:\n{FILLER}---\nkind: Service\nspec:\n{FILLER}...\n"
    outline = yaml(text)
    assert titles(outline) == [(1, "spec"), (1, ""), (1, "spec"), (1, "")]
    assert lines(text, outline) == ["spec:", "---", "spec:", "..."]


def test_toml_tables() -> None:
    text = """title = "x"
[tool.ruff]
a = 1
[tool.ruff.lint]  # comment
select = [
  ["E"],
  ["F"]
]
[tool."a.b"]
[[products]]
[[products]]
  [products.'size']
[other]
"""
    outline = toml(text)
    assert titles(outline) == [
        (1, "tool.ruff"),
        (2, "lint"),
        (1, "tool.a.b"),
        (1, "products"),
        (1, "products"),
        (2, "size"),
        (1, "other"),
    ]
    assert lines(text, outline)[1] == "[tool.ruff.lint]  # comment"


def test_toml_strings_of_several_lines() -> None:
    basic = 'a = """\n[no]\nit\'s \\""" still\n"""'
    literal = "b = '''\n[neither]\n# x '''"
    text = f'# not """ a string\n{basic}\n[yes]\n{literal} # end\nc = "#" # and """ here\n[last]\nd = """ open\n[t]\n'
    outline = toml(text)
    assert titles(outline) == [(1, "yes"), (1, "last"), (1, "t")]
    assert blocks(text, outline) == [basic, literal]


@pytest.mark.parametrize("lang", sorted(DATA_OUTLINES))
def test_outlines_of_random_texts_are_in_order(lang: str) -> None:
    chance = random.Random(11)
    parts = [
        *("\n", "  ", "- ", "key:", "name: x", " |", "---", "[a.b]", "[[c]]", '"""', "'''", "#", '"', "[", "]", "%"),
        *("\\section{A}", "\\begin{verbatim}", "\\end{verbatim}", "\\title{", "}", "words " * 150, "\n    deep\n"),
    ]
    for _ in range(1000):
        text = "".join(chance.choices(parts, k=chance.randrange(60)))
        outline = DATA_OUTLINES[lang](text)
        starts = [heading.start for heading in outline.headings]
        assert starts == sorted(set(starts))
        assert all(0 <= heading.start < len(text) and heading.level >= 1 for heading in outline.headings)
        ends = [offset for block in outline.blocks for offset in block]
        assert ends == sorted(ends)
        assert not ends or ends[-1] <= len(text)


@pytest.mark.parametrize("lang", sorted(DATA_OUTLINES))
@pytest.mark.parametrize(
    "part", ["\\section{", "\\begin{verbatim}", "a:\n", "a: |\n", "- name: x\n", '"""\n', "'''", "[a]\n"]
)
def test_hostile_repetition_takes_linear_time(lang: str, part: str) -> None:
    assert DATA_OUTLINES[lang](part * 20_000 + "end").blocks is not None
