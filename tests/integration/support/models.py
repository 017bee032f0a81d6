"""Scripted models behind one backend: what each of them says to which kind of request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.integration.support.backend import Raw, Received, completion, json_reply

PASSAGES = (
    "Brightwater Bank charges 12 dollars for a domestic wire transfer and 40 dollars for an international one.",
    "Wires ordered before 3 p.m. are sent the same day. Transfers between Brightwater accounts are free.",
)
QUESTION = "What does a wire transfer cost at Brightwater Bank?"
GOOD = "A domestic wire transfer costs 12 dollars. An international one costs 40 dollars."
BAD = (
    "A domestic wire transfer costs 75 dollars plus a 9 percent security surcharge. An international one costs"
    " 40 dollars."
)
WORSE = (
    "A domestic wire transfer costs 900 dollars plus a 30 percent surcharge, payable in Geneva. An international one"
    " costs 700 dollars. Premium customers receive a bonus of 500 dollars."
)

# Words of the prompts by which a backend that plays a model knows what it is asked for.
_KINDS = {
    "Write the answer again so that": "correct",
    "The answers, in no order": "arbitrate",
    "The claims that stand": "critique",
    "The claims that were attacked": "defend",
    "Claims that survived": "synthesise",
}

Says = str | Raw | dict[str, Any] | Callable[[dict[str, Any]], "Says"]


def request(model: str = "main", *, passages: tuple[str, ...] = PASSAGES, **fields: Any) -> dict[str, Any]:
    """A request with evidence and the question."""
    context = "\n\n".join(passages)
    user = f"<context>\n{context}\n</context>\n\n{QUESTION}"
    return {"model": model, "messages": [{"role": "user", "content": user}], **fields}


def kind_of(body: dict[str, Any]) -> str:
    """What a request to a model asks for; ``answer`` is the client's own question."""
    last = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
    # The clients of these tests send no system message; prompts that stand alone begin with one.
    alone = "messages" in body and body["messages"][0]["role"] == "system"
    return next((kind for words, kind in _KINDS.items() if words in last), "other" if alone else "answer")


@dataclass
class Models:
    """The ``reply`` of a backend.

    ``says`` has, by (model, kind), what is said in turn; the last of a list is said again and again.
    """

    says: dict[tuple[str, str], list[Says]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Received] = field(default_factory=list)
    listing: list[dict[str, Any]] = field(default_factory=list)
    """The backend's list of models."""

    def __call__(self, received: Received) -> Raw:
        if received.method == "GET":
            return json_reply({"object": "list", "data": self.listing})
        body = json.loads(received.body)
        key = (body["model"], kind_of(body))
        turn = Counter(self.asked)[key]
        self.asked.append(key)
        self.bodies.append(body)
        self.requests.append(received)
        script = self.says.get(key)
        if script is None:
            return json_reply({"error": {"message": f"nothing scripted for {key}"}}, status="404 Not Found")
        return _raw(script[min(turn, len(script) - 1)], body)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The requests of a kind, in order."""
        return [body for (_, asked), body in zip(self.asked, self.bodies, strict=True) if asked == kind]


def _raw(says: Says, body: dict[str, Any]) -> Raw:
    if callable(says):
        return _raw(says(body), body)
    if isinstance(says, Raw):
        return says
    if isinstance(says, dict):
        return json_reply(says)
    if "prompt" in body:
        return json_reply(
            {
                "id": "cmpl-test",
                "object": "text_completion",
                "model": body["model"],
                "choices": [{"index": 0, "text": says, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
            }
        )
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return json_reply(completion(*[says] * body.get("n", 1), model=body["model"], usage=usage))
