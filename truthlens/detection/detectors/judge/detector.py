"""Judge answers by asking models, and keep of what they say what can be checked."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from truthlens.core.records.calls import Ask, ModelRequest, Role
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.judge.options import Options
from truthlens.detection.detectors.judge.replies import (
    Judgement,
    SingleStage,
    TwoStage,
    read_reply,
    validated,
    whole_text,
)
from truthlens.detection.detectors.judge.results import result_of
from truthlens.detection.interfaces import AskingDetector, ResultCache
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import relevant
from truthlens.prompts.forms import Forms
from truthlens.prompts.model_requests import stand_alone, with_evidence

_TEMPLATES = ("judge_stage1", "judge_stage2", "judge_single")


class JudgeDetector(AskingDetector):
    """Asks one model for a critique and one to put it into fields, or one model for both."""

    def __init__(self, options: Options, cache: ResultCache | None = None) -> None:
        self.options = options
        self._cache = cache
        schema = (TwoStage if options.two_stage else SingleStage).model_json_schema()
        self._forms = Forms(schema, options.structured)

    async def examine(
        self, exchange: Exchange, answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        """Return the judge's result, merged with what ``citations`` found.

        Raises:
            CallError: a call gave no usable text.
            ReplyError: a model answered something else than was asked for.
        """

        async def compute() -> object:
            return (await self._judged(exchange, answer, ask)).model_dump(mode="json")

        if self._cache is None:
            kept = await compute()
        else:
            # Much evidence takes long to digest.
            kept = await self._cache.of(await asyncio.to_thread(self._key, exchange, answer), compute)
        judgement = validated(kept, two_stage=self.options.two_stage)
        cited = (each for each in first if each.detector == DetectorName.CITATIONS and each.score is not None)
        citations = next(cited, DetectorResult(DetectorName.CITATIONS, 0.0))
        return await asyncio.to_thread(result_of, judgement, exchange, answer, citations, self.options)

    async def _judged(self, exchange: Exchange, answer: Answer, ask: Ask) -> Judgement:
        options = self.options
        request = await asyncio.to_thread(first_request, exchange, answer, options)
        if options.two_stage:
            critique = whole_text(await ask(request))
            request = await asyncio.to_thread(second_request, exchange, answer, critique, options)
        reply = whole_text(await self._forms.ask(request, ask))
        return await asyncio.to_thread(read_reply, reply, two_stage=options.two_stage)

    def _key(self, exchange: Exchange, answer: Answer) -> tuple[str, ...]:
        evidence = [(each.id, each.parent_id, each.title, each.text) for each in exchange.passages]
        return (
            DetectorName.JUDGE.value,
            self.options.model_dump_json(),
            render.version(*_TEMPLATES),
            hashlib.sha256(json.dumps(evidence).encode()).hexdigest(),
            exchange.query,
            answer.text,
        )


def first_request(exchange: Exchange, answer: Answer, options: Options) -> ModelRequest:
    """Return the request that shows the evidence: of stage 1, or of the single stage."""
    name = "judge_stage1" if options.two_stage else "judge_single"
    chinese = render.in_chinese(answer.text, exchange.query)
    texts = [passage.text for passage in exchange.passages]

    def body(most_chars: int) -> dict[str, object]:
        found = relevant(texts, [answer.text, exchange.query], most_chars=most_chars)
        values = {
            "evidence": delimiters.evidence(
                exchange.passages, near=found.passages, around=found.sentences, most_chars=most_chars
            ),
            "question": delimiters.tag("question", exchange.query),
            "answer": delimiters.tag("answer", answer.text),
        }
        return stand_alone(
            system=render.render(name, chinese=chinese, part="system"),
            user=render.render(name, chinese=chinese, part="user", **values),
            max_tokens=options.max_tokens if options.two_stage else options.formatting_max_tokens,
        )

    asked = ModelRequest(options.model, Role.JUDGE_DETECTOR, {})
    return with_evidence(asked, exchange, body, most_chars=options.most_chars)


def second_request(exchange: Exchange, answer: Answer, critique: str, options: Options) -> ModelRequest:
    """Return the request that makes fields of the critique."""
    chinese = render.in_chinese(answer.text, exchange.query)
    body = stand_alone(
        system=render.render("judge_stage2", chinese=chinese, part="system"),
        user=render.render(
            "judge_stage2",
            chinese=chinese,
            part="user",
            critique=delimiters.tag("critique", critique),
            answer=delimiters.tag("answer", answer.text),
        ),
        max_tokens=options.formatting_max_tokens,
    )
    return ModelRequest(options.formatter, Role.JUDGE_DETECTOR, body)
