"""Tests of ``truthlens.detection.explain.claim_sentences``: which sentence of the evidence a claim is shown with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.explain.claim_sentences import wants_nearest
from truthlens.detection.explain.explainer import explained
from truthlens.text.claims.claims import scored_claims

PASSAGES = (
    Passage("Loans can be renewed twice. The reading room opens at nine.", Provenance.TOOL, id="S0"),
    Passage("The east branch has forty desks. A lost card costs 25 dollars.", Provenance.TOOL, id="S1"),
)
EXCHANGE = Exchange(Endpoint.CHAT, "m", "What are the rules?", PASSAGES)


def claims_of(text: str, outcome: ClaimOutcome = ClaimOutcome.SUPPORTED) -> tuple[JudgedClaim, ...]:
    return tuple(
        JudgedClaim(each.start, each.end, outcome, 0.2, "encoder", path=each.path, context=each.context)
        for each in scored_claims(text)
    )


def sentences_of(text: str, claims: tuple[JudgedClaim, ...], *spans: Span) -> list[str | None]:
    """The nearest sentence of each claim."""
    verdict = Verdict(Status.CHECKED, score=0.2, spans=spans, claims=claims)
    (told,) = explained(EXCHANGE, [Answer(0, AnswerKind.TEXT, text)], [verdict])
    return [
        None
        if each.nearest is None
        else PASSAGES[each.nearest.passage].text[each.nearest.start : each.nearest.end].strip()
        for each in told.claims
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("You may renew loans twice. Cards that you lost cost $25.", ["Loans can be renewed twice.", "A lost card costs 25 dollars."]),
        ("- Loans are renewed twice\n- forty desks in the east", ["Loans can be renewed twice.", "The east branch has forty desks."]),
        ('{"reading room": {"opens": "nine"}}', ["The reading room opens at nine."] * 2),
        ("The reading room opens [S0] at nine [S0]. Forty desks [S1].", ["The reading room opens at nine.", "The east branch has forty desks."]),
        ("The ferry is green.", [None]),
    ],
)  # fmt: skip
def test_a_supported_claim_has_the_sentence_that_shares_most_of_its_words(
    text: str, found: list[str | None]
) -> None:
    """In prose, lists and JSON, with marks in it; none where no sentence shares a word of content."""
    assert sentences_of(text, claims_of(text)) == found


def test_what_stands_before_a_claim_helps_to_choose_and_is_not_enough() -> None:
    """The lead-in says what the item is about; with nothing in common but that there is no sentence."""
    text = "A lost card:\n- dollars\n- green"
    assert sentences_of(text, claims_of(text))[-2:] == ["A lost card costs 25 dollars.", None]


def test_a_claim_that_is_flagged_has_the_sentence_of_its_surest_span() -> None:
    """The deciding detector's first; without spans it has none."""
    text = "A lost card costs 90 dollars in the reading room."
    claims = claims_of(text, ClaimOutcome.NOT_STATED)
    encoder, other = Span(18, 20, 0.6), Span(36, 48, 0.9, "numbers")
    assert sentences_of(text, claims, encoder, other) == ["A lost card costs 25 dollars."]
    assert sentences_of(text, claims) == [None]


def test_what_names_its_sentence_or_was_not_judged_stays() -> None:
    """So does every claim where nobody asks for details."""
    text = "Loans can be renewed twice. The reading room opens at nine. Forty desks."
    named, proved, unjudged = claims_of(text)
    claims = (
        replace(named, passage=0, sentence=(0, 27)),
        replace(proved, outcome=ClaimOutcome.PROVED, source="rooms"),
        replace(unjudged, outcome=ClaimOutcome.UNJUDGED, risk=None),
    )
    assert not wants_nearest(claims)
    assert sentences_of(text, claims) == [None] * 3
    verdict = Verdict(Status.CHECKED, score=0.2, claims=claims_of(text))
    (told,) = explained(EXCHANGE, [Answer(0, AnswerKind.TEXT, text)], [verdict], nearest=False)
    assert told == verdict


def test_claims_beyond_the_bound_have_none() -> None:
    """A long answer takes no more time than the first 300 of them."""
    text = " ".join(["Loans can be renewed twice."] * 302)
    found = sentences_of(text, claims_of(text))
    assert (found[299], found[300:]) == ("Loans can be renewed twice.", [None, None])
