"""Compute the reward of a mode's result for mode auto; no other module does.

A reward is in 0..1: the quality that the client got, less the priced time and tokens.

- *Quality* is 1 where the delivered answer scores below the threshold. Where it still reaches it, the client
  was at least warned: that is worth ``AWARENESS``, plus the share of the rest that is the share of its findings
  that is gone. Noisy-OR saturates, so findings are measured by ``−ln(1 − score)``, which is their sum. So a
  mode that corrects nothing is worth less than the warning of the lightweight mode exactly by what it cost,
  and auto stops paying for it.
- *Prices* are the plan's: ``latency_weight`` per 10 s, ``token_weight`` per 10,000 tokens of extra calls.

Nothing here looks at an answer's text, and an exchange that was not scored at the end has no reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from truthlens.core.records.enums import Mode
from truthlens.core.records.settings import AutoSettings

AWARENESS = 0.2
"""Worth of an unsupported answer that is delivered as such (warning, disclaimer, headers), 0..1."""

# Nearer to 1, scores differ by rounding.
_MOST_SCORE = 1.0 - 1e-9
_LATENCY_UNIT_S = 10.0
_TOKEN_UNIT = 10_000
# A retrieval-augmented exchange: some 1,700 tokens of prompt and 300 of answer.
_TYPICAL_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the mode table promises of a mode, in the middle of its ranges.

    ``reduction`` is the share (0..1) of hallucinations that are corrected, ``latency_s`` what the mode adds,
    and ``cost_multiple`` the tokens of the exchange with it as a multiple of those without.
    """

    reduction: float
    latency_s: float
    cost_multiple: float


MODE_TABLE: Mapping[Mode, Expectation] = MappingProxyType(
    {
        Mode.LIGHTWEIGHT: Expectation(reduction=0.0, latency_s=0.025, cost_multiple=1.0),
        Mode.STANDARD: Expectation(reduction=0.5, latency_s=0.35, cost_multiple=2.0),
        Mode.PREMIUM: Expectation(reduction=0.775, latency_s=2.0, cost_multiple=4.0),
    }
)
"""Source: white paper, section 5.2. The agentic mode is not in that table."""


def reward(
    *, first: float, final: float, threshold: float, latency_s: float, tokens: int, settings: AutoSettings
) -> float:
    """Return the reward, 0..1, of one answer, corrected or not.

    Args:
        first: response score of the first answer, 0..1, at or above the threshold.
        final: response score of the answer that was delivered, 0..1.
        threshold: the plan's.
        latency_s: what the mode added.
        tokens: prompts and completions of all its calls.
        settings: the plan's prices.
    """
    if final < threshold:
        quality = 1.0
    else:
        before, after = _findings(first), _findings(final)
        fall = max(0.0, before - after) / before if before > 0.0 else 0.0
        quality = AWARENESS + (1.0 - AWARENESS) * fall
    return priced(quality, latency_s=latency_s, tokens=tokens, settings=settings)


def _findings(score: float) -> float:
    return -math.log1p(-min(score, _MOST_SCORE))


def review_reward(
    *, flagged: bool, upheld: bool, latency_s: float, tokens: int, settings: AutoSettings
) -> float:
    """Return the reward, 0..1, of the same result by a reviewer's judgement.

    An answer that the reviewer finds supported is worth 1, whatever the verdict said. An unsupported one is
    worth ``AWARENESS`` where the verdict flagged it, and nothing where it was delivered as clean. Time and
    tokens were spent all the same, so that reviews do not favour the dear modes.

    Args:
        flagged: whether the delivered answer's verdict reached the threshold.
        upheld: whether the reviewer agreed with that verdict.
        latency_s: what the mode added.
        tokens: prompts and completions of all its calls.
        settings: the plan's prices.
    """
    unsupported = AWARENESS if flagged else 0.0
    quality = unsupported if flagged == upheld else 1.0
    return priced(quality, latency_s=latency_s, tokens=tokens, settings=settings)


def expected_reward(mode: Mode, settings: AutoSettings) -> float | None:
    """Return the reward, 0..1, that the mode table predicts at these prices; ``None`` for an unknown mode."""
    row = MODE_TABLE.get(mode)
    if row is None:
        return None
    return priced(
        AWARENESS + (1.0 - AWARENESS) * row.reduction,
        latency_s=row.latency_s,
        tokens=round((row.cost_multiple - 1.0) * _TYPICAL_TOKENS),
        settings=settings,
    )


def priced(quality: float, *, latency_s: float, tokens: int, settings: AutoSettings) -> float:
    """Return the quality (0..1) less the price of time and tokens, never below 0."""
    time = settings.latency_weight * max(0.0, latency_s) / _LATENCY_UNIT_S
    spent = settings.token_weight * max(0, tokens) / _TOKEN_UNIT
    return min(1.0, max(0.0, quality - time - spent))
