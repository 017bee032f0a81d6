"""The bundled model through the engine: what it must find however long the input is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.detection.claimless_table import ANYWHERE, TOPICS
from tests.detection.hostile_forms import ANSWERS, FORMS, SHORT
from tests.fakes.engines import engine_of
from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery.headers import format_score
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.process.settings import models_folder

SHIPPED = 0.6
"""The threshold of the shipped policy; the model's recommended one is lower."""
FOLDER = models_folder() / "truthlens-minilm-en-v2"
TOWNS = ("Arvik", "Bellmoor", "Cresswick", "Dunhollow", "Eastmere", "Fallowby", "Grenholt", "Harrowgate")
TRADES = ("bakery", "pharmacy", "bookshop", "bicycle shop", "hardware store")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def facts(count: int) -> list[str]:
    """Sentences that differ from each other in place, trade and day."""
    return [
        f"The {TRADES[i % 5]} number {i + 1} in {TOWNS[i % 8]} opens at {7 + i % 4} and is closed on {DAYS[i % 5]}."
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def encoder() -> EncoderDetector:
    return load_encoder(Path(FOLDER))


async def assess(encoder: EncoderDetector, passages: list[str], query: str, answer: str) -> Verdict:
    engine = engine_of({None: encoder})
    evidence = tuple(Passage(text, Provenance.DOCUMENTS) for text in passages)
    plan = Plan("default", threshold=encoder.manifest.recommended_threshold, timeout_s=120)
    exchange = Exchange(Endpoint.CHAT, "", query, evidence)
    (verdict,) = await engine.detect(plan, exchange, (Answer(0, AnswerKind.TEXT, answer),))
    await engine.aclose()
    return verdict


def found(verdict: Verdict, start: int) -> bool:
    """Whether a span reaches into the text after ``start``."""
    return any(span.end > start for span in verdict.spans)


async def test_a_claim_at_the_end_of_a_6000_token_answer_is_found(encoder: EncoderDetector) -> None:
    """No token of the answer is dropped: the last sentence of a very long answer is scored like the first."""
    sentences = facts(360)
    supported = " ".join(sentences)
    claim = " The mayor of Zanderbrook was convicted of stealing 94 million dollars in 1987."
    verdict = await assess(encoder, sentences, "When are the shops open?", supported + claim)
    assert verdict.status is Status.CHECKED
    assert verdict.coverage is not None
    assert verdict.coverage.answer_tokens_scored == verdict.coverage.answer_tokens >= 6000
    assert found(verdict, len(supported))
    assert verdict.flagged


async def test_a_claim_contradicted_by_the_last_of_40_passages_is_found(encoder: EncoderDetector) -> None:
    """The passage that matters is selected wherever it stands."""
    sentences = facts(39 * 6)
    passages = [" ".join(sentences[i * 6 : i * 6 + 6]) for i in range(39)]
    passages.append(
        "The Larkfield observatory was founded in 1911 and owns a telescope with a mirror of 72 inches."
    )
    right = "The Larkfield observatory owns a telescope with a mirror of 72 inches."
    wrong = "The Larkfield observatory owns a telescope with a mirror of 310 inches."
    query = "How large is the mirror of the Larkfield telescope?"
    supported = await assess(encoder, passages, query, right)
    contradicted = await assess(encoder, passages, query, wrong)
    assert contradicted.status is supported.status is Status.CHECKED
    assert contradicted.coverage is not None
    assert contradicted.coverage.evidence_ratio == 1.0
    assert found(contradicted, wrong.index("310"))
    assert contradicted.score is not None
    assert supported.score is not None
    assert contradicted.score > supported.score + 0.2
    assert not supported.flagged


@pytest.mark.parametrize(
    ("context", "query", "right", "wrong"),
    [
        (
            "The warranty on the Tarn kettle lasts 24 months. Limescale damage is not covered.",
            "How long is the warranty?",
            "The warranty lasts 24 months.",
            "The warranty lasts 10 years and includes limescale damage.",
        ),
        (
            "Osprey Bank charges a fee of 3 euros for paper statements. Online statements are free of charge.",
            "What do statements cost?",
            "Paper statements cost 3 euros, online statements are free.",
            "Paper statements cost 45 euros, and Hargrove Insurance refunds half of that.",
        ),
        (
            "The ferry to Ness Island leaves at 9:15 and at 14:30. Dogs travel free.",
            "When does the ferry leave?",
            "The ferry leaves at 9:15 and 14:30.",
            "The ferry leaves every ten minutes from Glasgow Airport, piloted by Captain Morrow.",
        ),
    ],
)
async def test_a_plain_error_scores_higher_than_the_right_answer(
    encoder: EncoderDetector, context: str, query: str, right: str, wrong: str
) -> None:
    """Invented figures and names against the same facts rightly told."""
    supported = await assess(encoder, [context], query, right)
    invented = await assess(encoder, [context], query, wrong)
    assert supported.score is not None
    assert invented.score is not None
    assert invented.score > supported.score + 0.2
    assert invented.spans
    assert not supported.flagged


@pytest.mark.parametrize(
    "answer",
    [
        "The provided context does not say anything about that.",
        "The passages do not say who founded it.",
        "Would you like to know more about the opening hours?",
    ],
)
async def test_declines_and_questions_are_not_flagged(encoder: EncoderDetector, answer: str) -> None:
    """They are no hallucinations; as no phrases of the closed list they are scored."""
    verdict = await assess(
        encoder, ["The museum opens at ten. Tickets cost 8 euros."], "Who founded it?", answer
    )
    assert verdict.status is Status.CHECKED
    assert 0.0 < (verdict.score or 0.0) < SHIPPED


_INVOICE = "Invoice of 5 March 2024 from Halden Tools: one tool box at 48,000 yen, due within 30 days. Contact: Petra Vogel."
_LAKE = "Amber Lake is 4.5 km long and 32 m deep. The water is cleaned by 12 percent of the fees. Parking costs three euros."
_PLAN = (
    "The basic plan costs 10 dollars a month and includes 5 GB of storage. It does not include phone support."
)


@pytest.mark.parametrize(
    ("context", "right", "wrong"),
    [
        (
            _INVOICE,
            {
                "vendor": "Halden Tools",
                "date": "2024-03-05",
                "amount": 48000,
                "currency": "JPY",
            },
            [{"amount": 84000}, {"contact": "Olaf Berg"}],
        ),
        (
            _LAKE,
            {
                "name": "Amber Lake",
                "length_km": 4.5,
                "max_depth_m": 32,
                "fee_share": 0.12,
                "parking": 3,
            },
            [{"name": "Lake Ontario"}, {"fee_share": 0.21}],
        ),
        (
            _PLAN,
            {
                "plans": [{"name": "basic", "price": 10, "storage": "5 GB", "phone_support": False}],
            },
            [
                {"plans": [{"name": "basic", "price": 65}]},
                {"plans": [{"name": "basic", "storage": "900 films in colour"}]},
            ],
        ),
    ],
)
@pytest.mark.parametrize("form", ["{}", "Here it is:\n\n```json\n{}\n```"])
async def test_right_json_is_not_flagged_and_wrong_values_are(
    encoder: EncoderDetector,
    context: str,
    right: dict[str, object],
    wrong: list[dict[str, object]],
    form: str,
) -> None:
    """Keys and other ways to write a number are no errors; another value is."""
    told = form.replace("{}", json.dumps(right, indent=2))
    supported = await assess(encoder, [context], "Extract it as JSON.", told)
    assert supported.score is not None
    assert supported.score < SHIPPED
    for change in wrong:
        text = form.replace("{}", json.dumps(right | change, indent=2))
        invented = await assess(encoder, [context], "Extract it as JSON.", text)
        assert invented.flagged, change
        begin = next(
            place for place, (one, other) in enumerate(zip(text, told, strict=False)) if one != other
        )
        assert any(span.end > begin for span in invented.spans), change


async def test_claims_in_polite_frames_have_a_score(encoder: EncoderDetector) -> None:
    """Whatever the frame, hardly a claim in it comes out with nothing; honest talk is hardly ever flagged."""
    topics = [topic for topic in TOPICS if topic.query.isascii()]
    hostile = [(each, topic) for topic in topics for each in topic.hostile]
    honest = [(each, topic) for topic in topics for each in (*topic.honest, *ANYWHERE)]
    found = [await assess(encoder, [topic.context], topic.query, text) for text, topic in hostile]
    silent = [text for (text, _), verdict in zip(hostile, found, strict=True) if not verdict.score]
    assert len(silent) <= 0.03 * len(hostile), silent
    assert sum(verdict.flagged for verdict in found) >= 0.7 * len(hostile)
    verdicts = [await assess(encoder, [topic.context], topic.query, text) for text, topic in honest]
    assert sum((verdict.score or 0.0) >= SHIPPED for verdict in verdicts) <= 0.02 * len(honest)


async def test_no_form_of_a_hostile_answer_has_the_score_of_silence(encoder: EncoderDetector) -> None:
    """A sample of them, in one form each, in English: none is checked with 0.00; with a fake model all are tried elsewhere."""
    dice = random.Random(23)  # no secret: repeatable draws
    told = [(text, query) for text, query in ANSWERS if text.isascii()]
    silent = []
    for text, query in [*SHORT, *dice.sample(told, 60)]:
        form = dice.choice(sorted(FORMS))
        verdict = await assess(encoder, [topics_of(query)], query, FORMS[form](text))
        assert verdict.score is not None or verdict.reason is Reason.LANGUAGE
        if verdict.status is Status.CHECKED and format_score(verdict.score or 0.0, SHIPPED) == "0.00":
            silent.append(FORMS[form](text))
    assert silent == []


def topics_of(query: str) -> str:
    """The evidence of a question of the tables; of another one that of the first."""
    return next((topic.context for topic in TOPICS if topic.query == query), TOPICS[0].context)


def test_an_answer_scores_the_same_whatever_it_is_scored_with(encoder: EncoderDetector) -> None:
    """An int8 graph scales by batch, so windows go one by one: choices beside it change no figure of an answer."""
    sentences = facts(12)
    evidence = Passage(" ".join(sentences), Provenance.DOCUMENTS)
    exchange = Exchange(Endpoint.CHAT, "", "When do the shops open?", (evidence,))
    texts = (" ".join(sentences[:3]), sentences[4].replace("closed", "open"), "Dunhollow has 80 pharmacies.")
    answers = [Answer(place, AnswerKind.TEXT, text) for place, text in enumerate(texts)]
    together = encoder.detect_all(exchange, answers)
    alone = [encoder.detect(exchange, answer) for answer in answers]
    assert [(result.score, result.spans) for result in together] == [
        (result.score, result.spans) for result in alone
    ]


GERMAN = (
    "Die Gebühr beträgt zwölf Euro.",
    "Berlin hat 3,7 Millionen Einwohner.",
    "Der Vertrag endet nach zwei Jahren und kann jederzeit gekündigt werden.",
)


@pytest.mark.parametrize("answer", [*GERMAN, " ".join(GERMAN), "La taxe est de douze euros par personne."])
async def test_an_answer_in_another_language_of_latin_letters_is_not_checked(
    encoder: EncoderDetector, answer: str
) -> None:
    """The bundled model reads English: its figure on German would mean nothing."""
    verdict = await assess(
        encoder, ["The fee is twelve euros. Berlin has 3.7 million inhabitants."], "", answer
    )
    assert (verdict.status, verdict.reason, verdict.score) == (Status.UNCHECKED, Reason.LANGUAGE, None)


async def test_of_an_answer_in_two_languages_the_foreign_part_is_not_checked(
    encoder: EncoderDetector,
) -> None:
    """The English sentence has its score, and the coverage says that it is not all."""
    answer = f"The fee for a transfer within the country is twelve euros. {GERMAN[0]}"
    verdict = await assess(
        encoder, ["The fee for a transfer within the country is twelve euros."], "", answer
    )
    assert (verdict.status, verdict.reason) == (Status.PARTIAL, Reason.LANGUAGE)
    assert verdict.score is not None
    assert verdict.coverage is not None
    assert verdict.coverage.answer_tokens_scored < verdict.coverage.answer_tokens


async def test_evidence_in_another_language_is_not_read(encoder: EncoderDetector) -> None:
    """Nothing that the model reads is there to compare with."""
    verdict = await assess(encoder, [" ".join(GERMAN)], "", "The fee is twelve euros for every transfer.")
    assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.LANGUAGE)


LIBRARY = (
    "The reading room was designed by Ana Duarte and opened by Mayor Philip Kerr in 2014. Loans can be renewed twice unless another member has "
    "reserved the book. The east branch has more desks than the west branch. Laptops are lent only to members over 16."
)


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("It was designed by Philip Kerr and opened by Ana Duarte.", True),
        ("Loans cannot be renewed.", True),
        ("Mayor Kerr opened the room that Ana Duarte designed.", False),
        ("If nobody else is waiting for it, you can extend a loan two times.", False),
        ("You must be a member and older than 16 to take a laptop home.", False),
        ("A book that someone else has reserved can't be renewed.", False),
    ],
)
def test_the_shipped_policy_reads_who_did_what(answer: str, flagged: bool) -> None:
    """In the newcomer's own words; the bundled reader tells these, and the encoder alone does not."""
    target = find_target(offline_settings(None, None, threads=1), "default", model=None, threshold=None)
    with target.scorer(None) as scorer:
        assert scorer.verdict_on("Tell me about the library.", [LIBRARY], answer).flagged is flagged
