"""Refining: a model reads the passages without a vector, those that searches wanted first.

Every batch is kept by itself, so a run that was stopped or killed continues where it was.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.ports import TruthStore
from findling.domain.resources import Resource, Share, StoredChunk
from findling.models.ports import Embedder
from findling.text.chunking.chunk_plan import passage

_BATCH = 16  # passages read and kept at a time: a killed run loses a second of a model

READ_UP_TO = "read up to "
"""Meta keys that start so tell up to which change a model had read its share when a run came to its end, and which."""

_PACE = "passages a second of "
"""Meta keys that start so tell the speed of the latest run of a model: status runs in another process."""

_LATELY, _NOTED_S = 32, 10.0
"""Batches whose speed stands for the rest, some 100 s in the background; seconds between two notes of it."""


class RefineProgress(NamedTuple):
    """A moment of a run: this run and earlier ones have read `done` of `total` passages, without those withheld.

    `speed` is the number of passages a second lately, rests included; 0 before the second batch.
    """

    done: int
    total: int
    seconds: float
    read: int = 0
    withheld: int = 0
    speed: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at this speed; `None` before there is any."""
        return max(self.total - self.done, 0) / self.speed if self.speed else None


class RefineReport(NamedTuple):
    """The counts of a run: passages read by the model, borrowed from other workspaces, withheld from the model."""

    read: int = 0
    borrowed: int = 0
    withheld: int = 0
    covered: int = 0
    chunks: int = 0
    seconds: float = 0.0


_GLANCE_S = 1.0
"""Longest rest without a look whether to stop: at a hundredth of the time, a batch of 1 s rests for 99."""

Borrow = Callable[[Sequence[bytes]], Mapping[bytes, bytes]]
"""Vectors of the same model in other workspaces, by digest."""


def refine(
    store: TruthStore,
    embedder: Embedder,
    *,
    among: Callable[[], Share] = Share,
    may_read: Callable[[Resource], bool] = lambda resource: True,
    borrow: Borrow = lambda digests: {},
    cpu_share: float = 1.0,
    on_progress: Callable[[RefineProgress], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RefineReport:
    """Have the model read every passage `among` a share that it may read, until none is left or `should_stop`.

    With less than 1, `cpu_share` is that of one core on average, whatever the number of threads. Raises ModelError.
    """
    model, pace = embedder.fingerprint, _Pace(store, embedder.fingerprint)
    # A server reads with cores that this process knows nothing of.
    clock = time.process_time if embedder.in_process else time.monotonic
    started = time.monotonic()
    read = borrowed = left = 0
    withheld: set[bytes] = set()
    while not should_stop():
        began, spent, seq = time.monotonic(), clock(), store.seq()
        batch = store.unembedded(model, _BATCH, skip=withheld, of=among())
        if not batch:
            covered, chunks = store.coverage(model, among())
            left = chunks - covered if withheld and seq == store.seq() else 0
            break
        withheld.update(stored.chunk.digest for stored in batch if not may_read(stored.resource))
        taken, known = _put_batch(store, embedder, [one for one in batch if one.chunk.digest not in withheld], borrow)
        read, borrowed = read + taken, borrowed + known
        covered, chunks = store.coverage(model, among())
        speed = pace.lately(covered)
        if on_progress is not None:
            total, seconds = max(chunks - len(withheld), covered), time.monotonic() - started
            on_progress(RefineProgress(covered, total, seconds, read, len(withheld), speed))
        _rest(began + least_s(clock() - spent, cpu_share), should_stop)
    covered, chunks = store.coverage(model, among())
    return RefineReport(read, borrowed, left or len(withheld), covered, chunks, time.monotonic() - started)


def _put_batch(store: TruthStore, embedder: Embedder, batch: list[StoredChunk], borrow: Borrow) -> tuple[int, int]:
    """Keep the vectors of some chunks; how many the model has read, and how many others had."""
    found = dict(borrow([stored.chunk.digest for stored in batch]))
    store.put_vectors(embedder.fingerprint, found)
    unknown = [stored for stored in batch if stored.chunk.digest not in found]
    store.put_vectors(embedder.fingerprint, embed_chunks(embedder, unknown))
    return len(unknown), len(found)


def least_s(cpu_s: float, cpu_share: float) -> float:
    """Seconds that work of so many CPU seconds takes, with its rest, for this share of one core."""
    return cpu_s / max(cpu_share, 0.01) if cpu_share < 1 else 0.0


def _rest(until: float, should_stop: Callable[[], bool]) -> None:
    while (left_s := until - time.monotonic()) > 0 and not should_stop():
        time.sleep(min(left_s, _GLANCE_S))


class _Pace:
    """The speed of a run over its latest batches, which it notes in the store from time to time."""

    def __init__(self, store: TruthStore, model: str) -> None:
        self._store, self._key = store, _PACE + model
        self._moments: deque[tuple[float, int]] = deque(maxlen=_LATELY)
        self._next_note = 0.0

    def lately(self, covered: int) -> float:
        """Passages a second up to now; 0 at the end of the first batch, most of which was the start of the model."""
        now = time.monotonic()
        self._moments.append((now, covered))
        then, before = self._moments[0]
        speed = max(covered - before, 0) / (now - then) if now > then else 0.0
        if now >= self._next_note:
            self._next_note = now + _NOTED_S * bool(speed)
            self._store.set_meta(self._key, f"{speed:.4g}")
        return speed


def note_read(store: TruthStore, model: str, among: Share, seq: int) -> None:
    """Note that a model has read its share up to a change."""
    store.set_meta(READ_UP_TO + model, f"{seq} {among.name}".strip())


def read_up_to(store: TruthStore, model: str, among: Share) -> int:
    """The change up to which a model has read a share; -1 where no run over it came to its end."""
    seq, _, name = (store.get_meta(READ_UP_TO + model) or "-1").partition(" ")
    return int(seq) if name == among.name else -1


def account_of(
    store: TruthStore, readers: Iterable[tuple[Embedder, Share]], *, is_running: bool, is_usual: bool = True
) -> dict[str, Any]:
    """The passages of their shares that models have read, as another process sees it, and what is said of the rest.

    Where it is not `is_usual` that they read in the background, nothing waits for power.
    """
    told, models, left, reading = list[dict[str, Any]](), list[Embedder](), 0, ""
    for model, share in readers:
        covered, chunks = store.coverage(model.fingerprint, share)
        models.append(model)
        told.append({"model": model.name, "passages": share.name, "read": covered, "of": chunks})
        if covered < chunks and read_up_to(store, model.fingerprint, share) != store.seq():
            reading = reading or model.fingerprint
            left += chunks - covered
    read, of = (sum(one[name] for one in told) for name in ("read", "of"))
    speed = float(store.get_meta(_PACE + reading) or 0) if is_running and left else 0.0
    return {
        "model": ", ".join(dict.fromkeys(model.name for model in models)),
        "read": read,
        "of": of,
        "withheld": of - read - left,
        "refining": is_running,
        "speed": speed,
        "seconds_left": round(left / speed) if speed else None,
        "waiting": "the machine runs on battery" if left and is_usual and not is_running and is_on_battery() else "",
        "sent_to": ", ".join(dict.fromkeys(model.host for model in models if model.host)),
        "readers": told,
    }


def embed_chunks(embedder: Embedder, chunks: Iterable[StoredChunk]) -> dict[bytes, bytes]:
    """The vectors of some chunks by digest, as a store keeps them."""
    import numpy as np  # a status has no use for it

    chunks = list(chunks)
    if not chunks:
        return {}
    texts = [passage(stored.resource, stored.chunk.heading, stored.text, stored.chunk.cid) for stored in chunks]
    rows = np.asarray(embedder.embed(texts), dtype="<f2")
    return {stored.chunk.digest: row.tobytes() for stored, row in zip(chunks, rows, strict=True)}


KeepRead = Callable[[str, Mapping[bytes, bytes], Sequence[int]], None]
"""Takes a model, its new vectors by digest, and the chunks that it should read next."""


_READ_AT_ONCE = 4
"""Passages a model reads between two looks at the clock."""

_FIRST_GUESS_S = 0.03
"""Less than what one passage takes on most machines: with less time than that, none is read."""


def read_in_time(
    store: TruthStore,
    keep: KeepRead,
    embedder: Embedder,
    share: Share,
    cids: Sequence[int],
    deadline: float,
    later: Sequence[int] = (),
) -> dict[int, bytes]:
    """The vectors of unread chunks of a model's share, the first ones first, as many as it reads by the deadline.

    `keep` takes the new vectors, and the chunks to be read next: those left, then those of `later`. Raises ModelError
    when the model cannot read.
    """
    chunks = [one for one in store.chunks(cids).values() if _is_of(share, one.resource.rid, store)]
    read: dict[bytes, bytes] = {}
    done, each_s = 0, _FIRST_GUESS_S
    while done < len(chunks) and (fits := int((deadline - time.monotonic()) / each_s)) > 0:
        # The first is timed alone; after that, as many as will fit.
        batch = chunks[done : done + min(fits, _READ_AT_ONCE if done else 1)]
        started = time.monotonic()
        read |= embed_chunks(embedder, batch)
        each_s = (time.monotonic() - started) / len(batch)
        done += len(batch)
    left = [stored.chunk.cid for stored in chunks if stored.chunk.digest not in read]
    keep(embedder.fingerprint, read, [*left, *later])
    return {one.chunk.cid: read[one.chunk.digest] for one in chunks if one.chunk.digest in read}


def _is_of(share: Share, rid: str, store: TruthStore) -> bool:
    return share.numbers is None or ((right := store.right_to(rid)) is not None and right.number in share)


def is_on_battery(supplies: Path = Path("/sys/class/power_supply")) -> bool:
    """Whether this machine runs on battery; one that does not tell does not."""
    try:
        if sys.platform == "win32":
            import ctypes

            told = ctypes.create_string_buffer(12)  # SYSTEM_POWER_STATUS, which begins with ACLineStatus
            return bool(ctypes.windll.kernel32.GetSystemPowerStatus(told)) and told.raw[0] == 0
        elif sys.platform == "darwin":
            import ctypes

            estimate = ctypes.CDLL("/System/Library/Frameworks/IOKit.framework/IOKit").IOPSGetTimeRemainingEstimate
            estimate.restype = ctypes.c_double
            return bool(estimate() != -2.0)  # kIOPSTimeRemainingUnlimited: on mains
        else:
            return _is_discharging(supplies)
    except (OSError, AttributeError):
        return False


def _is_discharging(supplies: Path) -> bool:
    told = ("type", "scope", "online", "status")
    facts = [[_line(supply / fact) for fact in told] for supply in supplies.iterdir()]
    lines = {online for type_, _, online, _ in facts if type_ != "Battery"}
    # A mouse has a battery, too, whose scope is that device.
    batteries = [status for type_, scope, _, status in facts if type_ == "Battery" and scope != "Device"]
    return "1" not in lines and ("Discharging" in batteries or ("0" in lines and bool(batteries)))


def _line(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
