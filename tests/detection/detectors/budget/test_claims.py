"""Tests of ``truthlens.detection.detectors.budget.claims``: which sentences are asked about, and what they cite."""

from __future__ import annotations

import pytest

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.budget.claims import citing, take_claims
from truthlens.detection.detectors.budget.options import Options

LABELLED = Exchange(
    Endpoint.CHAT,
    "m",
    "How much is tea?",
    tuple(Passage(f"Passage {number}.", Provenance.DOCUMENTS, f"S{number}") for number in range(4)),
)
UNLABELLED = Exchange(Endpoint.CHAT, "m", "", (Passage("[1] One.", Provenance.TOOL),))


def taken(text: str, exchange: Exchange = LABELLED, **options: object) -> list[tuple[str, list[str]]]:
    """Return the claims of an answer with what they cite."""
    answer = Answer(0, AnswerKind.TEXT, text)
    found = take_claims(exchange, answer, Options.model_validate({"model": "m", **options})).taken
    return [(claim.text, citing(claim, exchange)) for claim in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tea costs two euros [S0].", [("Tea costs two euros.", ["S0"])]),
        ("Tea costs two euros.[S0]", [("Tea costs two euros.", ["S0"])]),
        ("Tea costs two [S0] or three [S1] euros.", [("Tea costs two or three euros.", ["S0", "S1"])]),
        ("Tea costs two euros [S0][S1].", [("Tea costs two euros.", ["S0", "S1"])]),
        ("Tea costs two euros [S0, S2].", [("Tea costs two euros.", ["S0", "S2"])]),
        ("Tea costs two euros.", [("Tea costs two euros.", [])]),
        ("Tea costs two euros [S9].", [("Tea costs two euros.", [])]),
        ("Tea costs 2 eur [S0].", [("Tea costs 2 eur.", ["S0"])]),
        ("Tea costs nine.", [("Tea costs nine.", [])]),
        ("Tea costs ten.", []),
        ("茶的价格是每杯两欧元，星期一休息[S0]。", [("茶的价格是每杯两欧元，星期一休息。", ["S0"])]),
        ("", []),
        ("Hello!", []),
    ],
)
def test_claims(text: str, expected: list[tuple[str, list[str]]]) -> None:
    """Sentences of 15 characters or more without their citations, each with the passages that it cites."""
    assert taken(text) == expected


def test_fifteen_characters_are_enough() -> None:
    """With the full stop, without the citation."""
    assert [len(text) for text, _ in taken("Tea costs nine. [S0]")] == [15]


def test_ten_claims_are_asked_about() -> None:
    """The others are counted."""
    text = " ".join(f"Shop number {number} sells tea." for number in range(12))
    answer = Answer(0, AnswerKind.TEXT, text)
    found = take_claims(LABELLED, answer, Options(model="m"))
    assert (len(found.taken), found.left_out) == (10, 2)
    assert len(taken(text, max_claims=3)) == 3


def test_what_claims_nothing_is_left_out() -> None:
    """Except by the source, which takes every sentence."""
    text = "Would you like to know more? Tea costs two euros."
    assert [each for each, _ in taken(text)] == ["Tea costs two euros."]
    assert len(taken(text, method="seed")) == 2


def test_a_passage_without_an_id_is_named_by_its_number() -> None:
    """As the prompt numbers it."""
    assert taken("Tea costs two euros [1].", UNLABELLED) == [("Tea costs two euros.", ["1"])]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": ""},
        {"model": "m", "method": "other"},
        {"model": "m", "target": 1.0},
        {"model": "m", "target": float("nan")},
        {"model": "m", "evidence_use": -0.1},
        {"model": "m", "max_claims": 0},
        {"model": "m", "max_concurrency": 0},
        {"model": "m", "top_logprobs": 21},
        {"model": "m", "top_logprobs": True},
        {"model": "m", "endpoint": "responses"},
        {"model": "m", "unknown": 1},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    """The model among them: there is none by default."""
    with pytest.raises(ValueError, match="validation error"):
        Options.model_validate(options)


def test_the_models_that_are_asked() -> None:
    """One."""
    assert Options(model="m").models == ("m",)
