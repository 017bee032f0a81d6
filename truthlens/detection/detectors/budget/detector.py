"""Ask a model twice about every claim, side by side, and keep what it said."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Ask, ModelRequest, Role
from truthlens.core.records.enums import DetectorName, Endpoint
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.asking.failures import ReplyError
from truthlens.detection.asking.figures import Figures
from truthlens.detection.asking.words import Reading, read, reading_from
from truthlens.detection.detectors.budget.claims import CitedClaim, Claims, take_claims
from truthlens.detection.detectors.budget.options import Options
from truthlens.detection.detectors.budget.results import Judged, result_of
from truthlens.detection.interfaces import AskingDetector, ResultCache
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import Relevant, relevant
from truthlens.prompts.model_requests import stand_alone, stand_alone_text, with_evidence

REDACTED = "[REDACTED]"

_TEMPLATE = "budget_verify"
_MOST_TOKENS = 5


class _UnreadableError(Exception):
    """One reply cannot be read; ``figures`` says whether it had any log probabilities."""

    def __init__(self, *, figures: bool) -> None:
        super().__init__("a reply cannot be read")
        self.figures = figures


class BudgetDetector(AskingDetector):
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
        self._figures = Figures(options.top_logprobs)

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
            self._figures.forget(self.options.model)
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

    async def reading(
        self, exchange: Exchange, claim: CitedClaim, ask: Ask, *, redacted: bool, chinese: bool
    ) -> Reading:
        """Return the kept or the new reading of one request.

        Raises:
            CallError: the call failed.
            _UnreadableError: the reply cannot be read; nothing is kept.
        """

        async def compute() -> object:
            request = await asyncio.to_thread(
                request_on, exchange, claim, self.options, redacted=redacted, chinese=chinese
            )
            reply = await self._figures.ask(request, ask)
            found = read(reply)
            if found is None:
                raise _UnreadableError(figures=bool(reply.logprobs))
            return found.as_json()

        if self._cache is not None:
            # Much evidence takes long to digest.
            key = await asyncio.to_thread(
                cache_key, exchange, claim, self.options, redacted=redacted, chinese=chinese
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

    async def _judge(self, claim: CitedClaim) -> Judged | CallError | _UnreadableError:
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

    async def _tried(self, claim: CitedClaim, *, redacted: bool) -> Reading | CallError | _UnreadableError:
        try:
            return await self._reading(claim, redacted=redacted)
        except (CallError, _UnreadableError) as error:
            return error

    async def _reading(self, claim: CitedClaim, *, redacted: bool) -> Reading:
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


def request_on(
    exchange: Exchange, claim: CitedClaim, options: Options, *, redacted: bool, chinese: bool
) -> ModelRequest:
    """Return the request on a claim, without what asks for log probabilities.

    Where it is ``redacted`` and the claim cites nothing, no passage shows its text.
    """
    passages = shown_passages(exchange, claim) if redacted else exchange.passages
    texts = [passage.text for passage in passages]

    def body(most_chars: int) -> dict[str, object]:
        # Where everything is shown there is nothing to choose.
        fits = sum(map(len, texts)) <= most_chars
        about = [claim.text, exchange.query]
        found = Relevant() if fits else relevant(texts, about, most_chars=most_chars)
        near = tuple(dict.fromkeys((*claim.passages, *found.passages)))
        values = {
            "evidence": delimiters.evidence(
                passages, near=near, around=found.sentences, most_chars=most_chars
            ),
            "question": delimiters.tag("question", exchange.query),
            "claim": delimiters.tag("claim", claim.text),
        }
        system = render.render(_TEMPLATE, chinese=chinese, part="system")
        user = render.render(_TEMPLATE, chinese=chinese, part="user", **values)
        if options.endpoint is Endpoint.CHAT:
            return stand_alone(system=system, user=user, max_tokens=_MOST_TOKENS)
        return stand_alone_text(system=system, user=user, max_tokens=_MOST_TOKENS)

    asked = ModelRequest(options.model, Role.BUDGET_DETECTOR, {}, options.endpoint)
    return with_evidence(asked, replace(exchange, passages=passages), body, most_chars=options.most_chars)


def shown_passages(exchange: Exchange, claim: CitedClaim) -> tuple[Passage, ...]:
    """Return the passages with the text of those that the claim cites taken out; of all where it cites none."""
    hidden = frozenset(claim.passages) or frozenset(range(len(exchange.passages)))
    return tuple(
        replace(passage, text=REDACTED) if place in hidden else passage
        for place, passage in enumerate(exchange.passages)
    )


def cache_key(
    exchange: Exchange, claim: CitedClaim, options: Options, *, redacted: bool, chinese: bool
) -> tuple[str, ...]:
    """Return all that the reading of one request depends on."""
    passages = shown_passages(exchange, claim) if redacted else exchange.passages
    evidence = [(each.id, each.title, each.text) for each in passages]
    return (
        DetectorName.BUDGET.value,
        options.model,
        render.version(_TEMPLATE),
        f"{options.endpoint.value} {options.top_logprobs} {options.most_chars} {'zh' if chinese else 'en'}",
        hashlib.sha256(json.dumps([evidence, claim.passages]).encode()).hexdigest(),
        exchange.query,
        claim.text,
    )
