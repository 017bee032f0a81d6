"""Build the reader's inputs: a claim, and the few sentences of the evidence that bear on it.

The same code serves training and detection. Nothing here runs a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator
from tokenizers import Tokenizer

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.template import Template, read_template
from truthlens.detection.models.inputs.lexical import EvidenceIndex, index_evidence, keys_of
from truthlens.detection.models.inputs.selection import context_scores
from truthlens.detection.models.inputs.tokens import Ids, encode
from truthlens.text.claims.claims import units
from truthlens.text.words import words


class ReaderFormat(BaseModel):
    """How much the reader reads, in its own tokens; part of its manifest.

    ``sentences`` best matches are read, with the sentence before each of them where there is room. A claim of at most
    ``short_claim_words`` words is read behind the question that it answers. A checkpoint of others has a ``template``
    (``reader.template``) and reads at most ``max_tokens``; its tokenizer puts the special tokens.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    evidence_tokens: int = 96
    claim_tokens: int = 64
    query_tokens: int = 24
    sentences: int = 4
    short_claim_words: int = 8
    begin: str = "<s>"
    end: str = "</s>"
    pad: str = "<pad>"
    template: str | None = None
    max_tokens: int = Field(default=512, gt=0)

    @field_validator("template")
    @classmethod
    def _is_template(cls, template: str | None) -> str | None:
        if template is not None:
            read_template(template)
        return template


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """A sentence, line or table row: characters ``start`` to ``end`` of passage ``passage``, and its token ids.

    ``text`` is what the ids were made of; a row of a table is read with the heads of its cells.
    """

    passage: int
    start: int
    end: int
    ids: Ids
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class ReaderInput:
    """One input: ``ids`` has shape (tokens,), int64; ``claim`` is the slice of the claim's tokens.

    ``sentences`` are the numbers of the evidence sentences that were read, in document order. By a template, ``segments`` says
    which of two texts each token is of, and the slice is empty.
    """

    ids: NDArray[np.int64]
    claim: slice
    sentences: tuple[int, ...]
    segments: NDArray[np.int64] | None = None


class ReaderEvidence:
    """The passages of one exchange, cut into sentences and indexed by their words; read once for all claims."""

    def __init__(self, tokenizer: Tokenizer, fmt: ReaderFormat, passages: Sequence[str]) -> None:
        """Cut and tokenise ``passages``.

        Raises:
            ModelError: the tokenizer lacks the special tokens of ``fmt``.
        """
        self._tokenizer, self._fmt = tokenizer, fmt
        self._template = None if fmt.template is None else read_template(fmt.template)
        if self._template is None:
            self._begin, self._end = _special(tokenizer, fmt.begin), _special(tokenizer, fmt.end)
        added = tokenizer.get_added_tokens_decoder().values()
        self._marks = [each.content for each in added if each.special]
        self.sentences: list[EvidenceSentence] = []
        texts: list[str] = []
        for number, passage in enumerate(passages):
            for start, end, text in readable_units(passage):
                ids, offsets = encode(tokenizer, text)
                for first in range(0, len(ids), fmt.evidence_tokens):
                    piece = ids[first : first + fmt.evidence_tokens]
                    within = offsets[first : first + len(piece)]
                    part = text[int(within[0, 0]) : int(within[-1, 1])]
                    self.sentences.append(EvidenceSentence(number, start, end, piece, part))
                    texts.append(text)
        tokens = sum(len(each.ids) for each in self.sentences)
        self.share = min(1.0, fmt.evidence_tokens / max(1, tokens))
        """How much of the evidence one input has room for, 0..1."""
        self._index: EvidenceIndex = index_evidence([tuple(words(text)) for text in texts])
        self._owners = np.array([each.passage for each in self.sentences], dtype=np.int64)

    def input_for(self, claim: str, *, query: str = "") -> ReaderInput:
        """Return the input for ``claim``: what bears on it in document order, then the claim, led by a question that it needs."""
        fmt = self._fmt
        chosen = self._chosen(claim, query)
        short = query and len(claim.split()) <= fmt.short_claim_words
        if self._template is not None:
            asked_text = f"{self._cut(query, fmt.query_tokens)} " if short else ""
            return self._by_template(
                self._template, f"{asked_text}{self._cut(claim, fmt.claim_tokens)}", chosen
            )
        ids, _ = encode(self._tokenizer, claim)
        asked: Sequence[int] = ()
        if short:
            asked = [*encode(self._tokenizer, query)[0][: fmt.query_tokens], self._end]
        evidence = [token for number in chosen for token in self.sentences[number].ids]
        head = [self._begin, *evidence, self._end, self._end, *asked]
        ids = ids[: fmt.claim_tokens]
        whole = np.array([*head, *ids, self._end], dtype=np.int64)
        return ReaderInput(whole, slice(len(head), len(head) + len(ids)), tuple(chosen))

    def _by_template(self, template: Template, claim: str, chosen: list[int]) -> ReaderInput:
        while True:
            evidence = " ".join(self.sentences[number].text for number in chosen)
            made = self._tokenizer.encode(*template.fill(self._plain(evidence), self._plain(claim)))
            # Pieces that are tokenised together can make a few tokens more than apart.
            if len(made.ids) <= self._fmt.max_tokens or not chosen:
                ids, segments = np.array(made.ids, dtype=np.int64), np.array(made.type_ids, dtype=np.int64)
                return ReaderInput(ids, slice(0, 0), tuple(chosen), segments)
            chosen = chosen[:-1]

    def _plain(self, text: str) -> str:
        """Return ``text`` so that nothing in it is a special token: a "[SEP]" within the evidence separates nothing."""
        for mark in self._marks:
            text = text.replace(mark, f"{mark[:1]} {mark[1:]}")
        return text

    def _cut(self, text: str, most: int) -> str:
        """Return the first ``most`` tokens of ``text``."""
        _, offsets = encode(self._tokenizer, text, most=most)
        return text if len(offsets) <= most else text[: int(offsets[most - 1, 1])]

    def _chosen(self, claim: str, query: str) -> list[int]:
        """Return the numbers of the sentences to read: the best matches, what stands before them, then what is near."""
        if not self.sentences:
            return []
        keys = _keys(claim)
        scores = context_scores(self._index, [keys], query=_keys(query), owners=self._owners)[0]
        best = [int(place) for place in np.argsort(-scores, kind="stable") if scores[place] > 0.0]
        best = best[: self._fmt.sentences]
        near = [place + step for place in best for step in (-1, 1)]
        chosen: dict[int, None] = {}
        left = self._fmt.evidence_tokens
        for place in [*best, *near] or range(len(self.sentences)):
            if not 0 <= place < len(self.sentences) or place in chosen:
                continue
            size = len(self.sentences[place].ids)
            if size <= left:
                chosen[place] = None
                left -= size
        return sorted(chosen)


def format_of(tokenizer: Tokenizer) -> ReaderFormat:
    """Return the format with the special tokens that ``tokenizer`` has: those of RoBERTa and MPNet, or those of BERT."""
    if tokenizer.token_to_id("<s>") is not None:
        return ReaderFormat()
    return ReaderFormat(begin="[CLS]", end="[SEP]", pad="[PAD]")


def readable_units(passage: str) -> Iterable[tuple[int, int, str]]:
    """Yield the ranges of a passage's sentences, lines and table rows, each with the text to read it as.

    A row of a table whose head is known reads "head: cell; head: cell".
    """
    head: list[str] = []
    last_row_end = -1
    for unit in units(passage):
        text = passage[unit.start : unit.end]
        if not unit.row:
            head = []
            yield unit.start, unit.end, text
            continue
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if last_row_end < 0 or not head or "\n\n" in passage[last_row_end : unit.start]:
            head = cells
            yield unit.start, unit.end, text
        elif len(cells) == len(head):
            pairs = zip(head, cells, strict=True)
            yield unit.start, unit.end, "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)
        else:
            yield unit.start, unit.end, text
        last_row_end = unit.end


def _keys(text: str) -> list[str]:
    return [key for word in words(text) if not word.stop for key in keys_of(word)]


def _special(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_to_id(token)
    if number is None:
        raise ModelError(f"the reader's tokenizer has no token {token!r}; its manifest names another one")
    return int(number)
