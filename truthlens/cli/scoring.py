"""``detect``: score answers without a gateway."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pydantic
import typer
from rich.console import Console
from rich.text import Text

from truthlens.cli import options
from truthlens.cli.asked_models import models_of
from truthlens.cli.explanations import explanation_lines
from truthlens.cli.plan_target import plan_of
from truthlens.core.errors import DialectError
from truthlens.core.net import Address
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import Verdict, marks_by_detector, marks_of
from truthlens.delivery import format_score, verdict_object
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.encoder.detector import EncoderDetector
from truthlens.detection.encoder.inputs.manifest import load_manifest
from truthlens.detection.explain.explainer import explained
from truthlens.detection.models.loading import load_encoder
from truthlens.model_store import find_model, scoring_folder
from truthlens.policy import default_policy, load_policy
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings
from truthlens.training.evaluate.plan_scorer import verdict_of

out = Console(soft_wrap=True, highlight=False)


class _Row(pydantic.BaseModel):
    """One line of standard input; further keys, such as labels, are let be."""

    context: list[str] | str
    query: str = ""
    response: str


def detect(
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Further evidence, as in --context a.txt b.txt.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        list[Path] | None,
        typer.Option(help="File with evidence; repeat for more passages.", exists=True, dir_okay=False),
    ] = None,
    query: Annotated[str, typer.Option(help="What the user asked.")] = "",
    response: Annotated[
        str | None, typer.Option(help="File with the answer, or - for standard input.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object an answer.")] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code", help="Exit with 2 if something was detected, with 3 if something was unchecked."
        ),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Threshold (default: the policy's; without one, the model's).",
            show_default=False,
        ),
    ] = None,
    config: options.Config = None,
    decision: Annotated[str, typer.Option(help="Decision of the policy whose plan is run.")] = "default",
    model: options.ModelName = None,
    models: options.Models = None,
    threads: options.Threads = 1,
    upstream: options.Upstream = None,
    replies: options.Replies = None,
    recorded: options.Recorded = False,
) -> None:
    """Score one answer against its evidence, or JSON lines {context, query, response} from standard input.

    All detectors of the plan run: the default decision's of --config, or of the built-in policy.

    One answer:   truthlens detect --context evidence.txt --query "When?" --response answer.txt

    Many answers: truthlens detect < answers.jsonl
    """
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        config,
        models,
        threads,
    )
    if config is None and decision != "default":
        raise typer.BadParameter("--decision needs --config POLICY")
    policy = load_policy(config) if config else default_policy()
    plan = plan_of(policy, decision)
    folder = find_model(model, settings) if model is not None else scoring_folder(plan.model_id, settings)
    if threshold is not None or config is None:
        plan = replace(
            plan, threshold=load_manifest(folder).recommended_threshold if threshold is None else threshold
        )

    def load() -> EncoderDetector:
        return load_encoder(
            folder, use_cpu=plan.use_cpu, threads=threads, max_windows=policy.limits.max_windows
        )

    exit_status = 0
    asked = models_of(plan, policy.models, upstream=upstream, replies=replies, recorded=recorded)
    with asyncio.Runner() as runner:
        engine = build_engine([plan], LateModel(load), queue_limit=1)
        for exchange, answer in _inputs([*(context or ()), *(more or ())], query, response):
            found = runner.run(verdict_of(engine, plan, exchange, answer, asked))
            (verdict,) = explained(exchange, (answer,), (found,))
            _print(exchange, answer.text, verdict, as_json=as_json)
            exit_status = max(exit_status, 2 if verdict.flagged else 3 if verdict.score is None else 0)
        runner.run(engine.aclose())
        if asked is not None:
            runner.run(asked.aclose())
    if exit_code:
        raise typer.Exit(exit_status)


def _inputs(context: list[Path], query: str, response: str | None) -> Iterator[tuple[Exchange, Answer]]:
    if response is not None:
        if response == "-":
            _say_what_is_awaited("the answer")
        text = _standard_input() if response == "-" else _text(Path(response))
        yield _record([_text(path) for path in context], query, text)
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
    return _record([row.context] if isinstance(row.context, str) else row.context, row.query, row.response)


def _record(context: list[str], query: str, response: str) -> tuple[Exchange, Answer]:
    passages = tuple(Passage(text, Provenance.DOCUMENTS) for text in context if text.strip())
    kind = AnswerKind.TEXT if response.strip() else AnswerKind.EMPTY
    return Exchange(Endpoint.CHAT, "", query, passages), Answer(0, kind, response)


def _print(exchange: Exchange, response: str, verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        shown = verdict_object(verdict, text=response, passages=exchange.passages)
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    if verdict.score is None:
        out.print(Text(verdict.status.value, "yellow"), Text(f": {verdict.reason}"), sep="")
        return
    colour = "red" if verdict.flagged else "green"
    word = "detected" if verdict.flagged else "not detected"
    score = format_score(verdict.score, verdict.threshold)
    why = f" ({verdict.reason.value})" if verdict.reason is not None else ""
    out.print(
        Text(word, colour), f" score {score}  threshold {verdict.threshold:g}  {verdict.status.value}{why}"
    )
    text = Text(response.rstrip())
    for mark in marks_of(verdict.spans, length=len(response)):
        text.stylize("bold red", mark.start, mark.end)
    for span in verdict.spans:
        text.stylize("underline", span.start, span.end)
    out.print(text)
    for mark in marks_by_detector(verdict.spans, length=len(response)):
        out.print(
            f"  {mark.start}–{mark.end}  {mark.score:.2f}", Text(response[mark.start : mark.end], style="red")
        )
        for line in explanation_lines(mark, response, exchange.passages):
            out.print(Text(f"      {line}"))
