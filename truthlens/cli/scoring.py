"""``detect``: score answers without a gateway."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pydantic
import typer
from rich.console import Console
from rich.text import Text

from truthlens.cli import options
from truthlens.cli.plan_options import PlanOptions, takes_plan
from truthlens.core.errors import DialectError
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim
from truthlens.core.records.exchange import Answer, Exchange, Passage, plain_exchange
from truthlens.core.records.explanation import Difference
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Mark, Verdict, marks_by_detector, marks_of
from truthlens.core.risk import ClaimLevel, claim_level
from truthlens.delivery import format_score, scored_object
from truthlens.detection.explain.explainer import explained

_LONGEST = 160

out = Console(soft_wrap=True, highlight=False)
_COLOURS = {
    ClaimLevel.SUPPORTED: "green",
    ClaimLevel.DOUBTFUL: "yellow",
    ClaimLevel.FLAGGED: "red",
    ClaimLevel.UNJUDGED: "dim",
}


class _Row(pydantic.BaseModel):
    """One line of standard input; further keys, such as labels, are let be."""

    context: list[str] | str
    query: str = ""
    response: str


@takes_plan
def detect(
    *,
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Further evidence, as in --context a.txt b.txt.", exists=True, dir_okay=False
        ),
    ] = None,
    context: Annotated[
        list[Path] | None,
        typer.Option(help="File with evidence; repeat for more passages.", exists=True, dir_okay=False),
    ] = None,
    query: Annotated[str, typer.Option(help="What the user asked.")] = "",
    response: Annotated[
        str | None, typer.Option(help="File with the answer, or - for standard input.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object an answer.")] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code", help="Exit with 2 if something was detected, with 3 if something was unchecked."
        ),
    ] = False,
    threshold: options.Threshold = None,
    plan: PlanOptions,
) -> None:
    """Score one answer against its evidence, or JSON lines {context, query, response} from standard input.

    It is the verdict of the gateway under the same policy: all detectors of the decision run, without their time limit. Which
    policy, decision, detectors and threshold that is goes to standard error.

    One answer:   truthlens detect --context evidence.txt --query "When?" --response answer.txt

    Many answers: truthlens detect < answers.jsonl
    """
    target = plan.find(threshold=threshold)
    asked = plan.asked(target)
    exit_status = 0
    with target.scorer(asked) as scorer:
        target.announce()
        for exchange, answer in _inputs([*(context or ()), *(more or ())], query, response):
            (verdict,) = explained(exchange, (answer,), (scorer.verdict(exchange, answer),))
            if as_json:
                shown = scored_object(target.plan, verdict, text=answer.text, passages=exchange.passages)
                typer.echo(json.dumps(shown, ensure_ascii=False))
            else:
                _print(target.plan, exchange, answer.text, verdict)
            exit_status = max(exit_status, 2 if verdict.flagged else 3 if verdict.score is None else 0)
    if exit_code:
        raise typer.Exit(exit_status)


def _inputs(context: list[Path], query: str, response: str | None) -> Iterator[tuple[Exchange, Answer]]:
    if response is not None:
        if response == "-":
            _say_what_is_awaited("the answer")
        text = _standard_input() if response == "-" else _text(Path(response))
        yield plain_exchange(query, [_text(path) for path in context], text)
        return
    if context:
        raise typer.BadParameter("--context needs --response FILE (or - for standard input)")
    _say_what_is_awaited('JSON lines {"context": "…", "query": "…", "response": "…"}')
    number = 0
    while line := _standard_input(lines=True):
        number += 1
        if line.strip():
            yield _row(line, number)


def _say_what_is_awaited(what: str) -> None:
    """Tell a person at a terminal why nothing happens; say nothing to a program that pipes its input."""
    if sys.stdin.isatty():
        typer.echo(
            f"reading {what} from the terminal; end with Ctrl-D. See also: truthlens detect --help", err=True
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DialectError(f"{path} is not UTF-8 text; save it as UTF-8") from error


def _standard_input(*, lines: bool = False) -> str:
    """Return all of standard input, or its next line."""
    try:
        text = sys.stdin.readline() if lines else sys.stdin.read()
        text.encode()  # bytes that are no UTF-8 come as lone surrogates in some locales
    except UnicodeError as error:
        raise DialectError("standard input is not UTF-8 text; save it as UTF-8") from error
    return text


def _row(line: str, number: int) -> tuple[Exchange, Answer]:
    try:
        row = _Row.model_validate_json(line)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        raise DialectError(
            f"standard input, line {number}: {f'{where}: ' if where else ''}{first['msg']}; expected a JSON object with"
            " context (text or list of texts), query (text, may be left out) and response (text)"
        ) from error
    context = [row.context] if isinstance(row.context, str) else row.context
    return plain_exchange(row.query, context, row.response)


def _print(plan: Plan, exchange: Exchange, response: str, verdict: Verdict) -> None:
    if verdict.score is None:
        out.print(Text(verdict.status.value, "yellow"), Text(f": {verdict.reason}"), sep="")
        return
    word, colour = ("detected", "red") if verdict.flagged else ("not detected", "green")
    score = format_score(verdict.score, verdict.threshold)
    why = f" ({verdict.reason.value})" if verdict.reason is not None else ""
    out.print(
        Text(word, colour), f" score {score}  threshold {verdict.threshold:g}  {verdict.status.value}{why}"
    )
    text, lines = Text(response.rstrip()), []
    for claim in verdict.claims:
        colour = _COLOURS[claim_level(claim.risk, plan.even_threshold)]
        text.stylize(colour, claim.start, claim.end)
        risk = f"  risk {claim.risk:.2f}" if claim.risk is not None else ""
        by = f"  {claim.detector}" if claim.detector else ""
        by += f" (database {claim.source})" if claim.source else ""
        known = Text(f"  {claim.start}–{claim.end}  ") + Text(claim.outcome.value, colour)
        lines.append(known + f"{risk}{by}  {shortened(response[claim.start : claim.end])}")
        lines += (Text(f"      {line}") for line in claim_lines(claim, exchange.passages))
    for mark in marks_of(verdict.spans, length=len(response)):
        text.stylize("underline", mark.start, mark.end)
        for start, end in mark.words():
            text.stylize("bold red", start, end)
    for line in (text, *lines):
        out.print(line)
    for mark in sorted(marks_by_detector(verdict.spans, length=len(response)), key=lambda mark: -mark.score):
        phrase = Text(response[mark.start : mark.end])
        for start, end in mark.words():
            phrase.stylize("red", start - mark.start, end - mark.start)
        out.print(f"  {mark.start}–{mark.end}  {mark.score:.2f}", phrase)
        for explained_line in explanation_lines(mark, response, exchange.passages):
            out.print(Text(f"      {explained_line}"))


def explanation_lines(mark: Mark, response: str, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield kind, confidence and reason, every difference, the nearest sentence; nothing if unexplained.

    Args:
        mark: what is shown of spans of ``response``.
        response: the answer.
        passages: the exchange's passages.
    """
    span = mark.telling
    explanation = span.explanation
    if explanation is None:
        return
    yield f"{explanation.kind.value} ({explanation.confidence:.2f}): {explanation.reason}"
    passage = passages[span.passage].text if span.passage is not None else ""
    for difference in mark.differences:
        yield _difference(difference, response, passage)
    if span.passage is not None and explanation.sentence is not None:
        start, end = explanation.sentence
        shown = shortened(passage[start:end])
        yield f"nearest: passage {span.passage + 1}, similarity {explanation.similarity:.2f}: {shown}"


def claim_lines(claim: JudgedClaim, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the sentence that proves or supports a claim, else the nearest; of others nothing: spans tell.

    Args:
        claim: what is known of it.
        passages: the exchange's passages.
    """
    if claim.outcome not in (ClaimOutcome.SUPPORTED, ClaimOutcome.PROVED):
        return
    near = claim.nearest
    if claim.passage is not None and claim.sentence is not None:
        start, end = claim.sentence
        yield f"evidence: passage {claim.passage + 1}: {shortened(passages[claim.passage].text[start:end])}"
    elif near is not None:
        shown = shortened(passages[near.passage].text[near.start : near.end])
        yield f"nearest: passage {near.passage + 1}, similarity {near.similarity:.2f}: {shown}"


def _difference(difference: Difference, response: str, passage: str) -> str:
    own = shortened(response[difference.start : difference.end])
    if difference.evidence is None:
        return f"{difference.kind.value}: {own}, which stands nowhere in the evidence"
    start, end = difference.evidence
    return f"{difference.kind.value}: {own}, in the evidence {shortened(passage[start:end])}"


def shortened(text: str) -> str:
    """Return ``text`` as one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
