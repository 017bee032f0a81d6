"""Explain the spans of entries: when one is made, or when one is read that was made in a hurry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Verdict
from truthlens.detection.explain.claim_sentences import wants_nearest
from truthlens.detection.explain.explainer import explained
from truthlens.review.entry.content import claim_content, judged_claims, span_content, span_of


def explained_outcome(outcome: Outcome, exchange: Exchange) -> Outcome:
    """Return the outcome with its spans explained and its claims with nearest sentences. CPU-bound."""
    is_told = all(span.explanation is not None for verdict in outcome.verdicts for span in verdict.spans)
    if is_told and not any(wants_nearest(verdict.claims) for verdict in outcome.verdicts):
        return outcome
    return replace(outcome, verdicts=explained(exchange, outcome.answers, outcome.verdicts))


def explained_content(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of an entry, where its texts were kept with spans explained and claims with nearest sentences.

    CPU-bound. What is not of the present format, of an older version or imported, stays as it is.
    """
    try:
        return _explained(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        return content


def _explained(content: Mapping[str, Any]) -> Mapping[str, Any]:
    texts = content.get("texts")
    choices = content.get("choices", ())
    claims = [judged_claims(choice) for choice in choices]
    is_told = all("kind" in span for choice in choices for span in choice["spans"])
    if texts is None or (is_told and not any(map(wants_nearest, claims))):
        return content
    passages = tuple(
        Passage(kept["text"], Provenance(told["provenance"]), id=told["id"], title=kept["title"])
        for kept, told in zip(texts["passages"], content["passages"], strict=True)
    )
    exchange = Exchange(Endpoint.CHAT, "", texts["query"], passages)
    found = explained(
        exchange,
        [
            Answer(choice["index"], AnswerKind.TEXT, text)
            for choice, text in zip(choices, texts["answers"], strict=False)
        ],
        [
            Verdict(Status.CHECKED, spans=tuple(map(span_of, choice["spans"])), claims=own)
            for choice, own in zip(choices, claims[: len(texts["answers"])], strict=False)
        ],
    )
    return {
        **content,
        "choices": [
            {
                **choice,
                "spans": [span_content(span, text=True) for span in verdict.spans],
                **({"judged": list(map(claim_content, verdict.claims))} if verdict.claims else {}),
            }
            for choice, verdict in zip(choices, found, strict=False)
        ]
        + list(choices[len(found) :]),
    }
