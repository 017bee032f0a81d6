"""The frozen records of calls to models: what is asked, what comes back, what it cost.

Nothing here does I/O. Times in seconds, prices in USD per million tokens, costs in USD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from truthlens.core.records.enums import Endpoint


class Role(StrEnum):
    """What a model is used for (label ``role`` of ``truthlens_models_used``)."""

    DETECTOR = "detector"
    REFINER = "refiner"
    CHECKER = "checker"
    VERIFIER = "verifier"
    PROPOSER = "proposer"
    CRITIC = "critic"
    JUDGE = "judge"
    JUDGE_DETECTOR = "judge-detector"
    BUDGET_DETECTOR = "budget-detector"
    VERIFY_DETECTOR = "verify-detector"
    AGENT = "agent"
    SYNTHESIZER = "synthesizer"


class CallFailure(StrEnum):
    """Why a call gave no usable text."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMITED = "rate-limited"
    SERVER_ERROR = "server-error"
    CLIENT_ERROR = "client-error"
    CIRCUIT_OPEN = "circuit-open"
    BUSY = "busy"
    BAD_RESPONSE = "bad-response"
    TOOL_CALL = "tool-call"
    REFUSAL = "refusal"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    NO_BACKEND = "no-backend"
    NO_KEY = "no-key"
    BUDGET = "budget"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call or of several; ``estimated`` where the backend did not say and characters were counted.

    ``doubted`` says that the backend did, and that no such call can have used so many.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    doubted: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
            self.doubted or other.doubted,
        )

    def cost_usd(self, price: Price) -> float:
        """What these tokens cost."""
        return (self.prompt_tokens * price.input + self.completion_tokens * price.output) / 1e6


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be called.

    ``base_url`` ends before ``/chat/completions`` (usually in ``/v1``); ``None`` is the exchange's own backend.
    ``api_key_env`` names the environment variable with its key. ``reliability`` (0..1) weighs its word in a
    consensus. ``max_concurrency`` bounds the calls in flight of one process. ``max_model_len`` are the tokens of prompt and
    answer that it takes together; ``None`` where its server is to be asked.
    """

    name: str
    base_url: str | None = None
    api_key_env: str | None = None
    price: Price | None = None
    reliability: float = 0.5
    max_concurrency: int = 32
    max_model_len: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model.

    ``body`` is the API's JSON request without ``model``, ``stream`` and ``n``, which the client sets. ``own`` says
    that this is the model that gave the answer being corrected: it is asked at the path of the exchange, and with the
    client's Authorization where the plan passes it on.

    ``cut`` makes the same body with at most so many characters of evidence, for a model whose window this one does not
    fit; ``None`` where there is nothing to cut. It may take long. ``evidence_chars`` is what this body has, ``selected`` whether
    that is not all of it, ``answer_tokens`` about how long an answer is expected (0: not known).
    """

    model: str
    role: Role
    body: Mapping[str, object]
    endpoint: Endpoint = Endpoint.CHAT
    own: bool = False
    cut: Callable[[int], Mapping[str, object]] | None = None
    evidence_chars: int = 0
    selected: bool = False
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token of a completion with its natural-log probability.

    ``top`` has the likeliest tokens in its place with theirs, in the server's order; empty unless they were asked for.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


CUT_OFF = frozenset(("length", "max_tokens", "content_filter"))
"""Finish reasons of an answer that is not whole."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The text that a model answered, never blank. ``logprobs`` is empty unless they were asked for."""

    text: str
    model: str
    finish_reason: str | None = None
    usage: Usage = Usage()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call that was made, or refused before it was made (``attempts`` 0), for the accounts.

    ``model`` is the name from the configuration or the request, ``cost_usd`` ``None`` where the model has no price.
    ``code`` says more of the failure where more is known (``CallError.code``). ``selected`` says that the prompt held a
    selection of the evidence.
    """

    model: str
    role: Role
    usage: Usage = Usage()
    cost_usd: float | None = None
    duration_s: float = 0.0
    attempts: int = 1
    failure: CallFailure | None = None
    code: str = ""
    selected: bool = False


class Ask(Protocol):
    """Asks a model on behalf of one exchange: bound to its deadline, its budget and its accounts."""

    async def __call__(self, request: ModelRequest) -> Completion:
        """The answer.

        Raises:
            CallError: there is no usable text; ``failure`` says why. Never anything else, save cancellation.
        """
