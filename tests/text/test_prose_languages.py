"""Languages of prose: told by small words and letters, and asked for by name or code."""

from __future__ import annotations

import random

import pytest

from findling.text.analysis import prose_languages
from findling.text.analysis.prose_languages import languages_of, names_of, spoken, told_languages
from findling.text.analysis.stemming import function_words

TEXTS = {
    "english": "The backup of the database runs each night, and it is kept on the server for a week.",
    "german": "Die Sicherung der Datenbank läuft jede Nacht, und sie wird auf dem Server abgelegt.",
    "french": "La sauvegarde de la base est faite chaque nuit, et elle est gardée sur le serveur pour une semaine.",
    "turkish": "Veritabanı her gece yedeklenir ve bu yedek bir hafta için sunucuda tutulur.",
    "russian": "Резервная копия базы делается каждую ночь, и она хранится на сервере, что бы ни было.",
    "japanese": "データベースのバックアップは毎晩行われ、サーバーに保存されます。",
    "chinese": "数据库每天晚上备份，备份保存在服务器上。",
    "korean": "데이터베이스는 매일 밤 백업되며 서버에 보관됩니다.",
    "georgian": "მონაცემთა ბაზის ასლი ყოველ ღამე კეთდება.",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items())
def test_a_sentence_tells_its_language(language: str, text: str) -> None:
    assert told_languages(text) == (language,)


def test_the_look_at_english_alone_tells_what_all_sums_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends early for most samples, so it may never end with another answer."""
    draw, words = random.Random(7), {name: own[:60] for name, (own, _) in function_words().items()}
    samples = [
        " ".join([*draw.choices(words["english"], k=draw.randrange(14)), *draw.choices(others, k=draw.randrange(14))])
        for others in words.values()
        for _ in range(40)
    ]
    early = [told_languages(sample) for sample in samples]
    taken = sum(prose_languages._is_surely_english(set(sample.split())) for sample in samples)
    monkeypatch.setattr(prose_languages, "_is_surely_english", lambda heard: False)
    assert [told_languages(sample) for sample in samples] == early
    assert 100 < taken < len(samples) / 2


def test_a_text_in_two_languages_has_both() -> None:
    assert set(told_languages(TEXTS["english"] * 40 + TEXTS["german"] * 20)) == {"english", "german"}


def test_minutes_of_one_page_in_two_languages_have_both() -> None:
    """The first 300 characters told the language of 860."""
    assert set(told_languages(TEXTS["german"] * 5 + "\n\n" + TEXTS["english"] * 5)) == {"english", "german"}


def test_a_few_foreign_words_are_no_language_of_a_text() -> None:
    assert told_languages(TEXTS["english"] * 80 + TEXTS["german"]) == ("english",)


@pytest.mark.parametrize(
    "text",
    ["", "42", "(.)", "٣٤ %", "release-1.2.3 x86_64", "ﬁ ﷺ", "Върху сървъра се пазят копия и те са на едно място."],
    ids=["nothing", "number", "signs", "digits", "names", "ligatures", "Bulgarian"],
)
def test_others_are_told_none(text: str) -> None:
    assert told_languages(text) == ()


def test_languages_have_names_and_codes() -> None:
    assert spoken(["DE", "german", "deu", "de-AT", "fr_CA"]) == ("german", "french")
    assert spoken(["python", "klingon", "be"]) == ("be",)
    assert sorted(names_of("english, german")) == ["de", "deu", "en", "eng", "english", "ger", "german"]


@pytest.mark.parametrize(
    ("lang", "declared", "text", "languages"),
    [
        ("html", "de-AT", "Rechnung 17", "german"),
        ("html", "en", TEXTS["german"], "german"),
        ("html", "be", "Сервер захоўвае копію, але не базу, і гэта ўсё, што ёсць.", "be"),
        ("de-DE", "", "Rechnung 17", "german"),
        ("German", "", TEXTS["english"], "german"),
        ("python", "", TEXTS["english"], ""),
        ("", "", TEXTS["english"], "english"),
    ],
)
def test_a_maker_is_believed_where_the_text_tells_no_other(lang: str, declared: str, text: str, languages: str) -> None:
    assert languages_of(lang, declared, text) == languages


def test_a_header_in_another_language_is_none_of_the_text() -> None:
    assert told_languages(TEXTS["english"] * 4 + TEXTS["german"] * 60) == ("german",)
