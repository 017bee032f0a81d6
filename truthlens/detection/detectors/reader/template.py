"""Read the template of a reader that is a checkpoint of others: where evidence and claim stand in what it reads. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

EVIDENCE, CLAIM, PAIR = "{evidence}", "{claim}", "{pair}"
SENTENCE_PAIR = f"{EVIDENCE}{PAIR}{CLAIM}"
"""What a cross-encoder for inference reads: premise and hypothesis, between the tokenizer's own separators."""

_MOST_CHARS = 4_000
_MARKS = re.compile(r"(\{evidence\}|\{claim\})")


@dataclass(frozen=True, slots=True)
class Template:
    """One text, or the two of a pair, each in pieces; a piece that is a mark is replaced."""

    texts: tuple[tuple[str, ...], ...]

    def fill(self, evidence: str, claim: str) -> tuple[str, str | None]:
        """Return the text, or the two texts, to tokenise; marks within ``evidence`` and ``claim`` are plain text."""
        values = {EVIDENCE: evidence, CLAIM: claim}
        first, *rest = ("".join(values.get(piece, piece) for piece in text) for text in self.texts)
        return first, rest[0] if rest else None


def read_template(text: str) -> Template:
    """Return the template that ``text`` writes: ``{evidence}`` and ``{claim}`` once each, ``{pair}`` between two texts.

    Raises:
        ValueError: it is no template; the message says what to write.
    """
    wrong = next((mark for mark in (EVIDENCE, CLAIM) if text.count(mark) != 1), None)
    if wrong is not None:
        raise ValueError(f"the template has {wrong} {text.count(wrong)} times; write it once")
    if text.count(PAIR) > 1:
        raise ValueError(f"the template has {PAIR} {text.count(PAIR)} times; a pair has two texts")
    if len(text) > _MOST_CHARS:
        raise ValueError(f"the template has {len(text)} characters, at most {_MOST_CHARS} are read")
    texts = text.split(PAIR)
    if not all(each.strip() for each in texts):
        raise ValueError(f"one text of the pair is empty; write {SENTENCE_PAIR}, or leave {PAIR} out")
    return Template(tuple(tuple(_MARKS.split(each)) for each in texts))
