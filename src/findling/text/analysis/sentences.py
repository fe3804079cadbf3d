"""The small words that hold a sentence together, and whether a text is one."""

from __future__ import annotations

from findling.text.analysis.analysis import STOP_WORDS

__all__ = ["ENGLISH_WORDS", "GERMAN_WORDS", "SENTENCE_WORDS", "is_sentence"]

ENGLISH_WORDS = STOP_WORDS | frozenset(
    "what which who whom whose when where why how do does did can could should would about from without "
    "i me my we us our you your he she his her its has have had were been am".split()
)
GERMAN_WORDS = frozenset(
    "was wie wer wo wann warum welche welcher welches der die das und ist sind ein eine ohne mit von für".split()
)
SENTENCE_WORDS = (
    ENGLISH_WORDS
    | GERMAN_WORDS
    | frozenset(
        "que qui quoi quel quelle quand où comment pourquoi le la les des du un une et est sont sans avec pour dans "
        "qué quién cuál cuándo dónde cómo el los las una y es son sin con por para en "
        "che chi quale quando dove come perché il lo gli di e è senza per "
        "o os não sem com quem onde wat wie waarom hoe de het een en is zonder".split()
    )
)
"""Those of a few languages."""

_SOME_WORDS = 4
_MANY_WORDS = 8


def is_sentence(text: str) -> bool:
    """Whether the words are a question or a sentence rather than a few things to look for."""
    words = text.lower().split()
    if text.rstrip().endswith(("?", "？", "؟")) or len(words) >= _MANY_WORDS:
        return True
    return len(words) >= _SOME_WORDS and any(word.strip(".,;:!¿¡") in SENTENCE_WORDS for word in words)
