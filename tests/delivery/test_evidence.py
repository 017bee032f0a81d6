"""What is told of a request's evidence."""

from __future__ import annotations

import json

from truthlens.core.records.enums import Endpoint, Provenance, Reason
from truthlens.core.records.exchange import Exchange, LeftText, Message, Passage
from truthlens.delivery import evidence_object


def test_the_object_has_exactly_the_documented_keys() -> None:
    """Positions in messages are shown as their texts."""
    exchange = Exchange(
        Endpoint.CHAT,
        "m",
        "Is tea free?",
        (Passage("Tea is free.", Provenance.SYSTEM, "S1", "Menu", rule="label"),),
        messages=(Message("system", "Be brief. Context: Tea is free."),),
        left=(LeftText(0, 0, 9, "instruction"), LeftText(7, 0, 1, "gone")),
    )
    assert json.loads(json.dumps(evidence_object(exchange))) == {
        "status": "checked",
        "reason": None,
        "query": "Is tea free?",
        "passages": [
            {"text": "Tea is free.", "provenance": "system", "id": "S1", "title": "Menu", "rule": "label"}
        ],
        "left": [{"text": "Be brief.", "rule": "instruction"}, {"text": "", "rule": "gone"}],
    }


def test_why_an_answer_cannot_be_checked_is_told() -> None:
    """The code of the header; blank passages are none."""
    blank = Exchange(Endpoint.CHAT, "m", "", (Passage(" ", Provenance.USER),))
    unsure = Exchange(Endpoint.CHAT, "m", "", (), unchecked=Reason.UNSURE_CONTEXT)
    assert [evidence_object(each)["reason"] for each in (blank, unsure)] == ["no-context", "unsure-context"]
    assert evidence_object(unsure)["status"] == "unchecked"
