"""The page of a replay is one file: escaped, and nothing is loaded."""

from __future__ import annotations

from typing import Any

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Span, Verdict
from truthlens.desk.replay_page import MOST_SHOWN, ShownChange, replay_page, shown_answers

HOSTILE = "<script>alert(1)</script><img src=http://evil>"
FIGURES: dict[str, Any] = {
    "exchanges": 1,
    "redacted": 1,
    "not_replayed": {"answer-not-kept": 2},
    "policy": {"file": HOSTILE, "version": "abc"},
    "changes": {HOSTILE: 1},
    "groups": [],
    "total": {
        "exchanges": 1,
        **{name: {"then": 0, "now": 1} for name in ("checked", "flagged", "model_calls", "model_tokens")},
        "changed": 1,
        "open": 0,
        "would_ask": 1,
        "would_ask_prompt_tokens": 30,
    },
}
OUTCOME = {
    "decision": HOSTILE,
    "mode": "lightweight",
    "action": "warn",
    "status": "checked",
    "score": 0.7,
    "threshold": 0.6,
    "flagged": True,
}


def _change() -> ShownChange:
    verdict = Verdict(Status.CHECKED, score=0.7, threshold=0.6, spans=(Span(0, 8, 0.9, "encoder", 0),))
    exchange = Exchange(Endpoint.CHAT, "m", HOSTILE, (Passage(HOSTILE, Provenance.USER),))
    outcome = Outcome(Plan("d"), verdict, (verdict,), answers=(Answer(0, AnswerKind.TEXT, HOSTILE),))
    then = {
        **OUTCOME,
        "answers": [HOSTILE],
        "choices": [{"spans": [{"start": 4, "end": 900}, {"start": 0, "end": 5}]}],
    }
    shown = shown_answers(outcome, exchange)
    return ShownChange(
        HOSTILE, HOSTILE, [HOSTILE], then, {"status": "unchecked", **OUTCOME}, True, [HOSTILE], shown
    )


def test_texts_are_escaped_wherever_they_stand() -> None:
    """In question, answers, evidence, and in names of the policy; nothing is loaded from anywhere."""
    page = replay_page(FIGURES, [_change()])
    assert HOSTILE not in page
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert page.count("alert(1)") >= 6
    assert not [
        word
        for word in (" src=", ' href="http', "url(", "@import", "<link")
        if word in page.replace("img src=http", "")
    ]
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_a_page_has_an_end() -> None:
    """What is beyond it is counted; where nothing changes, it says so."""
    page = replay_page(FIGURES, [_change()] * (MOST_SHOWN + 3))
    assert page.count('<section id="x') == MOST_SHOWN
    assert "3 more are in the figures alone" in page
    assert "Nothing changes." in replay_page(FIGURES, [])
