"""Make the two requests on a claim: with all evidence in sight, and without the text of the passages that it cites."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from truthlens.core.records.calls import ModelRequest, Role
from truthlens.core.records.enums import DetectorName, Endpoint
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.detection.budget.claims import Claim
from truthlens.detection.budget.options import Options
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import Relevant, relevant
from truthlens.prompts.model_requests import stand_alone, stand_alone_text, with_evidence, with_members

REDACTED = "[REDACTED]"
STEPS = (20, 5, 0)
"""How many of the likeliest tokens are asked for, the next where a server refuses; 0 is the token that was said alone."""

_TEMPLATE = "budget_verify"
_MOST_TOKENS = 5


@cache
def prompt_version() -> str:
    """Return a digest of the templates."""
    folder = Path(render.__file__).parent / "templates"
    files = [folder / f"{_TEMPLATE}.{language}.j2" for language in ("en", "zh")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def request(
    exchange: Exchange, claim: Claim, options: Options, *, redacted: bool, chinese: bool
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


def shown_passages(exchange: Exchange, claim: Claim) -> tuple[Passage, ...]:
    """Return the passages with the text of those that the claim cites taken out; of all where it cites none."""
    hidden = frozenset(claim.passages) or frozenset(range(len(exchange.passages)))
    return tuple(
        replace(passage, text=REDACTED) if place in hidden else passage
        for place, passage in enumerate(exchange.passages)
    )


def with_logprobs(asked: ModelRequest, top: int | None) -> ModelRequest:
    """Return the request that asks for the ``top`` likeliest tokens in each place; ``None`` asks for no figures."""
    return with_members(asked, _members(asked.endpoint, top))


def _members(endpoint: Endpoint, top: int | None) -> dict[str, object]:
    if top is None:
        return {}
    if endpoint is Endpoint.COMPLETIONS:
        return {"logprobs": max(top, 1)}
    return {"logprobs": True, "top_logprobs": top} if top else {"logprobs": True}


def cache_key(
    exchange: Exchange, claim: Claim, options: Options, *, redacted: bool, chinese: bool
) -> tuple[str, ...]:
    """Return all that the reading of one request depends on."""
    passages = shown_passages(exchange, claim) if redacted else exchange.passages
    evidence = [(each.id, each.title, each.text) for each in passages]
    return (
        DetectorName.BUDGET.value,
        options.model,
        prompt_version(),
        f"{options.endpoint.value} {options.top_logprobs} {options.most_chars} {'zh' if chinese else 'en'}",
        hashlib.sha256(json.dumps([evidence, claim.passages]).encode()).hexdigest(),
        exchange.query,
        claim.text,
    )
