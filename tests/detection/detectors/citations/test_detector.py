"""The detector of citations: when it abstains, what it scores, its spans, and answers that grow."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import Aggregation, AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Message, Passage
from truthlens.core.records.explanation import DifferenceKind, SpanKind
from truthlens.core.records.verdict import DetectorResult
from truthlens.core.registry import Context, detector_types
from truthlens.delivery.bodies import verdict_object
from truthlens.detection.building import OneModel, build_engine
from truthlens.detection.detectors.citations.detector import CitationDetector
from truthlens.detection.detectors.citations.report import Options
from truthlens.detection.fusion import fuse
from truthlens.detection.interfaces import Detector
from truthlens.policy import InvalidPolicyError
from truthlens.policy.compile import compile_policy

OPEN = "The library in Elm Street opens at nine on weekdays"
LONG = "The library in Elm Street was founded by three brothers in the year of the flood"


def exchange(*passages: Passage, shown: str = "[S0] [S1]") -> Exchange:
    given_ = passages or (
        Passage("It opens at nine.", Provenance.TOOL, id="S0"),
        Passage("It closes at six.", Provenance.TOOL, id="S1"),
    )
    return Exchange(Endpoint.CHAT, "m", "When?", given_, messages=(Message("user", shown),))


def plain(text: str) -> Passage:
    return Passage(text, Provenance.TOOL)


def result(
    text: str, known: Exchange | None = None, encoder: Detector | None = None, **options: object
) -> DetectorResult:
    detector = CitationDetector(Options.model_validate(options), encoder)
    (found,) = detector.detect_all(known or exchange(), [answer(text)], aggregation=None, stop=lambda: False)
    return found


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


def test_item_6_lists_are_shown() -> None:
    """Which ids are valid and invalid, and which sentences cite nothing, as the source lists them; counts are for the log."""
    found = result(f"{OPEN} [S0]. {OPEN} [S9]. {LONG}.")
    assert (found.report["valid_citations"], found.report["invalid_citations"]) == (["S0"], ["S9"])
    assert found.report["uncited_sentences"] == [f"{LONG}."]
    assert (found.details["valid_citations"], found.details["uncited_sentences"]) == (1, 1)
    shown = verdict_object(fuse([found], threshold=0.6), text="…")["detectors"][0]  # type: ignore[index]
    assert shown["report"]["invalid_citations"] == ["S9"]
    assert result("Yes.").report["note"] == "No valid claims found, cannot detect hallucinations"


@pytest.mark.parametrize(
    ("known", "text", "abstains"),
    [
        (exchange(), f"{OPEN}.", False),
        (exchange(), f"{OPEN} [S0].", False),
        (exchange(plain("Nine.")), f"{OPEN}.", True),
        (exchange(plain("Nine.")), f"{OPEN} [7].", True),
        (exchange(plain("[1] Nine.")), f"{OPEN}.", True),
        (exchange(plain("[1] Nine.")), f"{OPEN} [1].", False),
        (exchange(plain("[1] Nine.")), f"{OPEN} [2].", False),
        (exchange(replace(plain("Nine."), title="handbook.pdf")), f"{OPEN}.", True),
        (exchange(replace(plain("Nine."), title="handbook.pdf")), f"{OPEN} [handbook.pdf].", False),
        (exchange(replace(plain("Nine."), title="handbook.pdf")), f"{OPEN} [invented.pdf].", False),
        (exchange(replace(plain("Nine."), title="handbook.pdf")), f"{OPEN} [1].", True),
        (exchange(replace(plain("Nine."), id="x-1"), shown="no id"), f"{OPEN}.", True),
        (exchange(replace(plain("Nine."), id="x-1"), shown='{"id": "x-1"}'), f"{OPEN}.", False),
        (exchange(Passage("Nine.", Provenance.DOCUMENTS)), f"{OPEN}.", True),
        (exchange(Passage("Nine.", Provenance.DOCUMENTS)), f"{OPEN} [3].", False),
        (exchange(), "Yes.", True),
    ],
)
def test_item_8_it_abstains_unless_ids_were_shown(known: Exchange, text: str, abstains: bool) -> None:
    """Numbers and titles bind only an answer that uses them."""
    found = result(text, known)
    assert (found.abstained, found.score is None, found.floor == 0.0 or not abstains) == (
        abstains,
        abstains,
        True,
    )


def test_item_8_a_plan_can_require_citations() -> None:
    """Then an answer without one is at risk, whatever the prompt shows."""
    found = result(f"{OPEN}.", exchange(plain("Nine.")), require_citations=True)
    assert (found.score, found.details["level"]) == (1.0, "high")


def test_an_invalid_citation_is_a_span_and_a_floor() -> None:
    """At the lower end of high, so that score, risk and threshold agree (items 11 and 14)."""
    text = f"{OPEN} [S0]. It closes at six on all of the weekdays [S0][S7]."
    found = result(text)
    (span,) = found.spans
    assert (text[span.start : span.end], span.score, found.floor, found.score) == ("[S7]", 0.601, 0.601, 0.0)
    assert span.explanation is not None
    assert span.explanation.kind is SpanKind.INVALID_CITATION
    assert span.explanation.differences[0].kind is DifferenceKind.CITATION
    assert found.explanation == "2 claims, 1 source cited; 1 citation of no passage"


def test_uncited_sentences_are_spans_at_the_lower_end_of_moderate() -> None:
    """The first three, cut short."""
    found = result(f"{OPEN} [S0]. " * 9 + f"{LONG}. ")
    (span,) = found.spans
    assert span.explanation is not None
    assert (span.explanation.kind, span.score, found.floor) == (SpanKind.UNCITED, 0.301, 0.301)


def test_details_hold_no_text() -> None:
    """Figures and codes alone, the keys of the source among them."""
    details = result(f"{OPEN} [S0]. {LONG} [Secret-9].").details
    assert {"has_hallucination_risk", "hallucination_risk_score", "citation_ratio", "risk_by_seed"} <= set(
        details
    )
    assert not any("S0" in str(value) or "ecret" in str(value) for value in details.values())


class Encoder:
    """Finds a sentence supported by the passages that share a rare word with it."""

    model = "fake"

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        return True

    def detect_all(
        self, exchange: Exchange, answers: Sequence[Answer], *, aggregation: Aggregation | None, stop: Any
    ) -> list[DetectorResult]:
        rare = ("nine", "six")
        return [
            DetectorResult("encoder", 0.1 if any(w in a.text and w in p.text for w in rare for p in exchange.passages) else 0.9)
            for a in answers
        ]  # fmt: skip


def test_item_9_a_wrong_citation_is_a_finding_of_its_own() -> None:
    """The passage says nothing of it, another one does; what none says is left to the encoder."""
    text = f"{OPEN} [S1]. It closes at six on all of the days [S1]. It opens at ten on Sundays [S1]."
    assert result(text, encoder=Encoder()).spans == ()
    found = result(text, encoder=Encoder(), check_support=True)
    (span,) = found.spans
    assert span.explanation is not None
    assert (span.explanation.kind, span.passage, span.start) == (SpanKind.WRONG_CITATION, 0, 0)
    assert (found.floor, found.details["codes"]) == (0.601, "wrong-citation")


def test_parts_of_a_growing_answer() -> None:
    """Only what they cite wrongly counts; the whole answer is judged as at once."""
    text = f"```\n[9]\n```\n{OPEN}. [S0] {LONG}. It closes at six [S7]. So [S1"
    at = [text.index(each) for each in ("[9]", OPEN, LONG, "It closes", "So")]
    ranges = list(zip(at, [*at[1:], len(text)], strict=True))
    detector = CitationDetector(Options())
    follower = detector.follow(exchange())
    for _ in range(2):
        found = follower.detect_ranges([answer(text)], [ranges], aggregation=None, stop=lambda: False)
        assert [(each.floor, len(each.spans)) for each in found] == [(0.0, 0)] * 3 + [(0.601, 1), (0.0, 0)]
    span = found[3].spans[0]
    assert text[span.start : span.end] == "[S7]"
    whole, *_ = follower.detect_all([answer(text)], [ranges], aggregation=None, stop=lambda: False)
    assert whole == detector.detect_all(exchange(), [answer(text)], aggregation=None, stop=lambda: False)[0]
    assert not follower.due([answer(text)])


def test_parts_of_an_answer_that_need_not_cite_are_not_judged() -> None:
    """They abstain as the whole does."""
    follower = CitationDetector(Options()).follow(exchange(plain("Nine.")))
    (found,) = follower.detect_ranges([answer("Nine [7].")], [[(0, 9)]], aggregation=None, stop=lambda: False)
    assert found.abstained


def test_it_stops() -> None:
    """Where nobody waits any more."""
    with pytest.raises(StoppedError):
        CitationDetector(Options()).detect_all(exchange(), [answer("x")], aggregation=None, stop=lambda: True)


@given(st.text(st.sampled_from("[]S019 .\n`-（）【】a")), st.lists(st.integers(0, 60), max_size=6))
def test_spans_lie_in_their_parts(text: str, cuts: list[int]) -> None:
    """Wherever a stream is cut."""
    at = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    ranges = list(itertools.pairwise(at))
    follower = CitationDetector(Options()).follow(exchange())
    found = follower.detect_ranges([answer(text)], [ranges], aggregation=None, stop=lambda: False)
    for (start, end), each in zip(ranges, found, strict=True):
        assert all(start <= span.start < span.end <= end for span in each.spans)


async def test_a_policy_lists_it() -> None:
    """With its options; its explanations stay when those of the other spans are added."""
    policy = compile_policy("hallucination: {detectors: [{name: citations, method: seed}]}\n", file="p.yaml")
    engine = build_engine([policy.default], OneModel(Encoder()))
    text = answer(f"{OPEN} [S7].")
    verdicts = await engine.detect(policy.default, exchange(), [text])
    (verdict,) = await engine.explain(exchange(), [text], verdicts, time_s=60)
    assert (verdict.status, verdict.flagged, verdict.results[0].details["method"]) == (
        Status.CHECKED,
        True,
        "seed",
    )
    kinds = [span.explanation.kind for span in verdict.spans if span.explanation is not None]
    assert kinds == [SpanKind.INVALID_CITATION]
    await engine.aclose()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: citations, methods: seed}", "has no option 'methods'"),
        ("{name: citations, method: best}", "claims"),
        ("{name: citations, uncited_chars: -1}", "greater than or equal to 0"),
        ("{name: citations, require_citations: 3}", "valid boolean"),
        ("{name: citations, moderate_risk: 0.7}", "must be below high_risk"),
        ("{name: citations, high_ratio: 0.8}", "must not be above low_ratio"),
    ],
)
def test_wrong_options_are_refused(entry: str, message: str) -> None:
    """When the policy is loaded."""
    with pytest.raises(InvalidPolicyError, match=message):
        compile_policy(f"hallucination: {{detectors: [{entry}]}}\n", file="p.yaml")


def test_the_model_is_loaded_only_to_check_support() -> None:
    """A plan with citations alone needs none."""
    declared = detector_types()["citations"]
    plan = compile_policy("hallucination: {detectors: [citations]}\n", file="p.yaml").default

    class NoModels:
        def encoder(self, plan: object) -> object:
            raise AssertionError("no model was asked for")

    assert declared.build(Context(plan, Options(), NoModels())).model == ""
    with pytest.raises(AssertionError):
        declared.build(Context(plan, Options(check_support=True), NoModels()))


HEDGED = exchange(Passage("Most visitors of the old library come by bus.", Provenance.TOOL, id="S0"))


def test_a_claim_that_is_surer_than_the_evidence_is_counted_and_changes_nothing() -> None:
    """Its precision on real answers is not known, so that the score is left alone unless the plan says otherwise."""
    text = "All visitors of the old library come by bus [S0]."
    counted, off = result(text, HEDGED), result(text, HEDGED, over_extrapolation="off")
    assert counted.details["over_extrapolations"] == 1
    assert counted.explanation.endswith("1 claim surer than the evidence")
    assert "over_extrapolations" not in off.details
    assert (
        (counted.score, counted.floor, counted.spans) == (off.score, off.floor, off.spans) == (0.0, 0.0, ())
    )
    fair = result("Most visitors of the old library come by bus [S0].", HEDGED)
    assert fair.details["over_extrapolations"] == 0


def test_where_the_plan_says_so_it_is_a_finding() -> None:
    """With the certain word, the sentence that hedges, and the level moderate."""
    text = "It is old [S0]. All visitors of the old library come by bus [S0]."
    found = result(text, HEDGED, over_extrapolation="flag")
    (span,) = found.spans
    assert text[span.start : span.end] == "All"
    assert span.explanation is not None
    assert span.explanation.kind is SpanKind.OVER_EXTRAPOLATION
    (difference,) = span.explanation.differences
    assert difference.kind is DifferenceKind.CERTAINTY
    assert difference.evidence is not None
    assert HEDGED.passages[0].text[slice(*difference.evidence)] == "Most"
    assert found.floor == pytest.approx(0.301)
    assert found.details["codes"] == "over-extrapolation"
