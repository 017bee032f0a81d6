"""Compose each choice's text for the client, with its warning, its disclaimer or the notices of a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from truthlens.core.records.enums import AnswerKind, Mode, OnFailure, Reason, Status, WarningPosition
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery.headers import nothing_to_check
from truthlens.text.sentences import is_chinese, is_json

WARNING_NOT_PASTED = "warning-not-pasted"

_UNCHECKED_ZH = "⚠️ **免责声明**: 此回答未能对照来源进行完整检查。请在使用前自行核实。"
_UNCHECKED_EN = "⚠️ **Disclaimer**: This answer could not be fully checked against sources.\nPlease verify it before relying on it."
_GAP = "\n\n"
_WARNING_ZH = (
    "⚠️ **注意**: 此响应可能包含无法根据提供的上下文完全验证的信息。\n在采取行动之前，请验证关键事实。"
)
_WARNING_EN = (
    "⚠️ **Note**: This response may contain information that cannot be fully verified against the provided context.\n"
    "Please verify key facts before acting on it."
)
_DISCLAIMER_ZH = (
    "⚠️ **免责声明**: 此回答已对照所提供的上下文检查和修正，但其中仍有内容无法确认。请在使用前自行核实。"
)
_DISCLAIMER_EN = (
    "⚠️ **Disclaimer**: This answer was checked against the provided context, and parts of it could still not be "
    "confirmed.\nPlease verify them before relying on it."
)

_MARK_EN = " [unverified]"
_MARK_ZH = "［未经证实］"
_WITHHELD_EN = "[A sentence was withheld: the provided context does not support it.]"
_WITHHELD_ZH = "［此处有一句话未予显示：所提供的上下文不支持该内容。］"
_STOPPED_EN = "[The answer was stopped here: the provided context does not support what follows.]"
_STOPPED_ZH = "［回答在此处停止：所提供的上下文不支持后续内容。］"
_STOPPED_UNCHECKED_EN = "[The answer was stopped here: what follows could not be checked.]"
_STOPPED_UNCHECKED_ZH = "［回答在此处停止：后续内容未能得到核查。］"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The text of one choice as the client receives it.

    ``offset`` is what must be added to positions in the answer to get positions in ``text``; ``warned``
    whether a warning or a disclaimer was added to the answer; ``changed`` whether ``text`` is another than
    the backend's. ``lead`` is reasoning that is right before ``text``, in the same member, and stays.
    """

    index: int
    text: str
    offset: int = 0
    warned: bool = False
    changed: bool = False
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """An outcome after its warnings were placed; ``deliveries`` has one entry per choice."""

    outcome: Outcome
    deliveries: tuple[Delivery, ...]

    @property
    def texts(self) -> Mapping[int, str]:
        """New texts by ``Answer.index``, of the changed choices alone."""
        return {delivery.index: delivery.text for delivery in self.deliveries if delivery.changed}


def warn(outcome: Outcome, exchange: Exchange, answers: Sequence[Answer]) -> Warned:
    """Return the choices, corrected where the outcome says so, each flagged one with the plan's notice.

    In mode lightweight that is the warning; in the others the disclaimer, unless the plan wants none. Where the
    plan requires one, answers that were not fully checked carry it as well. An answer for a program (``structured``,
    or JSON as a whole) is left as it is: the headers and the ``truthlens`` object carry its warning, and the outcome
    gets the note ``warning-not-pasted``.

    Args:
        outcome: The scored exchange; ``verdicts`` has one entry per answer, ``corrections`` one or is empty.
        exchange: The request half.
        answers: The choices as the backend gave them.
    """
    corrections = outcome.corrections or (None,) * len(answers)
    deliveries = []
    pasted = True
    for place, (answer, verdict, correction) in enumerate(
        zip(answers, outcome.verdicts, corrections, strict=True)
    ):
        final = answer if correction is None else replace(answer, text=correction.text)
        notice = _notice(outcome, final, verdict, disputed=place in outcome.disputed)
        if notice is not None and not takes_warning(exchange, final):
            notice, pasted = None, False
        deliveries.append(_deliver(outcome.plan, answer, final, notice))
    if not pasted:
        outcome = replace(outcome, notes=(*outcome.notes, WARNING_NOT_PASTED))
    return Warned(outcome, tuple(deliveries))


def takes_warning(exchange: Exchange, answer: Answer) -> bool:
    """Return whether a person reads the answer, so that a warning may be added to it."""
    return answer.kind is AnswerKind.TEXT and not exchange.structured and not is_json(answer.text)


def warning_for(plan: Plan, answer_text: str) -> str:
    """Return the plan's warning, else the built-in one in the script of the answer; no outer white space.

    Source: white paper 6.1 (``warning_template``).
    """
    return _worded((plan.warning_template or "").strip(), answer_text, _WARNING_EN, _WARNING_ZH)


def disclaimer_for(plan: Plan, answer_text: str, *, checked: bool = True) -> str:
    """Return the plan's disclaimer, else its warning, else the built-in one in the script of the answer.

    The built-in one says whether the answer was ``checked`` and not confirmed, or could not be checked.
    """
    template = (plan.disclaimer_template or plan.warning_template or "").strip()
    english, chinese = (_DISCLAIMER_EN, _DISCLAIMER_ZH) if checked else (_UNCHECKED_EN, _UNCHECKED_ZH)
    return _worded(template, answer_text, english, chinese)


def mark_for(plan: Plan, answer_text: str) -> str:
    """What stands directly behind a flagged sentence that is let through."""
    return _worded(plan.stream.mark_template, answer_text, _MARK_EN, _MARK_ZH)


def withheld_notice(plan: Plan, answer_text: str) -> str:
    """What stands in the place of withheld sentences."""
    return _worded(plan.stream.notice_template, answer_text, _WITHHELD_EN, _WITHHELD_ZH)


def stop_notice(plan: Plan, answer_text: str, *, flagged: bool) -> str:
    """What an answer that was stopped ends with; not ``flagged``: the rest could not be checked."""
    english, chinese = (
        (_STOPPED_EN, _STOPPED_ZH) if flagged else (_STOPPED_UNCHECKED_EN, _STOPPED_UNCHECKED_ZH)
    )
    return _worded(plan.stream.notice_template, answer_text, english, chinese)


def lacks_check(plan: Plan, verdict: Verdict) -> bool:
    """Return whether an answer owes a disclaimer to what was not checked of it."""
    failed = verdict.reason is Reason.RETRIEVAL_FAILED and plan.retrieval.on_failure is OnFailure.WARN
    # Evidence was searched for, and none was found that supports an answer.
    searched = plan.require_disclaimer is not False and plan.lacks_evidence(verdict.reason)
    return (
        (plan.require_disclaimer is True or failed or searched)
        and verdict.status in (Status.PARTIAL, Status.UNCHECKED)
        and verdict.reason is not Reason.NOT_AN_ANSWER
        and not nothing_to_check(verdict)
    )


def apply_warning(text: str, warning: str, position: WarningPosition) -> str:
    """Return ``text`` with ``warning`` before or after it, a blank line between.

    A text that carries the warning at either end already stays as it is.
    """
    bare = text.strip()
    if not warning or bare.startswith(warning) or bare.endswith(warning):
        return text
    return f"{warning}{_GAP}{text}" if position is WarningPosition.BEFORE else f"{text}{_GAP}{warning}"


def _notice(outcome: Outcome, answer: Answer, verdict: Verdict, *, disputed: bool) -> str | None:
    """Return the notice to add to an answer, or ``None``."""
    if outcome.plan.intended is not None:
        return None
    if outcome.mode is Mode.LIGHTWEIGHT and verdict.flagged:
        return warning_for(outcome.plan, answer.text)
    if disputed or (verdict.flagged and outcome.plan.require_disclaimer is not False):
        return disclaimer_for(outcome.plan, answer.text)
    if lacks_check(outcome.plan, verdict):
        return disclaimer_for(outcome.plan, answer.text, checked=False)
    return None


def _deliver(plan: Plan, first: Answer, final: Answer, notice: str | None) -> Delivery:
    if notice is None:
        return Delivery(final.index, final.text, changed=final.text != first.text, lead=first.lead)
    text = apply_warning(final.text, notice, plan.warning_position)
    warned = text != final.text
    before = warned and plan.warning_position is WarningPosition.BEFORE
    offset = len(notice) + len(_GAP) if before else 0
    return Delivery(
        final.index, text, offset=offset, warned=warned, changed=text != first.text, lead=first.lead
    )


def _worded(template: str | None, answer_text: str, english: str, chinese: str) -> str:
    """Return the plan's own text as it is written, else the built-in one in the script of the answer."""
    if template and template.strip():
        return template
    return chinese if is_chinese(answer_text) else english
