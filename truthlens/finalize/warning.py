"""The warning of lightweight mode, beside the answers that a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from truthlens.core.records import Answer, AnswerKind, Exchange, Outcome, Plan, Verdict, WarningPosition
from truthlens.core.text import is_chinese

WARNING_NOT_PASTED = "warning-not-pasted"

_GAP = "\n\n"
_WARNING_ZH = (
    "⚠️ **注意**: 此响应可能包含无法根据提供的上下文完全验证的信息。\n在采取行动之前，请验证关键事实。"
)
_WARNING_EN = (
    "⚠️ **Note**: This response may contain information that cannot be fully verified against the provided context.\n"
    "Please verify key facts before acting on it."
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The text of one choice as the client receives it.

    ``offset`` is what must be added to positions in the answer to get positions in ``text``; ``warned``
    whether a warning was put beside the answer.
    """

    index: int
    text: str
    offset: int = 0
    warned: bool = False


@dataclass(frozen=True, slots=True)
class Warned:
    """An outcome after its warnings were placed; ``deliveries`` has one entry per choice."""

    outcome: Outcome
    deliveries: tuple[Delivery, ...]

    @property
    def texts(self) -> Mapping[int, str]:
        """New texts by ``Answer.index``, of the changed choices alone."""
        return {delivery.index: delivery.text for delivery in self.deliveries if delivery.warned}


def warn(outcome: Outcome, exchange: Exchange, answers: Sequence[Answer]) -> Warned:
    """The choices with the plan's warning beside each flagged one.

    An answer for a program (``structured``, or JSON as a whole) is left as it is: the headers and the
    ``truthlens`` object carry its warning, and the outcome gets the note ``warning-not-pasted``.

    Args:
        outcome: The scored exchange; ``verdicts`` has one entry per answer.
        exchange: The request half.
        answers: The choices.
    """
    pairs = list(zip(answers, outcome.verdicts, strict=True))
    deliveries = tuple(_deliver(outcome.plan, exchange, answer, verdict) for answer, verdict in pairs)
    if any(verdict.flagged and not takes_warning(exchange, answer) for answer, verdict in pairs):
        outcome = replace(outcome, notes=(*outcome.notes, WARNING_NOT_PASTED))
    return Warned(outcome, deliveries)


def takes_warning(exchange: Exchange, answer: Answer) -> bool:
    """Whether a person reads the answer, so that a warning may be put beside it."""
    return answer.kind is AnswerKind.TEXT and not exchange.structured and not _is_json(answer.text)


def warning_for(plan: Plan, answer_text: str) -> str:
    """The plan's warning, else the built-in one in the script of the answer; no white space around it.

    Source: white paper 6.1 (``warning_template``).
    """
    template = (plan.warning_template or "").strip()
    return template or (_WARNING_ZH if is_chinese(answer_text) else _WARNING_EN)


def apply_warning(text: str, warning: str, position: WarningPosition) -> str:
    """``text`` with ``warning`` before or after it, a blank line between.

    A text that carries the warning at either end already stays as it is.
    """
    bare = text.strip()
    if not warning or bare.startswith(warning) or bare.endswith(warning):
        return text
    return f"{warning}{_GAP}{text}" if position is WarningPosition.BEFORE else f"{text}{_GAP}{warning}"


def _deliver(plan: Plan, exchange: Exchange, answer: Answer, verdict: Verdict) -> Delivery:
    if not verdict.flagged or not takes_warning(exchange, answer):
        return Delivery(answer.index, answer.text)
    warning = warning_for(plan, answer.text)
    text = apply_warning(answer.text, warning, plan.warning_position)
    before = text != answer.text and plan.warning_position is WarningPosition.BEFORE
    offset = len(warning) + len(_GAP) if before else 0
    return Delivery(answer.index, text, offset=offset, warned=text != answer.text)


def _is_json(text: str) -> bool:
    bare = text.strip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True
