"""Classify a system message: does it tell the model what to do, or facts?

A heuristic: the share of sentences that order something of the model or address it ("You are …", "Never
…", "If the user …", 请…, 你…). It reads the beginning of a sentence, so it is cheap and errs towards facts:
a message is only left out of the evidence when most of its sentences instruct.
"""

from __future__ import annotations

import re

from truthlens.core.cancellation import checkpoint
from truthlens.text.sentences import sentences

_ORDERS = (
    "act|add|adhere|adopt|always|answer|apologi[sz]e|ask|assist|assume|avoid|base|be|begin|behave|check|cite|communicate|"
    "consider|decline|do|don't|don’t|end|ensure|escalate|explain|first|focus|follow|format|give|greet|guide|handle|help|"
    "include|keep|let|limit|list|maintain|make|mention|mirror|never|note|offer|only|output|place|please|pretend|prioriti[sz]e|"
    "produce|provide|quote|reason|refer|refrain|refuse|remain|remember|reply|respect|respond|return|say|show|speak|"
    "start|state|stay|stick|suggest|summari[sz]e|take|tell|then|think|translate|treat|try|use|verify|when answering|"
    "when responding|write"
)
_INSTRUCTS = re.compile(
    rf"^(?:[-*•#>]+\s*|\d{{1,2}}[.)]\s*)?(?:(?:{_ORDERS})\b|you(?:r|'re|’re| are| will| must| should| can| may| have| need)?\b|"
    r"(?:if|when|whenever|unless|before|after)\b.{0,80}\b(?:you|your|user|users|customer|answer|question|asked)\b|"
    r"the (?:assistant|model|ai|bot|answer|response|output)\b.{0,40}\b(?:must|should|is to|will|may not|shall)\b|"
    r"(?:system|instructions?|rules?|guidelines?|role|task|tone|style|format)\s*:)"
    r"|\byour (?:answers?|responses?|repl(?:y|ies)|output|role|task|job|goal)\b"
    r"|^(?:[-*•#>]+\s*|\d{1,2}[.、)]\s*)?(?:你|您|请|請|不要|不得|不能|禁止|切勿|务必|務必|必须|必須|始终|始終|总是|總是|只能|只需|仅|"
    r"回答|使用|保持|避免|确保|確保|作为|作為|如果用户|如果使用者|当用户|當用戶|以.{1,10}(?:语气|風格|风格|格式))|你的(?:回答|任务|职责|角色)",
    re.IGNORECASE,
)
_SENTENCE_CHARS = 300


def instruction_share(text: str) -> float:
    """Return the share of sentences of ``text`` that instruct, 0..1; 1.0 for a text without sentences."""
    ranges = sentences(text)
    if not ranges:
        return 1.0
    instructing = 0
    for start, end in ranges:
        checkpoint()
        instructing += _INSTRUCTS.search(text[start : min(end, start + _SENTENCE_CHARS)]) is not None
    return instructing / len(ranges)
