"""The question of a conversation: the last one, with the earlier one that it refers to."""

from __future__ import annotations

import re
from collections.abc import Sequence

_REFERS = re.compile(
    r"^(?:and|but|or|also|what about|how about|why|why not|really|are you sure|then|ok(?:ay)?,? (?:and|but)|und|aber|et|mais|y|pero|а|и|но|e|ma|那|那么|还有|じゃあ|では|それで)\b"
    r"|\b(?:it|its|they|them|their|he|she|him|his|her|that|those|these|this one|there|one|the same|the other|er|sie|es|dort|il|elle|ils|elles|lui|"
    r"ella|ello|ellos|allí|он|она|оно|они|его|её|там|этот|эта)\b|它|他|她|那个|这个|其|それ|そこ|彼",
    re.IGNORECASE,
)
_MAX_WORDS = 9
_MAX_WORDS_BEHIND = 14
_CJK = re.compile(r"[぀-ヿ㐀-鿿]")


def with_earlier(questions: Sequence[str]) -> str:
    """Return the last question that asks something, behind the one before it where it refers to that.

    Args:
        questions: Of the user's messages in order; ``""`` for a message that asks nothing.
    """
    asked = [question for question in questions if question]
    if not asked:
        return ""
    last = asked[-1]
    if len(asked) > 1 and _refers(last) and asked[-2] != last:
        return f"{asked[-2]}\n{last}"
    return last


def _refers(question: str) -> bool:
    """Return whether a question cannot be understood alone: a short one that begins with "and", or has a pronoun."""
    size = len(question) / 1.6 if _CJK.search(question) else len(question.split())
    refers = _REFERS.search(question)
    return refers is not None and size <= (_MAX_WORDS_BEHIND if refers.start() == 0 else _MAX_WORDS)
