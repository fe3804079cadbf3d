"""Memories: what the threshold in meaning keeps and keeps out, and what remembering and recalling cost.

    python bench/memories.py [--others 400] [--memories 1000] [--lines 20000]

The first part asks for 40 memories in other words, and 30 questions that have nothing to do with any of them, among
`--others` more. It compares the threshold with none, by which whatever the search finds by meaning is recalled, and
with (cos + 1) / 2 >= 0.7. The second part remembers the statements of `bench/memory_statements.py`: near copies that
are merged, updates that supersede, and pairs that are alike and must stay two. The third part remembers the 200 pairs
of `bench/data/memory_pairs.json` in one workspace: 100 updates, each with a question about it, and 100 that only look
alike. They were written apart from the rules. `lost` counts wrong merges and supersessions; `newer first` the questions
whose answer has the newer statement and the older one nowhere before it. The fourth part has `--memories` of them and a
log of `--lines` accesses. Figures are CPU time of this process; the best of three rounds. `--pairs` runs the third part
alone; `--misses` prints what it counts against the bars. `memory_pairs_later.json` has 100 pairs more, which were
written before the rules that follow the first 200.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice, product
from pathlib import Path

from bench.memory_statements import HALVES, different_pairs, statements
from findling.domain.results import Hit, SearchAnswer
from findling.pipelines.content.memories import THRESHOLD, closeness
from findling.service.content.memories import WorkspaceMemories
from findling.service.content.recalling import usual_cosines
from findling.service.engine.engine import Engine, open_engine
from findling.service.index.access_log import AccessLog
from findling.service.settings.settings import Settings

PAIRS = (
    ("The door code of the Leipzig office is in the blue binder at reception.", "how do I enter the Leipzig building"),
    ("Maria is allergic to peanuts and shellfish.", "which foods must she avoid"),
    ("We deploy on Tuesdays and Thursdays only, never before a holiday.", "when do releases go out"),
    ("The customer portal runs on PostgreSQL 15 behind PgBouncer.", "what database does the client website use"),
    ("My flat is on the third floor, the bell says Okafor.", "where do I live"),
    ("Jonas prefers short e-mails and hates phone calls.", "best way to contact Jonas"),
    ("The quarterly board meeting was moved to the second Monday of the month.", "when does the board meet"),
    ("Integration tests need a running Redis on port 6380.", "what must be started before the test suite"),
    ("Grandmother's recipe calls for two spoons of buckwheat honey.", 'which sweetener goes into the old family cake'),
    ("The car is due for inspection in November.", "when does the vehicle need its check-up"),
    ("User sessions expire after thirty minutes of inactivity.", "how long until someone is logged out automatically"),
    ("The cat needs her thyroid tablet every evening at eight.", "when does the pet get medication"),
    ("Invoices over 5,000 euros need a second signature from finance.", "who has to approve large bills"),
    ("Our staging cluster lives in the Frankfurt region.", "where is the test environment hosted"),
    ("Ada wants the report as a spreadsheet, not as a PDF.", "which file format does Ada like"),
    ("The garden tap must be turned off before the first frost.", "what to do outside before winter"),
    ("Backups are encrypted with the key in the hardware vault.", "how are the saved copies protected"),
    ("The wifi at the cabin only reaches the kitchen.", "where can I get internet in the holiday house"),
    ("Retry failed payments three times with a growing delay.", "what happens when a charge does not go through"),
    ("Tomás is learning Portuguese and likes to practise at lunch.", "which language is he studying"),
    ("The printer on floor two jams when the tray is full.", "why does printing get stuck"),
    ("Do not use the legacy billing endpoint, it rounds wrongly.", "which API gives incorrect amounts"),
    ('The school play is on the last Friday in June.', "date of the children's theatre performance"),
    ("Rent is paid on the first of the month by standing order.", "how does the landlord get his money"),
    ("The contract with Norlight ends in March and renews by itself.", "when does the Norlight agreement run out"),
    ("I run ten kilometres on Sundays along the canal.", "what sport do I do at the weekend"),
    ("Feature flags are stored in the config repository, not in the database.", "where do toggles live"),
    ("The dentist moved to Schiller street 14.", "address of my tooth doctor"),
    ("Logs older than ninety days are deleted every night.", "how long do we keep log files"),
    ("Keiko leads the mobile team since the reorganisation.", "who is in charge of the phone app developers"),
    ("The espresso machine is descaled every second Friday.", "how often is the coffee maker cleaned"),
    ("We chose Rust for the parser because memory safety mattered most.", "why was that programming language picked"),
    ("The spare key is with the neighbours on the left.", "I locked myself out, what now"),
    ("Passwords are hashed with argon2id.", "how do we store login secrets"),
    ("Flight to Lisbon leaves at 6:40 on the ninth.", "when do I travel to Portugal"),
    ("The intern's badge works only between eight and six.", 'access hours of the trainee'),
    ("Dark mode was the most requested feature in the last survey.", "what do users want most"),
    ("The violin has to be restrung before the concert.", "what does the instrument need"),
    ("The cache is warmed after each deploy by a cron job.", "how does the cache get filled"),
    ("Uncle Piet turns seventy in October.", "upcoming birthday of a relative"),
)  # fmt: skip
"""A memory, and a question that it answers in other words."""

FOREIGN = (
    "symptoms of vitamin D deficiency",
    "capital of Mongolia",
    "how do tides work",
    "history of the Ottoman empire",
    "best telescope for beginners",
    "chess opening against e4",
    "how to knit a scarf",
    "why is the sky blue",
    "rules of cricket",
    "how do vaccines work",
    "largest desert on earth",
    "who painted the night watch",
    "how to grow tomatoes in pots",
    "what is dark matter",
    "average height of giraffes",
    "how does a jet engine work",
    "poems by Emily Dickinson",
    "how to treat a snake bite",
    "speed of sound in water",
    "how are diamonds formed",
    "inflation in the 1970s",
    "how to play the ukulele",
    "life cycle of a butterfly",
    "what causes earthquakes",
    "tax treaties between countries",
    "plot of Hamlet",
    "how to fold a paper crane",
    "photosynthesis equation",
    "famous jazz trumpeters",
    "how to remove rust from a bicycle chain",
)
"""What none of them answers."""

FRESH = sorted((Path(__file__).parent / "data").glob("memory_pairs*.json"))

NAMES = "Ivo Lena Omar Petra Quinn Rosa Sven Tamar Ulf Vera Wim Xenia Yusuf Zoe Bela Cleo Dario Emmi Finn Greta".split()
HABITS = (
    "{} takes the early train on Wednesdays.",
    "{} keeps the projector remote in the second drawer.",
    "{} reviewed the pricing sheet and found two mistakes.",
    "{} wants the meeting notes by noon.",
    "{} borrowed the ladder and brings it back in spring.",
    "{} wrote the importer for the weather station.",
    "{} drinks tea without sugar.",
    "{} plays the cello in a quartet.",
    "{} has the keys of the bicycle shed.",
    "{} asked for a larger monitor.",
    "{} is away in the first week of August.",
    "{} moved the wiki to another server.",
    "{} found the leak below the sink.",
    "{} sends the newsletter every second Monday.",
    "{} grows chillies on the balcony.",
    "{} owes the team a cake.",
    "{} set up the alarm for the freezer.",
    "{} translates the manual into Finnish.",
    "{} prefers window seats.",
    "{} lent the camera to the museum.",
)
RULES: dict[str, Callable[[float, tuple[float, float]], bool]] = {
    "whatever is found by meaning": lambda cosine, usual: True,
    "(cos + 1) / 2 >= 0.7": lambda cosine, usual: (cosine + 1) / 2 >= 0.7,
    f"closeness >= {THRESHOLD}": lambda cosine, usual: closeness(cosine, usual) >= THRESHOLD,
}


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--others", type=int, default=400)
    options.add_argument("--memories", type=int, default=1000)
    options.add_argument("--lines", type=int, default=20_000)
    options.add_argument("--pairs", action="store_true")
    options.add_argument("--misses", action="store_true")
    given = options.parse_args()
    for model in () if given.pairs else ("none", "auto"):
        _measure_threshold(model, given.others)
    for half in () if given.pairs else HALVES:
        _measure_truth(half)
    for file, model in product(FRESH, ("none", "auto")):
        _measure_pairs(file, model, misses=given.misses)
    if given.pairs:
        return 0
    _measure_costs(given.memories, given.lines)
    return 0


def _measure_threshold(model: str, others: int) -> None:
    with _opened(model) as (engine, memories):
        rids = [memories.remember(text).rid for text, _ in PAIRS]
        for text in islice(_others(), others):
            memories.remember(text)
        if model != "none":
            engine.refine()
        wanted = [(rid, _by_meaning(engine, question)) for rid, (_, question) in zip(rids, PAIRS, strict=True)]
        foreign = [_by_meaning(engine, question) for question in FOREIGN]
        name = wanted[0][1].meaning["model"] or "instant vectors"
        print(f"{name}, {len(PAIRS)} memories among {others + len(PAIRS)}, by meaning alone")
        print(f"  {'':<30} found  found first  foreign questions that find something")
        for rule, passes in RULES.items():
            kept = [(rid, [hit.rid for hit in answer if _passes(hit, answer, passes)]) for rid, answer in wanted]
            found = sum(rid in hits for rid, hits in kept) / len(PAIRS)
            first = sum(hits[:1] == [rid] for rid, hits in kept) / len(PAIRS)
            noise = sum(any(_passes(hit, answer, passes) for hit in answer) for answer in foreign) / len(FOREIGN)
            print(f"  {rule:<30} {found:5.0%}  {first:11.0%}  {noise:5.0%}")


def _measure_truth(half: str) -> None:
    listed = statements(half)
    merged = right = superseded = wrong = 0
    with _opened("none") as (_, memories):
        rids: list[str] = []
        for one in listed:
            memory = memories.remember(one.text)
            rids.append(memory.rid)
            is_copy = memory.outcome == "updated"
            merged += is_copy and one.kind == "copy" and memory.rid == rids[one.of]
            wrong += is_copy and (one.kind != "copy" or memory.rid != rids[one.of])
            superseded += bool(memory.supersedes)
            right += one.kind == "update" and memory.supersedes == rids[one.of]
    copies, updates = (sum(one.kind == kind for one in listed) for kind in ("copy", "update"))
    pairs = list(dict.fromkeys(different_pairs(half)))
    with _opened("none") as (_, memories):
        alike = sum("updated" in [memories.remember(text).outcome for text in pair] for pair in pairs)
    print(f"{half}: {len(listed)} statements, {copies} near copies, {updates} updates")
    print(f"  copies merged {merged / copies:.3f}, merged wrongly {wrong}, of {len(pairs)} pairs that differ {alike}")
    print(f"  updates superseded {right / updates:.3f}, precision {right / superseded:.3f}")


def _measure_pairs(file: Path, model: str, *, misses: bool) -> None:
    data = json.loads(file.read_text("utf-8"))
    pairs = [(one["older"], one["newer"], one["question"]) for one in data["updates"]]
    pairs += [(one["first"], one["second"], "") for one in data["alike"]]
    random.Random(28).shuffle(pairs)
    told: dict[str, list[str]] = {name: [] for name in ("lost", "aside", "alike in review", "older first")}
    superseded = reviewed = 0
    with _opened(model) as (engine, memories):
        first = {older: memories.remember(older) for older, _, _ in pairs}
        second = {newer: memories.remember(newer) for _, newer, _ in pairs}
        text_of = {memory.rid: text for text, memory in [*first.items(), *second.items()]} | {"": "nothing"}
        for older, memory in first.items():
            if memory.outcome == "updated" or memory.supersedes:
                told["lost"].append(f"{older}: {memory.outcome}, supersedes {text_of[memory.supersedes]}")
        waiting = {(one.newer, one.older) for one in memories.review().pairs}
        if model != "none":
            engine.refine()
        for older, newer, question in pairs:
            old, new, pair = first[older], second[newer], f"{older} / {newer}"
            is_waiting = not {(new.rid, old.rid), (old.rid, new.rid)}.isdisjoint(waiting)
            if new.outcome == "updated" or (new.supersedes and (not question or new.supersedes != old.rid)):
                told["lost"].append(f"{pair}: {new.outcome}, supersedes {text_of[new.supersedes]}")
            elif question:
                superseded += bool(new.supersedes)
                reviewed += is_waiting
                told["aside"] += [] if new.supersedes or is_waiting else [pair]
            elif is_waiting:
                told["alike in review"].append(pair)
            if question:
                order = [one.rid for one in memories.recall(question).memories]
                is_first = new.rid in order and (old.rid not in order or order.index(new.rid) <= order.index(old.rid))
                told["older first"] += [] if is_first else [pair + (" (not found)" if new.rid not in order else "")]
    updates, alike = len(data["updates"]), len(data["alike"])
    print(f"{file.name}: {updates} updates and {alike} pairs that only look alike", end=", ")
    print(f"model {model}: lost {len(told['lost'])}")
    print(f"  updates superseded {superseded / updates:.2f}, in review {reviewed / updates:.2f}", end=", ")
    print(f"either {1 - len(told['aside']) / updates:.2f}; newer first {1 - len(told['older first']) / updates:.2f}")
    print(f"  alike in review {len(told['alike in review']) / alike:.2f}, {len(waiting)} pairs wait in all")
    for name, texts in told.items() if misses else ():
        print("\n".join([f"  {name}", *(f"    {text}" for text in texts)]))


def _measure_costs(count: int, lines: int) -> None:
    with _opened("none") as (_, memories):
        texts = [f"{text} Note {number}." for number, text in enumerate(islice(_endless(), count))]
        each = _cpu_ms(lambda: [memories.remember(text) for text in texts[:50]]) / 50
        print(f"remember, the first 50 of {count}: {each:.2f} ms each")
        for text in texts[50:-50]:
            memories.remember(text)
        each = _cpu_ms(lambda: [memories.remember(text) for text in texts[-50:]]) / 50
        print(f"remember, the last 50 of {count}: {each:.2f} ms each")
        questions = [question for _, question in PAIRS]
        ask = partial(_ask_all, memories, questions)
        ask()
        before = min(_cpu_ms(ask) for _ in range(3)) / len(questions)
        print(f"recall among {count}: {before:.2f} ms each")
        log = AccessLog(memories.folder)
        rids = [memory.rid for memory in memories.list()]
        for start in range(0, lines, 1000):
            log.append(rids[number % len(rids)] for number in range(start, start + 1000))
        after = min(_cpu_ms(ask) for _ in range(3)) / len(questions)
        print(f"recall with {lines} accesses that nobody has counted in: {after:.2f} ms each")
        print(f"counting them in: {_cpu_ms(memories.fold):.1f} ms")


def _ask_all(memories: WorkspaceMemories, questions: list[str]) -> None:
    for question in questions:
        memories.recall(question)


def _passes(hit: Hit, answer: SearchAnswer, passes: Callable[[float, tuple[float, float]], bool]) -> bool:
    usual = usual_cosines(hit.receipt.speed, answer.meaning["model"])
    assert usual is not None
    return passes(hit.receipt.vector_score, usual)


def _by_meaning(engine: Engine, question: str) -> SearchAnswer:
    from findling.domain.plans import Plan

    plan = Plan(mode="semantic", types=("memory",), route=False, budget_ms=0.0)
    return engine.search(question, plan=plan, limit=50, within="", refresh=False)


def _others() -> Iterator[str]:
    return (habit.format(name) for habit, name in product(HABITS, NAMES))


def _endless() -> Iterator[str]:
    while True:
        yield from _others()


def _cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


@contextmanager
def _opened(model: str) -> Iterator[tuple[Engine, WorkspaceMemories]]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        own = {"store.home": str(Path(place, "home")), "semantic.model": model, "semantic.query_budget_ms": 0.0}
        with open_engine(root, settings=Settings().override(own, "benchmark")) as engine:
            yield engine, WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))


if __name__ == "__main__":
    sys.exit(main())
