"""What the clients of the soak send, and what the backend answers: both known from the seed and the number of an exchange.

Three families. ``plain``: whole bodies out of a bounded pool of cases, whose outcome is learnt once while nothing fails and
has to be the same ever after, but for the number of the exchange, which request and answer carry. ``stream``: the streams
of ``support/chaos``, from a pool as well. ``mode``: answers that a mode corrects with models that misbehave by lot; never
the same case twice.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench.evidence.cases import load
from bench.gateway.hostile import asking, listed, with_value
from tests.integration.support.backend import Raw, completion, http, json_reply
from tests.integration.support.chaos.backend import case_request
from tests.integration.support.chaos.rounds import PLANS as MODE_PLANS
from tests.integration.support.chaos.stream_rounds import stream_request
from truthlens.core.records.enums import Endpoint

FAMILY, KIND, CASE, NUMBER = "x-soak", "x-soak-kind", "x-soak-case", "x-soak-number"
CASES = 12  # of a kind whose texts are made up here
STREAMS = 320
FIRST = 10_000
"""The least number of an exchange: those below name cases of streams, of which the same backend takes numbers apart."""
SHARES = {"plain": 0.75, "stream": 0.2, "mode": 0.05}
LEAVING = 0.04
CHAT, COMPLETIONS, DETECT = "/v1/chat/completions", "/v1/completions", "/v1/detect"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange as its client makes it; ``head`` are headers, ``leaves`` the bytes after which the client goes."""

    number: int
    family: str
    kind: str
    case: int
    plan: str
    path: str
    head: str
    body: bytes
    leaves: int | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What has the same outcome each time."""
        return self.kind, self.case


@dataclass(frozen=True)
class Kind:
    """One kind of plain exchange: how often it is drawn, how many cases it has, and what both sides say."""

    weight: float
    request: Callable[[int], dict[str, Any] | bytes]
    answer: Callable[[int, str], Raw]
    plan: str = "plain"
    path: str | Callable[[int], str] = CHAT
    cases: int = CASES
    expects: tuple[int, str, str, str] | None = None
    """What its outcome has to be where nothing fails: HTTP status, and the verdict's status, reason and detected."""

    def path_of(self, case: int) -> str:
        """Return the path of a case."""
        return self.path if isinstance(self.path, str) else self.path(case)


def marked(number: int) -> str:
    """Return the word by which an exchange is known in its bodies, of the same length for all."""
    return f"N-{number:09d}"


# --- texts ------------------------------------------------------------------------------------------------


def evidence(case: int) -> str:
    return (
        f"Brightwater Bank, branch {case}, charges {12 + case} dollars for a domestic wire transfer and {140 + case} dollars for"
        f" an international one. Wires ordered before {1 + case % 11} p.m. are sent the same day."
    )


def right(case: int) -> str:
    return f"A domestic wire transfer costs {12 + case} dollars. An international one costs {140 + case} dollars."


def wrong(case: int) -> str:
    return f"A domestic wire transfer costs {75 + case} dollars plus a {3 + case} percent surcharge. An international one is free."


def _about(case: int) -> str:
    return f"<context>\n{evidence(case)}\n</context>\n\nWhat does a wire transfer cost at branch {case}?"


def _ask(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "main", "messages": [{"role": "user", "content": text}], **fields}


def _say(text: Callable[[int], str], *, choices: int = 1) -> Callable[[int, str], Raw]:
    return lambda case, mark: json_reply(completion(*[text(case)] * choices, id=mark))


def _zipped(case: int, mark: str) -> Raw:
    body = gzip.compress(json.dumps(completion(wrong(case), id=mark)).encode(), mtime=0)
    return http(body, headers={"content-encoding": "gzip"})


def _chunked(case: int, mark: str) -> Raw:
    body = json.dumps(completion(right(case), id=mark)).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    cut = case * 7 + 1
    return Raw(
        [head, *(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:cut], body[cut:])), b"0\r\n\r\n"]
    )


def _tools(case: int) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "fees", "arguments": "{}"}}
    return {
        "model": "main",
        "messages": [
            {"role": "user", "content": f"What does a wire transfer cost at branch {case}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": evidence(case)},
        ],
    }


def _calling(case: int, mark: str) -> Raw:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "fees", "arguments": json.dumps({"branch": case})},
    }
    body = completion(None, id=mark)
    body["choices"][0]["message"]["tool_calls"] = [call]
    return json_reply(body)


def _large(case: int) -> dict[str, Any]:
    return _ask(
        _about(case)
        + "\n\n<context>\n"
        + "\n".join(evidence(100 + each) for each in range(40))
        + "\n</context>"
    )


def _nested(case: int) -> bytes:
    return with_value(asking(model="main"), listed("[]", 100_000 + 10_000 * case))


def _detecting(case: int) -> dict[str, Any]:
    return {
        "context": [evidence(case)],
        "query": "What does it cost?",
        "response": (right if case % 2 else wrong)(case),
    }


# --- the forms of frameworks -------------------------------------------------------------------------------


@cache
def _frameworks() -> list[tuple[dict[str, Any], Endpoint, str]]:
    return [
        (case.body, case.endpoint, text)
        for case in load("develop")
        for text in (*case.supported[:1], *case.invented[:1]) or ("That is all right.",)
    ]


def _framework_answer(case: int, mark: str) -> Raw:
    _, endpoint, text = _frameworks()[case]
    if endpoint is Endpoint.CHAT:
        return json_reply(completion(text, id=mark))
    return json_reply(
        {
            "id": mark,
            "object": "text_completion",
            "choices": [{"index": 0, "text": text, "finish_reason": "stop"}],
        }
    )


KINDS: dict[str, Kind] = {
    "right": Kind(10, lambda case: _ask(_about(case)), _say(right), expects=(200, "checked", "", "")),
    "wrong": Kind(10, lambda case: _ask(_about(case)), _say(wrong), expects=(200, "checked", "", "true")),
    "details": Kind(5, lambda case: _ask(_about(case)), _say(wrong), plan="details", expects=(200, "checked", "", "true")),
    "strict": Kind(6, lambda case: _ask(_about(case)), _say(wrong), plan="strict", expects=(200, "checked", "", "true")),
    "strict, no evidence": Kind(3, lambda case: _ask(f"Good morning, number {case}!"), _say(wrong), plan="strict", expects=(424, "unchecked", "no-context", "")),
    "tiny": Kind(10, lambda case: _ask("Hi"), _say(lambda case: f"Hello {case}."), expects=(200, "unchecked", "no-context", "")),
    "edited": Kind(6, lambda case: _ask(_about(case)), _say(wrong), plan="edited", expects=(200, "checked", "", "true")),
    "shadow": Kind(3, lambda case: _ask(_about(case)), _say(wrong), plan="shadow"),
    "two choices": Kind(3, lambda case: _ask(_about(case), n=2), _say(wrong, choices=2), expects=(200, "checked", "", "true")),
    "gzip": Kind(4, lambda case: _ask(_about(case)), _zipped, expects=(200, "checked", "", "true")),
    "chunked": Kind(4, lambda case: _ask(_about(case)), _chunked),
    "tool results": Kind(6, _tools, _say(wrong), expects=(200, "checked", "", "true")),
    "tool call": Kind(4, lambda case: _ask(_about(case)), _calling),
    "framework": Kind(
        24,
        lambda case: dict(_frameworks()[case][0]),
        _framework_answer,
        path=lambda case: CHAT if _frameworks()[case][1] is Endpoint.CHAT else COMPLETIONS,
        cases=len(_frameworks()),
    ),
    "large evidence": Kind(1, _large, _say(wrong), cases=4),
    "large answer": Kind(0.5, lambda case: _ask(_about(case)), _say(lambda case: " ".join([right(case)] * 20)), cases=4),
    "tiny evidence, long tail": Kind(2, lambda case: _ask(_about(case)), _say(lambda case: right(case) + " " * 100_000), cases=4),
    "hostile request": Kind(1, _nested, _say(right), cases=4),
    "no JSON": Kind(2, lambda case: b'{"model": "main", "messages": [' + str(case).encode(), _say(right)),
    "error": Kind(3, lambda case: _ask(_about(case)), lambda case, mark: json_reply({"error": mark}, status="500 Oh no")),
    "page": Kind(2, lambda case: _ask(_about(case)), lambda case, mark: http(f"<p>{mark}</p>", content_type="text/html")),
    "half JSON": Kind(2, lambda case: _ask(_about(case)), lambda case, mark: http('{"id": "' + mark)),
    "not asked about": Kind(
        4, lambda case: _ask("x" * 1000 * case), lambda case, mark: http(f"{mark} {case}"), path="/v1/embeddings"
    ),
    "detect": Kind(6, _detecting, lambda case, mark: http(""), path=DETECT),
}  # fmt: skip


# --- exchanges --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pool:
    """The exchanges of a seed; of the cases whose outcome is learnt only each ``every``-th takes part."""

    seed: int
    every: int = 1

    def cases(self) -> list[Exchange]:
        """Return all cases whose outcome is learnt."""
        found = [
            plain(kind, case, 0, None)
            for kind, each in KINDS.items()
            for case in range(0, each.cases, self.every)
        ]
        return found + [stream(self.seed, case, 0, None) for case in range(0, STREAMS, self.every)]

    def exchange(self, number: int) -> Exchange:
        """Return the exchange with this number, which is above those of the streams' cases."""
        rng = random.Random(f"{self.seed} exchange {number}")
        family = rng.choices(list(SHARES), list(SHARES.values()))[0]
        leaves = rng.choice((-1, 0, rng.randrange(1, 4000))) if rng.random() < LEAVING else None
        if family == "stream":
            return stream(self.seed, rng.randrange(0, STREAMS, self.every), number, leaves)
        if family == "mode":
            return mode(rng, number, leaves)
        kind = rng.choices(list(KINDS), [each.weight for each in KINDS.values()])[0]
        return plain(kind, rng.randrange(0, KINDS[kind].cases, self.every), number, leaves)


def plain(kind: str, case: int, number: int, leaves: int | None) -> Exchange:
    """Return one of the pool."""
    each = KINDS[kind]
    body = each.request(case)
    if isinstance(body, dict):
        body = json.dumps(body if each.path == DETECT else {**body, "user": marked(number)}).encode()
    head = _head("plain", kind, case, number, f"x-plan: {each.plan}\r\n")
    return Exchange(number, "plain", kind, case, each.plan, each.path_of(case), head, body, leaves)


def stream(seed: int, case: int, number: int, leaves: int | None) -> Exchange:
    """Return a streamed one; its backend draws what it does by the case that its text names."""
    asked = stream_request(random.Random(f"{seed} client {case}"), case)
    kind = f"stream {asked.plan}"
    head = _head("stream", kind, case, number, asked.head)
    return Exchange(number, "stream", kind, case, asked.plan, asked.path, head, asked.content, leaves)


def mode(rng: random.Random, number: int, leaves: int | None) -> Exchange:
    """Return one that a mode corrects; its case is its number."""
    plan = rng.choice((*MODE_PLANS, "agentic"))
    body = json.dumps(case_request(number)).encode()
    head = _head("mode", f"mode {plan}", number, number, f"x-plan: {plan}\r\n")
    return Exchange(number, "mode", f"mode {plan}", number, plan, CHAT, head, body, leaves)


def _head(family: str, kind: str, case: int, number: int, head: str) -> str:
    return f"{head}{FAMILY}: {family}\r\n{KIND}: {kind}\r\n{CASE}: {case}\r\n{NUMBER}: {number}\r\n"
