"""The reader's recipe: which sources each stage draws from, and how the training runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from truthlens.lab.data.dataset import Recipe, Shares
from truthlens.lab.data.twins import PLAIN_SOURCE
from truthlens.lab.data.twins import SOURCE as TWINS

SPLITS = Recipe(
    default_shares=Shares(calibration=0.03, test=0.05),
    shares={"ragtruth": Shares(calibration=0.1, test=0.15)},
)
"""Held out by group: the same sides as the token classifier's, so that the two can be fused on rows that neither saw."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Until ``pairs`` claims were seen, sets are drawn from sources by these weights."""

    name: str
    pairs: int
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """Stages and settings of a training.

    The learning rate stays at its peak until the decay, so that a training of unknown length can go on; ``--decay`` ends it.
    """

    stages: tuple[Stage, ...]
    batch_claims: int = 32
    learning_rate: float = 3e-4
    head_learning_rate: float = 3e-4
    warmup_steps: int = 60
    weight_decay: float = 0.01
    contrast: float = 0.5
    frozen_layers: int = 4
    layers: int | None = None
    rank: int | None = 32
    average_half_life: int = 150
    idle_share: float = 0.6


# Natural rows with unbalanced labels first: balanced twins alone leave a model at chance for long.
_NATURAL = {
    "snli": 0.18, "cad_nli": 0.18, "taxinli": 0.18, "syntaug": 0.08, "paws_wiki": 0.08, "hans": 0.04, TWINS: 0.16, "fm2": 0.05, "e2e_attr": 0.05,
}  # fmt: skip
_READING = {
    TWINS: 0.52, "paws_wiki": 0.07, "edit_wikisplit": 0.03, "edit_onestop": 0.03, "edit_paws": 0.03, "cond_twins": 0.03, "quant_twins": 0.03, "syntaug": 0.03, "hans": 0.02, "gap_coref": 0.05, "cad_nli": 0.05,
    "taxinli": 0.05, "snli": 0.03, "fm2": 0.04, "e2e_attr": 0.02, "wikisplit": 0.015, "onestop": 0.015, "condaqa": 0.03, "conditionalqa": 0.02, "folio": 0.02,
    "infotabs": 0.02, "tabfact": 0.02, "factcg": 0.02,
}  # fmt: skip
_ANSWERS = {
    **{name: 0.5 * weight for name, weight in _READING.items()},
    "ragtruth": 0.16, "begin": 0.05, "summedits": 0.05, "bump": 0.04, "wice": 0.04, "clapnq": 0.03, "alexa_dialogs": 0.02, "quintd": 0.03,
    "fever_symmetric": 0.03, "infotabs": 0.04, "tabfact": 0.04,
}  # fmt: skip
# What a falling rate keeps is what it saw last: twins again to more than a half, plain ones before all.
_LAST = {name: 0.6 * share for name, share in _ANSWERS.items()} | {TWINS: 0.3, PLAIN_SOURCE: 0.25}
LONG_RUN = ReaderRecipe(
    stages=(
        Stage("natural", 8_000, _NATURAL),
        Stage("reading", 80_000, _READING),
        Stage("answers", 104_000, _ANSWERS),
        Stage("last", 10**9, _LAST),
    )
)
