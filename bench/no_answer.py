"""Whether a score tells an answer from none: 200 questions that a tree answers, and 200 that it does not.

    python bench/no_answer.py [--work DIR] [--half tuning|report|all] [--save FOLDER]

The tree is the standard library of the running interpreter, without tests and installed packages. Half of the questions
with an answer are asked in plain words, half are names that one file alone defines. Half of those without one are
random letters, half are about recipes, sports, law and the like. `--half` asks every other question. The constants of
the scale were chosen after a look at the scores of all of them with instant vectors, so no half is unseen.

Four states: words alone, instant vectors, a third of the passages read by the model, all of them read. For each it
prints the share of questions without an answer whose best hit reaches the median score of the right answers (the bar
is 5 %), the share of them whose answer is empty, and how many right files come first. `--save` writes the collection
for `findling eval`.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import ast
import json
import random
import shutil
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from findling.pipelines.evaluation.evaluation import no_answer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

SEED = 14
LEFT_OUT = {"site-packages", "test", "tests", "idle_test", "__pycache__"}
PLAIN = """\
median of a list of numbers -> statistics.py
standard deviation of a sample -> statistics.py
read settings from an ini file with sections -> configparser.py
parse command line arguments and print usage -> argparse.py
find the shortest diff between two sequences -> difflib.py
compare two directories recursively -> filecmp.py
copy a whole directory tree -> shutil.py
delete a folder and everything inside it -> shutil.py
create a temporary file that vanishes when closed -> tempfile.py
match file names with shell wildcards -> fnmatch.py
expand ~ to the home directory of the user -> posixpath.py
cache the results of a function by its arguments -> functools.py
keep a priority queue in a list -> heapq.py
insert into a sorted list by binary search -> bisect.py
wrap a paragraph at 70 columns -> textwrap.py
pretty print nested dictionaries -> pprint.py
serialize python objects to bytes -> pickle.py
encode an object as json text -> json/encoder.py
decode json text into objects -> json/decoder.py
download a web page over http -> urllib/request.py
split a url into scheme, host and path -> urllib/parse.py
obey robots.txt when crawling -> urllib/robotparser.py
serve files of a folder over http -> http/server.py
remember cookies between requests -> http/cookiejar.py
send an e-mail through a mail server -> smtplib.py
fetch messages from an imap mailbox -> imaplib.py
retrieve mail with the post office protocol -> poplib.py
transfer files with ftp -> ftplib.py
parse an e-mail message with attachments -> email/parser.py
guess the mime type of a file by its extension -> mimetypes.py
read and write zip archives -> zipfile.py
extract files from a tar archive -> tarfile.py
compress data with gzip -> gzip.py
read csv rows into dictionaries -> csv.py
run a process and capture its output -> subprocess.py
start threads and wait for them -> threading.py
run a function later on a timer thread -> threading.py
pool of worker processes -> multiprocessing/pool.py
share memory between processes -> multiprocessing/shared_memory.py
run callables in a pool of threads -> concurrent/futures/thread.py
event loop that schedules coroutines -> asyncio/base_events.py
wait for several coroutines with a timeout -> asyncio/tasks.py
asynchronous lock and semaphore -> asyncio/locks.py
step through code in a debugger -> pdb.py
measure how long small code snippets take -> timeit.py
profile which functions take the most time -> cProfile.py
sort and print profiling statistics -> pstats.py
trace memory allocations -> tracemalloc.py
format an exception with its traceback -> traceback.py
write log records to a rotating file -> logging/handlers.py
configure loggers from a dictionary -> logging/config.py
unit test framework with assertions -> unittest/case.py
replace objects with mocks during tests -> unittest/mock.py
run the examples in docstrings as tests -> doctest.py
convert python source to tokens -> tokenize.py
walk the abstract syntax tree of a program -> ast.py
disassemble bytecode -> dis.py
inspect the signature of a function -> inspect.py
import modules from a zip archive -> zipimport.py
create a virtual environment -> venv/__init__.py
install pip without network access -> ensurepip/__init__.py
generate random numbers from a normal distribution -> random.py
shuffle a list in place -> random.py
generate secure tokens for passwords -> secrets.py
universally unique identifiers -> uuid.py
keyed hashing for message authentication -> hmac.py
base64 encode binary data -> base64.py
quoted printable encoding -> quopri.py
exact decimal arithmetic with rounding modes -> _pydecimal.py
rational numbers with numerator and denominator -> fractions.py
text calendar of a month -> calendar.py
parse a date string with a format -> _strptime.py
time zones from the system database -> zoneinfo/_zoneinfo.py
ip addresses and networks -> ipaddress.py
draw graphics with a turtle -> turtle.py
text entry and button widgets -> tkinter/__init__.py
dialog to choose a file to open -> tkinter/filedialog.py
dictionary that remembers default values -> collections/__init__.py
count how often each element occurs -> collections/__init__.py
abstract base classes for containers -> _collections_abc.py
generate the methods of a class from its annotated fields -> dataclasses.py
enumeration of named constants -> enum.py
with statement that suppresses exceptions -> contextlib.py
weak references as dictionary keys -> weakref.py
deep copy of an object -> copy.py
regular expression compiler -> re/_compiler.py
translate messages into other languages -> gettext.py
guess number formatting of a locale -> locale.py
open a web page in the browser -> webbrowser.py
read password from the terminal without echo -> getpass.py
complete names while typing in the interpreter -> rlcompleter.py
embedded database dump as sql text -> sqlite3/dump.py
key value database of strings on disk -> dbm/dumb.py
persistent dictionary of pickled objects -> shelve.py
watch sockets for readiness -> selectors.py
framework for network servers -> socketserver.py
remote procedure calls with xml -> xmlrpc/client.py
parse xml into a tree of elements -> xml/etree/ElementTree.py
parse html tags with callbacks -> html/parser.py
read apple property lists -> plistlib.py
"""
"""A question a line, and the file that answers it."""

FOREIGN = """\
blockchain consensus algorithm
sourdough bread recipe with rye flour
how long to roast a chicken in the oven
best way to peel garlic
vegetarian lasagna with spinach
chocolate cake without eggs
how to brew espresso at home
pickled cucumbers with dill
seasoning a cast iron pan
wine that goes with grilled salmon
offside rule in football
winner of the wimbledon final
how many players are in a rugby team
marathon training plan for beginners
olympic gold medal in figure skating
penalty shootout statistics of the world cup
golf swing tips for seniors
swimming technique for butterfly stroke
chess opening for black against queen's gambit
how to lower your heart rate while running
tenant's rights when the landlord raises the rent
statute of limitations for personal injury
how to contest a speeding ticket in court
difference between murder and manslaughter
trademark registration fees in europe
custody of children after divorce
inheritance tax on a house
supreme court ruling on abortion
witness testimony in criminal trials
contract law breach remedies
symptoms of vitamin d deficiency
treatment of migraine headaches
side effects of ibuprofen
vaccination schedule for infants
how to treat a sprained ankle
causes of high blood pressure
gluten intolerance and celiac disease
knee replacement surgery recovery
lung cancer screening guidelines
mediterranean diet and cholesterol
causes of the french revolution
who built the pyramids of giza
battle of waterloo casualties
fall of the roman empire
history of the ottoman sultans
cold war nuclear treaties
reign of queen victoria
viking settlements in greenland
the silk road and medieval trade
discovery of penicillin by fleming
photosynthesis in desert plants
migration of monarch butterflies
why do whales sing
life cycle of a star
plate tectonics and earthquakes
melting glaciers and sea level
diet of the giant panda
volcanoes in iceland
how bees make honey
dinosaur extinction asteroid
pruning roses in early spring
compost for tomato plants
growing orchids indoors
when to plant tulip bulbs
lawn fertilizer in autumn
training a puppy to stop biting
why is my cat not eating
aquarium filter for goldfish
horse riding lessons for children
how to groom a poodle
cheap flights to lisbon in october
hotels near the eiffel tower
visa requirements for japan
hiking trails in the dolomites
best beaches of sardinia
train journey across siberia
safari in kenya with kids
camping in norwegian fjords
museums in vienna on sunday
cruise to the caribbean islands
mortgage rates for first time buyers
how to invest in gold
inflation and central bank policy
retirement savings for freelancers
dividend stocks for passive income
credit card debt consolidation
unemployment benefits in germany
price of crude oil forecast
starting a bakery business
life insurance for smokers
mozart piano concertos
guitar chords for beginners
impressionist painters of paris
novels by jane austen
oscar for best actress
knitting pattern for a winter scarf
ballet steps for toddlers
watercolor painting of landscapes
jazz saxophone improvisation
shakespeare sonnets about love
"""
"""Questions about what no standard library is about."""


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--work", type=Path, help="keeps the tree and its index for the next run")
    options.add_argument("--half", choices=("tuning", "report", "all"), default="report")
    options.add_argument("--save", type=Path, help="write the collection here, for findling eval")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        work = given.work or Path(passing)
        tree = work / "tree"
        if not tree.exists():
            copy_library(tree)
        answered, unanswered = (half(questions, given.half) for questions in collection(tree))
        if given.save:
            save(given.save, tree, answered, unanswered)
        print(f"{len(answered)} questions with an answer, {len(unanswered)} without; bar: at most 5 % reach the median")
        before = None
        for number, (state, mode, share) in enumerate(STATES):
            home = work / f"home-{number}"
            if before is not None and not home.exists():
                shutil.copytree(before, home)
            before = home
            own = {
                "store.home": str(home),
                "search.refresh": "never",
                "search.mode": mode,
                "semantic.refine": "never",
                "semantic.query_budget_ms": 0.0,
            }
            with open_engine(tree, settings=Settings().override(own, "benchmark")) as engine:
                prepare(engine, share)
                report(state, engine, answered, unanswered)
    return 0


STATES = (
    ("words alone", "keyword", 0.0),
    ("instant vectors", "hybrid", 0.0),
    ("a third read", "hybrid", 0.33),
    ("all read", "hybrid", 1.0),
)
"""Name, mode, and the share of the passages that the model has read; each goes on from a copy of the last."""


def copy_library(target: Path) -> None:
    """Lay out the sources of the standard library."""
    source = Path(sysconfig.get_path("stdlib"))
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        if not LEFT_OUT.intersection(inside.parts):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)


def collection(tree: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Questions with the file that answers each, and questions with none."""
    chance = random.Random(SEED)
    plain = [tuple(line.split(" -> ")) for line in PLAIN.splitlines()]
    there = [(question, path) for question, path in plain if (tree / path).is_file()]
    names = chance.sample(sorted(names_defined_once(tree)), 100)
    nonsense = [gibberish(chance) for _ in range(100)]
    return [*there, *names], [(question, "") for question in [*nonsense, *FOREIGN.splitlines()]]


def names_defined_once(tree: Path) -> Iterator[tuple[str, str]]:
    """Names of functions and classes that one file alone defines, written as identifiers."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in sorted(tree.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                places[node.name].add(str(path.relative_to(tree)))
    for name, files in places.items():
        bare = name.strip("_")
        if len(files) == 1 and len(bare) > 7 and ("_" in bare or not (bare.islower() or bare.isupper())):
            yield name, files.pop()


def gibberish(chance: random.Random) -> str:
    """One to four words of random letters, some of which can be spoken."""
    words = []
    for _ in range(chance.randint(1, 4)):
        letters = ("bcdfghjklmnpqrstvwxz", "aeiouy") if chance.random() < 0.5 else ("asdfghjklqwertyuiopzxcvbnm",) * 2
        words.append("".join(chance.choice(letters[place % 2]) for place in range(chance.randint(5, 11))))
    return " ".join(words)


def half(questions: list[tuple[str, str]], which: str) -> list[tuple[str, str]]:
    """Every other question."""
    return questions if which == "all" else questions[which == "report" :: 2]


def save(folder: Path, tree: Path, answered: list[tuple[str, str]], unanswered: list[tuple[str, str]]) -> None:
    """Write the collection as `findling eval` reads it."""
    shutil.copytree(tree, folder / "files", dirs_exist_ok=True)
    (folder / "qrels").mkdir(exist_ok=True)
    rows = [f"q{number}\t{path}\t1" for number, (_, path) in enumerate(answered)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]), encoding="utf-8")
    for name, questions in (("queries", answered), ("unanswerable", unanswered)):
        lines = [json.dumps({"_id": f"{name[0]}{number}", "text": text}) for number, (text, _) in enumerate(questions)]
        (folder / f"{name}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")


def prepare(engine: Engine, share: float) -> None:
    """Index, and have the model read so much."""
    engine.index()
    if share:
        chunks = engine.status().chunks
        engine.refine(should_stop=lambda: share < 1 and engine.reading()["read"] >= share * chunks)


def report(state: str, engine: Engine, answered: list[tuple[str, str]], unanswered: list[tuple[str, str]]) -> None:
    """Ask every question and print one line."""
    right, first = [], 0
    for question, path in answered:
        hits = list(engine.search(question, limit=20, refresh=False))
        right.append(next((hit.score for hit in hits if hit.path == path), 0.0))
        first += bool(hits) and hits[0].path == path
    best = [
        max((hit.score for hit in engine.search(question, limit=1, refresh=False)), default=0.0)
        for question, _ in unanswered
    ]
    told = no_answer(right, best)
    print(
        f"{state:16} median of right answers {told.median:.2f}; {told.reaching:.1%} reach it, {told.empty:.1%} are "
        f"empty; right file first {first / len(answered):.1%}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
