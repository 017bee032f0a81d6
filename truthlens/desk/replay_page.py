"""Build the page of a replay: one file that needs no network, with the answers that another policy treats in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.delivery import format_score
from truthlens.desk.annotated import AnnotatedAnswer, annotate, parts_of, visible
from truthlens.desk.pages import FOLDER
from truthlens.process.access.pages import templates

MOST_SHOWN = 500
"""Answers that a page shows; the others are in its figures alone."""


@dataclass(frozen=True, slots=True)
class ShownAnswers:
    """What the new policy makes of an exchange: its question, and each answer beside the evidence."""

    query: str
    answers: tuple[AnnotatedAnswer, ...]


def shown_answers(outcome: Outcome, exchange: Exchange | None) -> ShownAnswers:
    """Return the answers of ``outcome``, whose spans are explained."""
    passages = () if exchange is None else exchange.passages
    pairs = zip(outcome.answers, outcome.verdicts, strict=False)
    return ShownAnswers(
        "" if exchange is None else exchange.query,
        tuple(
            annotate(
                answer.text,
                verdict.spans,
                passages,
                even_threshold=outcome.plan.even_threshold,
                claims=verdict.claims,
            )
            for answer, verdict in pairs
        ),
    )


@dataclass(frozen=True, slots=True)
class ShownChange:
    """One exchange of the page; ``then`` and ``now`` are outcomes (``process.capture.lines.outcome_content``)."""

    id: str
    time: str
    changes: Sequence[str]
    then: Mapping[str, Any]
    now: Mapping[str, Any]
    redacted: bool
    would_ask: Sequence[str]
    shown: ShownAnswers | None

    @property
    def marked_then(self) -> list[tuple[tuple[str, bool], ...]]:
        """The answers that were delivered then, cut around what was marked in them."""
        found = []
        for place, text in enumerate(self.then.get("answers", ())):
            choices = self.then.get("choices", ())
            spans = choices[place].get("spans", ()) if place < len(choices) else ()
            found.append(parts_of(text, 0, len(text), _apart(spans, len(text))))
        return found


def replay_page(figures: Mapping[str, Any], changes: Sequence[ShownChange]) -> str:
    """Return the page as HTML.

    Args:
        figures: of the comparison, as ``--json`` gives them.
        changes: the exchanges that changed, or whose end is not known.
    """
    made = templates()
    made.filters["visible"] = visible
    return made.get_template("replay.html.j2").render(
        figures=figures,
        changes=changes[:MOST_SHOWN],
        more=max(0, len(changes) - MOST_SHOWN),
        css=(FOLDER / "static" / "console.css").read_text(encoding="utf-8"),
        js=(FOLDER / "static" / "spans.js").read_text(encoding="utf-8"),
        score=format_score,
        visible=visible,
    )


def _apart(spans: Sequence[Mapping[str, Any]], length: int) -> list[tuple[int, int]]:
    """Return the places of marks, in order, not touching each other."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((max(0, span["start"]), min(span["end"], length)) for span in spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found
