"""How often the lines shown of a hit hold the answer: questions on this project's own documentation.

Usage: python -m bench.snippets [FOLDER]

FOLDER holds `questions.tsv` (question, tab, a text that answers it) beside the documents; by default it is `docs`, and
the questions are those below. Counted are the hits among the first five whose passage holds the answer: does the
snippet hold it, too? Prints the share, and the CPU time of putting a page of ten hits together.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import findling
from findling.service.settings.settings import Settings

QUESTIONS = """
how long does a command wait for a process that is writing	up to 30 seconds
what happens to a damaged index file after a rebuild	30 days
who can read the manifest	only you can
where are indexes kept by default	in your data folder
is the project folder put into git	.gitignore
what if I move or rename a folder	--root ~/journal
does dropping a workspace delete memories	export it first
what happens when a quota is exceeded by files	are left out
are hits of a big workspace preferred	size of a
how large is a passage of a chat	160 tokens
what ends a passage of a conversation	for an hour
how does an edited message get updated	replaces what was
are system prompts of ChatGPT taken in	System prompts
is my export imported twice if I run it again	0 messages added
how many messages go into a batch	2,000 at a time
what is a message without an id known by	author, time and text
how do I find everything one person said	author:dee
what survives a power cut	survives a power cut
how does findling notice that files have changed	size and time of change
what happens when the disk is full	disk-full
can several processes write at once	One writer
which languages are parsed with tree-sitter	tree-sitter
why are Ruby and Perl left to patterns	crash
what is the truth of an index	SQLite is the truth
how is the id of a hit written	hexadecimal
when does a leg start from nothing	starts from
what does the background process do when indexing is done	low priority
how is the memory of indexing bounded	bounded by the batch
what may a project file set	context
how do I stop the daemon	serve --stop
how often does the daemon look for changed files	refresh_s
which port does the server listen on	8
how do I give a token to somebody	token create
how can an agent search my notes	findling mcp
how do I take a snapshot	snapshot
how do I restore an earlier state	restore
how do I share a workspace as one file	export
what does importance of a memory do	importance
how do I exclude files from the index	exclude add
how do I search only Python files	ext:py
""".strip()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    own = folder / "questions.tsv"
    lines = (own.read_text(encoding="utf-8") if own.exists() else QUESTIONS).splitlines()
    questions = [tuple(line.split("\t")[:2]) for line in lines if "\t" in line]
    for mode in ("keyword", "hybrid"):
        held = shown = lines_shown = 0
        spent = 0.0
        with tempfile.TemporaryDirectory() as home:
            wishes = {
                "store.home": home,
                "search.mode": mode,
                "semantic.refine": "never",
                "semantic.query_budget_ms": 0,
            }
            with findling.open(folder, settings=Settings().override(wishes, "bench")) as engine:
                engine.index()
                engine.search("warm up", refresh=False)
                for question, answer in questions:
                    wanted = " ".join(answer.split()).lower()
                    before = time.process_time()
                    found = engine.search(question, refresh=False)
                    spent += time.process_time() - before
                    for hit in found.hits[:5]:
                        whole = engine.fetch(hit.id).text
                        if wanted in " ".join(whole.split()).lower():
                            held += 1
                            snippet = " ".join(" ".join(line.text for line in hit.lines).split()).lower()
                            shown += wanted in snippet
                            lines_shown += len(hit.lines)
        share = shown / held if held else 0.0
        cost = spent / max(len(questions), 1) * 1000
        told = f"{shown} of {held} snippets hold the answer ({share:.0%})"
        print(f"{mode}: {told}, {lines_shown / max(held, 1):.1f} lines each; {cost:.1f} ms CPU a question")


if __name__ == "__main__":
    main()
