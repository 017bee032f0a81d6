"""Ask a model about the doubtful claims of an answer, all at once, and keep what it said of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.asking.failures import ReplyError
from truthlens.detection.asking.figures import Figures
from truthlens.detection.asking.words import Reading, reading_from
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.detectors.verify.options import Options
from truthlens.detection.detectors.verify.questions import (
    Question,
    Questions,
    cache_key,
    questions_on,
    request,
)
from truthlens.detection.detectors.verify.results import Answered, json_of, result_of, word_of
from truthlens.detection.interfaces import AskingDetector, ResultCache
from truthlens.prompts.forms import Forms


class VerifyDetector(AskingDetector):
    """Asks a model whether the evidence says what a claim says: one word with log probabilities, or JSON.

    Args:
        options: what the policy says.
        cache: keeps readings, ``None`` where nothing is kept.
        coefficients: of the plan's fusion, by which claims are doubtful; ``None`` for the shipped ones.
    """

    def __init__(
        self,
        options: Options,
        cache: ResultCache | None = None,
        coefficients: Coefficients | None = None,
    ) -> None:
        self.options = options
        self._coefficients = coefficients or COEFFICIENTS
        self._cache = cache
        self._figures = Figures()
        self._forms = Forms(Answered.model_json_schema())
        # The model's server gives no log probabilities.
        self._in_json = False

    async def examine(
        self, exchange: Exchange, answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        """Return what the model says of the doubtful claims; it abstains where there are none.

        Raises:
            CallError: calls failed, and no claim was judged.
            ReplyError: no claim was judged, for replies that cannot be read.
        """
        asked = await asyncio.to_thread(
            questions_on, exchange, answer, first, self.options, self._coefficients
        )
        if not asked.asked:
            return DetectorResult(
                DetectorName.VERIFY, None, abstained=True, explanation="no claim is doubtful"
            )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._tried(exchange, asked, each, ask)) for each in asked.asked]
        return result_of([task.result() for task in tasks], asked, self.options)

    async def _tried(
        self, exchange: Exchange, asked: Questions, question: Question, ask: Ask
    ) -> Reading | CallError | ReplyError:
        """Return the kept or the new reading of one claim, or why there is none."""

        async def compute() -> object:
            return (await self._reading(exchange, asked, question, ask)).as_json()

        try:
            kept = None
            if self._cache is not None:
                key = cache_key(exchange, asked, question, self.options.model)
                kept = reading_from(await self._cache.of(key, compute))
            return kept or await self._reading(exchange, asked, question, ask)
        except (CallError, ReplyError) as error:
            return error

    async def _reading(self, exchange: Exchange, asked: Questions, question: Question, ask: Ask) -> Reading:
        make = partial(request, exchange, asked, question, self.options.model)
        if not self._in_json:
            reply = await self._figures.ask(make(as_json=False), ask)
            if reply.logprobs:
                return word_of(reply)
            self._in_json = True
        return json_of(await self._forms.ask(make(as_json=True), ask))
