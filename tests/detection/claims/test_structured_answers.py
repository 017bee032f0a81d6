"""JSON, lists and tables are judged piece by piece: the wrong piece alone, and a stream says what the whole answer says."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.context_model import PartedContextModel, context_encoder
from tests.fakes.engines import engine_of
from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.detectors.contradictions.detector import ContradictionDetector
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.engine import Engine
from truthlens.process.settings import models_folder
from truthlens.text.claims.claims import scored_claims

TWO = Plan("two", threshold=0.5, timeout_s=30.0, detectors=(DetectorSpec("encoder"), DetectorSpec("numbers")))
EVIDENCE = (
    "The reading room was designed by Ana Duarte and opened in 2014. Loans can be renewed twice. The east branch has 40 desks. "
    "A card costs 3 euros a year. The library is open from Monday to Friday."
)
EXCHANGE = Exchange(
    Endpoint.CHAT, "m", "What is known about the library?", (Passage(EVIDENCE, Provenance.TOOL),)
)
WRONG = {
    "room": {"architect": "Ana Duarte", "opened": 2014},
    "branches": [
        {"name": "east branch", "desks": 50},
        {"open": ["Monday", "Friday"], "card": {"fee": "3 euros"}},
    ],
}

LAYOUTS = {
    "compact": json.dumps(WRONG),
    "indented": json.dumps(WRONG, indent=2),
    "fenced": "```json\n" + json.dumps(WRONG, indent=2) + "\n```",
    "cut off": json.dumps(WRONG)[:-3],
}


@cache
def bundled() -> EncoderDetector:
    return load_encoder(Path(models_folder() / "truthlens-minilm-en-v2"))


def verdict_of(text: str) -> Verdict:
    async def score() -> Verdict:
        engine = engine_of({None: bundled()}, detectors={"numbers": NumberDetector(Options())})
        try:
            return (await engine.detect(TWO, EXCHANGE, [Answer(0, AnswerKind.TEXT, text)]))[0]
        finally:
            await engine.aclose()

    return asyncio.run(score())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_wrong_leaf_of_json_is_marked_alone(layout: str) -> None:
    text = LAYOUTS[layout]
    verdict = verdict_of(text)
    wrong = [text[c.start : c.end] for c in verdict.claims if c.risk is None or c.risk >= 0.5]
    assert wrong == ['"desks": 50']
    assert (verdict.score or 0.0) >= 0.9


@pytest.mark.parametrize("layout", LAYOUTS)
def test_findings_of_the_encoder_land_on_the_leaf_that_they_are_of(layout: str) -> None:
    """It reads JSON as lines of keys and values; each finding stands within one claim, and each claim has one."""
    text = LAYOUTS[layout]
    (found,) = bundled().detect_all(EXCHANGE, [Answer(0, AnswerKind.TEXT, text)])
    places = [(claim.start, claim.end) for claim in scored_claims(text)]
    assert len(places) == 10
    assert len(found.findings) == len(places)
    for finding, (start, end) in zip(found.findings, places, strict=True):
        assert start <= finding.start < finding.end <= end
    risky = [
        text[each.start : each.end]
        for each in found.findings
        if each.risk == max(f.risk for f in found.findings)
    ]
    assert risky == ['desks": 50']


def test_the_layout_of_json_changes_no_risk() -> None:
    compact, indented, fenced = (
        [claim.risk for claim in verdict_of(LAYOUTS[layout]).claims]
        for layout in ("compact", "indented", "fenced")
    )
    assert compact == indented == fenced


THREE = replace(TWO, decision="three", detectors=(*TWO.detectors, DetectorSpec("contradictions")))
ANSWERS = 1_000
FIGURES = st.sampled_from(["2014", "2015", "40", "50", "3", "3.00", "nine", "forty", "twice", "1,200"])
SENTENCES = st.one_of(
    st.sampled_from([
        "Loans can be renewed twice.", "Loans cannot be renewed twice.", "The red lamp is nine euros.", "Thanks!", "The library is open from Monday to Friday.",
        "The library is closed from Monday to Friday.", "The gate was blue, and there are 40 boats.", "The reading room was designed by Philip Kerr [S0].",
    ]),
    st.builds("The east branch has {} desks.".format, FIGURES),
    st.builds("A card costs {} euros a year [S0].".format, FIGURES),
    st.builds("The room opened in {}, but the hall has {} boats.".format, FIGURES, FIGURES),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.booleans(), st.none(), st.integers(0, 60), SENTENCES, st.sampled_from(["red", "Ana Duarte"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["desks", "fee", "hall", "opened"]), inner, max_size=3),
    ),
    max_leaves=6,
)
PIECES = st.one_of(
    SENTENCES.map("{} ".format),
    st.lists(SENTENCES, min_size=1, max_size=4).map(
        lambda rows: "\nThe rules are:\n- " + "\n- ".join(rows) + "\n"
    ),
    st.lists(FIGURES, min_size=1, max_size=3).map(
        lambda rows: "\n| desks | branch |\n|---|---|\n" + "".join(f"| {each} | east |\n" for each in rows)
    ),
    st.builds(
        lambda value, indent: "\n" + json.dumps(value, indent=indent) + "\n",
        VALUES,
        st.sampled_from([None, 2]),
    ),
    VALUES.map(lambda value: "\n```json\n" + json.dumps(value) + "\n```\n"),
    st.sampled_from(["\n## The hall\n", '\n{"fee": {"boats": ', "\n\n", "**", "\n1. ", " | "]),
)
WAYS = st.sets(st.sampled_from(["ahead", "answer", "ranges"]), min_size=1)


def test_streams_have_the_verdicts_of_whole_answers() -> None:
    """Claims, risks, score, status, coverage and what each detector found are equal, wherever the answer was cut while it was written.

    The answers hold every outcome of a claim, and whatever a stream asks of its scorer before it ends.
    """
    outcomes: Counter[ClaimOutcome] = Counter()
    engine = engine_of(
        {None: context_encoder(PartedContextModel())},
        detectors={"numbers": NumberDetector(Options()), "contradictions": ContradictionDetector()},
    )

    @settings(max_examples=ANSWERS, deadline=None, database=None)
    @given(st.lists(PIECES, min_size=1, max_size=5).map("".join), st.data())
    def compare(text: str, data: st.DataObject) -> None:
        places = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=3), label="cuts"))
        cuts = [(place, data.draw(WAYS)) for place in places]
        verdict = runner.run(streamed_as_whole(engine, text, cuts))
        outcomes.update({claim.outcome for claim in verdict.claims})

    with asyncio.Runner() as runner:
        compare()
        runner.run(engine.aclose())
    assert outcomes.keys() == set(ClaimOutcome)


async def streamed_as_whole(engine: Engine, text: str, cuts: Sequence[tuple[int, set[str]]]) -> Verdict:
    """The verdict on the whole text, which the scorer of a stream that was asked at ``cuts`` gives too."""
    following = engine.follow(THREE, EXCHANGE)
    before = 0
    for cut, ways in cuts:
        so_far = [Answer(0, AnswerKind.TEXT, text[:cut])]
        if "ahead" in ways and following.due(so_far):
            await following.ahead(so_far)
        if "answer" in ways:
            await following.detect(so_far, [[(before, cut)]])
        if "ranges" in ways:
            await following.detect_ranges(so_far, [[(before, cut)]])
        before = cut
    whole = [Answer(0, AnswerKind.TEXT, text)]
    (followed,) = (await following.detect(whole)).verdicts
    (at_once,) = await engine.detect(THREE, EXCHANGE, whole)
    assert timeless(followed) == timeless(at_once)
    return at_once


def timeless(verdict: Verdict) -> Verdict:
    """The verdict without how long its detectors took."""
    return replace(verdict, results=tuple(replace(each, details={}) for each in verdict.results))
