"""Clean a question: without the words that introduce it, the quotes around it and the talk about answering behind it."""

from __future__ import annotations

import re

from truthlens.api.evidence.language.mood import sentence_kind
from truthlens.api.evidence.prompt.draft import ASKED_CHARS
from truthlens.text.sentences import sentences

_LED_QUESTION = re.compile(
    r"^(?:[^\n:：?？]{0,80}\b(?:query|question|request|frage|pregunta|вопрос)\b[^\n:：?？]{0,30}|[^\n:：?？]{0,20}(?:问题|質問)[^\n:：?？]{0,6}|follow[- ]?up(?: \w+)?)[:：][ \t]*(?=\S)",
    re.IGNORECASE,
)
# A colleague wants to know: …?
_LED = re.compile(r"^[^\n:：?？]{2,60}[:：][ \t]*(?=[^\n]{3,400}[?？]\s*$)")
# "… this query: 'And at night?' with this context".
_QUOTED = re.compile(r"^(['\"“])([^'\"”\n]{3,400}[?？.!])(['\"”])(?=\s+\w)")
_QUOTES = {'"""': '"""', "'''": "'''", "```": "```", '"': '"', "“": "”", "«": "»", "「": "」"}


def bare_question(text: str) -> str:
    """Return what is asked without the words that introduce it, and without talk about answering behind it."""
    plain = _unquoted(text)
    led = _LED_QUESTION.match(plain) or _LED.match(plain)
    if led is not None:
        plain = _unquoted(plain[led.end() :])
    quoted = _QUOTED.match(plain)
    if quoted is not None:
        return quoted[2].strip()
    if "?" not in plain and "？" not in plain:
        return plain
    kept = len(plain)
    for start, end in reversed(sentences(plain[:ASKED_CHARS])):
        said = plain[start:end].strip()
        if said.endswith(("?", "？")) or sentence_kind(said) != "guides":
            break
        kept = start
    return plain[:kept].strip() or plain


def _unquoted(text: str) -> str:
    plain = text.strip()
    for opens, closes in _QUOTES.items():
        if plain.startswith(opens) and plain.endswith(closes) and len(plain) > 2 * len(opens):
            inside = plain[len(opens) : -len(closes)]
            if closes not in inside:
                return inside.strip()
    return plain
