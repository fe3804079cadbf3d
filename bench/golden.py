"""The golden set that ships with findling: renew its snapshot of our documentation, or check the judgements.

    python bench/golden.py [--check]

Every section of the pages becomes one file below `src/findling/golden/files`, so that a judgement names a section and
does not depend on how texts are cut. The snapshot stays as it is until it is renewed on purpose: figures of two
versions compare only on the same files. Ends with 1 when a judged file is missing or a query has no judgement.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from findling.service.export.evaluating import GOLDEN_SET

REPOSITORY = Path(__file__).resolve().parents[1]
LEFT_OUT = ("modules.md",)
"""One line about everything: no judge could tell which of them are relevant."""

_FENCE_OR_HEADING = re.compile(r"^(```|# |## )", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, only look at the judgements")
    if not parser.parse_args().check:
        renew(GOLDEN_SET / "files")
    problems = list(find_problems(GOLDEN_SET))
    print("\n".join(problems) or "every query has a judgement, and every judged file is there")
    return 1 if problems else 0


def renew(files: Path) -> None:
    """Write the snapshot anew."""
    if files.exists():
        shutil.rmtree(files)
    pages = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    for page in pages:
        if page.name in LEFT_OUT:
            continue
        for name, text in split(page.read_text(encoding="utf-8")):
            target = files / page.stem.lower() / f"{name}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")


def split(page: str) -> Iterator[tuple[str, str]]:
    """The sections of a page, each below the title of the page; what comes before them is the introduction."""
    starts = []
    title, in_fence = "", False
    for mark in _FENCE_OR_HEADING.finditer(page):
        if mark[1] == "```":
            in_fence = not in_fence
        elif in_fence:
            continue
        elif mark[1] == "# ":
            title = page[mark.start() : page.index("\n", mark.start())]
        else:
            starts.append(mark.start())
    bounds = [0, *starts, len(page)]
    for start, end in pairwise(bounds):
        text = page[start:end].strip()
        if start == 0:
            text = re.sub(r"<!--.*?-->\s*", "", text)
            if text != title:
                yield "introduction", f"{text}\n"
        else:
            yield slug(text.partition("\n")[0]), f"{title}\n\n{text}\n"


def slug(heading: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower()))


def find_problems(golden: Path) -> Iterator[str]:
    queries = [json.loads(line)["_id"] for line in (golden / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = set()
    for qrels in sorted((golden / "qrels").glob("*.tsv")):
        for number, line in enumerate(qrels.read_text(encoding="utf-8").splitlines()[1:], 2):
            query, path, _ = line.split("\t")
            judged.add(query)
            if not (golden / "files" / path).is_file():
                yield f"{qrels}:{number}: there is no {path}"
    yield from (f"{query} has no judgement" for query in queries if query not in judged)


if __name__ == "__main__":
    raise SystemExit(main())
