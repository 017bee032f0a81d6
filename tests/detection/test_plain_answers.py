"""Detectors beside citations: marks change no score, wherever they stand, whole and while an answer grows."""

from __future__ import annotations

import pytest

from bench.detection.citation_marks import FORMS, POLICY, measure
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.engine import Engine
from truthlens.mitigation.standard.correction_prompt import correction_prompt
from truthlens.policy import load_policy
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder
from truthlens.text.sentences import sentences

HANDBOOK = "The reading room opens at nine. Loans can be renewed twice. A lost card costs 25 dollars."
FEES = "Laptops are lent to members over sixteen for two hours."
EXCHANGE = Exchange(
    Endpoint.CHAT,
    "m",
    "What are the rules of the library?",
    (
        Passage(HANDBOOK, Provenance.TOOL, id="S0", title="Library handbook"),
        Passage(FEES, Provenance.TOOL, id="S1"),
    ),
)
PLAIN = "The reading room opens at nine. The fee for renewing is 90 dollars. A lost card costs 25 dollars."
CITED = "The reading room opens at nine [S0]. The fee for renewing is 90 dollars. [S0] A lost card costs 25 dollars.[S0][S1]"
LISTED = f"{CITED}\n\nSources:\n- [S0] Library handbook\n- [S1]"


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = load_policy(POLICY).plan_named("default")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def engine(plan: Plan) -> Engine:
    shelf = models_folder()
    return build_engine([plan], LateModel(lambda: load_encoder(shelf / BUNDLED_MODEL), shelves=(shelf,)))


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


@pytest.mark.slow
async def test_marks_of_every_form_move_no_score() -> None:
    """Of true and wrong answers alike; ``make bench-citation-marks`` does it with 400 of them."""
    assert [form for form, moved, _, _ in await measure(6, FORMS) if moved] == []


async def test_spans_stand_where_the_answer_has_them(plan: Plan, engine: Engine) -> None:
    """The score is that of the answer without marks; what is flagged is the wrong words, and no mark."""
    bare, cited, listed = await engine.detect(plan, EXCHANGE, [answer(PLAIN), answer(CITED), answer(LISTED)])
    assert bare.flagged
    assert cited.score == pytest.approx(bare.score)
    assert listed.score == pytest.approx(bare.score)
    for verdict in (cited, listed):
        assert "90" in "".join(LISTED[span.start : span.end] for span in verdict.spans)
        assert not any("[" in LISTED[span.start : span.end] for span in verdict.spans)
    (explained,) = await engine.explain(EXCHANGE, [answer(LISTED)], [listed], time_s=30.0)
    told = [span.explanation for span in explained.spans if span.explanation is not None]
    assert told
    stated = {LISTED[each.start : each.end] for one in told for each in one.differences}
    assert "90 dollars" in stated
    assert not any("S0" in each or "Sources" in each for each in stated)


async def test_a_stream_is_read_as_the_whole_answer(plan: Plan, engine: Engine) -> None:
    """However the text is cut, also within marks; a part of marks alone holds nothing that could be false."""
    (whole,) = await engine.detect(plan, EXCHANGE, [answer(LISTED)])
    for step in (1, 7, 50):
        following = engine.follow(plan, EXCHANGE)
        for end in range(step, len(LISTED), step):
            if following.due([answer(LISTED[:end])]):
                await following.ahead([answer(LISTED[:end])])
        parts = [*sentences(LISTED), (LISTED.index("[S1]"), LISTED.index("[S1]") + 4)]
        followed = await following.detect([answer(LISTED)], [parts])
        assert followed.verdicts[0].score == whole.score
        assert followed.verdicts[0].spans == whole.spans
        (near,) = await following.detect_ranges([answer(LISTED)], [parts])
        for verdict, (start, end) in zip(near, parts, strict=True):
            assert all(start <= span.start <= span.end <= end for span in verdict.spans)
        assert (near[-1].status, near[-1].score) == (Status.CHECKED, 0.0)


async def test_an_answer_of_marks_alone_is_not_checked(plan: Plan, engine: Engine) -> None:
    """Nothing of it was scored, so nothing is said of it."""
    (verdict,) = await engine.detect(plan, EXCHANGE, [answer("[S0] [S1]")])
    assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.EMPTY_ANSWER)


async def test_a_correction_keeps_right_marks(plan: Plan, engine: Engine) -> None:
    """The correcting model is shown the wrong words alone as doubtful, and is told that marks stay."""
    (verdict,) = await engine.detect(plan, EXCHANGE, [answer(CITED)])
    prompt = correction_prompt(EXCHANGE, CITED, verdict)
    assert "with the answer's citation marks" in prompt
    doubtful = [line for line in prompt.splitlines() if line.startswith("- span ")]
    assert doubtful
    assert not any("[S" in line for line in doubtful)
