"""Texts are compared with each other by the plan's own detector and the similarity model."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.enums import Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.detection.similarity import Similarity
from truthlens.exchange.mode_runner import TextComparer

EXCHANGE = Exchange(Endpoint.CHAT, "m", "Is it open?", (Passage("Evidence.", Provenance.TOOL),))


class Detector:
    """Scores what says "closed" 0.9, leaves the rest unscored, and keeps the evidence that it was given."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    async def __call__(self, exchange: Exchange, answers: Sequence[Answer]) -> Sequence[Verdict]:
        self.exchanges.append(exchange)
        return [
            Verdict(Status.CHECKED, score=0.9)
            if "closed" in (answer.text or "")
            else unchecked(Reason.OVERLOADED)
            for answer in answers
        ]


async def no_model() -> Similarity:
    raise AssertionError("support needs no similarity model")


async def test_support_is_scored_against_the_text_alone_and_unknown_where_it_was_not_scored() -> None:
    detector = Detector()
    found = await TextComparer(no_model, detector, EXCHANGE).support(
        ["It is closed.", "It is open."], "The text."
    )
    assert [None if support is None else round(support, 6) for support in found] == [0.1, None]
    (exchange,) = detector.exchanges
    assert [passage.text for passage in exchange.passages] == ["The text."]
    assert exchange.query == EXCHANGE.query


async def test_without_claims_nothing_is_scored() -> None:
    detector = Detector()
    assert await TextComparer(no_model, detector, EXCHANGE).support([], "The text.") == []
    assert detector.exchanges == []
