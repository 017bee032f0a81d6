"""Write captured exchanges as JSON lines.

The first line of a file, and of each run that adds to it::

    {"truthlens_capture": 1, "version": "0.1.0", "scoring_version": 8, "began": "2026-01-31T12:00:00+00:00", "sample": 1.0}

Every other line is one exchange::

    {"id", "time", "redacted"?: true,
     "request": {"method", "path", "headers", "route", "body"},
     "response": {"status", "headers", "body"} | null,
     "replies": [{"key", "like"?, "model", "role", "text", "finish_reason", "usage": [prompt, completion, estimated, doubted], "logprobs"?}
                 | {"key", "like"?, "model", "role", "failure", "code", "window"?}],
     "windows"?: {model: tokens | null},
     "tools"?: [{"source", "name", "description", "input_schema", "gives_evidence"}],
     "searches": [{"source", "text", "k", "result", "passages": [{"text", "id", "title", "parent_id", "score"}]}],
     "outcome": {...}}

``response`` is ``null`` where the body was never asked for. Bodies are decoded, paths have no query. ``key`` is a hash of what the
model was asked, cleaned as the texts are; ``like`` one that leaves figures out, where something was taken out of the texts. ``outcome`` is what became of it (``outcome_content``); its scores are rounded.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from truthlens import __version__
from truthlens.api.encoding import decode_body
from truthlens.core.own_headers import DETAILS_HEADER
from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.enums import Mode, Stage
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.retrieval import SourceTool
from truthlens.core.records.verdict import Verdict
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.llm.errors import AttemptError
from truthlens.llm.token_estimate import lengths
from truthlens.policy import Policy
from truthlens.process.capture.cleaning import Cleaner
from truthlens.process.capture.recording import FoundBySearch, Recording, Reply
from truthlens.review.entry.content import span_content

FORMAT = 1
FORMAT_KEY = "truthlens_capture"
_DIGITS = 4
_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_HEADERS = ("content-type", "x-request-id", DETAILS_HEADER)


class UnfitError(Exception):
    """The exchange cannot be written as text."""


def header_line(sample: float) -> str:
    """Return the line that a run begins with."""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    told = {"version": __version__, "scoring_version": SCORING_VERSION, "began": began, "sample": sample}
    return _line({FORMAT_KEY: FORMAT, **told})


def exchange_line(recording: Recording, outcome: Outcome, policy: Policy, clean: Cleaner) -> str:
    """Return the line of an exchange that has ended. CPU-bound; keep it off the event loop.

    Raises:
        UnfitError: a body is no text.
        TimeoutError: cleaning takes too long.
        TruthLensError: a body cannot be decoded.
    """
    head, limit = recording.head, policy.limits.max_body_bytes
    names = {*_HEADERS, *policy.header_names, *policy.trusted_headers}
    assert recording.request is not None
    line: dict[str, Any] = {
        "id": secrets.token_hex(8),
        "time": datetime.fromtimestamp(recording.began, UTC).isoformat(timespec="milliseconds"),
        "request": {
            "method": head.method,
            "path": clean.text(head.path.partition("?")[0]),
            "headers": clean.headers(head.headers, names),
            "route": dict(head.route),
            "body": clean.request(_text(recording.request, head, limit)),
        },
        "response": _response(recording, limit, clean),
        "replies": [reply_content(each, clean) for each in recording.replies],
        "searches": [_search(each, clean) for each in recording.searches],
        "outcome": outcome_content(outcome, clean),
    }
    if recording.tools:
        line["tools"] = [_tool(each) for each in recording.tools]
    if recording.windows:
        line["windows"] = recording.windows
    if clean.changed:
        line["redacted"] = True
    return _line(line)


def outcome_content(outcome: Outcome, clean: Cleaner) -> dict[str, Any]:
    """Return what became of an exchange, with the delivered answers and where they are marked; nothing that depends on time."""
    told = {
        "shadow_action": outcome.shadow_action and outcome.shadow_action.value,
        "initial_score": _rounded(outcome.initial_score),
        "auto": outcome.plan.mode is Mode.AUTO,
        "sample": outcome.plan.cascade.sample if outcome.plan.asking else 0,
        "iterations": outcome.iterations,
        "notes": list(outcome.notes),
    }
    return {
        "decision": outcome.plan.decision,
        "policy": outcome.plan.policy_version,
        "mode": outcome.mode.value,
        "action": outcome.action.value,
        **_verdict(outcome.verdict),
        **{name: value for name, value in told.items() if value},
        "first": [_verdict(each) for each in outcome.first],
        "choices": [
            {
                **_verdict(each),
                **({} if each.stage is Stage.FIRST else {"stage": each.stage.value}),
                "spans": [span_content(span, text=False) for span in each.spans],
            }
            for each in outcome.verdicts
        ],
        "answers": [clean.text(each.text) for each in outcome.answers],
        "calls": [
            {
                "model": call.model,
                "role": call.role.value,
                "tokens": [call.usage.prompt_tokens, call.usage.completion_tokens],
                **({"failure": call.failure.value} if call.failure else {}),
            }
            for call in outcome.calls_made
        ],
    }


def reply_key(request: ModelRequest, clean: Cleaner, *, numbers: bool = True) -> str:
    """Return what a model's reply is known by: a hash of what it was asked, cleaned.

    How long the reply may be is left out of it: that depends on what is left of a budget. Without ``numbers``, questions that
    differ in figures alone have one key.
    """
    body = {name: value for name, value in request.body.items() if name not in lengths(request.body)}
    asked = json.dumps(
        [request.model, request.endpoint.value, clean.members(body)], sort_keys=True, default=str
    )
    return hashlib.sha256((asked if numbers else _FIGURE.sub("0", asked)).encode()).hexdigest()[:32]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    found = {
        "status": verdict.status.value,
        "reason": verdict.reason and verdict.reason.value,
        "score": _rounded(verdict.score),
        "threshold": None if verdict.score is None else _rounded(verdict.threshold),
        "flagged": None if verdict.score is None else verdict.flagged,
    }
    return {name: value for name, value in found.items() if value is not None}


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(float(score), _DIGITS)


def _response(recording: Recording, limit: int, clean: Cleaner) -> dict[str, Any] | None:
    head = recording.response
    if head is None:
        return None
    return {
        "status": head.status,
        "headers": clean.headers(head.headers, ("content-type",)),
        "body": clean.response(_text(b"".join(recording.body), head, limit), streams=head.streams),
    }


def _text(body: bytes, head: RequestHead | ResponseHead, limit: int) -> str:
    try:
        return decode_body(body, head.headers.get("content-encoding", ""), limit=limit).decode()
    except UnicodeDecodeError as error:
        raise UnfitError("a body is not UTF-8 text") from error


def reply_content(reply: Reply, clean: Cleaner) -> dict[str, Any]:
    """Return what a model said, as it stands in a line."""
    request, said = reply
    found: dict[str, Any] = {
        "key": reply_key(request, clean),
        "model": request.model,
        "role": request.role.value,
    }
    if clean.changed:
        # The scores that a prompt names are others where something was taken out of the evidence.
        found["like"] = reply_key(request, clean, numbers=False)
    if not isinstance(said, Completion):
        cause = said.cause if isinstance(said, AttemptError) else None
        window = {"window": cause.window} if cause is not None and cause.window is not None else {}
        return {**found, "failure": said.failure.value, "code": said.code, **window}
    usage, text = said.usage, clean.text(said.text)
    found |= {
        "text": text,
        "finish_reason": said.finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens, usage.estimated, usage.doubted],
    }
    # The tokens of a text that something was taken out of would tell it.
    if said.logprobs and text == said.text:
        found["logprobs"] = [
            [each.token, each.logprob, [list(top) for top in each.top]] for each in said.logprobs
        ]
    return found


def _search(found: FoundBySearch, clean: Cleaner) -> dict[str, Any]:
    return {
        "source": found.source,
        "text": clean.text(found.text),
        "k": found.k,
        "result": found.result.value,
        "passages": [
            {
                "text": clean.text(each.text),
                "id": clean.text(each.id),
                "title": clean.text(each.title),
                "parent_id": clean.text(each.parent_id),
                "score": each.score,
            }
            for each in found.passages
        ],
    }


def _tool(tool: SourceTool) -> dict[str, Any]:
    return {
        "source": tool.source,
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
        "gives_evidence": tool.gives_evidence,
    }


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
