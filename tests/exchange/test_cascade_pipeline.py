"""The cascade in the pipeline: both stages, correction loops, streams and /v1/detect, with a judge that is scripted as a server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.fakes.detectors import WordDetector
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for, says
from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import Action, AnswerKind, Endpoint, Provenance, Reason, Stage, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage, RequestHead, ResponseHead
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.detectors.judge.detector import JudgeDetector
from truthlens.detection.detectors.judge.options import Options
from truthlens.detection.detectors.verify.detector import VerifyDetector
from truthlens.detection.detectors.verify.options import Options as VerifyOptions
from truthlens.exchange.mode_runner import NOT_BETTER, UNCONFIRMED
from truthlens.exchange.ticket import Conclusion
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

WRONG = "Tea costs nine euros at the museum."
RIGHT = "Tea costs two euros at the museum."
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "<context>Tea costs two euros at the museum.</context>\nWhat is tea?"}
    ],
}
POLICY = """
models: [{name: strong, base_url: "http://strong/v1", price: {input: 1.0, output: 1.0}}]
hallucination:
  details: true
  threshold: 0.6
  default_mode: MODE
  streaming: buffer
  detectors: [encoder, {name: judge, model: strong, two_stage: false}]
  cascade: CASCADE
"""


class Rig:
    """A pipeline whose first stage gives ``score`` to WRONG and 0.05 to all else, with a scripted judge and refiner."""

    def __init__(
        self, *, score: float = 0.45, mode: str = "lightweight", cascade: str = "{}", refined: str = RIGHT
    ) -> None:
        text = POLICY.replace("MODE", mode).replace("CASCADE", cascade)
        self.holder = PolicyHolder(compile_policy(text, file="p.yaml"))
        self.signals = Metrics()
        self.asked: list[str] = []
        self.refined, self.broken_after = refined, 1_000
        engine = engine_of(
            {None: WordDetector({"nine": score})},
            asking={"judge": JudgeDetector(Options(model="strong", two_stage=False))},
        )
        self.pipeline = pipeline_for(self.holder, engine, self.signals, Recent(), answering=self._answer)

    async def _answer(self, body: dict[str, Any]) -> httpx.Response:
        if body["model"] != "strong":
            self.asked.append("refiner")
            return says(self.refined)
        self.asked.append("judge")
        if self.asked.count("judge") > self.broken_after:
            return httpx.Response(500)
        wrong = "nine" in body["messages"][-1]["content"]
        return says(
            json.dumps(
                {
                    "score": 0.2 if wrong else 0.9,
                    "reasoning": "r",
                    "confidence": 0.9,
                    "decision": "continue",
                    "hallucination_risk": 0.9 if wrong else 0.05,
                    "hallucination_notes": "tea costs two euros",
                }
            )
        )

    async def exchange(self, answer: str, *, model: str = "m") -> Conclusion:
        head = RequestHead("POST", "/v1/chat/completions", {}, {})
        request = json.dumps({**REQUEST, "model": model}).encode()
        ticket = await self.pipeline.prepare(await self.pipeline.open(self.pipeline.admit(head), request))
        choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        body = json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]})
        return await self.pipeline.assess(
            ticket, ResponseHead(200, {"content-type": "application/json"}), body.encode()
        )

    def metrics(self, name: str) -> list[str]:
        lines = self.signals.exposition().decode().splitlines()
        return [line for line in lines if line.startswith(name) and not line.endswith(" 0.0")]


async def test_an_answer_in_the_band_is_judged_and_flagged() -> None:
    """In mode lightweight; the call stands in the accounts, the object and the metrics."""
    rig = Rig()
    outcome = (await rig.exchange(WRONG)).outcome
    assert (outcome.action, outcome.verdict.flagged, rig.asked) == (Action.WARN, True, ["judge"])
    assert (outcome.verdict.stage, outcome.verdict.first_score) == (Stage.BAND, 0.45)
    assert [call.role.value for call in outcome.calls] == ["judge-detector"]
    assert outcome.body is not None
    shown = json.loads(outcome.body)["truthlens"]
    assert (shown["stage"], shown["first_score"], shown["calls"]) == ("band", 0.45, 1)
    judge = shown["choices"][0]["detectors"][1]
    assert judge["report"]["hallucination_notes"] == "tea costs two euros"
    assert rig.metrics("truthlens_cascade_total") == [
        'truthlens_cascade_total{decision="default",stage="band"} 1.0'
    ]
    assert rig.metrics("truthlens_detector_agreement_total") == [
        'truthlens_detector_agreement_total{decision="default",detector="judge",first="false",models="true"} 1.0'
    ]


async def test_an_answer_out_of_the_band_costs_no_call() -> None:
    """Neither a clean one nor one that is flagged anyway."""
    for score, answer in ((0.45, RIGHT), (0.95, WRONG)):
        rig = Rig(score=score)
        outcome = (await rig.exchange(answer)).outcome
        assert (outcome.verdict.stage, rig.asked) == (Stage.FIRST, [])
        assert rig.metrics("truthlens_cascade_total") == [
            'truthlens_cascade_total{decision="default",stage="first"} 1.0'
        ]


@pytest.mark.parametrize(("model", "own"), [("strong", True), ("m", False)])
@pytest.mark.parametrize("mode", ["lightweight", "standard"])
async def test_a_model_that_judges_its_own_answer_is_named(model: str, mode: str, *, own: bool) -> None:
    """In the notes of the object and in the details of its detector, also where the answer is corrected."""
    rig = Rig(mode=mode)
    outcome = (await rig.exchange(WRONG, model=model)).outcome
    assert outcome.body is not None
    shown = json.loads(outcome.body)["truthlens"]
    assert ("own-verifier" in shown["notes"]) is own
    encoder, judge = shown["choices"][0]["detectors"]
    assert ("own_verifier" in judge["details"]) is own
    assert "own_verifier" not in encoder.get("details", {})


async def test_a_dead_judge_costs_its_result_alone() -> None:
    """The answer passes with the first stage's score, and says that a part was not checked."""
    rig = Rig()
    rig.broken_after = 0
    outcome = (await rig.exchange(WRONG)).outcome
    assert (outcome.action, outcome.verdict.status, outcome.verdict.reason) == (
        Action.PASS,
        Status.PARTIAL,
        Reason.DETECTOR_ERROR,
    )
    assert outcome.verdict.score == 0.45


async def test_a_correction_is_judged_once_at_its_end() -> None:
    """And released where the judge finds it better."""
    rig = Rig(mode="standard")
    outcome = (await rig.exchange(WRONG)).outcome
    assert rig.asked == ["judge", "refiner", "judge"]
    assert (outcome.action, outcome.verdict.flagged, outcome.verdict.stage) == (
        Action.REFINE,
        False,
        Stage.CONFIRM,
    )


async def test_what_the_judge_rejects_is_not_released_by_the_encoder() -> None:
    """A correction that the cheap detector takes for clean, and the judge does not."""
    rig = Rig(score=0.45, mode="standard", refined="Tea is nineish euros at the museum.")
    outcome = (await rig.exchange(WRONG)).outcome
    assert rig.asked[-1] == "judge"
    correction = outcome.corrections[0]
    assert correction is not None
    assert (correction.text, correction.verdict.flagged) == (WRONG, True)
    assert NOT_BETTER in correction.notes


async def test_a_correction_that_cannot_be_judged_is_not_released() -> None:
    """Where the judge rejected the first answer and is gone."""
    rig = Rig(mode="standard")
    rig.broken_after = 1
    outcome = (await rig.exchange(WRONG)).outcome
    correction = outcome.corrections[0]
    assert correction is not None
    assert (correction.text, correction.verdict.flagged) == (WRONG, True)
    assert UNCONFIRMED in correction.notes


async def test_every_candidate_is_judged_where_the_plan_says_so() -> None:
    """The loop sees the judge's word, and no call is made twice for the last one."""
    rig = Rig(mode="standard", cascade="{in_loop: every}")
    outcome = (await rig.exchange(WRONG)).outcome
    assert rig.asked == ["judge", "refiner", "judge"]
    assert outcome.action is Action.REFINE


@pytest.mark.parametrize("answer", [WRONG, RIGHT])
async def test_detect_asks_as_well(answer: str) -> None:
    """The console's ``/v1/detect`` runs both stages."""
    rig = Rig(cascade="{when: always}")
    exchange = Exchange(Endpoint.CHAT, "m", "", (Passage(RIGHT, Provenance.DOCUMENTS),))
    verdict = await rig.pipeline.score(
        rig.holder.current.default, exchange, Answer(0, AnswerKind.TEXT, answer)
    )
    assert (verdict.stage, verdict.flagged) == (Stage.ALWAYS, answer is WRONG)
    assert rig.asked == ["judge"]


class Verifying:
    """``verify`` behind a first stage that doubts "nine"; its model's server refuses log probabilities."""

    def __init__(self, *, max_tokens: int = 50_000) -> None:
        text = POLICY.replace("MODE", "lightweight").replace("CASCADE", "{when: always}")
        text = text.replace("{name: judge, model: strong, two_stage: false}", "{name: verify, model: strong}")
        text += f"  mitigation: {{max_tokens: {max_tokens}}}\n"
        self.holder = PolicyHolder(compile_policy(text, file="p.yaml"))
        self.prompts: list[str] = []
        engine = engine_of(
            {None: WordDetector({"nine": 0.45})},
            asking={"verify": VerifyDetector(VerifyOptions(model="strong"))},
        )
        self._pipeline = pipeline_for(self.holder, engine, Metrics(), Recent(), answering=self._answer)

    async def _answer(self, body: dict[str, Any]) -> httpx.Response:
        await asyncio.sleep(0.01)  # so that all calls are under way at once
        if "logprobs" in body:
            return httpx.Response(400, json={"error": {"message": "logprobs is not supported"}})
        self.prompts.append(body["messages"][-1]["content"])
        return says(json.dumps({"answer": "no"}))

    async def score(self, evidence: str, text: str) -> Verdict:
        exchange = Exchange(Endpoint.CHAT, "m", "", (Passage(evidence, Provenance.DOCUMENTS),))
        return await self._pipeline.score(
            self.holder.current.default, exchange, Answer(0, AnswerKind.TEXT, text)
        )

    @property
    def claims(self) -> list[str]:
        return [each.partition("<truthlens:claim>\n")[2].partition("\n</")[0] for each in self.prompts]


async def test_detect_lists_the_claims_that_a_model_was_asked_about() -> None:
    """A claim of which the first stage is sure costs no call."""
    rig = Verifying()
    verdict = await rig.score(RIGHT, f"{WRONG} {RIGHT}")
    assert set(rig.claims) == {WRONG}
    assert verdict.flagged
    wrong, right = verdict.claims
    assert (wrong.outcome, wrong.detector) == (ClaimOutcome.CONTRADICTED, "verify")
    assert right.outcome is ClaimOutcome.PROVED


async def test_where_the_budget_is_used_up_fewer_claims_are_asked_about_and_none_with_less_evidence() -> None:
    """A model that sees a part of the evidence would not find what the rest says."""
    evidence = "The museum sells tea and cakes to all of its guests. " * 80
    wrong = [f"Tea costs nine euros in room {number}." for number in range(10)]
    rig = Verifying(max_tokens=6_000)
    verdict = await rig.score(evidence, " ".join(wrong))
    assert 2 <= len(set(rig.claims)) < 10
    assert all(evidence.strip() in each for each in rig.prompts)
    (result,) = [each for each in verdict.results if each.detector == "verify"]
    assert result.details["failed_claims"] == 10 - len(set(rig.claims))
    assert "budget" in result.explanation
    assert (verdict.status, verdict.reason) == (Status.PARTIAL, Reason.DETECTOR_ERROR)


@pytest.mark.parametrize("kept", [False, True])
async def test_what_models_wrote_is_kept_for_the_console_only_with_texts(kept: bool) -> None:
    """Notes and reports may repeat what users and models wrote."""
    rig = Rig()
    rig.holder.swap(
        compile_policy(
            POLICY.replace("MODE", "lightweight").replace("CASCADE", "{}")
            + f"telemetry: {{log_text: {str(kept).lower()}}}\n",
            file="p.yaml",
        )
    )
    outcome = (await rig.exchange(WRONG)).outcome
    noted = replace(outcome.verdict, spans=(Span(0, 3, 0.9, "judge", note="tea costs two euros"),))
    recent = Recent()
    recent.add(
        replace(outcome, verdict=noted, verdicts=(noted,)),
        time=datetime.now(UTC),
        request_id="",
        exchange=Exchange(Endpoint.CHAT, "m", "", (Passage(RIGHT, Provenance.DOCUMENTS),)),
        keep_text=kept,
    )
    (entry,) = recent.entries()
    assert [span.note for span in entry.outcome.verdict.spans] == ["tea costs two euros" if kept else ""]
    assert all(not result.report for result in entry.outcome.verdict.results)
    assert "two euros" not in repr(entry) or kept
    assert "two euros" not in repr(entry.without_text())
