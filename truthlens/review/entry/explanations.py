"""Explain the spans of entries: when one is made, or when one is read that was made in a hurry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.explain.explainer import explained
from truthlens.review.entry.content import span_content


def explained_outcome(outcome: Outcome, exchange: Exchange) -> Outcome:
    """Return the outcome with its spans explained; those that are already stay as they are. CPU-bound."""
    if all(span.explanation is not None for verdict in outcome.verdicts for span in verdict.spans):
        return outcome
    return replace(outcome, verdicts=explained(exchange, outcome.answers, outcome.verdicts))


def explained_content(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of an entry with its spans explained, as far as its texts were kept. CPU-bound.

    What is not of the present format, of an older version or imported, stays as it is.
    """
    try:
        return _explained(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        return content


def _explained(content: Mapping[str, Any]) -> Mapping[str, Any]:
    texts = content.get("texts")
    choices = content.get("choices", ())
    if texts is None or all("kind" in span for choice in choices for span in choice["spans"]):
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
            Verdict(Status.CHECKED, spans=tuple(map(_span, choice["spans"])))
            for choice in choices[: len(texts["answers"])]
        ],
    )
    return {
        **content,
        "choices": [
            {**choice, "spans": [span_content(span, text=True) for span in verdict.spans]}
            for choice, verdict in zip(choices, found, strict=False)
        ]
        + list(choices[len(found) :]),
    }


def _span(kept: Mapping[str, Any]) -> Span:
    start, end = kept["shown"]
    return Span(
        kept["start"],
        kept["end"],
        kept["score"],
        kept["detector"],
        passage=kept.get("passage"),
        shown=(start, end),
        note=kept.get("note", ""),
    )
