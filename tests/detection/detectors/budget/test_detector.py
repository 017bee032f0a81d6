"""Tests of ``truthlens.detection.detectors.budget.detector`` with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.detection.asking.replies import place, reply, said
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role
from truthlens.core.records.enums import AnswerKind, DetectorName, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.core.registry import Need, detector_types
from truthlens.detection.asking.failures import ReplyError
from truthlens.detection.detectors.budget import results
from truthlens.detection.detectors.budget.detector import REDACTED, BudgetDetector
from truthlens.detection.detectors.budget.options import Options
from truthlens.detection.fusion import fuse

EXCHANGE = Exchange(
    Endpoint.CHAT,
    "m",
    "What about tea?",
    (
        Passage("Tea costs two euros a cup.", Provenance.DOCUMENTS, "S0"),
        Passage("The shop is closed on Mondays.", Provenance.DOCUMENTS, "S1"),
    ),
)
SUPPORTED = "Tea costs two euros a cup [S0]."
CLOSED = "The shop is closed on Mondays [S1]."
CONTRADICTED = "Tea costs nine euros a cup [S0]."
MADE_UP = "The owner was born in Ulm in 1890."
NO_FIGURES = Completion("YES", "m")


def answer(*sentences: str) -> Answer:
    """Return an answer of these sentences."""
    return Answer(0, AnswerKind.TEXT, " ".join(sentences))


class Model:
    """Knows what the passages say, and answers with log probabilities; ``script`` answers in its place, if it does."""

    def __init__(self, script: Callable[[ModelRequest, str, bool], Completion | None] | None = None) -> None:
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
            prompt = prompt_of(request)
            claim = prompt.split("<truthlens:claim>")[1].split("</truthlens:claim>")[0].strip()
            given = None if self._script is None else self._script(request, claim, REDACTED in prompt)
            return given or self.judge(prompt.split("</truthlens:evidence>")[0], claim)
        finally:
            self.running -= 1

    def judge(self, context: str, claim: str) -> Completion:
        """Return YES where the claim stands in the context, NO where it says otherwise, else UNSURE."""
        if claim.rstrip(".") in context:
            return said(0.97, 0.01, 0.02)
        if "nine" in claim and "Tea costs" in context:
            return said(0.02, 0.95, 0.03)
        return said(0.05, 0.1, 0.85)


def prompt_of(request: ModelRequest) -> str:
    """Return all text of a request."""
    if request.endpoint is Endpoint.COMPLETIONS:
        return str(request.body["prompt"])
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return "\n".join(message["content"] for message in messages)


async def examine(
    model: Model, *sentences: str, detector: BudgetDetector | None = None, **options: object
) -> DetectorResult:
    """Return what the detector says of an answer."""
    made = detector or BudgetDetector(Options.model_validate({"model": "small", **options}))
    return await made.examine(EXCHANGE, answer(*sentences), (), ask=model)


def check_of(result: DetectorResult) -> dict[str, object]:
    """Return the result's object."""
    found = result.report["hallucination_check"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("method", ["directed", "seed", "origin"])
@pytest.mark.parametrize(
    ("sentences", "flagged"),
    [
        ((SUPPORTED,), []),
        ((CONTRADICTED,), [0]),
        ((MADE_UP,), [0]),
        ((SUPPORTED, CONTRADICTED, CLOSED, MADE_UP), [1, 3]),
    ],
    ids=["supported", "contradicted", "confabulated", "mixed"],
)
async def test_the_four_tests_of_the_source(
    sentences: Sequence[str], flagged: list[int], method: str
) -> None:
    """The right claims are flagged, and no others."""
    found = await examine(Model(), *sentences, method=method)
    text = " ".join(sentences)
    places = [text.index(sentences[number]) for number in flagged]
    assert [span.start for span in found.spans] == places
    assert [text[span.start : span.end] for span in found.spans] == [sentences[each] for each in flagged]
    assert found.score is not None
    assert (found.score >= 0.6) is bool(flagged)


async def test_the_object() -> None:
    """It has the members of the source, and the warning counts the claims."""
    found = await examine(Model(), SUPPORTED, MADE_UP)
    assert dict(found.report) == {
        "hallucination_check": {
            "overall_grounded": False,
            "grounded_claims": 1,
            "total_claims": 2,
            "grounding_ratio": 0.5,
            "claims": [
                {
                    "text": "Tea costs two euros a cup.",
                    "citing": ["S0"],
                    "p1": 0.97,
                    "p0": 0.05,
                    "confidence": 0.97,
                    "grounded": True,
                    "warning": None,
                },
                {
                    "text": MADE_UP,
                    "citing": [],
                    "p1": 0.05,
                    "p0": 0.05,
                    "confidence": 0.05,
                    "grounded": False,
                    "warning": "the sources do not bear this out",
                },
            ],
        },
        "warning": "Please note: claims in this answer that the sources do not fully bear out: 1.",
    }
    (span,) = found.spans
    assert (span.detector, span.note) == (DetectorName.BUDGET, "p1 0.05, p0 0.05")
    assert all(isinstance(each, (int, float)) for key, each in found.details.items() if key != "method")
    assert found.coverage is not None
    assert found.coverage.complete


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("השמאי קבע פיצוי של חמישים אלף שקלים לבעלים.", "שים לב: 1 טענות בתשובה לא נתמכות במלואן על ידי המקורות."),
        ("Der Tee kostet in dem Museum neun Euro und ist nicht sehr gut.", "Bitte beachten: Aussagen in dieser Antwort"),
        ("Le thé coûte neuf euros au musée et il est servi avec du lait.", "Attention : affirmations de cette réponse"),
        ("El té cuesta nueve euros en el museo y se sirve con leche.", "Atención: afirmaciones de esta respuesta"),
        ("O chá custa nove euros no museu e não é servido com leite.", "Atenção: afirmações desta resposta"),
        ("Чай в музее стоит девять евро и подаётся с молоком.", "Обратите внимание"),
        ("يكلف الشاي تسعة يورو في المتحف ويقدم مع الحليب كل يوم.", "تنبيه"),
        ("博物館のお茶は一杯九ユーロで、牛乳が付いてきます。", "ご注意"),
        ("De thee kost negen euro in het museum en is niet erg lekker.", "Please note"),
    ],
)  # fmt: skip
async def test_the_warning_is_in_the_answers_language(answer: str, says: str) -> None:
    """Of ten; else in English. The Hebrew one is the source's own example."""
    found = await examine(Model(lambda *_: reply("NO", place("NO", {"NO": 0.9, "YES": 0.05}))), answer)
    assert str(found.report["warning"]).startswith(says)
    claims = found.report["hallucination_check"]["claims"]  # type: ignore[index]
    ours = {
        text["claim"]
        for text in json.loads((Path(results.__file__).parent / "messages.json").read_text()).values()
    }
    assert all(each["warning"] in ours for each in claims)


async def test_a_chinese_answer_is_asked_about_and_warned_of_in_chinese() -> None:
    """Prompt, reply and warnings."""
    model = Model(lambda *_: reply("否", place("否", {"否": 0.9, "是": 0.05, "不": 0.05})))
    found = await examine(model, "茶的价格是每杯九欧元，星期一休息。")
    assert "待判断的说法" in prompt_of(model.requests[0])
    assert found.report["warning"] == "请注意：回答中有 1 条说法缺少来源的充分支持。"
    assert found.score is not None
    assert found.score >= 0.8


async def test_what_the_model_is_asked() -> None:
    """At temperature 0, for one word with figures; the second time without what is cited, or anything where nothing is."""
    model = Model()
    await examine(model, SUPPORTED, MADE_UP)
    bodies = [request.body for request in model.requests]
    assert {request.role for request in model.requests} == {Role.BUDGET_DETECTOR}
    assert all(
        (each["temperature"], each["logprobs"], each["top_logprobs"]) == (0, True, 20) for each in bodies
    )
    evidence = [prompt_of(request).split("</truthlens:evidence>")[0] for request in model.requests]
    evidence = [each.split("<truthlens:evidence>")[1] for each in evidence]
    assert ["Tea costs" in each for each in evidence] == [True, False, True, False]
    assert ["closed on" in each for each in evidence] == [True, True, True, False]
    assert [each.count(REDACTED) for each in evidence] == [0, 1, 0, 2]


async def test_completions() -> None:
    """That API has one number."""
    model = Model()
    found = await examine(model, SUPPORTED, endpoint="completions")
    assert {request.endpoint for request in model.requests} == {Endpoint.COMPLETIONS}
    assert model.requests[0].body["logprobs"] == 20
    assert found.score == 0.0


@pytest.mark.parametrize("most", [1, 2, 4, 7])
async def test_calls_are_bounded(most: int) -> None:
    """They run side by side, so many at a time."""
    model = Model()
    model.gate = asyncio.Event()
    claims = [f"Shop number {each} sells fine tea." for each in range(10)]
    running = asyncio.create_task(examine(model, *claims, max_concurrency=most))
    while model.running < most:
        await asyncio.sleep(0.001)
    model.gate.set()
    await running
    assert (len(model.requests), model.most_running) == (20, most)


async def test_cancellation_leaves_no_task() -> None:
    """No call goes on."""
    model = Model()
    model.gate = asyncio.Event()
    before = asyncio.all_tasks()
    running = asyncio.create_task(examine(model, SUPPORTED, CLOSED, MADE_UP))
    while model.running < 4:
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.running == 0
    assert asyncio.all_tasks() == before


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


async def test_readings_are_kept_by_model_context_and_claim() -> None:
    """One asks once about the same; another claim, model or context is another."""
    cache, model = Cache(), Model()
    detector = BudgetDetector(Options(model="small"), cache)
    first = await examine(model, SUPPORTED, MADE_UP, detector=detector)
    assert await examine(model, SUPPORTED, MADE_UP, detector=detector) == first
    assert len(model.requests) == 4
    await examine(model, SUPPORTED, CLOSED, detector=detector)
    assert len(model.requests) == 6
    await examine(model, SUPPORTED, detector=BudgetDetector(Options(model="large"), cache))
    assert len(model.requests) == 8


@pytest.mark.parametrize("kept", [3, "yes", [], {"yes": 1.0}])
async def test_what_a_damaged_cache_holds_is_asked_for_again(kept: object) -> None:
    """It is no reading."""
    model = Model()
    found = await examine(model, CONTRADICTED, detector=BudgetDetector(Options(model="m"), Cache(kept)))
    assert len(model.requests) == 2
    assert found.score is not None
    assert found.score >= 0.8


def refuses(above: int, *, code: str = "http-400") -> Callable[[ModelRequest, str, bool], Completion | None]:
    """Return a script of a server that lists at most so many tokens; -1 refuses all figures."""

    def script(request: ModelRequest, _claim: str, _redacted: bool) -> Completion | None:
        asked = request.body.get("top_logprobs", 0 if request.body.get("logprobs") else -1)
        assert isinstance(asked, int)
        if asked > above:
            raise CallError(CallFailure.CLIENT_ERROR, code=code)
        return NO_FIGURES if asked < 0 else None

    return script


@pytest.mark.parametrize(("above", "calls"), [(20, 1), (5, 2), (0, 3)])
async def test_fewer_tokens_are_asked_for_where_a_server_refuses(above: int, calls: int) -> None:
    """What it refused is not tried again."""
    model = Model(refuses(above))
    detector = BudgetDetector(Options(model="m", max_concurrency=1))
    found = await examine(model, SUPPORTED, detector=detector)
    assert found.score == 0.0
    assert len(model.requests) == calls + 1
    await examine(model, CLOSED, detector=detector)
    assert len(model.requests) == calls + 3


@pytest.mark.parametrize("code", ["http-400:context-length", "http-404:unknown-model", "http-401:key"])
async def test_other_refusals_are_not_about_the_figures(code: str) -> None:
    """They fail at once."""
    model = Model(refuses(-2, code=code))
    with pytest.raises(CallError):
        await examine(model, SUPPORTED, max_concurrency=1)
    assert len(model.requests) == 2


@pytest.mark.parametrize("script", [refuses(-1), lambda *_: NO_FIGURES], ids=["refuses", "ignores"])
async def test_it_abstains_where_a_server_gives_no_figures(
    script: Callable[[ModelRequest, str, bool], Completion | None],
) -> None:
    """One may see of which model, and later it is tried with one call."""
    model = Model(script)
    detector = BudgetDetector(Options(model="m"))
    found = await examine(model, SUPPORTED, CONTRADICTED, detector=detector)
    assert (found.abstained, found.score, found.reason) == (True, None, None)
    assert "no log probabilities" in found.explanation
    assert detector.no_logprobs == {"m"}
    model.requests.clear()
    await examine(model, SUPPORTED, CONTRADICTED, detector=detector)
    assert {
        REDACTED in prompt_of(request).split("<truthlens:claim>")[0].split("<truthlens:evidence>")[1]
        for request in model.requests
    } == {False}
    healed = await examine(Model(), CONTRADICTED, detector=detector)
    assert healed.score is not None
    assert healed.score >= 0.8
    assert not detector.no_logprobs


async def test_it_abstains_without_claims() -> None:
    """Nobody is asked."""
    model = Model()
    assert (await examine(model, "Hello there!")).abstained
    assert not model.requests


def failing(*claims: str) -> Callable[[ModelRequest, str, bool], Completion | None]:
    """Return a script in which the calls on some claims fail."""

    def script(_request: ModelRequest, claim: str, redacted: bool) -> Completion | None:
        if any(each in claim for each in claims) and redacted:
            raise CallError(CallFailure.SERVER_ERROR)
        return None

    return script


async def test_half_of_the_claims_are_enough() -> None:
    """The verdict is then partial."""
    found = await examine(Model(failing("closed")), SUPPORTED, CLOSED)
    assert found.score == 0.0
    assert found.details["unjudged_claims"] == 1
    verdict = fuse([found], threshold=0.6)
    assert (verdict.status, verdict.reason) == (Status.PARTIAL, Reason.TOO_LARGE)


async def test_fewer_than_half_are_not() -> None:
    """The failure of the call is raised."""
    with pytest.raises(CallError) as raised:
        await examine(Model(failing("closed", "owner")), SUPPORTED, CLOSED, MADE_UP)
    assert raised.value.failure is CallFailure.SERVER_ERROR


async def test_claims_beyond_the_limit_make_it_partial() -> None:
    """They were not looked at."""
    found = await examine(Model(), SUPPORTED, CLOSED, max_claims=1)
    assert found.coverage is not None
    assert not found.coverage.complete
    assert found.details["claims_left_out"] == 1


@pytest.mark.parametrize(
    "given",
    [
        reply("I think YES", place("I", {"I": 1.0})),
        reply("YES or NO", place("YES", {"YES": 1.0})),
        reply("NO", place("YES", {"YES": 1.0})),
        reply("YES", place("YES", {"YES": 0.9, "yes": 0.9})),
        reply("???", place("???", {"YES": 1e-9, "???": 0.9})),
    ],
)
async def test_replies_that_say_nothing_are_an_error(given: Completion) -> None:
    """They are never clean; the message holds nothing of them."""
    with pytest.raises(ReplyError, match="claims were not judged"):
        await examine(Model(lambda *_: given), SUPPORTED, CLOSED)


async def test_equal_certainty_is_grounded_by_direction_and_not_by_the_source() -> None:
    """A claim that no evidence can make likelier."""
    always = Model(lambda *_: said(0.99, 0.01))
    assert (await examine(always, SUPPORTED)).score == 0.0
    assert check_of(await examine(always, SUPPORTED, method="seed"))["overall_grounded"] is False


async def test_one_contradicted_claim_among_many_is_flagged() -> None:
    """The share alone would call the answer grounded."""
    found = await examine(Model(), *[SUPPORTED, CLOSED] * 2, CONTRADICTED)
    assert check_of(found)["overall_grounded"] is True
    assert found.score is not None
    assert found.score >= 0.8


def test_it_is_declared() -> None:
    """It asks models."""
    declared = detector_types()["budget"]
    assert declared.needs == {Need.CALLS}
    assert declared.options is Options
