"""The examples of the documents that the product is built from, under the white paper's own YAML and with the bundled model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.fakes.finance_database import fill
from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import plain_exchange
from truthlens.core.records.verdict import Verdict
from truthlens.lab.evaluate.plan_scorer import PlanScorer

EXAMPLES_FOLDER = Path(__file__).parents[1] / "config" / "examples"
WHITE_PAPER = EXAMPLES_FOLDER / "whitepaper.yaml"
NOI = "The NOI for the property was $1,200,000 in Q3 2024."
SHEKELS = "The appraiser set the compensation at 50,000 shekels."


@dataclass(frozen=True)
class Example:
    """What a document says of an answer; where it gives no wording, the words are ours and the facts its own."""

    source: str
    evidence: str
    query: str
    answer: str
    flagged: bool


EXAMPLES = (
    Example("white paper 2.1, intrinsic", "The meeting is on Tuesday.", "When is the meeting?",
            "The meeting is scheduled for Wednesday.", flagged=True),
    Example("white paper 2.1, intrinsic, one word", "The meeting is on Tuesday.", "When is the meeting?", "Wednesday", flagged=True),
    Example("white paper 2.1, intrinsic, as written", "会议在周二。", "会议什么时候？", "会议安排在周三。", flagged=True),
    Example("white paper 2.1, intrinsic, but right", "The meeting is on Tuesday.", "When is the meeting?",
            "The meeting is scheduled for Tuesday.", flagged=False),
    Example("white paper 2.1, extrinsic", "The company's Q3 earnings rose on strong sales of the new phone.",
            "What does the report say?",
            "Q3 earnings rose on strong sales of the new phone. The company forecasts a further rise in Q4.", flagged=True),
    Example("white paper 2.1, fabrication", "The study of the city's trees found that shade lowers summer temperatures.",
            "What did the study find?", "According to Smith et al. (2023), shade lowers summer temperatures.", flagged=True),
    Example("numeric claims, example 1", NOI, "What was the NOI?", "The NOI was $1.2M for the property.", flagged=False),
    Example("numeric claims, example 2", NOI, "What was the NOI?", "The NOI was $1.5M for the property.", flagged=True),
    Example("numeric claims, percentage", "Occupancy of the property was 85%.", "What was the occupancy?", "95% occupancy",
            flagged=True),
    Example("numeric claims, ratio", "The property has a DSCR of 1.25.", "What is the DSCR?", "DSCR 1.5", flagged=True),
    Example("numeric claims, ratio, a sentence", "The property has a DSCR of 1.25.", "What is the DSCR?", "The DSCR is 1.5.",
            flagged=True),
    Example("numeric claims, ratio, the same", "The property has 1.25x coverage.", "What is the coverage?",
            "The coverage is 1.25x.", flagged=False),
    Example("numeric claims, date", "The NOI was $1.2M in Q3 2024.", "When was the NOI $1.2M?", "The NOI was $1.2M in Q4 2024.",
            flagged=True),
    Example("evidence budget, test 1", SHEKELS, "What did the appraiser set?",
            "The appraiser set a compensation of 50,000 shekels.", flagged=False),
    Example("evidence budget, test 2", SHEKELS, "What did the appraiser set?",
            "The appraiser set a compensation of 80,000 shekels.", flagged=True),
    Example("evidence budget, test 3", SHEKELS, "What did the appraiser set?",
            "The appraiser was born in Haifa and studied law.", flagged=True),
    Example("guidelines, a contradiction", "Refunds are made within 14 days of the return.", "How long does a refund take?",
            "Refunds are made within 30 days of the return.", flagged=True),
    Example("guidelines, over-extrapolation", "In the trial the drug lowered blood pressure in adults over 60.",
            "What did the trial show?", "The drug lowered blood pressure in adults over 60 and cures diabetes in children.",
            flagged=True),
)  # fmt: skip
TOLERATED = (
    Example("numeric claims, example 3", NOI, "What was the NOI?", "The NOI was $1.25M for the property.", flagged=False),
    Example("numeric claims, percentage within 2 %", "Occupancy of the property was 85%.", "What was the occupancy?",
            "Occupancy was 86%.", flagged=False),
)  # fmt: skip


@pytest.fixture(scope="module")
def scorer() -> Iterator[PlanScorer]:
    """The default decision of the white paper's YAML."""
    with find_target(offline_settings(WHITE_PAPER, None), "default").scorer() as opened:
        yield opened


def numbers_of(verdict: Verdict) -> float | None:
    """What the detector `numbers` says alone."""
    return next(result.score for result in verdict.results if result.detector == "numbers")


@pytest.mark.parametrize(
    "example",
    [*EXAMPLES, *TOLERATED],
    ids=lambda example: example.source,
)
def test_an_example_comes_out_as_its_source_says(scorer: PlanScorer, example: Example) -> None:
    """At the threshold that the white paper writes; whatever is flagged or not was scored."""
    verdict = scorer.verdict_on(example.query, [example.evidence], example.answer)
    if example in TOLERATED and numbers_of(verdict) != 0.0:
        pytest.fail("numbers does not find the value within its tolerance")
    assert verdict.score is not None
    assert (verdict.threshold, verdict.flagged) == (0.6, example.flagged)


def test_of_several_claims_the_unsupported_one_is_flagged(scorer: PlanScorer) -> None:
    """Evidence budget, test 4: the marks lie in the claim that the evidence does not have, and not in the other."""
    supported = "The appraiser set a compensation of 50,000 shekels."
    answer = f"{supported} She was paid 900 shekels by the town of Haifa."
    verdict = scorer.verdict_on("What did the appraiser set?", [SHEKELS], answer)
    assert verdict.flagged
    assert verdict.spans
    assert all(span.start > len(supported) for span in verdict.spans)


@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_answer_is_no_hallucination(scorer: PlanScorer, answer: str) -> None:
    """Guidelines, "empty answer": nothing is flagged; and the verdict says that nothing was checked."""
    verdict = scorer.verdict_on("What did the appraiser set?", [SHEKELS], answer)
    assert (verdict.flagged, verdict.status, verdict.reason) == (
        False,
        Status.UNCHECKED,
        Reason.EMPTY_ANSWER,
    )


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The NOI of the property was $1.5M.", True),
        ("Occupancy of the property was 95%.", True),
        ("The DSCR of the property was 1.25.", False),
        ("Occupancy of the property was 85%.", False),
    ],
)
def test_a_database_proves_or_refutes_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, flagged: bool
) -> None:
    """Numeric claims, "database verification": with the source's own tables beside the white paper's YAML."""
    url = f"sqlite:///{tmp_path / 'finance.db'}"
    fill(sa.create_engine(url))
    monkeypatch.setenv("FINANCE_DATABASE_URL", url)
    mapped = (EXAMPLES_FOLDER / "numbers-sql.yaml").read_text(encoding="utf-8").partition("  detectors:\n")[2]
    listed, _, rest = mapped.replace("timeout_ms: 80 ", "timeout_ms: 1000 ").partition("\n\n")
    blocks = WHITE_PAPER.read_text(encoding="utf-8").replace(
        "hallucination:\n", f"hallucination:\n  detectors:\n{listed}\n", 1
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{blocks}\n{rest}", encoding="utf-8")
    exchange, asked = plain_exchange("How is the property?", ["The property has 40 flats."], answer)
    exchange = replace(exchange, scope={"x-property-id": "1", "truthlens-scope-period-id": "1"})
    with find_target(offline_settings(policy, None), "default").scorer() as scorer:
        verdict = scorer.verdict(exchange, asked)
    if (numbers_of(verdict) == 0.0) is flagged:
        pytest.fail("the database is not believed")
    assert verdict.flagged is flagged
