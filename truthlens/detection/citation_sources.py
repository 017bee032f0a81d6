"""What the answers of an exchange may cite: ids, parent ids, numbers and titles of its passages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.text.citations import (
    Labels,
    label_key,
    looks_like_label,
    shape_of,
    spelling_key,
    without_place,
    without_word,
)

# Ids are shown together or not at all, so that a few of them tell.
_LOOKED_UP = 8
_LONGEST_LABEL = 300
# "[2] …", "2. …", "Document 2: …" at the start of a line of a passage that has no id.
_NUMBERED_LINE = re.compile(
    r"^[ \t]{0,8}(?:[\[【(（](?P<mark>[\w.-]{1,40})[\])】）](?!\()|(?P<number>\d{1,3})[.)、:](?=\s))",
    re.MULTILINE,
)
# The backend's template shows them, or the backend made them itself.
_SHOWN_BY_BACKEND = (Provenance.DOCUMENTS, Provenance.ANSWER)


class Sources:
    """The labels of the passages of one exchange.

    Passages without an id count by the numbers that the prompt gave them: at the starts of their lines, and for the
    request's documents, which a chat template numbers from 0 or 1, by their position.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._ids: dict[str, tuple[int, ...]] = {}
        self._titles: dict[str, tuple[int, ...]] = {}
        self._numbers: dict[str, tuple[int, ...]] = {}
        for place, passage in enumerate(exchange.passages):
            checkpoint()
            for label in (passage.id, passage.parent_id):
                _add(self._ids, label, place)
            for title in _names(passage.title):
                _add(self._titles, title, place)
        if not self._ids:
            self._number(exchange.passages)
        self._spellings: dict[str, tuple[int, ...]] = {}
        for key, places in self._ids.items():
            self._spellings.setdefault(spelling_key(key), places)
        self._written = frozenset(
            label for each in exchange.passages for label in (each.id, each.parent_id) if label
        )
        self._shapes = frozenset(shape for key in self._ids if (shape := shape_of(key)))
        self.labelled = bool(self._ids) and _are_shown(exchange)
        """Whether passages carry ids that the prompt showed."""
        self.numbered = bool(self._numbers)
        """Whether passages without ids have numbers."""
        self.named = bool(self._titles)
        """Whether passages have titles."""

    @property
    def countable(self) -> bool:
        """Whether an id or a number that no passage has is wrong: passages have some of their own."""
        return bool(self._ids or self._numbers)

    @property
    def labels(self) -> Labels:
        """What tells the citations of a text apart."""
        return Labels(self.knows, self.resembles, self.is_id)

    def find(self, label: str) -> tuple[int, ...]:
        """Return the indices of the passages that a citation's label names, none where it names no passage."""
        if len(label) > _LONGEST_LABEL:
            return ()
        key = label_key(label)
        bare = without_word(key)
        for written in dict.fromkeys((key, bare, _plain_number(bare))):
            for table in (self._ids, self._numbers, self._titles):
                if written in table:
                    return table[written]
        for written in dict.fromkeys((key, without_place(key), bare, without_place(bare))):
            for name in _names(written):
                if label_key(name) in self._titles:
                    return self._titles[label_key(name)]
        return self._ids.get(without_place(key)) or self._spellings.get(spelling_key(key), ())

    def knows(self, label: str) -> bool:
        """Return whether a label names a passage."""
        return bool(self.find(label))

    def is_id(self, label: str) -> bool:
        """Return whether a label is the id of a passage, written as the passage has it."""
        return label in self._written

    def resembles(self, label: str) -> bool:
        """Return whether a label has the form of one of the ids."""
        return len(label) <= _LONGEST_LABEL and shape_of(label_key(label)) in self._shapes

    def _number(self, passages: Iterable[Passage]) -> None:
        for place, passage in enumerate(passages):
            checkpoint()
            for match in _NUMBERED_LINE.finditer(passage.text):
                label = match["mark"] or match["number"]
                if looks_like_label(label):
                    _add(self._numbers, label, place)
            if passage.provenance is Provenance.DOCUMENTS:
                _add(self._numbers, str(place + 1), place)
                if not place:
                    _add(self._numbers, "0", place)


def _add(table: dict[str, tuple[int, ...]], label: str, place: int) -> None:
    key = label_key(label)
    if not key or len(key) > _LONGEST_LABEL:
        return
    for written in {key, _plain_number(key)}:
        known = table.get(written, ())
        # Pieces of one document share its id; the first few are enough to look at.
        if place not in known and len(known) < _LOOKED_UP:
            table[written] = (*known, place)


def _plain_number(key: str) -> str:
    return key.lstrip("0") or "0" if key.isascii() and key.isdigit() else key


def _names(title: str) -> Iterator[str]:
    """Return the ways to name a document by its title: whole, as a file without folder, place or ending, as an address."""
    plain = title.strip()
    if not plain or len(plain) > _LONGEST_LABEL:
        return
    yield plain
    whole = without_place(plain)
    yield whole
    address = re.sub(r"^[a-z]+://(?:www\.)?", "", whole, flags=re.IGNORECASE).rstrip("/")
    yield address
    file = PurePosixPath(address.replace("\\", "/"))
    yield file.name
    if re.fullmatch(r"\.[A-Za-z]{2,4}", file.suffix):
        yield file.stem


def _are_shown(exchange: Exchange) -> bool:
    """Return whether the prompt shows one of the ids; a request whose messages are not known is believed to."""
    labels = [passage for passage in exchange.passages if passage.id or passage.parent_id][:_LOOKED_UP]
    if not exchange.messages or any(each.provenance in _SHOWN_BY_BACKEND for each in labels):
        return True
    if any(message.documents for message in exchange.messages):
        return True
    return any(
        label in message.text
        for message in exchange.messages
        for passage in labels
        for label in (passage.id, passage.parent_id)
        if label
    )
