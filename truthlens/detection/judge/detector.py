"""Judge answers by asking models, and keep of what they say what can be checked."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask, Completion, ModelRequest
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.interfaces import ResultCache
from truthlens.detection.judge import asking
from truthlens.detection.judge.options import Options, Structured
from truthlens.detection.judge.replies import Judgement, ReplyError, read_reply, validated
from truthlens.detection.judge.results import result_of
from truthlens.prompts.model_requests import may_be_a_member, with_members

_FALLBACKS = (Structured.JSON_SCHEMA, Structured.JSON_OBJECT, Structured.NONE)


class JudgeDetector:
    """Asks one model for a critique and one to put it into fields, or one model for both."""

    def __init__(self, options: Options, cache: ResultCache | None = None) -> None:
        self.options = options
        self._cache = cache
        self._modes: dict[str, int] = {}

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return true: models read any language."""
        return True

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
        citations = next((each for each in first if each.detector == DetectorName.CITATIONS), None)
        return await asyncio.to_thread(
            result_of, judgement, exchange, answer, citations, calls=2 if self.options.two_stage else 1
        )

    async def _judged(self, exchange: Exchange, answer: Answer, ask: Ask) -> Judgement:
        options = self.options
        request = await asyncio.to_thread(asking.first_request, exchange, answer, options)
        if options.two_stage:
            critique = _whole(await ask(request))
            request = await asyncio.to_thread(asking.second_request, exchange, answer, critique, options)
        reply = _whole(await self._structured(request, ask))
        return await asyncio.to_thread(read_reply, reply, two_stage=options.two_stage)

    async def _structured(self, request: ModelRequest, ask: Ask) -> Completion:
        """Return the reply in the strictest form that the model's server takes; what it refused is not tried again."""
        if self.options.structured is not Structured.AUTO:
            return await ask(self._formed(request, self.options.structured))
        place = self._modes.get(request.model, 0)
        while True:
            try:
                reply = await ask(self._formed(request, _FALLBACKS[place]))
            except CallError as error:
                if place + 1 == len(_FALLBACKS) or not may_be_a_member(error):
                    raise
                place += 1
            else:
                self._modes[request.model] = max(place, self._modes.get(request.model, 0))
                return reply

    def _formed(self, request: ModelRequest, mode: Structured) -> ModelRequest:
        return with_members(request, asking.response_format(mode, two_stage=self.options.two_stage))

    def _key(self, exchange: Exchange, answer: Answer) -> tuple[str, ...]:
        evidence = [(each.id, each.parent_id, each.title, each.text) for each in exchange.passages]
        return (
            DetectorName.JUDGE.value,
            self.options.model_dump_json(),
            asking.prompt_version(),
            hashlib.sha256(json.dumps(evidence).encode()).hexdigest(),
            exchange.query,
            answer.text,
        )


def _whole(reply: Completion) -> str:
    if reply.finish_reason == "length":
        raise ReplyError("the judge's reply was cut off at its limit of tokens")
    return reply.text
