"""Words that say nothing, in the language of the question."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from findling.text.analysis.analysis import terms
from findling.text.analysis.stemming import (
    empty_words,
    function_words,
    is_function_word,
    question_begin,
    question_language,
    word_lists,
)


def telling(text: str) -> str:
    words = text.split()
    return " ".join(word for word, is_empty in zip(words, empty_words(words), strict=True) if not is_empty)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("how do I delete the index", "delete index"),
        ("can you tell me where the index lies", "index lies"),
        ("I would like to know what the effects are", "effects"),
        ("what is the best way to learn piano", "learn piano"),
        ("please explain the query planner", "query planner"),
        ("how do I search the index", "search index"),
        ("how do I find files", "find files"),
        ("explain plan", "explain plan"),
        ("my internet is not working", "internet working"),
        ("don't panic", "panic"),
        ("how do I What are two ways to start", "two ways start"),
        ("does anyone know How do you rotate the log", "rotate log"),
        ("growing tomatoes in a pot", "growing tomatoes pot"),
        ("Wie alt war Einstein", "alt Einstein"),
        ("kannst du mir sagen wo der Schlüssel liegt", "Schlüssel liegt"),
        ("Unterlagen für die Steuerberaterin", "Unterlagen Steuerberaterin"),
        ("Türkiye nerede", "Türkiye"),
        ("¿Dónde está la biblioteca", "biblioteca"),
        ("¿Cómo cambio el fondo", "cambio fondo"),
        ("Miten vaihdan taustakuvan", "vaihdan taustakuvan"),
        ("Hogyan nyomtatok", "nyomtatok"),
        ("पृष्ठभूमि कैसे बदलें", "पृष्ठभूमि बदलें"),
        ("لماذا لا تعمل الطابعة", "تعمل الطابعة"),
        ("где находится библиотека", "находится библиотека"),
    ],
)
def test_words_of_asking_are_left_out(question: str, left: str) -> None:
    assert telling(question) == left


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("war crimes in Ukraine", "war crimes Ukraine"),
        ("mit license", "mit license"),
        ("IT support", "IT support"),
        ("US visa rules", "US visa rules"),
        ("songs by The Who", "songs Who"),
        ("tell me about The Who live", "Who live"),
        ("the `with` statement", "`with` statement"),
        ("what's D", "D"),
        ("go modules", "go modules"),
    ],
)
def test_names_and_words_of_another_language_stay(question: str, left: str) -> None:
    assert telling(question) == left


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Làm thế nào để thay đổi hình nền", "Làm thay đổi hình nền"),
        ("lam the nao de thay doi hinh nen", "lam thay doi hinh"),
        ("Ổ cứng ở đâu", "Ổ cứng"),
        ("hình nền", "hình nền"),
        ("hur många dagar har ett år", "många dagar år"),
        ("¿Cómo se prepara el té verde", "prepara té verde"),
        ("quand cultiver du maïs", "cultiver maïs"),
        ("où était-il après", ""),
    ],
)
def test_a_word_that_differs_from_a_small_one_by_its_accents_stays(question: str, left: str) -> None:
    assert telling(question) == left
    assert telling(normalize("NFD", question)) == normalize("NFD", left)


def test_small_words_with_accents_are_small_words() -> None:
    for language in function_words():
        small = function_words()[language][0]
        assert all(terms(word)[-1] in small for word in word_lists()["accented"][language]), language


@pytest.mark.parametrize("question", ["The Who", "to be or not to be", "is not", "WHAT IS THIS"])
def test_a_question_of_nothing_else_is_empty_all_over(question: str) -> None:
    assert telling(question) == ""


def test_capitals_change_nothing() -> None:
    assert telling("WHAT IS THE CAPITAL OF MONGOLIA") == "CAPITAL MONGOLIA"


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("wo liegt Berlin", "german"),
        ("was kostet das", "german"),
        ("quand part le train", "french"),
        ("l'arrière-plan", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_question(question: str, language: str) -> None:
    assert question_language(question) == language


def test_a_model_reads_the_question_without_the_request() -> None:
    assert question_begin("can you tell me where the index lies".split()) == 4
    assert question_begin("where does the index lie".split()) == 0


def test_the_lists_hold_terms_as_texts_give_them() -> None:
    for small, requests in function_words().values():
        assert all(terms(word) == [word] for word in (*small, *requests))
    assert is_function_word("the")
    assert not is_function_word("index")
    assert word_lists()["languages"] == function_words()
