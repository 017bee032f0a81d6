"""Tests of ``truthlens.detection.detectors.verify`` with a scripted model, through the cascade and the fusion."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from tests.detection.asking.replies import place, reply, said
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role, TokenLogprob
from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Stage, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.detection.asking.failures import ReplyError
from truthlens.detection.cascade import examined
from truthlens.detection.detectors.verify.detector import VerifyDetector
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.fusion import fused
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.prompts import render
from truthlens.text.claims.claims import scored_claims

EXCHANGE = Exchange(
    Endpoint.CHAT,
    "m",
    "What about tea?",
    (
        Passage("Tea costs two euros a cup.", Provenance.DOCUMENTS, "S0"),
        Passage("The shop is closed on Mondays.", Provenance.DOCUMENTS, "S1"),
    ),
)
# Repeated word for word, a claim is proved and not asked about.
SUPPORTED = "A cup of tea is two euros."
CONTRADICTED = "Tea costs nine euros a cup."
MADE_UP = "The owner was born in Ulm in 1890."
PLAN = Plan(
    "p",
    threshold=0.6,
    detectors=(DetectorSpec("encoder"), DetectorSpec("verify", models=("small",))),
)
Script = Callable[[ModelRequest, str], Completion | None]


class Model:
    """Knows what the passages say, and answers with log probabilities; ``script`` goes before it."""

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self.running = self.most_running = 0
        self.gate: asyncio.Event | None = None
        self._script = script

    async def __call__(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await (asyncio.sleep(0) if self.gate is None else self.gate.wait())
            given = None if self._script is None else self._script(request, claim_of(request))
            return given or self.judge(claim_of(request))
        finally:
            self.running -= 1

    def judge(self, claim: str) -> Completion:
        """Return YES where the evidence says it, NO where it says otherwise, else UNSURE."""
        if "two euros" in claim:
            return said(0.97, 0.01, 0.02)
        return said(0.02, 0.95, 0.03) if "nine" in claim else said(0.05, 0.1, 0.85)

    @property
    def claims(self) -> list[str]:
        """The claims that were asked about, in order."""
        return [claim_of(each) for each in self.requests]


def messages_of(request: ModelRequest) -> list[str]:
    """Return the system and the user message of a request."""
    messages = request.body["messages"]
    assert isinstance(messages, list)
    assert [each["role"] for each in messages] == ["system", "user"]
    return [each["content"] for each in messages]


def between(request: ModelRequest, name: str) -> str:
    """Return the data in a tag of a request's user message."""
    user = messages_of(request)[1]
    return (
        user.split(f"<truthlens:{name}>")[1]
        .split(f"</truthlens:{name}>")[0]
        .removeprefix("\n")
        .removesuffix("\n")
    )


def claim_of(request: ModelRequest) -> str:
    """Return the claim of a request."""
    return between(request, "claim")


def answer_of(*sentences: str) -> Answer:
    """Return an answer of these sentences."""
    return Answer(0, AnswerKind.TEXT, " ".join(sentences))


def encoder(answer: Answer, *risks: float | None) -> DetectorResult:
    """Return a first-stage result with these risks of the answer's claims; ``None``: not judged."""
    claims = scored_claims(PlainAnswers(EXCHANGE).of(answer).answer.text)
    found = tuple(
        Finding(claim.start, claim.end, risk)
        for claim, risk in zip(claims, risks, strict=True)
        if risk is not None
    )
    return DetectorResult("encoder", max((each.risk for each in found), default=0.0), findings=found)


async def examine(
    model: Model,
    answer: Answer,
    *risks: float | None,
    detector: VerifyDetector | None = None,
    **options: object,
) -> DetectorResult:
    """Return what the detector says of an answer whose claims have these risks."""
    made = detector or VerifyDetector(Options.model_validate({"model": "small", **options}))
    return await made.examine(EXCHANGE, answer, [encoder(answer, *risks)], ask=model)


async def both(
    model: Model,
    answer: Answer,
    *risks: float | None,
    time_s: float = 30.0,
    detector: VerifyDetector | None = None,
) -> tuple[Verdict, Verdict]:
    """Return the verdicts of the first stage and of both."""
    first = fused(PLAN, answer.text, [encoder(answer, *risks)])
    asking = [(PLAN.detectors[1], detector or VerifyDetector(Options(model="small")))]
    second = await examined(
        PLAN, EXCHANGE, answer, first, asking=asking, ask=model, stage=Stage.ALWAYS, time_s=time_s,
        shown=lambda found, _: found,
    )  # fmt: skip
    return first, second


async def test_a_claim_that_the_model_finds_supported_is_cleared() -> None:
    """By the log-odds of its trust; the answer is flagged no more."""
    first, second = await both(Model(), answer_of(SUPPORTED), 0.8)
    assert (first.flagged, second.flagged) == (True, False)
    (claim,) = second.claims
    assert (claim.outcome, claim.detector) == (ClaimOutcome.SUPPORTED, "verify")
    assert claim.risk == pytest.approx(0.28, abs=0.01)
    assert (second.status, second.stage, second.first_score) == (Status.CHECKED, Stage.ALWAYS, first.score)


@pytest.mark.parametrize(
    ("sentence", "outcome", "kind"),
    [
        (CONTRADICTED, ClaimOutcome.CONTRADICTED, SpanKind.CONTRADICTED),
        (MADE_UP, ClaimOutcome.NOT_STATED, SpanKind.UNSUPPORTED),
    ],
)
async def test_a_claim_that_it_finds_wrong_is_flagged(
    sentence: str, outcome: ClaimOutcome, kind: SpanKind
) -> None:
    """And no other one; the span is the whole claim."""
    answer = answer_of(SUPPORTED, sentence)
    first, second = await both(Model(), answer, 0.3, 0.45)
    assert (first.flagged, second.flagged) == (False, True)
    assert [each.outcome for each in second.claims] == [ClaimOutcome.SUPPORTED, outcome]
    (span,) = second.spans
    assert (answer.text[span.start : span.end], span.kind, span.detector) == (sentence, kind, "verify")
    assert second.results[1].score == 0.9


async def test_what_is_asked() -> None:
    """Doubtful claims and those that nothing judged, riskiest first, behind the same evidence; one token."""
    model = Model()
    sentences = [f"Shop number {each} sells fine tea." for each in range(7)]
    answer = answer_of(*sentences)
    found = await examine(model, answer, 0.11, 0.14, None, 0.944, 0.96, 0.615, 0.011)
    assert model.claims == [sentences[each] for each in (3, 5, 2, 1)]
    assert found.details["asked_claims"] == 4
    assert {each.role for each in model.requests} == {Role.VERIFY_DETECTOR}
    bodies = [each.body for each in model.requests]
    assert {(each["max_tokens"], each["temperature"], each["logprobs"]) for each in bodies} == {(5, 0, True)}
    heads = set()
    for request in model.requests:
        system, user = messages_of(request)
        assert user.startswith("<truthlens:evidence>\n")
        heads.add((system, user.partition("<truthlens:before>")[0]))
        assert user.rpartition("</truthlens:claim>")[2].strip().count("\n") == 0
        start = answer.text.index(claim_of(request))
        assert between(request, "before").strip() == answer.text[:start].strip()
    assert len(heads) == 1
    assert between(model.requests[0], "question") == EXCHANGE.query


async def test_at_most_300_characters_of_the_answer_stand_before_a_claim() -> None:
    """With the lead-in of a list in them, where that stands further up."""
    model = Model()
    items = [f"Tin number {each} of the shelf holds leaves of the valley {each}." for each in range(12)]
    text = "The teas that nobody may buy:\n" + "\n".join(f"- {each}" for each in items)
    answer = Answer(0, AnswerKind.TEXT, text)
    claims = scored_claims(text)
    risks = [0.5] * len(claims)
    await examine(model, answer, *risks, max_claims=100)
    last = next(each for each in model.requests if claim_of(each) == items[-1])
    before = between(last, "before")
    assert len(before) <= 300
    assert before.startswith("The teas that nobody may buy:")
    assert items[-2] in before


async def test_nothing_is_asked_where_nothing_is_doubtful() -> None:
    """It abstains, and vouches for no claim."""
    model = Model()
    first, second = await both(model, answer_of(SUPPORTED, MADE_UP), 0.05, 0.97)
    assert model.requests == []
    assert second.results[1].abstained
    assert (second.claims, second.score, second.status) == (first.claims, first.score, first.status)


async def test_at_most_so_many_claims() -> None:
    """The riskiest; the others stay as they were, and are told."""
    model = Model()
    sentences = [f"Shop number {each} sells fine tea." for each in range(14)]
    risks = [0.3 + each / 100 for each in range(14)]
    first, second = await both(model, answer_of(*sentences), *risks)
    assert model.claims == sentences[:3:-1]
    assert second.claims[:4] == first.claims[:4]
    assert second.results[1].details["claims_left_out"] == 4
    assert "4 more were doubtful" in second.results[1].explanation
    assert second.status is Status.CHECKED


async def test_claims_that_nothing_judged_and_nobody_was_asked_about_make_a_verdict_partial() -> None:
    """They are not clean."""
    answer = answer_of(*[f"Shop number {each} sells fine tea." for each in range(12)])
    _, second = await both(Model(), answer, *[None] * 12)
    assert (second.status, second.reason) == (Status.PARTIAL, Reason.TOO_LARGE)
    assert [each.outcome for each in second.claims].count(ClaimOutcome.UNJUDGED) == 2


async def test_all_questions_of_an_answer_are_asked_at_once() -> None:
    """What bounds them are the exchange and the model's own limit, which the caller keeps."""
    model = Model()
    model.gate = asyncio.Event()
    answer = answer_of(*[f"Shop number {each} sells fine tea." for each in range(10)])
    running = asyncio.create_task(examine(model, answer, *[0.5] * 10))
    while model.running < 10:
        await asyncio.sleep(0.001)
    model.gate.set()
    await running
    assert (len(model.requests), model.most_running) == (10, 10)


async def test_places_count_the_answer_as_it_was_written() -> None:
    """Where it has citation marks, without which the first stage reads it; a list of sources is no claim."""
    answer = answer_of(
        "A cup of tea is two euros [S0].", "Tea costs nine euros a cup [S0].\n\nSources:\n[S0]\n[S1]"
    )
    claims = scored_claims(PlainAnswers(EXCHANGE).of(answer).answer.text)
    plain = PlainAnswers(EXCHANGE).of(answer).reading
    first = DetectorResult(
        "encoder",
        0.5,
        findings=tuple(Finding(plain.start(each.start), plain.end(each.end), 0.5) for each in claims),
    )
    verify, model = VerifyDetector(Options(model="small")), Model()
    found = await verify.examine(EXCHANGE, answer, [first], ask=model)
    assert len(model.requests) == 2
    right, wrong = sorted(found.findings, key=lambda each: each.start)
    assert answer.text[right.start : right.end].startswith("A cup of tea")
    assert answer.text[wrong.start : wrong.end].startswith("Tea costs nine")
    both_stages = fused(PLAN, answer.text, [first, found], reading=PlainAnswers(EXCHANGE).reading(answer))
    assert [each.outcome for each in both_stages.claims] == [
        ClaimOutcome.SUPPORTED,
        ClaimOutcome.CONTRADICTED,
    ]


@pytest.mark.parametrize(
    ("given", "risk", "outcome"),
    [
        (said(1.0), 0.1, ClaimOutcome.SUPPORTED),
        (said(0.7, 0.2, 0.1), 0.3, ClaimOutcome.SUPPORTED),
        (said(0.5, 0.3, 0.2), 0.5, ClaimOutcome.SUPPORTED),
        # The most of the three is YES, and still the claim is more likely unsupported.
        (said(0.42, 0.3, 0.28), 0.58, ClaimOutcome.CONTRADICTED),
        (said(0.2, 0.5, 0.3), 0.8, ClaimOutcome.CONTRADICTED),
        (said(0.2, 0.3, 0.5), 0.8, ClaimOutcome.NOT_STATED),
        (said(0.0, 1.0), 0.9, ClaimOutcome.CONTRADICTED),
        (said(0.0, 0.0, 1.0), 0.9, ClaimOutcome.NOT_STATED),
        (reply("是", place("是", {"是": 0.8, "否": 0.1, "不": 0.1})), 0.2, ClaimOutcome.SUPPORTED),
    ],
)
async def test_the_risk_of_a_claim(given: Completion, risk: float, outcome: ClaimOutcome) -> None:
    """1 − the share of YES, within the model's trust; supported where YES has half of it."""
    found = await examine(Model(lambda *_: given), answer_of(SUPPORTED), 0.5)
    (finding,) = found.findings
    assert finding.risk == pytest.approx(risk)
    assert finding.outcome is outcome
    assert found.score == pytest.approx(0.0 if outcome is ClaimOutcome.SUPPORTED else risk)


async def test_trust_bounds_the_risk_either_way() -> None:
    """A model that is trusted more moves more."""
    for text, risk in ((SUPPORTED, 0.03), (CONTRADICTED, 0.97)):
        found = await examine(Model(), answer_of(text), 0.5, trust=0.97)
        assert found.findings[0].risk == pytest.approx(risk, abs=0.015)


def in_json(said: object) -> Script:
    """Return a script of a server without log probabilities that says ``said`` where JSON is asked for."""

    def script(request: ModelRequest, _claim: str) -> Completion | None:
        if "logprobs" in request.body:
            return Completion("YES", "m", "stop")
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text, "m", "stop")

    return script


@pytest.mark.parametrize(
    ("answer", "risk", "outcome"),
    [
        ("yes", 0.1, ClaimOutcome.SUPPORTED),
        ("no", 0.9, ClaimOutcome.CONTRADICTED),
        ("unsure", 0.9, ClaimOutcome.NOT_STATED),
    ],
)
async def test_a_server_without_log_probabilities_is_asked_for_json(
    answer: str, risk: float, outcome: ClaimOutcome
) -> None:
    """And from then on for nothing else."""
    model = Model(in_json({"answer": answer}))
    detector = VerifyDetector(Options(model="small"))
    found = await examine(model, answer_of(SUPPORTED), 0.5, detector=detector)
    assert (found.findings[0].risk, found.findings[0].outcome) == (pytest.approx(risk), outcome)
    assert ["response_format" in each.body for each in model.requests] == [False, True]
    assert '{"answer": "unsure"}' in messages_of(model.requests[1])[1]
    heads = [messages_of(each)[1].rpartition("</truthlens:claim>")[0] for each in model.requests]
    assert heads[0] == heads[1]
    assert messages_of(model.requests[0])[0] == messages_of(model.requests[1])[0]
    await examine(model, answer_of(CONTRADICTED), 0.5, detector=detector)
    assert ["response_format" in each.body for each in model.requests[2:]] == [True]


async def test_a_server_that_refuses_log_probabilities_and_forms_is_asked_for_json_in_words() -> None:
    """What it refuses is tried once."""

    def script(request: ModelRequest, _claim: str) -> Completion | None:
        if "logprobs" in request.body or "response_format" in request.body:
            raise CallError(CallFailure.CLIENT_ERROR, code="http-400")
        wants_json = '{"answer"' in messages_of(request)[1]
        return Completion('{"answer": "no"}' if wants_json else "YES", "m", "stop")

    model, detector = Model(script), VerifyDetector(Options(model="small"))
    found = await examine(model, answer_of(SUPPORTED), 0.5, detector=detector)
    assert found.findings[0].outcome is ClaimOutcome.CONTRADICTED
    before = len(model.requests)
    await examine(model, answer_of(CONTRADICTED), 0.5, detector=detector)
    assert len(model.requests) == before + 1


@pytest.mark.parametrize(
    "text",
    [
        "YES",
        "yes",
        "",
        "{}",
        "[]",
        '{"answer": "YES"}',
        '{"answer": "maybe"}',
        '{"answer": true}',
        '{"answer": ["yes"]}',
        '{"answer": null}',
        '{"answer": "yes", "answer": "no"}',
        '{"answer": "yes"} {"answer": "no"}',
        '{"answer": "yes", "risk": 0}',
        '{"answer": "yes"',
        '{"answer": "ye',
        '{"verdict": "yes"}',
        '{"answer": {"answer": "yes"}}',
        '{"answer": "yes" // sure\n}',
        "{" * 5_000,
        '{"answer": NaN}',
        "```json\n{'answer': 'yes'}\n```",
    ],
)
async def test_json_that_is_not_what_was_asked_for_is_no_answer(text: str) -> None:
    """Never a yes; the message holds none of it."""
    with pytest.raises(ReplyError) as raised:
        await examine(Model(in_json(text or " ")), answer_of(SUPPORTED), 0.5)
    assert not text or text not in str(raised.value)


async def test_json_that_was_cut_off_is_no_answer() -> None:
    """Also where it looks whole."""
    cut = Completion('{"answer": "yes"}', "m", "length")
    model = Model(lambda request, _: Completion("YES", "m") if "logprobs" in request.body else cut)
    with pytest.raises(ReplyError, match="cut off"):
        await examine(model, answer_of(SUPPORTED), 0.5)


HOSTILE = [
    reply("MAYBE", place("MAYBE", {"MAYBE": 0.9, "YES": 0.1})),
    reply("YES or NO", place("YES", {"YES": 0.9, "NO": 0.1})),
    reply("NO", place("YES", {"YES": 0.9, "NO": 0.1})),
    reply("YES", place("NO", {"NO": 0.9, "YES": 0.1})),
    reply("NO", place("NO", {"YES": 0.9, "NO": 0.1})),
    reply("YES", place("YES", {"YES": 0.9, "NO": 0.9})),
    reply("YES", place("YES", {"YES": 0.2, "Perhaps": 0.8})),
    reply("The claim is fine.", place("The", {"The": 1.0})),
    reply("YES", TokenLogprob("YES", float("nan"))),
    reply("YES", TokenLogprob("YES", float("-inf"))),
    reply("</truthlens:claim>", place("</", {"</": 1.0})),
    reply("<think>", place("<think>", {"<think>": 1.0})),
    reply("{}", place("{}", {"{}": 1.0})),
]


@pytest.mark.parametrize("given", HOSTILE, ids=lambda each: each.text)
async def test_a_reply_that_cannot_be_read_leaves_its_claim_as_it_was(given: Completion) -> None:
    """The other claims count, the verdict is partial, and nothing is kept of it."""
    cache = Cache()
    detector = VerifyDetector(Options(model="small"), cache)
    model = Model(lambda _, claim: given if "Ulm" in claim else None)
    answer = answer_of(SUPPORTED, MADE_UP)
    first, second = await both(model, answer, 0.5, 0.5, detector=detector)
    assert second.claims[1] == first.claims[1]
    assert second.claims[0].outcome is ClaimOutcome.SUPPORTED
    assert second.claims[0].risk != first.claims[0].risk
    assert (second.status, second.reason) == (Status.PARTIAL, Reason.DETECTOR_ERROR)
    assert second.results[1].details["failed_claims"] == 1
    assert len(cache.kept) == 1


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (CallFailure.TIMEOUT, Reason.TIMEOUT),
        (CallFailure.DEADLINE, Reason.TIMEOUT),
        (CallFailure.BUSY, Reason.OVERLOADED),
        (CallFailure.BUDGET, Reason.DETECTOR_ERROR),
        (CallFailure.REFUSAL, Reason.DETECTOR_ERROR),
        (CallFailure.CONNECTION, Reason.DETECTOR_ERROR),
    ],
)
@pytest.mark.parametrize("failing", [1, 2])
async def test_a_call_that_fails_leaves_its_claim_as_it_was(
    failure: CallFailure, reason: Reason, failing: int
) -> None:
    """Where all fail, all claims; the reason is told."""

    def script(_request: ModelRequest, claim: str) -> Completion | None:
        if failing == 2 or "Ulm" in claim:
            raise CallError(failure)
        return None

    first, second = await both(Model(script), answer_of(SUPPORTED, MADE_UP), 0.5, 0.5)
    same = [a == b for a, b in zip(first.claims, second.claims, strict=True)]
    assert same == [failing == 2, True]
    assert (second.status, second.reason) == (Status.PARTIAL, reason)
    assert failure.value in second.results[1].explanation
    assert (second.results[1].score is None) is (failing == 2)


async def test_a_call_that_hangs_costs_its_own_claim_alone() -> None:
    """What came within the time of the cascade counts."""
    hangs = asyncio.Event()

    class Slow(Model):
        async def __call__(self, request: ModelRequest) -> Completion:
            if "Ulm" in claim_of(request):
                await hangs.wait()
            return await super().__call__(request)

    first, second = await both(Slow(), answer_of(SUPPORTED, MADE_UP), 0.5, 0.5, time_s=1.0)
    assert second.claims[0].detector == "verify"
    assert second.claims[1] == first.claims[1]
    assert (second.status, second.reason) == (Status.PARTIAL, Reason.TIMEOUT)
    assert second.results[1].details["failed_claims"] == 1


async def test_the_time_of_the_cascade_ends_all_calls() -> None:
    """The claims stay as they were."""
    model = Model()
    model.gate = asyncio.Event()
    first, second = await both(model, answer_of(SUPPORTED, MADE_UP), 0.5, 0.5, time_s=0.05)
    assert (second.claims, second.status, second.reason) == (first.claims, Status.PARTIAL, Reason.TIMEOUT)
    assert model.running == 0


async def test_a_chinese_answer_is_asked_about_in_chinese() -> None:
    """Prompt and reply."""
    model = Model(lambda *_: reply("否", place("否", {"否": 0.9, "是": 0.05, "不": 0.05})))
    answer = Answer(0, AnswerKind.TEXT, "茶的价格是每杯九欧元。")
    found = await examine(model, answer, 0.5)
    assert "只答一个词" in messages_of(model.requests[0])[1]
    assert found.findings[0].outcome is ClaimOutcome.CONTRADICTED


async def test_evidence_is_selected_once_for_all_claims() -> None:
    """What the answer speaks of stays; no request can be made shorter, and each says that it selected."""
    filler = [
        Passage(f"Word {each} of another matter. " * 60, Provenance.TOOL, f"F{each}") for each in range(20)
    ]
    exchange = replace(EXCHANGE, passages=(*filler, *EXCHANGE.passages))
    answer, model = answer_of(SUPPORTED, "On Mondays the shop is closed."), Model()
    detector = VerifyDetector(Options(model="small", most_chars=1_000))
    await detector.examine(exchange, answer, [encoder(answer, 0.5, 0.5)], ask=model)
    users = [messages_of(each)[1].partition("</truthlens:evidence>")[0] for each in model.requests]
    assert users[0] == users[1]
    assert len(users[0]) < 2_500
    assert "Tea costs two euros" in users[0]
    assert "closed on Mondays" in users[0]
    assert all(each.selected and each.cut is None for each in model.requests)


class Cache:
    """Keeps what it computed."""

    def __init__(self, kept: object = None) -> None:
        self.kept: dict[tuple[str, ...], object] = {}
        self._always = kept

    async def of(self, parts: Sequence[str], compute: Callable[[], Awaitable[object]]) -> object:
        if self._always is not None:
            return self._always
        key = tuple(parts)
        if key not in self.kept:
            self.kept[key] = await compute()
        return self.kept[key]


async def test_readings_are_kept_by_all_that_they_depend_on() -> None:
    """Model, prompt, evidence, question, what stands before, claim."""
    cache, model = Cache(), Model()
    detector = VerifyDetector(Options(model="small"), cache)
    first = await examine(model, answer_of(SUPPORTED, MADE_UP), 0.5, 0.5, detector=detector)
    assert await examine(model, answer_of(SUPPORTED, MADE_UP), 0.5, 0.5, detector=detector) == first
    assert len(model.requests) == 2
    # The second claim stands behind another text.
    await examine(model, answer_of(CONTRADICTED, MADE_UP), 0.5, 0.5, detector=detector)
    assert len(model.requests) == 4
    large = VerifyDetector(Options(model="large"), cache)
    await examine(model, answer_of(SUPPORTED), 0.5, detector=large)
    assert len(model.requests) == 5
    answer = answer_of(SUPPORTED)
    for changed in (
        replace(EXCHANGE, query="And coffee?"),
        replace(EXCHANGE, passages=EXCHANGE.passages[:1]),
    ):
        await detector.examine(changed, answer, [encoder(answer, 0.5)], ask=model)
    assert len(model.requests) == 7
    assert all(render.version("verify_claim") in key for key in cache.kept)


@pytest.mark.parametrize("kept", [3, "yes", [], {"yes": 1.0}, {"answer": "yes"}])
async def test_what_a_damaged_cache_holds_is_asked_for_again(kept: object) -> None:
    """It is no reading."""
    model = Model()
    found = await examine(
        model, answer_of(CONTRADICTED), 0.5, detector=VerifyDetector(Options(model="m"), Cache(kept))
    )
    assert len(model.requests) == 1
    assert found.findings[0].outcome is ClaimOutcome.CONTRADICTED


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": ""},
        {"model": "m", "doubtful": [0.9, 0.1]},
        {"model": "m", "doubtful": [0.1]},
        {"model": "m", "doubtful": [-0.1, 0.5]},
        {"model": "m", "doubtful": [0.1, float("nan")]},
        {"model": "m", "max_claims": 0},
        {"model": "m", "max_claims": 2.5},
        {"model": "m", "trust": 0.5},
        {"model": "m", "trust": 1.0},
        {"model": "m", "most_chars": 10},
        {"model": "m", "temperature": 1},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    """As the policy is read."""
    with pytest.raises(ValueError, match=r"."):
        Options.model_validate(options)


@pytest.mark.parametrize(("low", "threshold"), [(0.4, 0.6), (0.15, 0.75)])
async def test_a_verifier_that_is_right_of_nine_in_ten_lowers_false_alarms_and_loses_no_recall(
    low: float, threshold: float
) -> None:
    """As sure as it is right; half of 400 answers are wrong; a first stage like the shipped one at 0.6."""
    rng = random.Random(24)
    hits, alarms = [0, 0], [0, 0]
    detector = VerifyDetector(Options(model="small", doubtful=(low, 0.93)))
    for number in range(400):
        wrong, sentence = number % 2, f"Item {number} stands in the great hall."
        risk = min(0.92, max(0.02, rng.gauss(0.6 if wrong else 0.34, 0.2)))
        sure = 1.0 - 0.5 * rng.betavariate(1.0, 4.0)
        yes = sure if bool(wrong) != (rng.random() < sure) else 1.0 - sure
        model = Model(lambda _request, _claim, yes=yes: said(yes, 0.0, 1.0 - yes))  # type: ignore[misc]
        first, second = await both(model, answer_of(sentence), risk, detector=detector)
        for stage, flagged in enumerate((first.score >= 0.6, second.score >= threshold)):
            (hits if wrong else alarms)[stage] += flagged
    assert alarms[0] >= 15
    assert alarms[1] < alarms[0]
    assert hits[1] > hits[0] * 1.3
