"""What a gate says to the reader: behind a sentence, in its place, or where it ends the answer.

The plan's own texts are used as they are written; the built-in ones are in the script of the answer.
"""

from __future__ import annotations

from truthlens.core.records.plan import Plan
from truthlens.text.sentences import is_chinese

_MARK_EN = " [unverified]"
_MARK_ZH = "［未经证实］"
_WITHHELD_EN = "[A sentence was withheld: the provided context does not support it.]"
_WITHHELD_ZH = "［此处有一句话未予显示：所提供的上下文不支持该内容。］"
_STOPPED_EN = "[The answer was stopped here: the provided context does not support what follows.]"
_STOPPED_ZH = "［回答在此处停止：所提供的上下文不支持后续内容。］"
_UNCHECKED_EN = "[The answer was stopped here: what follows could not be checked.]"
_UNCHECKED_ZH = "［回答在此处停止：后续内容未能得到核查。］"


def mark_for(plan: Plan, answer_text: str) -> str:
    """What stands directly behind a flagged sentence that is let through."""
    return _chosen(plan.stream.mark_template, answer_text, _MARK_EN, _MARK_ZH)


def withheld_notice(plan: Plan, answer_text: str) -> str:
    """What stands in the place of withheld sentences."""
    return _chosen(plan.stream.notice_template, answer_text, _WITHHELD_EN, _WITHHELD_ZH)


def stop_notice(plan: Plan, answer_text: str, *, flagged: bool) -> str:
    """What an answer that was stopped ends with; ``flagged`` false says that the rest could not be checked."""
    english, chinese = (_STOPPED_EN, _STOPPED_ZH) if flagged else (_UNCHECKED_EN, _UNCHECKED_ZH)
    return _chosen(plan.stream.notice_template, answer_text, english, chinese)


def _chosen(template: str | None, answer_text: str, english: str, chinese: str) -> str:
    if template and template.strip():
        return template
    return chinese if is_chinese(answer_text) else english
