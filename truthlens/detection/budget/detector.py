"""Ask a model twice about every claim, side by side, and keep what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import MappingProxyType

from truthlens.core.errors import CallError, DetectorError
from truthlens.core.records.calls import Ask, Completion, ModelRequest
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.budget import asking
from truthlens.detection.budget.claims import Claim, Claims, take_claims
from truthlens.detection.budget.options import Options
from truthlens.detection.budget.probabilities import Reading, read, reading_from
from truthlens.detection.budget.results import Judged, result_of
from truthlens.detection.interfaces import ResultCache
from truthlens.prompts import render
from truthlens.prompts.model_requests import may_be_a_member


class ReplyError(DetectorError):
    """Too few replies of the model could be read; the message holds no text of the model."""


class _UnreadableError(Exception):
    """One reply cannot be read; ``figures`` says whether it had any log probabilities."""

    def __init__(self, *, figures: bool) -> None:
        super().__init__("a reply cannot be read")
        self.figures = figures


class BudgetDetector:
    """Compares what a model makes of each claim with its evidence and without.

    Args:
        options: what the policy says.
        cache: keeps readings, ``None`` where nothing is kept.
    """

    def __init__(self, options: Options, cache: ResultCache | None = None) -> None:
        self.options = options
        self.no_logprobs: set[str] = set()
        """Models whose servers give no log probabilities; each examination tries with one call whether they do now."""
        self._cache = cache
        self._steps = tuple(dict.fromkeys(min(each, options.top_logprobs) for each in asking.STEPS))
        self._step: dict[str, int] = {}

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return true: models read any language."""
        return True

    async def examine(
        self, exchange: Exchange, answer: Answer, first: Sequence[DetectorResult], *, ask: Ask
    ) -> DetectorResult:
        """Return how many of the answer's claims are grounded; it abstains without claims, and without log probabilities.

        Raises:
            CallError: calls failed, and fewer than half of the claims were judged.
            ReplyError: fewer than half were judged, for replies that cannot be read.
        """
        claims = await asyncio.to_thread(take_claims, exchange, answer, self.options)
        if not claims.taken:
            return _abstained("the answer makes no claim that is long enough to ask about")
        run = _Run(self, exchange, claims, ask, chinese=render.in_chinese(answer.text, exchange.query))
        if self.options.model in self.no_logprobs:
            self._step.pop(self.options.model, None)
            if not await run.has_figures():
                return self._without_logprobs()
        judged, failures = await run.judge_all()
        if (
            not judged
            and failures
            and all(isinstance(e, _UnreadableError) and not e.figures for e in failures)
        ):
            self.no_logprobs.add(self.options.model)
            return self._without_logprobs()
        self.no_logprobs.discard(self.options.model)
        if 2 * len(judged) < len(claims.taken):
            _raise(failures)
        return await asyncio.to_thread(result_of, judged, claims, exchange, answer, self.options)

    def _without_logprobs(self) -> DetectorResult:
        return _abstained(
            "the model's server gives no log probabilities; name a model in the option `model` whose server does",
            no_logprobs=1.0,
        )

    async def asked(self, request: ModelRequest, ask: Ask) -> Completion:
        """Return the reply with as many log probabilities as the model's server gives; what it refused is not tried again."""
        model = request.model
        while True:
            place = self._step.get(model, 0)
            top = self._steps[place] if place < len(self._steps) else None
            try:
                return await ask(asking.with_logprobs(request, top))
            except CallError as error:
                if top is None or not may_be_a_member(error):
                    # Refused for another reason: nothing was learnt of the figures.
                    if top is None:
                        self._step.pop(model, None)
                    raise
                # Others that ask at the same time have learnt the same.
                self._step[model] = max(self._step.get(model, 0), place + 1)

    async def reading(
        self, exchange: Exchange, claim: Claim, ask: Ask, *, redacted: bool, chinese: bool
    ) -> Reading:
        """Return the kept or the new reading of one request.

        Raises:
            CallError: the call failed.
            _UnreadableError: the reply cannot be read; nothing is kept.
        """

        async def compute() -> object:
            request = await asyncio.to_thread(
                asking.request, exchange, claim, self.options, redacted=redacted, chinese=chinese
            )
            reply = await self.asked(request, ask)
            found = read(reply)
            if found is None:
                raise _UnreadableError(figures=bool(reply.logprobs))
            return found.as_json()

        if self._cache is not None:
            # Much evidence takes long to digest.
            key = await asyncio.to_thread(
                asking.cache_key, exchange, claim, self.options, redacted=redacted, chinese=chinese
            )
            kept = reading_from(await self._cache.of(key, compute))
            if kept is not None:
                return kept
        found = reading_from(await compute())
        if found is None:
            raise _UnreadableError(figures=True)
        return found


class _Run:
    """One examination: so many calls at a time, and what became of each claim."""

    def __init__(
        self, detector: BudgetDetector, exchange: Exchange, claims: Claims, ask: Ask, *, chinese: bool
    ) -> None:
        self._detector, self._exchange, self._claims = detector, exchange, claims
        self._ask, self._chinese = ask, chinese
        self._slots = asyncio.Semaphore(detector.options.max_concurrency)

    async def has_figures(self) -> bool:
        """Return whether the model's server gives log probabilities, by one call on the first claim."""
        try:
            await self._reading(self._claims.taken[0], redacted=False)
        except _UnreadableError as error:
            return error.figures
        return True

    async def judge_all(self) -> tuple[list[Judged], list[CallError | _UnreadableError]]:
        """Return the claims that were judged, in order, and why the others were not."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._judge(claim)) for claim in self._claims.taken]
        results = [task.result() for task in tasks]
        judged = [each for each in results if isinstance(each, Judged)]
        return judged, [each for each in results if not isinstance(each, Judged)]

    async def _judge(self, claim: Claim) -> Judged | CallError | _UnreadableError:
        async with asyncio.TaskGroup() as group:
            full, redacted = (
                group.create_task(self._tried(claim, redacted=redacted)) for redacted in (False, True)
            )
        first, second = full.result(), redacted.result()
        if isinstance(first, Reading) and isinstance(second, Reading):
            return Judged(claim, first, second)
        failures = [each for each in (first, second) if not isinstance(each, Reading)]
        # One reply with figures is enough to know that the server gives some.
        if len(failures) < 2 and isinstance(failures[0], _UnreadableError):
            return _UnreadableError(figures=True)
        return next((each for each in failures if isinstance(each, CallError)), failures[-1])

    async def _tried(self, claim: Claim, *, redacted: bool) -> Reading | CallError | _UnreadableError:
        try:
            return await self._reading(claim, redacted=redacted)
        except (CallError, _UnreadableError) as error:
            return error

    async def _reading(self, claim: Claim, *, redacted: bool) -> Reading:
        async with self._slots:
            return await self._detector.reading(
                self._exchange, claim, self._ask, redacted=redacted, chinese=self._chinese
            )


def _raise(failures: Sequence[Exception]) -> None:
    error = next((each for each in failures if isinstance(each, CallError)), None)
    if error is not None:
        raise error
    raise ReplyError(
        f"{len(failures)} claims were not judged: the model did not answer YES, NO or UNSURE with figures that fit; "
        "name another model in the option `model`"
    )


def _abstained(why: str, **details: float) -> DetectorResult:
    return DetectorResult(
        DetectorName.BUDGET, None, abstained=True, explanation=why, details=MappingProxyType(details)
    )
