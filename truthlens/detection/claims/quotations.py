"""Find sentences that an answer repeats word for word from the evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from truthlens.core.records.exchange import Passage
from truthlens.text.claims.claims import units
from truthlens.text.claims.clauses import refers_back

_LEAST_WORDS = 4
_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 400_000
_EDGES = " \t\r\n.,;:!?\"'“”‘’«»*_`()[]"


class Quotations:
    """The sentences of an exchange's passages; read when the first claim asks.

    A whole sentence is a quotation, of four words at least, where it stands under the same lead-in as in the answer: a part of one may lack its
    condition, an item of a list may be one of what is not allowed. One that begins with a pronoun is none, for it may speak of something else
    here, nor is a row of a table or a leaf of JSON. Case, white space and the signs at both ends do not count. At most the first 400,000
    characters are read.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages

    def find(self, text: str, context: str = "") -> tuple[int, tuple[int, int]] | None:
        """Return the passage's number and the characters of the sentence that ``text`` repeats, ``None`` where there is none.

        ``context`` is the lead-in or heading that ``text`` stands under in the answer, empty where it is no item of a list.
        """
        if refers_back(text) or len(_WORD.findall(text)) < _LEAST_WORDS:
            return None
        return self._sentences.get((_normal(text), _normal(context)))

    @cached_property
    def _sentences(self) -> dict[tuple[str, str], tuple[int, tuple[int, int]]]:
        found: dict[tuple[str, str], tuple[int, tuple[int, int]]] = {}
        room = _MOST_CHARACTERS
        for number, passage in enumerate(self._passages):
            text = passage.text[: max(room, 0)]
            room -= len(text)
            before = ""
            for unit in units(text):
                own = text[unit.start : unit.end]
                words = _normal(own)
                lead = text[slice(*unit.context)] if unit.context else before if _announces(before) else ""
                if words and not unit.row and not unit.code:
                    found.setdefault((words, _normal(lead)), (number, (unit.start, unit.end)))
                before = own
        return found


def _announces(text: str) -> bool:
    return text.rstrip(" *_").endswith((":", "："))


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_EDGES)
