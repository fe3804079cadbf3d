"""Meaning as users of the library meet it: found without a shared word, at once and refined, and told in the answer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import LockedError, ModelNotFoundError
from findling.domain.plans import Plan
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.embedding_run import RefineProgress
from findling.pipelines.indexing.freshness import UNSURE_NS
from findling.stores.lock import WriteLock

NOTES = {
    "nap.md": "The feline dozed off upon the rug.\n",
    "money.md": "Quarterly revenue rose by nine percent because prices went up.\n",
    "release.md": "To ship a version, push a tag and wait until the pipeline is green.\n",
    "bread.md": "Knead the dough, let it rise for two hours, then bake it in a hot oven.\n",
    "pool.md": "A connection pool hands out database connections and takes them back.\n",
}


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    values = {"store.home": str(tmp_path / "home"), "semantic.threads": 1, "semantic.query_budget_ms": 0.0}
    return findling.Settings().override(values, "test")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for name, text in NOTES.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def engine(tree: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    with findling.open(tree, settings=settings) as opened:
        yield opened


def paths(answer: findling.SearchAnswer) -> list[str]:
    return [hit.path for hit in answer]


def test_what_shares_no_word_is_found_the_moment_indexing_ends(engine: findling.Engine) -> None:
    answer = engine.search("cat sleeping on carpet")
    assert paths(answer)[:1] == ["nap.md"]
    assert answer.strategy == "hybrid"
    assert answer.meaning["speed"] == "instant"
    assert answer.meaning["coverage"] == 0
    receipt = answer.hits[0].receipt
    assert (receipt.keyword_rank, receipt.vector_rank, receipt.speed) == (0, 1, "instant")
    assert receipt.missing == ("cat", "sleeping", "carpet")


def test_refined_vectors_take_over_when_the_model_has_read_everything(engine: findling.Engine) -> None:
    engine.index()
    report = engine.refine()
    assert (report.read, report.covered, report.chunks) == (5, 5, 5)
    answer = engine.search("cat sleeping on carpet")
    assert paths(answer) == ["nap.md"]
    assert (answer.meaning["speed"], answer.meaning["model"], answer.meaning["coverage"]) == ("refined", "minilm", 1)
    assert answer.meaning["sent_to"] == []
    assert 0.3 < answer.hits[0].receipt.vector_score < 0.9
    assert engine.refine().read == 0


def test_gibberish_finds_nothing(engine: findling.Engine) -> None:
    engine.index()
    assert not engine.search("xyzzy quux plugh").hits
    engine.refine()
    assert not engine.search("xyzzy quux plugh").hits


def test_gibberish_in_other_letters_finds_nothing(tmp_path: Path, settings: findling.Settings) -> None:
    """Some of 400 passages were near it: letters have vectors, too."""
    words = "клавиатура экран Drucker Tastatur réseau écran बटन खिड़की ordinateur Netzwerk المفتاح शब्द".split()
    root = tmp_path / "words"
    root.mkdir()
    for number in range(400):
        text = " ".join(words[number * step % len(words)] for step in (1, 3, 5, 7, 11))
        (root / f"{number}.txt").write_text(f"{text} {number}\n", encoding="utf-8")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        for question in ("жщцфы пркстнл вфгхц", "qwrtzüßöä xyfghßö", "कखगघङचछ टठडढण", "ضصثقف غعهخح"):
            assert not engine.search(question).hits, question
        assert engine.search("экран клавиатура").hits


def test_scores_fall_and_parts_add_up(engine: findling.Engine) -> None:
    engine.index()
    engine.refine()
    answer = engine.search("database connection oven", plan=Plan(alpha=0.5))
    assert {"pool.md", "bread.md"} <= set(paths(answer))
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    for hit in answer:
        assert 0 <= hit.score <= 1
        for part in hit.receipt.parts:
            assert part.value == pytest.approx(part.weight * part.normalised)
        assert hit.score == pytest.approx(hit.receipt.recomputed(), abs=1e-3)
    sums = [sum(part.value for part in hit.receipt.parts) for hit in answer]
    assert sums == sorted(sums, reverse=True), "the parts rank, and the evidence scores"


def test_quotes_and_exclusions_hold_for_meaning_too(engine: findling.Engine) -> None:
    engine.index()
    engine.refine()
    assert not engine.search('"cat sleeping" carpet').hits
    assert paths(engine.search("feline -rug")) == []
    assert paths(engine.search('"the rug" feline')) == ["nap.md"]


def test_filters_hold_for_meaning_too(engine: findling.Engine, tree: Path) -> None:
    (tree / "sub").mkdir()
    shutil.copy(tree / "nap.md", tree / "sub" / "copy.txt")
    engine.index()
    engine.refine()
    filters = findling.Filters(ext=(".txt",))
    assert paths(engine.search("cat sleeping on carpet", filters=filters)) == ["sub/copy.txt"]
    assert not engine.search("cat sleeping on carpet", principals=()).hits


@pytest.mark.parametrize("refined", [False, True])
def test_a_deleted_file_is_gone_from_every_leg_at_once(engine: findling.Engine, tree: Path, refined: bool) -> None:
    engine.index()
    if refined:
        engine.refine()
    assert "nap.md" in paths(engine.search("cat sleeping on carpet"))
    (tree / "nap.md").unlink()
    assert "nap.md" not in paths(engine.search("cat sleeping on carpet"))
    assert "nap.md" not in paths(engine.search("feline", plan=Plan(mode="semantic")))


def test_modes(engine: findling.Engine) -> None:
    engine.index()
    engine.refine()
    assert engine.search("cat sleeping on carpet", plan=Plan(mode="keyword")).strategy == "keyword"
    assert not engine.search("cat sleeping on carpet", plan=Plan(mode="keyword")).hits
    answer = engine.search("oven for baking", plan=Plan(mode="semantic"))
    assert answer.strategy == "semantic"
    assert paths(answer)[0] == "bread.md"
    assert all(part.leg == "semantic" for hit in answer for part in hit.receipt.parts)


@pytest.mark.parametrize("fusion", ["rrf", "rrf_weighted", "recency", "weighted"])
def test_every_fusion_answers(engine: findling.Engine, fusion: str) -> None:
    engine.index()
    answer = engine.search("connection pool", plan=Plan(fusion=fusion))
    assert paths(answer)[0] == "pool.md"


@pytest.mark.parametrize(
    "plan",
    [Plan(boosts=True), Plan(collapse=False), Plan(diversity=0.7), Plan(adaptive_k=True), Plan(feedback=True)],
    ids=["boosts", "copies", "diversity", "adaptive_k", "feedback"],
)
def test_every_refinement_keeps_the_best_hit_and_falling_scores(engine: findling.Engine, plan: Plan) -> None:
    engine.index()
    answer = engine.search("connection pool", plan=plan)
    assert paths(answer)[0] == "pool.md"
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)


def test_nearly_equal_files_are_shown_once_with_the_others(engine: findling.Engine, tree: Path) -> None:
    text = "The nightly backup copies every table of base 7 to the second machine and checks it.\n" * 3
    (tree / "one.md").write_text(text)
    (tree / "two.md").write_text(text + "Once more.\n")
    (tree / "three.md").write_text(text.replace("second", "third"))
    (tree / "room").mkdir()
    (tree / "room" / "one.md").write_text(text.replace("7", "8"))
    engine.index()
    answer = engine.search("nightly backup", limit=5)
    shown = [{hit.path, *(one.rid.removeprefix("file:") for one in hit.passages)} for hit in answer]
    assert sorted(map(sorted, shown)) == [["one.md", "two.md"], ["room/one.md"], ["three.md"]]
    assert answer.total == 4
    assert len(engine.search("nightly backup", limit=5, plan=Plan(collapse=False))) == 4
    assert len(engine.search("nightly AND backup", limit=5)) == 4


def test_the_same_document_in_two_formats_is_one_hit_and_its_sentence_is_shown_once(
    engine: findling.Engine, tree: Path
) -> None:
    from tests.sources.extraction.test_docx_extraction import docx

    def written(paragraphs: list[str]) -> bytes:
        return docx("".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs))

    sentence = "The crane on the north quay is inspected every spring by the harbour master and two of his engineers."
    (tree / "crane.md").write_text(f"# The crane\n\n**{sentence}**\n")
    (tree / "crane.docx").write_bytes(written(["The crane", sentence]))
    filler = [" ".join(f"word{part}x{number}" for number in range(150)) + "." for part in range(12)]
    clause = "Disputes about turbines go to arbitration."
    (tree / "contract.docx").write_bytes(written([*filler[:6], clause, *filler[6:], clause]))
    engine.index()
    (crane,) = engine.search("harbour master inspects the crane", limit=5, mode="keyword")
    assert {crane.path, *(one.rid.removeprefix("file:") for one in crane.passages)} == {"crane.md", "crane.docx"}
    answer = engine.search("disputes about turbines", limit=5, mode="keyword")
    assert [(hit.path, [line.text for line in hit.lines]) for hit in answer] == [("contract.docx", [clause])]
    assert answer.total == 2


def test_many_copies_are_all_named_over_several_pages(engine: findling.Engine, tree: Path) -> None:
    text = "The nightly backup copies every table to the second machine and checks it.\n"
    for number in range(20):
        (tree / f"copy-{number}.md").write_text(text)
    engine.index()
    for size in (1, 2, 10):
        named: list[str] = []
        cursor = ""
        while True:
            page = engine.search("nightly backup", limit=size, cursor=cursor)
            named += [rid for hit in page for rid in (hit.rid, *(one.rid for one in hit.passages))]
            cursor = page.next_cursor
            if not cursor:
                break
        assert page.total == 20
        assert sorted(named) == sorted(f"file:copy-{number}.md" for number in range(20))


def test_the_model_reads_in_time_what_a_search_is_about(tree: Path, settings: findling.Settings) -> None:
    patient = settings.override({"semantic.query_budget_ms": 60_000.0}, "test")
    with findling.open(tree, settings=patient) as engine:
        answer = engine.search("cat sleeping on carpet")
        assert answer.hits[0].receipt.speed == "refined"
        read = engine.status().meaning["read"]
        assert 0 < read <= 5


def test_a_reader_writes_nothing_that_the_model_reads_on_its_way(tree: Path, settings: findling.Settings) -> None:
    patient = settings.override({"semantic.query_budget_ms": 60_000.0}, "test")
    with findling.open(tree, settings=patient) as engine:
        engine.index()
        asked = engine.prepare("cat sleeping on carpet").request
        answer = search(engine.opened.at(), asked)
        assert answer.hits[0].receipt.speed == "refined"
        assert engine.status().meaning["read"] == 0
        engine.explain("cat sleeping on carpet", "nap.md")
        assert 0 < engine.status().meaning["read"] <= 5


def test_a_reader_writes_no_leg_that_is_behind(engine: findling.Engine) -> None:
    time.sleep(2 * UNSURE_NS / 1e9)  # files that were written just now would be read again, and legs be written
    engine.index()
    engine.search("cat")  # brings the keyword leg in step
    engine.items.add([{"type": "decision", "title": "Fly lower", "rationale": "The aircraft needs less fuel."}])
    engine.refresh()
    asked = engine.prepare("cheaper flights with the plane").request
    before = {path: path.stat().st_mtime_ns for path in engine.home.rglob("*") if path.is_file()}
    legs = engine.opened.at()
    assert "decision" not in {hit.type for hit in search(legs, asked)}
    assert legs.wishes
    assert {path: path.stat().st_mtime_ns for path in engine.home.rglob("*") if path.is_file()} == before
    assert engine.search(asked).hits[0].type == "decision"


def test_nothing_is_read_twice(tree: Path, settings: findling.Settings, tmp_path: Path) -> None:
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        assert engine.refine().read == 5
        (tree / "moved").mkdir()
        (tree / "nap.md").rename(tree / "moved" / "dog.md")
        shutil.copy(tree / "bread.md", tree / "copy.md")
        engine.index()
        report = engine.refine()
        assert (report.read, report.covered, report.chunks) == (0, 6, 6)
    other = tmp_path / "other"
    shutil.copytree(tree, other)
    (other / "new.md").write_text("Something that nobody has read so far.\n")
    with findling.open(other, settings=settings) as engine:
        engine.index()
        report = engine.refine()
        assert (report.read, report.borrowed, report.covered) == (1, 5, 7)


def test_refining_can_be_stopped_and_goes_on(engine: findling.Engine, tree: Path) -> None:
    for number in range(150):
        (tree / f"n{number}.md").write_text(f"Note number {number} is about subject {number * 7}.\n")
    engine.index()
    seen: list[RefineProgress] = []
    first = engine.refine(on_progress=seen.append, should_stop=lambda: bool(seen))
    assert 0 < first.read < 155
    assert seen[-1].done == first.covered
    second = engine.refine()
    assert first.read + second.read == second.covered == 155


def test_only_one_process_refines(engine: findling.Engine) -> None:
    engine.index()
    lock = WriteLock(engine.home / "refine.lock")
    assert lock.acquire(0.0)
    assert engine.status().meaning["refining"]
    with pytest.raises(LockedError, match="another process"):
        engine.refine()
    lock.release()
    assert engine.refine().read == 5


def test_without_a_model_instant_vectors_serve(tree: Path, settings: findling.Settings) -> None:
    with findling.open(tree, settings=settings.override({"semantic.model": "none"}, "test")) as engine:
        answer = engine.search("cat sleeping on carpet")
        assert paths(answer)[:1] == ["nap.md"]
        assert not answer.degraded
        with pytest.raises(ModelNotFoundError):
            engine.refine()


def test_a_model_that_is_not_there_degrades_and_says_so(tree: Path, settings: findling.Settings) -> None:
    with findling.open(tree, settings=settings.override({"semantic.model": "no-such-model"}, "test")) as engine:
        answer = engine.search("connection pool")
        assert paths(answer)[0] == "pool.md"
        assert "no-such-model" in answer.degraded[0].what


def test_words_alone_when_there_are_no_vectors(tree: Path, settings: findling.Settings) -> None:
    bare = settings.override({"semantic.model": "none", "semantic.instant": False}, "test")
    with findling.open(tree, settings=bare) as engine:
        assert engine.search("connection pool").strategy == "keyword"
        answer = engine.search("connection pool", plan=Plan(mode="semantic"))
        assert answer.strategy == "keyword"
        assert "no vectors" in answer.degraded[0].what
        assert not list(engine.home.glob("vectors-*"))


@pytest.mark.parametrize("damage", ["truncate", "delete"])
def test_a_damaged_vector_leg_is_made_anew(tree: Path, settings: findling.Settings, damage: str) -> None:
    with findling.open(tree, settings=settings) as engine:
        engine.index()
        home = engine.home
    (folder,) = home.glob("vectors-*")
    for file in folder.iterdir():
        if file.name != "header.json":
            file.write_bytes(b"") if damage == "truncate" else file.unlink()
    with findling.open(tree, settings=settings) as engine:
        assert paths(engine.search("cat sleeping on carpet"))[:1] == ["nap.md"]


def test_repair_rebuilds_every_leg(engine: findling.Engine) -> None:
    engine.index()
    engine.refine()
    for folder in engine.home.glob("vectors-*"):
        shutil.rmtree(folder)
    engine.repair()
    assert paths(engine.search("cat sleeping on carpet")) == ["nap.md"]
    assert engine.search("cat sleeping on carpet").meaning["speed"] == "refined"


def test_the_model_reads_what_was_asked_for_then_prose_then_tests_and_change_logs(
    engine: findling.Engine, tree: Path
) -> None:
    """Also what is asked for while it reads, of which a batch of 16 knew nothing."""
    late = ["CHANGELOG.md", "tests/test_a.py", "vendor/a.py"]
    for name in [*late, *(f"n{number:02}.md" for number in range(30))]:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(f"This one is about {name}.\n")
    engine.index()
    store = engine.writer.store
    waiting = {stored.resource.path: stored.chunk.cid for stored in store.unembedded("minilm", 99)}
    usual = [path for path in waiting if path not in late]
    assert [*waiting] == usual + late
    store.want([waiting["n29.md"], waiting["vendor/a.py"]])

    def on_progress(progress: RefineProgress) -> None:
        if progress.read == 16:
            store.want([waiting["n28.md"]])

    engine.refine(on_progress=on_progress)
    path_of = {cid: path for path, cid in waiting.items()}
    (model,) = store.models()
    read = [path_of[row.cid] for row in store.vector_rows(model, 0)]
    first = ["n29.md", "vendor/a.py", *usual[:14], "n28.md"]
    assert read == first + [path for path in usual + late if path not in first]


def test_an_empty_answer_says_that_not_all_is_read_and_has_the_nearest_read_next(
    tree: Path, settings: findling.Settings
) -> None:
    """The first 20 were read for it within its time, and then the model went on with something else."""
    for number in range(100):
        (tree / f"n{number:03}.md").write_text(f"Loaf {number} of bread lies in the oven of baker {number * 7}.\n")
    unhurried = settings.override({"semantic.query_budget_ms": 60_000.0, "semantic.refine": "never"}, "test")
    with findling.open(tree, settings=unhurried) as engine:
        engine.index()
        answer = engine.search("orbital mechanics of spacecraft")
        assert not answer.hits
        (told,) = answer.notes
        assert told.endswith("% of the passages so far: ask again after findling refine"), "nobody reads by itself"
        assert engine.status().meaning["read"] == 20
        waiting = [stored.resource.path for stored in engine.writer.store.unembedded("minilm", 200)]
        nearest, rest = waiting[:60], waiting[60:]
        assert rest == sorted(rest)
        assert nearest != sorted(nearest), "those of the lowest numbers"
    with findling.open(tree, settings=settings.override({"semantic.refine": "background"}, "test")) as engine:
        (told,) = engine.search("orbital mechanics of spacecraft").notes
        assert told.endswith(": ask again in a while, or after findling refine")


def test_an_empty_answer_says_nothing_of_a_model_that_has_read_everything(engine: findling.Engine) -> None:
    engine.index()
    engine.refine()
    answer = engine.search("orbital mechanics of spacecraft")
    assert (len(answer.hits), answer.notes) == (0, ())
