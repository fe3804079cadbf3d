"""Forms of a word are recognised in a vocabulary, one algorithm per script."""

from __future__ import annotations

import pytest

from findling.text.stemming import forms_prefix, same_stem, stem


@pytest.mark.parametrize(
    ("term", "forms", "strangers"),
    [
        ("connections", ["connect", "connected", "connection"], ["con", "connor", "connexion"]),
        ("using", ["use", "used", "uses"], ["user", "usher"]),
        ("happy", ["happiness"], ["happen"]),
        ("indices", ["indices"], ["index"]),
        ("книги", ["книга", "книгу"], ["книжный"]),
    ],
)
def test_forms_share_a_stem_and_a_prefix(term: str, forms: list[str], strangers: list[str]) -> None:
    assert same_stem(term, [*forms, *strangers]) == forms
    assert all(form.startswith(forms_prefix(term)) for form in forms)


@pytest.mark.parametrize("term", ["go", "c", "x509", "数据", "ab", "c++", "notepad++", "🚀"])
def test_short_and_foreign_terms_are_left_alone(term: str) -> None:
    assert stem(term) == term
    assert same_stem(term, [term, f"{term}s"]) == [term]
    assert term.startswith(forms_prefix(term))
