"""Prompts in the form of real frameworks through a real Envoy: answers to them get a verdict, and the right ones pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from bench.evidence.cases import Case, load
from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.test_bodies import script

pytestmark = pytest.mark.envoy

POLICY = "hallucination: {threshold: 0.6, detectors: [encoder, numbers, contradictions]}\n"
CASES = [case for folder in ("develop", "held_out", "fresh") for case in load(folder)]
# Of each framework so many answers of a kind: one has 56 cases, and all ways to write a prompt are read in tests/evidence.
MOST = 2


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The detectors and the threshold that the shipped policy has."""
    stack = Stack(tmp_path_factory.mktemp("cases"), POLICY)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def outcomes(stack: Stack, kind: str) -> Counter[str]:
    """Send cases of each framework with their first answer of a kind; count actions, and reasons where there is no score."""
    counts: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for case in CASES:
        answers: tuple[str, ...] = getattr(case, kind)
        usable = answers and "messages" in case.body and not case.response_citations
        if usable and asked[case.framework] < MOST:
            asked[case.framework] += 1
            counts[_outcome(stack, case, answers[0])] += 1
    return counts


def _outcome(stack: Stack, case: Case, answer: str) -> str:
    script(stack, json_reply(completion(answer)))
    body = {key: value for key, value in case.body.items() if key != "stream"}
    response = stack.post({"model": "scripted-model", **body})
    assert response.status_code == 200
    if response.headers["x-truthlens-status"] == "unchecked":
        return str(response.headers["x-truthlens-reason"])
    return response.headers["x-truthlens-action"]


def test_supported_answers_pass_and_invented_ones_are_flagged(stack: Stack) -> None:
    """Near the wording of its documents an answer passes, whatever the template; what no document says is flagged mostly."""
    supported, invented = outcomes(stack, "supported"), outcomes(stack, "invented")
    print(supported, invented)
    # What the English model does not read is unchecked, with that reason.
    assert supported["warn"] <= 0.03 * supported.total()
    assert supported["pass"] >= 0.7 * supported.total()
    assert invented["warn"] >= 4 * invented["pass"]
    assert supported["language"] > 0


def test_right_answers_without_evidence_are_not_touched(stack: Stack) -> None:
    """Steps of applications and talk without documents are never flagged."""
    right = outcomes(stack, "right")
    assert right.total() >= 40
    assert right["warn"] <= 0.03 * right.total()
