"""Draw, encode and pad batches of claims; related claims stay in one batch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderFormat, ReaderInput
from truthlens.lab.data.dataset import Example
from truthlens.lab.reader.claims import UNSUPPORTED, ClaimSets, IdleSentences, LabelledClaim
from truthlens.lab.reader.recipe import ReaderRecipe, Stage

EncodedSet = list[tuple[LabelledClaim, ReaderInput]]
"""Claims that belong together, each with its input."""

_DRAWN_AT_ONCE = 12
_IDLE_SOURCES = frozenset({"paws_wiki", "onestop", "wikisplit", "clapnq", "e2e_attr", "fm2"})


@dataclass(frozen=True, slots=True, eq=False)
class ClaimBatch:
    """Padded claims: ``input_ids``, ``attention_mask`` and ``claim_mask`` have shape (batch, tokens), the rest (batch,).

    ``labels`` are those of ``claims``; ``sets`` numbers the set that each claim is of.
    """

    input_ids: Tensor
    attention_mask: Tensor
    claim_mask: Tensor
    labels: Tensor
    sets: Tensor

    def to(self, device: str) -> ClaimBatch:
        """Return the batch on ``device``."""
        parts = (self.input_ids, self.attention_mask, self.claim_mask, self.labels, self.sets)
        return ClaimBatch(*(part.to(device) for part in parts))


class ClaimSource:
    """Draws encoded sets of claims by the weights of a stage; what it gives depends on its seed alone."""

    def __init__(
        self, rows: Sequence[Example], tokenizer: Tokenizer, fmt: ReaderFormat, recipe: ReaderRecipe
    ) -> None:
        """Index ``rows`` by source."""
        by_source: dict[str, list[Example]] = {}
        for row in rows:
            by_source.setdefault(row.source, []).append(row)
        self._sets: Mapping[str, ClaimSets] = {
            name: ClaimSets(found) for name, found in sorted(by_source.items())
        }
        self._idle = IdleSentences(row for row in rows if row.source in _IDLE_SOURCES)
        self._tokenizer, self._fmt, self._recipe = tokenizer, fmt, recipe

    def batches(self, stage: Stage, *, seed: int) -> Iterator[ClaimBatch]:
        """Yield batches of about equal cost without end; sets of like length stand together."""
        dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
        names = [name for name in stage.weights if name in self._sets]
        weights = [stage.weights[name] for name in names]
        while True:
            wanted = _DRAWN_AT_ONCE * self._recipe.batch_claims
            drawn: list[EncodedSet] = []
            count = 0
            while count < wanted:
                members = self._sets[dice.choices(names, weights)[0]].draw(dice)
                if not members:
                    continue
                if dice.random() < self._recipe.idle_share:
                    members = self._idle.around(members, dice)
                encoded = [(each, read) for each in members if len((read := self.encode(each)).ids) > 4]
                drawn.append(encoded)
                count += len(encoded)
            drawn.sort(key=lambda members: max((len(read.ids) for _, read in members), default=0))
            batches: list[list[EncodedSet]] = [[]]
            for each in drawn:
                if sum(map(len, batches[-1])) + len(each) > self._recipe.batch_claims and batches[-1]:
                    batches.append([])
                batches[-1].append(each)
            dice.shuffle(batches)
            for batch in batches:
                if any(batch):
                    yield pad(batch, pad_id=self._tokenizer.token_to_id(self._fmt.pad) or 0)

    def encode(self, claim: LabelledClaim) -> ReaderInput:
        """Return the input of one claim."""
        return ReaderEvidence(self._tokenizer, self._fmt, claim.passages).input_for(
            claim.text, query=claim.query
        )


def pad(sets: Sequence[EncodedSet], *, pad_id: int) -> ClaimBatch:
    """Return sets of encoded claims as one padded batch."""
    listed = [(number, claim, read) for number, members in enumerate(sets) for claim, read in members]
    longest = max(len(read.ids) for _, _, read in listed)
    input_ids = torch.full((len(listed), longest), pad_id, dtype=torch.long)
    attention, claim_mask = torch.zeros_like(input_ids), torch.zeros_like(input_ids)
    for row, (_, _, read) in enumerate(listed):
        input_ids[row, : len(read.ids)] = torch.from_numpy(read.ids)
        attention[row, : len(read.ids)] = 1
        claim_mask[row, read.claim] = 1
    return ClaimBatch(
        input_ids,
        attention,
        claim_mask,
        torch.tensor([claim.label for _, claim, _ in listed]),
        torch.tensor([number for number, _, _ in listed]),
    )


def loss_of(logits: Tensor, batch: ClaimBatch, *, contrast: float) -> Tensor:
    """Return the mean loss: cross-entropy of the outcomes, and of which of a set's claims is less supported.

    Where the label is only "unsupported", the two outcomes that it may be count together.
    """
    log = torch.log_softmax(logits, dim=-1)
    unsupported = torch.logsumexp(log[:, 1:], dim=-1)
    known = log.gather(1, batch.labels.clamp(max=2).unsqueeze(1)).squeeze(1)
    loss = -torch.where(batch.labels == UNSUPPORTED, unsupported, known).mean()
    score = unsupported - log[:, 0]
    wrong, right = batch.labels > 0, batch.labels == 0
    together = (batch.sets[:, None] == batch.sets[None, :]) & wrong[:, None] & right[None, :]
    if contrast and together.any():
        gaps = score[:, None] - score[None, :]
        loss = loss + contrast * torch.nn.functional.softplus(-gaps[together]).mean()
    return loss
