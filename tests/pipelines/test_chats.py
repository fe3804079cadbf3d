"""Messages on their way into the parts of their threads."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.domain.resources import Document
from findling.pipelines.content.chat_parts import kept_message, part_of_document, split_rid
from findling.pipelines.content.chats import Merge, arrivals
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.counts import tries

PLAN = ChunkPlan("semantic", 600)
START = 1_775_637_480.0


class Shelf:
    """A store of documents, and a count of what was written to it."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.written: list[list[str]] = []

    def put(self, documents: Iterable[Document], deleted: Iterable[str]) -> int:
        made = list(documents)
        self.written.append([document.resource.rid for document in made])
        self.documents |= {document.resource.rid: document for document in made}
        for rid in deleted:
            del self.documents[rid]
        return len(made)

    def take(self, *threads: Thread) -> tuple[int, int, int]:
        """Take threads in; how many messages were added, changed and known."""
        merge = Merge(sorted(self.documents), self.documents.get, self.put, PLAN)
        merge.add(list(arrivals(threads)))
        return merge.counts["added"], merge.counts["changed"], merge.counts["known"]

    def say(self, *messages: Message, id_: str = "talk") -> tuple[int, int, int]:
        return self.take(Thread("test", id_, messages, title="Talk"))

    def parts(self, id_: str = "talk") -> list[Document]:
        """The parts of a thread, from the first to the last as each names the next one."""
        own = {rid: d for rid, d in self.documents.items() if d.resource.fields["thread"] == f"test/{id_}"}
        at = [rid for rid, document in own.items() if "previous" not in document.resource.fields]
        found = []
        while at:
            found.append(own.pop(at[0]))
            following = found[-1].resource.fields.get("next")
            if following:
                assert own[following].resource.fields["previous"] == found[-1].resource.rid
            at = [following] if following else []
        assert own == {}
        return found

    def messages(self, id_: str = "talk") -> list[tuple[str, float | None, str]]:
        entries = [entry for part in self.parts(id_) for entry in part_of_document(part)[0].messages]
        return [(entry.id, entry.at, entry.shown) for entry in entries]


def message(number: int, text: str = "", at: float | None = None) -> Message:
    return Message(str(number), text or f"message {number}", "Ann", START + number * 60 if at is None else at)


def run(first: int, last: int) -> list[Message]:
    return [message(number) for number in range(first, last)]


def test_a_part_as_a_document() -> None:
    shelf = Shelf()
    messages = (
        Message("a", "Good morning", "Ann", START),
        Message("b", "hi\nthere", "Bob: the <2nd>", START + 61, "a"),
        Message("c", "later", "Ann"),
    )
    shelf.take(Thread("slack", "team/general", messages, title=" #general\n", tags=("work",), visibility=("user:ann",)))
    (document,) = shelf.documents.values()
    resource = document.resource
    assert (resource.rid, resource.type, resource.lang) == ("chat:slack/team/general/20260408-083800", "chat", "chat")
    assert (resource.title, resource.author, resource.tags) == ("#general", "Ann, Bob: the <2nd>", ("work",))
    assert resource.visibility == ("user:ann",)
    assert (resource.created_at, resource.updated_at) == (START, START + 61)
    assert resource.fields["thread"] == "slack/team/general"
    assert document.text == (
        "[2026-04-08 08:38] Ann: Good morning\n[2026-04-08 08:39] Bob the 2nd: hi\nthere\nAnn: later"
    )
    (chunk,) = document.chunks
    assert [(document.text[place.start :][:12], place.label, place.line) for place in chunk.places] == [
        ("[2026-04-08 ", "Ann, 2026-04-08 08:38", 0),
        ("[2026-04-08 ", "Bob: the <2nd>, 2026-04-08 08:39", 0),
        ("Ann: later", "Ann", 0),
    ]
    assert json.loads(resource.fields["messages"]) == [
        {"id": "a", "start": 0, "author": "Ann", "at": START},
        {"id": "b", "start": 37, "author": "Bob: the <2nd>", "at": START + 61, "reply_to": "a"},
        {"id": "c", "start": 78, "author": "Ann"},
    ]


def test_the_authors_of_a_part_are_all_who_have_said_something_in_it() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 3))
    assert shelf.parts()[0].resource.author == "Ann"
    others = enumerate(("Lima, Ana", "", "Bob", "Ann", "Bob"))
    shelf.say(*(Message(f"x{number}", "hi", author, START + number) for number, author in others))
    assert shelf.parts()[0].resource.author == "Ann, Bob, Lima Ana"


def test_parts_that_name_no_author_are_taken_up_as_they_are() -> None:
    """As parts were written before they named all authors."""
    shelf = Shelf()
    said = [Message(str(number), "hi", "Ann" if number % 2 else "Bob", START + number) for number in range(4)]
    shelf.say(*said)
    (rid, document), *_ = shelf.documents.items()
    shelf.documents[rid] = document._replace(resource=replace(document.resource, author=""))
    assert shelf.say(*said) == (0, 0, 4)
    assert shelf.documents[rid].resource.author == ""
    assert shelf.say(message(9)) == (1, 0, 0)
    assert shelf.documents[rid].resource.author == "Ann, Bob"


def test_what_is_known_is_not_written_again() -> None:
    shelf = Shelf()
    assert shelf.say(*run(0, 250)) == (250, 0, 0)
    written = len(shelf.written)
    assert shelf.say(*run(0, 250)) == (0, 0, 250)
    assert len(shelf.written) == written


def test_an_edited_message_takes_the_place_of_the_old_one() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 250))
    assert shelf.say(message(120, "edited")) == (0, 1, 0)
    assert len(shelf.written[-1]) == 1
    texts = [shown for *_, shown in shelf.messages()]
    assert len(texts) == 250
    assert texts[120].endswith("Ann: edited")


def test_a_message_that_was_moved_to_another_minute() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 5))
    assert shelf.say(message(1, at=START + 1000)) == (0, 1, 0)
    assert [id_ for id_, *_ in shelf.messages()] == ["0", "2", "3", "4", "1"]


def test_a_part_that_becomes_empty_goes() -> None:
    shelf = Shelf()
    shelf.say(message(0, "x" * 30_000, START + 0.1), message(1, at=START + 0.2), message(60))
    assert [len(part_of_document(part)[0].messages) for part in shelf.parts()] == [1, 2]
    assert shelf.say(message(0, at=START + 0.3)) == (0, 1, 0)
    assert [id_ for id_, *_ in shelf.messages()] == ["1", "0", "60"]
    assert len(shelf.parts()) == 1


def test_the_same_id_at_quite_another_time_is_another_message() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 250))
    assert shelf.say(message(3, at=START + 240 * 60)) == (1, 0, 0)


def test_what_comes_late_is_put_where_it_belongs() -> None:
    shelf = Shelf()
    shelf.say(*run(200, 400))
    assert shelf.say(*run(0, 50), message(1000, at=START + 300 * 60 + 1)) == (51, 0, 0)
    ids = [id_ for id_, *_ in shelf.messages()]
    assert ids[:50] == [str(number) for number in range(50)]
    assert ids[ids.index("300") + 1] == "1000"


def test_the_newest_first_makes_no_more_parts_than_the_oldest_first() -> None:
    shelf, other = Shelf(), Shelf()
    shelf.say(*run(0, 500)[::-1])
    other.say(*run(0, 500))
    assert shelf.documents == other.documents


def test_goes_do_not_matter() -> None:
    once, often = Shelf(), Shelf()
    once.say(*run(0, 730))
    for first in range(0, 730, 7):
        often.say(*run(first, min(first + 7, 730)))
    assert often.documents == once.documents


@pytest.mark.parametrize("length", [150, 1500])
def test_an_append_writes_the_same_whatever_the_length_of_the_thread(length: int) -> None:
    shelf = Shelf()
    shelf.say(*run(0, length))
    loaded: list[str] = []

    def load(rid: str) -> Document | None:
        loaded.append(rid)
        return shelf.documents.get(rid)

    merge = Merge(sorted(shelf.documents), load, shelf.put, PLAN)
    merge.add(list(arrivals([Thread("test", "talk", [message(length)])])))
    assert len(loaded) == 1
    assert len(shelf.written[-1]) <= 2


def test_parts_are_bounded() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 1000), *(message(2000 + n, "word " * 2000, START + n) for n in range(20)))
    for part in shelf.parts():
        entries = part_of_document(part)[0].messages
        assert len(entries) <= 100
        assert sum(len(entry.shown) for entry in entries[:-1]) < 20_000 or len(entries) == 1


def test_a_long_silence_ends_a_part_of_some_size() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 60), *run(200, 260), *run(400, 410), *run(600, 610))
    assert [len(part_of_document(part)[0].messages) for part in shelf.parts()] == [60, 60, 20]


def test_many_messages_within_one_second() -> None:
    shelf = Shelf()
    burst = [message(number, at=START + number / 1000) for number in range(350)]
    shelf.say(*burst)
    assert shelf.say(*burst) == (0, 0, 350)
    assert shelf.say(message(120, "edited", START + 0.12)) == (0, 1, 0)
    assert len(shelf.messages()) == 350


def test_messages_without_a_time_stay_behind_the_one_before_them() -> None:
    shelf = Shelf()
    untimed = [Message(f"u{number}", "hm", "Bob") for number in range(3)]
    said = [untimed[0], message(0), untimed[1], message(1), untimed[2]]
    assert shelf.say(*said) == (5, 0, 0)
    assert shelf.say(*said) == (0, 0, 5)
    assert [id_ for id_, *_ in shelf.messages()] == ["u0", "0", "u1", "1", "u2"]


def test_a_thread_without_times() -> None:
    shelf = Shelf()
    untimed = [Message(str(number), f"message {number}", "Bob") for number in range(250)]
    shelf.say(*untimed[:130])
    assert shelf.say(*untimed) == (120, 0, 130)
    assert [id_ for id_, *_ in shelf.messages()] == [one.id for one in untimed]
    assert shelf.parts()[0].resource.updated_at is None


def untimed(id_: str, text: str = "hm") -> Message:
    return Message(id_, text, "Bob")


def test_a_message_without_a_time_that_comes_later_goes_to_the_end_of_its_thread() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 250))
    assert shelf.say(untimed("u")) == (1, 0, 0)
    assert [id_ for id_, *_ in shelf.messages()][-2:] == ["249", "u"]
    assert not any("/1970" in part.resource.rid for part in shelf.parts())
    assert shelf.say(message(250), untimed("v")) == (2, 0, 0)
    assert [id_ for id_, *_ in shelf.messages()][-3:] == ["u", "250", "v"]


@pytest.mark.parametrize("place", [0, 20, 150, 249, 250])
def test_a_message_without_a_time_is_known_wherever_it_stands(place: int) -> None:
    """The thread is longer than a part, and what it follows in the next import is another message, or none."""
    shelf = Shelf()
    said = run(0, 250)
    said.insert(place, untimed("u"))
    shelf.say(*said)
    order = [id_ for id_, *_ in shelf.messages()]
    for others in ([], run(0, 1), run(249, 250), run(120, 122)):
        assert shelf.say(*others, untimed("u")) == (0, 0, len(others) + 1)
    assert shelf.say(untimed("u", "edited"), message(3)) == (0, 1, 1)
    assert [id_ for id_, *_ in shelf.messages()] == order
    assert [shown for id_, _, shown in shelf.messages() if id_ == "u"] == ["Bob: edited"]


def test_the_same_message_without_a_time_twice_in_one_import() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 120))
    assert shelf.say(untimed("u"), *run(120, 250), untimed("u"), untimed("v")) == (132, 0, 1)


def test_messages_with_times_do_not_have_the_whole_thread_read() -> None:
    shelf = Shelf()
    shelf.say(untimed("u"), *run(0, 1500))
    loaded: list[str] = []

    def load(rid: str) -> Document | None:
        loaded.append(rid)
        return shelf.documents.get(rid)

    merge = Merge(sorted(shelf.documents), load, shelf.put, PLAN)
    merge.add(list(arrivals([Thread("test", "talk", run(1495, 1501))])))
    assert (merge.counts["added"], merge.counts["known"], len(loaded)) == (1, 5, 2)


def test_a_title_that_is_said_anew_is_that_of_all_parts_and_none_is_no_news() -> None:
    shelf = Shelf()
    shelf.say(*run(0, 250))
    shelf.take(Thread("test", "talk", [message(250)]))
    assert {part.resource.title for part in shelf.parts()} == {"Talk"}
    shelf.take(Thread("test", "talk", [message(251)], title="Renamed", tags=("a",)))
    assert {(part.resource.title, part.resource.tags) for part in shelf.parts()} == {("Renamed", ("a",))}


def test_who_may_see_a_thread_does_not_widen_by_itself() -> None:
    shelf = Shelf()
    shelf.take(Thread("test", "talk", run(0, 250), visibility=("user:ann",)))
    shelf.take(Thread("test", "talk", [*run(250, 400), message(-5)]))
    assert {part.resource.visibility for part in shelf.parts()} == {("user:ann",)}
    shelf.take(Thread("test", "talk", [message(0)], visibility=()))
    assert {part.resource.visibility for part in shelf.parts()} == {()}


def test_threads_whose_names_begin_alike_stay_apart() -> None:
    shelf = Shelf()
    for id_ in ("a", "a/b", "a-b", "a/20260408-083800"):
        shelf.say(message(0, id_), id_=id_)
    for id_ in ("a", "a/b", "a-b", "a/20260408-083800"):
        assert [shown for *_, shown in shelf.messages(id_)] == [f"[2026-04-08 08:38] Ann: {id_}"]


def test_threads_that_take_turns() -> None:
    shelf = Shelf()
    turns = [Thread("test", "ab"[number % 2], [message(number)]) for number in range(300)]
    assert shelf.take(*turns) == (300, 0, 0)
    assert [len(shelf.messages(id_)) for id_ in "ab"] == [150, 150]


PASTED = "look:\n[2024-01-02 10:00] Bob: hi\n10:00 <ann> yo\n1/2/24, 10:00 - X: y\nNote: this\nend"


@pytest.mark.parametrize("at", [START, None])
def test_a_pasted_chat_is_one_message(at: float | None) -> None:
    entry = kept_message(Message("1", PASTED, "Ann", at))
    assert entry.shown.replace("\n ", "\n").endswith(f"Ann: {PASTED}")
    shelf = Shelf()
    shelf.say(*(Message(str(n), f"{n} {PASTED}", "Ann", None if at is None else START + n) for n in range(40)))
    text = shelf.parts()[0].text
    for part in shelf.parts():
        text = part.text
        starts = {row["start"] for row in json.loads(part.resource.fields["messages"])}
        assert {chunk.start for chunk in part.chunks} <= starts
        assert all(chunk.end == len(text) or chunk.end + 1 in starts for chunk in part.chunks)


def test_a_message_of_many_lines_that_look_like_messages() -> None:
    """Its text is built once, not once for every such line."""
    lines = [f"[2024-01-02 10:00] Bob: line {number}" for number in range(10_000)]
    shown = kept_message(Message("1", "\n".join(lines), "Ann", START)).shown
    assert shown == "[2026-04-08 08:38] Ann: " + "\n ".join(lines)


def test_what_is_no_text_is_taken_out() -> None:
    entry = kept_message(Message("1\x00", "a\r\nb\x00c\ud83d\ude00\ud83d\x1b[0m\u2028d", "An\nn\x07", START))
    assert entry[:4] == ("1", START, "An n", "")
    assert entry.shown == "[2026-04-08 08:38] An n: a\nbc😀[0m\nd"


def test_a_message_that_says_nothing_is_left_out() -> None:
    shelf = Shelf()
    assert shelf.say(message(0), Message("x", " \n", "Ann", START)) == (1, 0, 0)
    assert shelf.say(Message("x", "\t", "Ann", START), id_="other") == (0, 0, 0)
    assert len(shelf.documents) == 1


@pytest.mark.parametrize(
    "thread",
    [
        Thread("", "a", [message(0)]),
        Thread("a/b", "a", [message(0)]),
        Thread("a", "", [message(0)]),
        Thread("a", "two\nlines", [message(0)]),
        Thread("a", "x" * 1001, [message(0)]),
        Thread("a", "a", [Message("", "text")]),
        Thread("a", "a", [Message("\x00", "text")]),
        Thread("a", "a", [Message("1", "text", at=-1.0)]),
        Thread("a", "a", [Message("1", "text", at=float("nan"))]),
        Thread("a", "a", [Message("1", "text", at=1e15)]),
        Thread("a", "a", [message(0)], visibility=("ann",)),
    ],
)
def test_what_cannot_be_filed_is_refused(thread: Thread) -> None:
    with pytest.raises(InvalidValueError):
        list(arrivals([thread]))


def test_names_of_parts() -> None:
    assert split_rid("chat:slack/a/b/20260408-083800-12") == ("slack/a/b", "20260408-083800-12")
    for rid in ("file:slack/a/20260408-083800", "chat:slack/a/b", "chat:note"):
        assert split_rid(rid) is None


TIMES = st.integers(0, 40).map(lambda step: START + step / 4) | st.floats(START, START + 9000)


@settings(max_examples=tries(50, short=20), deadline=None)
@given(
    st.lists(st.tuples(TIMES, st.sampled_from([1, 1, 1, 4000])), min_size=1, max_size=150),
    st.integers(0, 1000),
    st.integers(1, 6),
)
def test_any_order_of_any_goes_gives_the_same_messages(said: Sequence[tuple[float, int]], seed: int, goes: int) -> None:
    """Each comes out once, in the order of the seconds, however they came in; also where parts are split all over."""
    messages = [Message(str(number), f"text {number} " * size, "Ann", at) for number, (at, size) in enumerate(said)]
    chance = random.Random(seed)
    shelf = Shelf()
    for _ in range(goes):
        shelf.say(*chance.sample(messages, chance.randint(0, len(messages))))
    shelf.say(*chance.sample(messages, len(messages)))
    found = shelf.messages()
    assert sorted(id_ for id_, *_ in found) == sorted(one.id for one in messages)
    times = [at for _, at, _ in found if at is not None]
    assert all(int(one) <= int(following) for one, following in pairwise(times))
    assert shelf.say(*messages) == (0, 0, len(messages))
    moved = [one._replace(text="edited") for one in messages]
    assert shelf.say(*moved) == (0, len(messages), 0)


@settings(max_examples=tries(40, short=15), deadline=None)
@given(st.lists(st.sampled_from([None, None, 0.0, 0.25, 1.0, 7.0]), min_size=1, max_size=150), st.integers(1, 60))
def test_messages_without_times_among_others(steps: Sequence[float | None], first: int) -> None:
    """An import that is repeated, or goes on after a part of it, finds every message where it was."""
    at, messages = START, []
    for number, step in enumerate(steps):
        at += step or 0.0
        size = 3000 if number % 9 == 0 else 1
        messages.append(Message(str(number), f"text {number} " * size, "Ann", None if step is None else at))
    shelf = Shelf()
    shelf.say(*messages[:first])
    assert shelf.say(*messages) == (max(len(messages) - first, 0), 0, min(first, len(messages)))
    assert shelf.say(*messages) == (0, 0, len(messages))
    assert [id_ for id_, *_ in shelf.messages()] == [one.id for one in messages]
