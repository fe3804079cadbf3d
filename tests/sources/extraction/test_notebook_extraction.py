"""Notebooks as Markdown, cell by cell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from findling.sources.documents.data.notebook import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(notebook: object) -> Extracted:
    return extract(Source(json.dumps(notebook).encode(), "a.ipynb"))


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": list(outputs)}


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [text]}


def test_cells_in_order_with_their_places() -> None:
    notebook = {
        "nbformat": 4,
        "metadata": {"language_info": {"name": "R"}, "authors": [{"name": "Ada"}, {"name": "Grace"}]},
        "cells": [
            {"cell_type": "markdown", "source": ["Intro\n", "\n", "# The *title*\n", "text"]},
            code("x <- 1\nprint(x)\n", printed("1\n")),
            {"cell_type": "raw", "source": "raw words"},
        ],
    }
    extracted = read(notebook)
    assert extracted.text == (
        "Intro\n\n# The *title*\ntext\n\n```r\nx <- 1\nprint(x)\n```\n\n```output\n1\n```\n\nraw words"
    )
    assert [(place.label, extracted.text[place.start :][:5]) for place in extracted.places] == [
        ("cell 1", "Intro"),
        ("cell 2", "```r\n"),
        ("cell 3", "raw w"),
    ]
    assert (extracted.lang, extracted.title, extracted.author) == ("markdown", "The *title*", "Ada, Grace")
    assert extracted.fields["code_language"] == "r"
    assert [extracted.text[start:end][:4] for start, end in extracted.blocks] == ["```r", "```o"]


def test_a_comment_in_code_is_no_title() -> None:
    cells = [code("# not this"), {"cell_type": "markdown", "source": "```\n# nor this\n```\n\nUsage\n=====\n"}]
    assert read({"cells": cells}).title == "Usage"


def test_outputs_are_trimmed_and_pictures_left_out() -> None:
    figure = {"output_type": "display_data", "data": {"image/png": "iVBORw0", "text/plain": "<Figure size 1>"}}
    table = {"output_type": "execute_result", "data": {"text/html": "<b>a</b>", "text/plain": ["a  b\n", "1  2"]}}
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\x1b[0;31mlong\x1b[0m"]}
    text = read({"cells": [code("f()", figure, table, error)]}).text
    assert text == "```python\nf()\n```\n\n```output\na  b\n1  2\nKeyError: 'x'\n```"
    long = read({"cells": [code("f()", printed("".join(f"line {number}\n" for number in range(500))))]}).text
    assert "line 19\n…\n```" in long
    assert "line 20" not in long
    wide = read({"cells": [code("f()", printed("word " * 1000))]}).text
    assert len(wide) < 1100


def test_progress_bars_and_colours() -> None:
    bar = "\r".join(f"{number}%" for number in range(101)) + "\n\x1b[32mdone\x1b[0m\n"
    assert read({"cells": [code("f()", printed(bar))]}).text.endswith("```output\n100%\ndone\n```")


def test_fences_in_code_do_not_end_the_block() -> None:
    assert read({"cells": [code('"""\n```\nx\n```\n"""')]}).text.startswith("````python\n")


def test_embedded_pictures_are_left_out() -> None:
    source = f"before ![p](data:image/png;base64,{'QUJD' * 100}) after"
    assert read({"cells": [{"cell_type": "markdown", "source": source}]}).text == "before ![p]() after"


def test_the_third_format() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old title"]},
        {
            "cell_type": "code",
            "input": ["print 1"],
            "language": "python",
            "outputs": [{"output_type": "pyout", "text": ["1"]}, {"output_type": "pyout", "png": "x", "text": "<F>"}],
        },
    ]
    extracted = read({"nbformat": 3, "worksheets": [{"cells": cells}]})
    assert extracted.text == "## Old title\n\n```python\nprint 1\n```\n\n```output\n1\n```"
    assert extracted.title == "Old title"


def test_a_damaged_notebook_is_read_as_json() -> None:
    whole = json.dumps({"cells": [{"cell_type": "markdown", "source": ["some words"]}]})
    extracted = extract(Source(whole[:-4].encode(), "a.ipynb"))
    assert "cells[0].source: some words" in extracted.text
    assert extracted.lang == ""
    assert read({"cells": 5, "note": "odd"}).text == "cells: 5\nnote: odd"
    assert read(["no", "notebook"]).text == "no, notebook"


def test_values_of_the_wrong_type_do_no_harm() -> None:
    cells = [None, 3, {"cell_type": "code", "source": 5, "outputs": [None, {"output_type": []}]}, {"source": ["ok", 1]}]
    assert read({"cells": cells, "metadata": [], "worksheets": 1}).text == "ok"


def test_an_empty_notebook_has_no_text() -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        read({"cells": [], "metadata": {}})
