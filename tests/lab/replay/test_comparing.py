"""What counts as a change, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from truthlens.lab.replay.comparing import Replayed, compared
from truthlens.lab.replay.kept import WouldAsk
from truthlens.lab.replay.reading import KeptExchange

SUPPORTED: dict[str, Any] = {
    "decision": "default",
    "mode": "lightweight",
    "action": "pass",
    "status": "checked",
    "score": 0.2,
    "threshold": 0.6,
    "flagged": False,
    "first": [{"score": 0.2, "flagged": False}],
    "choices": [{"score": 0.2, "flagged": False}],
    "calls": [],
}
FLAGGED = {
    **SUPPORTED,
    "action": "warn",
    "flagged": True,
    "first": [{"flagged": True}],
    "choices": [{"flagged": True}],
}
CALL = {"model": "m", "role": "refiner", "tokens": [10, 5]}


def _row(then: dict[str, Any], now: dict[str, Any] | None, **more: Any) -> Replayed:
    kept = KeptExchange.model_validate({
        "id": "a", "request": {"method": "POST", "path": "/", "body": "{}"}, "response": None, "outcome": then,
    })  # fmt: skip
    return Replayed(kept, now, **more)


ASKS = (WouldAsk("m", "refiner", 100),)


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (_row(SUPPORTED, SUPPORTED), ()),
        (_row(SUPPORTED, {**SUPPORTED, "score": 0.5, "policy": "other"}), ()),
        (
            _row(SUPPORTED, FLAGGED),
            ("action pass → warn", "flagged no → yes", "first flagged no → yes"),
        ),
        (_row(SUPPORTED, {**SUPPORTED, "mode": "standard"}), ()),
        (_row(SUPPORTED, {**SUPPORTED, "decision": "other"}), ("decision default → other",)),
        (_row(SUPPORTED, {**SUPPORTED, "shadow_action": "block"}), ("shadow_action none → block",)),
        (
            _row(FLAGGED, {**FLAGGED, "choices": [{"flagged": True}, {"flagged": False}]}),
            ("flagged choices yes → yes, no",),
        ),
        # What models would say is not known: whether the answer was flagged before is.
        (_row({**FLAGGED, "calls": [CALL]}, {**SUPPORTED, "first": FLAGGED["first"]}, would_ask=ASKS), ()),
        (_row(FLAGGED, FLAGGED, would_ask=ASKS), ("models: nobody → asked",)),
        (_row(FLAGGED, FLAGGED, would_search=("docs",)), ("sources: none → searched",)),
    ],
)
def test_what_changes(row: Replayed, changes: tuple[str, ...]) -> None:
    assert row.changes == changes


def test_figures_are_by_what_the_exchanges_are_now() -> None:
    """One that could not be replayed is in none of them."""
    mended = {**FLAGGED, "mode": "standard", "calls": [CALL, CALL]}
    rows = [
        _row(SUPPORTED, FLAGGED),
        _row(FLAGGED, mended),
        _row(FLAGGED, FLAGGED, would_ask=ASKS),
        _row(SUPPORTED, None, why_not="answer-not-kept"),
    ]
    found = compared(rows).as_json({"file": "p.yaml"})
    assert (found["exchanges"], found["not_replayed"]) == (4, {"answer-not-kept": 1})
    total = found["total"]
    assert (total["exchanges"], total["changed"], total["open"], total["would_ask"]) == (3, 2, 1, 1)
    assert total["flagged"] == {"then": 2, "now": 3}
    assert (total["model_calls"], total["model_tokens"]) == ({"then": 0, "now": 2}, {"then": 0, "now": 30})
    assert [(each["decision"], each["mode"], each["exchanges"]) for each in found["groups"]] == [
        ("default", "lightweight", 2),
        ("default", "standard", 1),
    ]
    assert next(iter(found["changes"].items())) == ("action pass → warn", 1)
    assert len(found["rows"]) == 2
