"""The last exchanges, for the console: figures and names from the configuration, no text of anybody."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime

from truthlens.core.records import Outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One ended exchange.

    ``score`` is ``None`` where it was not checked; ``latency_ms`` is what TruthLens added; ``streaming`` is how a streamed
    answer was treated, ``""`` for any other.
    """

    time: datetime
    decision: str
    mode: str
    status: str
    reason: str
    score: float | None
    threshold: float
    detected: bool
    action: str
    spans: int
    latency_ms: int
    initial_score: float | None = None
    calls: int = 0
    streaming: str = ""


class Recent:
    """A bounded list of the latest entries, newest first."""

    def __init__(self, *, limit: int = 100) -> None:
        self._entries: deque[Entry] = deque(maxlen=limit)

    def add(self, outcome: Outcome, *, time: datetime) -> None:
        """Note an ended exchange."""
        verdict = outcome.verdict
        self._entries.appendleft(
            Entry(
                time=time,
                decision=outcome.plan.decision,
                mode=outcome.mode.value,
                status=verdict.status.value,
                reason=verdict.reason.value if verdict.reason else "",
                score=verdict.score,
                threshold=verdict.threshold,
                detected=verdict.flagged,
                action=outcome.action.value,
                spans=sum(len(each.spans) for each in outcome.verdicts),
                latency_ms=round(outcome.latency_s * 1000),
                initial_score=outcome.initial_score,
                calls=sum(call.attempts > 0 for call in outcome.calls),
                streaming=outcome.stream.streaming.value if outcome.stream else "",
            )
        )

    def entries(self) -> list[Entry]:
        """The entries, newest first."""
        return list(self._entries)
