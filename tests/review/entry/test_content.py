"""An entry holds what a reviewer needs, texts only where the policy allows them, and nothing that a database refuses."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.reviewed import ANSWER, EXCHANGE, queued, with_claims
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.exchange import Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Span
from truthlens.core.review_settings import Redaction, ReviewSettings
from truthlens.review.entry.content import MOST_TEXT, entry_of, judged_claims
from truthlens.review.records import NewEntry

WITH_TEXT = ReviewSettings(keep_text=True)


def entry(given: Outcome | None = None, settings: ReviewSettings = WITH_TEXT, **more: Any) -> NewEntry:
    return entry_of(given or queued(), more.pop("exchange", EXCHANGE), settings, created=5.0, **more)


def test_the_record_of_the_source() -> None:
    """Confidence before and after values were compared; claims are counted; the scope keys are there."""
    made = entry(with_claims(queued(0.1)))
    assert (made.original_confidence, made.adjusted_confidence) == (pytest.approx(0.9), pytest.approx(0.7))
    assert (made.total_claims, made.verified_claims, made.unverified_claims) == (2, 1, 1)
    assert made.scope == {"x-property": "7"}
    assert made.detectors == {"numbers": 0.8}
    (wrong, right) = made.content["choices"][0]["claims"]
    assert (wrong["claim_type"], wrong["verified"], wrong["value"]) == ("count", False, 90.0)
    assert ANSWER[wrong["start"] : wrong["end"]] == wrong["original_text"] == "ninety cars"
    assert [each.get("for_review") for each in made.content["choices"][0]["detectors"]] == [None, True]
    assert right["verified"] is True


def test_texts_stand_beside_positions_that_fit() -> None:
    """What a span marks can be read in the kept answer."""
    made = entry()
    (answer,), (span,) = made.content["texts"]["answers"], made.content["choices"][0]["spans"]
    assert answer == ANSWER
    assert answer[span["start"] : span["end"]] == ANSWER[10:29]
    assert made.content["texts"]["passages"][0]["text"] == EXCHANGE.passages[0].text
    assert made.has_text
    assert made.excerpt in ANSWER


def test_an_excerpt_ends_with_a_word() -> None:
    """It says that the answer goes on; what has no spaces is cut where it must be."""
    words = "The ferry carries ninety cars. " * 20
    for text, end in ((words, "cars. The …"), ("x" * 900, "xx …"), (ANSWER, ANSWER[-9:])):
        given = replace(queued(), answers=(replace(queued().answers[0], text=text),))
        excerpt = entry(replace(given, verdicts=(replace(given.verdict, spans=()),))).excerpt
        assert excerpt.endswith(end), excerpt
        assert len(excerpt) <= 160


def test_an_excerpt_is_of_the_claim_of_the_highest_risk() -> None:
    """Not of what a detector finds strange in a claim that is supported all the same."""
    text = "The ferry sails at nine. " * 12 + "It carries ninety cars. " + "The ferry sails at ten. " * 12
    place = text.index("It carries")
    claims = (
        JudgedClaim(0, 24, ClaimOutcome.SUPPORTED, 0.2),
        JudgedClaim(place, place + 23, ClaimOutcome.CONTRADICTED, 0.8),
    )
    given = replace(queued(), answers=(replace(queued().answers[0], text=text),))
    spans = (Span(0, 9, 0.99), Span(place + 11, place + 22, 0.8))
    made = entry(replace(given, verdicts=(replace(given.verdict, spans=spans, claims=claims),)))
    assert "ninety cars" in made.excerpt


def test_no_text_without_leave() -> None:
    """Not in the content, not in the excerpt: only lengths, hashes and positions, by which it is found elsewhere."""
    made = entry(with_claims(queued()), ReviewSettings())
    told = json.dumps([made.content, made.excerpt])
    for text in ("ferry", "ninety", "cars", "Ferry", "ann@", "a model's note", "90.0"):
        assert text not in told
    assert not made.has_text
    assert all(
        claim.keys().isdisjoint(("value", "original_text")) for claim in made.content["choices"][0]["claims"]
    )
    assert made.content["choices"][0]["sha256"] == hashlib.sha256(ANSWER.encode()).hexdigest()


def test_redacted_texts_keep_their_positions() -> None:
    """E-mail and phone are gone from question, passage and answer; the hash is of what was there."""
    settings = ReviewSettings(keep_text=True, redact=(Redaction.EMAIL, Redaction.PHONE))
    made = entry(settings=settings)
    texts = made.content["texts"]
    assert "ann@" not in json.dumps(texts)
    assert "1234567" not in json.dumps(texts)
    assert len(texts["answers"][0]) == len(ANSWER)
    assert made.content["choices"][0]["sha256"] == hashlib.sha256(ANSWER.encode()).hexdigest()


def test_what_redaction_takes_out_is_in_no_claim() -> None:
    """Neither its words nor its value."""
    settings = ReviewSettings(keep_text=True, redact_patterns=("ninety",))
    (wrong, right) = entry(with_claims(queued()), settings).content["choices"][0]["claims"]
    assert wrong.keys().isdisjoint(("value", "original_text"))
    assert (right["value"], right["original_text"]) == (1.0, "The")


@pytest.mark.parametrize(
    ("settings", "exchange", "why"),
    [
        (WITH_TEXT, replace(EXCHANGE, query="x" * MOST_TEXT), "too large"),
        (
            ReviewSettings(keep_text=True, redact_patterns=("(a|aa)+$",)),
            replace(EXCHANGE, query="a" * 60 + "b"),
            "redaction took too long",
        ),
    ],
)
def test_texts_that_cannot_be_kept_say_why(settings: ReviewSettings, exchange: Any, why: str) -> None:
    """The entry is there without them."""
    made = entry(settings=settings, exchange=exchange)
    assert "texts" not in made.content
    assert (made.content["texts_dropped"], made.has_text, made.excerpt) == (why, False, "")


@given(st.text(max_size=50), st.text(max_size=50), st.text(max_size=50))
def test_any_text_can_be_stored(query: str, passage: str, name: str) -> None:
    """NUL and lone surrogates, which no database takes, are replaced one for one."""
    exchange = replace(
        EXCHANGE,
        query=query + "\x00\ud800",
        passages=(Passage(passage + "\x00", EXCHANGE.passages[0].provenance, title=name),),
    )
    made = entry(
        settings=ReviewSettings(keep_text=True, user_header="x-user"),
        exchange=exchange,
        headers={"x-user": name + "\x00"},
    )
    stored = json.dumps(made.content, ensure_ascii=False) + made.user_id
    assert "\x00" not in stored
    stored.encode()
    assert len(made.content["texts"]["query"]) == len(query) + 2


@pytest.mark.parametrize(
    ("header", "trace"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736", ""),
        ("<script>", ""),
        ("", ""),
    ],
)
def test_the_trace_is_of_its_form_or_none(header: str, trace: str) -> None:
    """A client may have chosen it."""
    assert entry(headers={"traceparent": header}).trace_id == trace


def test_a_user_is_named_only_by_the_trusted_header() -> None:
    """Which the policy names; nothing else of the request says who asked."""
    headers = {"x-user": "ann"}
    assert entry(headers=headers).user_id == ""
    assert (
        entry(settings=ReviewSettings(keep_text=True, user_header="x-user"), headers=headers).user_id == "ann"
    )


def test_claims_are_kept_by_positions_alone() -> None:
    """They come back as they were, but for what may be text: a key of JSON, what a database gives. Older entries have none."""
    claims = (
        JudgedClaim(
            0, 9, ClaimOutcome.CONTRADICTED, 0.91, "numbers", 0, (0, 5), reason="90 in the table", path="/ann"
        ),
        JudgedClaim(9, 12, ClaimOutcome.UNJUDGED, None),
        JudgedClaim(12, 20, ClaimOutcome.PROVED, 0.05, "numbers", source="cars"),
        JudgedClaim(20, 29, ClaimOutcome.SUPPORTED, 0.2, "encoder", nearest=NearestSentence(0, 4, 9, 0.5)),
    )
    given = queued()
    given = replace(given, verdicts=(replace(given.verdicts[0], claims=claims),))
    (choice,) = json.loads(json.dumps(entry(given, ReviewSettings()).content))["choices"]
    assert judged_claims(choice) == (replace(claims[0], reason="", path=""), *claims[1:])
    assert "ann" not in json.dumps(choice["judged"])
    assert "judged" not in entry().content["choices"][0]
    assert judged_claims(entry().content["choices"][0]) == ()
    assert judged_claims({"judged": [{"start": 0, "end": 1, "outcome": "of another version"}]}) == ()
