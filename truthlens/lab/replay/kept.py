"""Answer models and sources from what was captured, and note what is not there.

Each task knows the exchange that it replays (``playing``). What another exchange of the capture was told counts as well: a
question of the same words has the same reply. With ``live`` what is not there is asked for; else it fails, as at a server that
is away.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, TokenLogprob, Usage
from truthlens.core.records.enums import Mode
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import (
    FoundPassage,
    SearchRecord,
    SearchResult,
    SourceSpec,
    SourceTool,
)
from truthlens.core.review_settings import ReviewSettings
from truthlens.lab.replay.reading import KeptExchange, KeptReply, KeptSearch
from truthlens.llm.client import LlmClient
from truthlens.llm.errors import AttemptError
from truthlens.llm.http.causes import Cause
from truthlens.llm.token_estimate import prompt_tokens
from truthlens.mitigation.auto.bandit import Bandit, feasible_modes
from truthlens.process.capture.cleaning import Cleaner
from truthlens.process.capture.lines import reply_key
from truthlens.process.capture.recording import called_with
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.store.arm_store import MemoryArms

# What is captured was cleaned before.
_CLEAN = Cleaner(ReviewSettings(), ())


class Library:
    """What models and sources gave for all exchanges of a capture."""

    def __init__(self, exchanges: Iterable[KeptExchange]) -> None:
        self.replies: dict[str, list[tuple[str, KeptReply]]] = {}
        self.searches: dict[tuple[str, str], list[KeptSearch]] = {}
        self.windows: dict[str, int | None] = {}
        for kept in exchanges:
            for reply in kept.replies:
                self.replies.setdefault(reply.key, []).append((kept.id, reply))
            for search in kept.searches:
                self.searches.setdefault((search.source, search.text), []).append(search)
            for model, window in kept.windows.items():
                self.windows.setdefault(model, window)


@dataclass(frozen=True, slots=True)
class WouldAsk:
    """A call to a model that has no kept reply; ``tokens`` of its prompt are estimated."""

    model: str
    role: str
    tokens: int


@dataclass(slots=True, eq=False)
class Playing:
    """One exchange while it is replayed."""

    kept: KeptExchange
    library: Library
    asked: Counter[str] = field(default_factory=Counter)
    would_ask: list[WouldAsk] = field(default_factory=list)
    would_search: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    exchange: Exchange | None = None
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        """Draw the same numbers in each replay."""
        self.random = random.Random(self.kept.id)  # noqa: S311 - chance, not secrecy

    def reply(self, request: ModelRequest) -> KeptReply | None:
        """Return what was said to ``request`` the first time it was asked, the second time what was said then, and so on.

        Where something was taken out of the exchange, scores in a prompt may be others: its own replies are known without them.
        """
        key = reply_key(request, _CLEAN)
        known = self.library.replies.get(key, [])
        own = [reply for asker, reply in known if asker == self.kept.id]
        others = [reply for asker, reply in known if asker != self.kept.id]
        if self.kept.redacted and not known:
            key = reply_key(request, _CLEAN, numbers=False)
            own = [reply for reply in self.kept.replies if reply.like == key]
        place = self.asked[key]
        self.asked[key] += 1
        found = [*own, *others]
        return found[place] if place < len(found) else None

    def search(self, source: str, text: str, k: int) -> KeptSearch | None:
        """Return what a search gave that asked for ``k`` passages or more, or found fewer than it asked for."""
        own = [each for each in self.kept.searches if (each.source, each.text) == (source, text)]
        for each in (*own, *self.library.searches.get((source, text), [])):
            if each.k >= k or len(each.passages) < each.k:
                return each
        return None

    def draw(self) -> float:
        """Return a number in 0..1 by which the answer is in the sample of a cascade as it was in the captured one."""
        share = float(self.kept.outcome.get("sample", 0.0))
        if any(choice.get("stage") == "sample" for choice in self.kept.outcome.get("choices", ())):
            return share * self.random.random()
        return share + (1.0 - share) * self.random.random()


playing: ContextVar[Playing] = ContextVar("truthlens_replay")
"""The exchange that the running task replays."""


class ReplayClient(LlmClient):
    """Gives kept replies in the place of models."""

    def __init__(self, *, live: bool, **client: Any) -> None:
        super().__init__(**client)
        self._live = live

    def reachable(self, name: str) -> bool:
        """Return whether the model could be asked; nobody needs to be where replies are kept."""
        return not self._live or super().reachable(name)

    async def complete(self, request: ModelRequest, **how: Any) -> Completion:
        """Return what the model said when it was asked the same.

        Raises:
            CallError: it gave nothing then; or ``no-backend``, no reply is kept.
        """
        play = playing.get()
        reply = play.reply(request)
        if reply is None and self._live:
            return await super().complete(request, **how)
        if reply is None:
            play.would_ask.append(WouldAsk(request.model, request.role.value, prompt_tokens(request.body)))
            raise CallError(CallFailure.NO_BACKEND, "no reply is kept")
        if (on_attempt := how.get("on_attempt")) is not None:
            on_attempt()
        if reply.failure is not None:
            raise _failure(reply.failure, reply)
        return Completion(
            reply.text,
            request.model,
            reply.finish_reason,
            Usage(*reply.usage),
            tuple(TokenLogprob(*each) for each in reply.logprobs),
        )

    async def window(self, request: ModelRequest, *args: Any, **how: Any) -> int | None:
        """Return the tokens that the model took then."""
        play = playing.get()
        for known in (play.kept.windows, play.library.windows):
            if request.model in known:
                return known[request.model]
        return await super().window(request, *args, **how) if self._live else None

    def learn_window(self, request: ModelRequest, *args: Any, **how: Any) -> None:
        """Keep nothing: what is known is in the capture."""


def _failure(failure: CallFailure, reply: KeptReply) -> CallError:
    status, _, why = reply.code.removeprefix("http-").partition(":")
    if not reply.code.startswith("http-") or not status.isdecimal():
        return CallError(failure, code=reply.code)
    return AttemptError(failure, cause=Cause(int(status), why, reply.window))


class ReplayRetriever(Retriever):
    """Gives kept passages in the place of sources."""

    def __init__(self, *, live: bool, **retriever: Any) -> None:
        super().__init__(**retriever)
        self._live, self._specs = live, dict[str, SourceSpec]()

    def use(self, specs: Mapping[str, SourceSpec], folder: Path) -> None:
        """Know these sources; they are opened where they may be searched."""
        self._specs = dict(specs)
        if self._live:
            super().use(specs, folder)

    def type_of(self, name: str) -> str:
        """Return the type of the source ``name``."""
        return self._specs[name].type

    async def search_one(
        self, name: str, text: str, k: int, deadline: Deadline, asker: Asker
    ) -> tuple[SearchRecord, tuple[FoundPassage, ...]]:
        """Return what the source gave then; unavailable where nothing is kept."""
        found = playing.get().search(name, text, k)
        if found is not None:
            passages = _passages(found)[:k]
            return SearchRecord(name, found.result, 0.0, len(passages)), passages
        if self._live:
            return await super().search_one(name, text, k, deadline, asker)
        playing.get().would_search.append(name)
        return SearchRecord(name, SearchResult.UNAVAILABLE, 0.0), ()

    async def tools(self, sources: Sequence[str], *, deadline: Deadline) -> tuple[SourceTool, ...]:
        """Return the tools that the sources offered then."""
        kept = {(each.source, each.name): each for each in playing.get().kept.tools if each.source in sources}
        if not kept and self._live:
            return await super().tools(sources, deadline=deadline)
        return tuple(SourceTool(**each.model_dump()) for each in kept.values())

    async def call_tool(
        self, tool: SourceTool, arguments: Mapping[str, Any], *, deadline: Deadline
    ) -> tuple[FoundPassage, ...]:
        """Return what the tool gave then.

        Raises:
            SourceError: it failed then; or ``unavailable``, nothing is kept.
        """
        found = playing.get().search(tool.source, called_with(tool, arguments), 0)
        if found is None and self._live:
            return await super().call_tool(tool, arguments, deadline=deadline)
        if found is None:
            playing.get().would_search.append(tool.source)
            raise SourceError(SearchResult.UNAVAILABLE)
        if found.result.is_failure:
            raise SourceError(found.result)
        return _passages(found)


def _passages(found: KeptSearch) -> tuple[FoundPassage, ...]:
    return tuple(FoundPassage(**each.model_dump()) for each in found.passages)


class ReplayBandit(Bandit):
    """Chooses the mode that was chosen then, where mode ``auto`` chose it and may again; learns nothing."""

    def __init__(self) -> None:
        super().__init__(MemoryArms(), rng=_PlayedRandom())

    async def choose(self, plan: Plan) -> Mode:
        """Return the mode to run for one flagged answer; drawn by the priors where none is known."""
        then = playing.get().kept.outcome
        modes = [mode for mode in feasible_modes(plan) if then.get("auto") and mode.value == then.get("mode")]
        return modes[0] if modes else await super().choose(plan)

    async def learn(self, plan: Plan, mode: Mode, reward: float) -> None:
        """Learn nothing: the next exchange is to find the same as in any other order."""


class _PlayedRandom(random.Random):
    def random(self) -> float:
        return playing.get().random.random()
