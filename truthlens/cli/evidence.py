"""``evidence``: what TruthLens takes as evidence in a request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from truthlens.api.answer_citations import awaits_citations
from truthlens.api.requests import exchange_of, read_request
from truthlens.cli import options
from truthlens.core.errors import PolicyError
from truthlens.core.limits import Limits
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.settings import EvidenceRules
from truthlens.delivery import evidence_object, left_text
from truthlens.policy import load_policy
from truthlens.policy.validation import suggest

out = Console(soft_wrap=True, highlight=False)


def evidence(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Request body (JSON of chat completions or completions), or - for standard input.",
        ),
    ],
    as_json: options.AsJson = False,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Policy file (YAML) whose evidence rules apply (default: the built-in rules).",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    decision: Annotated[
        str | None, typer.Option(help="Decision of the policy (default: the one of `hallucination`).")
    ] = None,
) -> None:
    """Print what of a request is evidence, by which rule, what is left, and the question.

    One request:      truthlens evidence request.json

    As JSON:          truthlens evidence - --json < request.json

    With own rules:   truthlens evidence request.json --policy policy.yaml --decision support
    """
    if decision is not None and policy is None:
        raise typer.BadParameter("--decision needs --policy FILE")
    rules, limits = _rules(policy, decision)
    exchange = exchange_of(read_request(_body(file), None, limits), rules, limits)
    if as_json:
        typer.echo(json.dumps(evidence_object(exchange), ensure_ascii=False))
    else:
        _print(exchange)


def _rules(policy: Path | None, decision: str | None) -> tuple[EvidenceRules, Limits]:
    if policy is None:
        return EvidenceRules(), Limits()
    loaded = load_policy(policy)
    plan = loaded.default if decision is None else loaded.plan_named(decision)
    if plan is None:
        names = loaded.decision_names
        remedy = suggest(decision or "", names, otherwise=f"known: {', '.join(names)}")
        raise PolicyError(f"{policy}: there is no decision {decision!r}; {remedy}")
    return plan.evidence, loaded.limits


def _body(file: Path) -> bytes:
    if str(file) != "-":
        return file.read_bytes()
    if sys.stdin.isatty():
        typer.echo("reading the request from the terminal; end with Ctrl-D", err=True)
    # Requests may be of any Unicode encoding; a text has lost which.
    raw = getattr(sys.stdin, "buffer", None)
    return raw.read() if raw is not None else sys.stdin.read().encode("utf-8", "surrogateescape")


def _print(exchange: Exchange) -> None:
    reason = exchange.not_checkable
    if reason is None:
        out.print(Text("an answer can be checked", "green"))
    else:
        out.print(Text("unchecked", "yellow"), Text(f": {reason.value}"), sep="")
    if awaits_citations(exchange):
        out.print(Text("The request has data_sources: the citations of its answer are evidence, too."))
    out.print(Text("question", "bold"), Text(f": {exchange.query or '–'}"), sep="")
    out.print(Text(f"evidence: {len(exchange.passages)} passages", "bold"))
    for number, passage in enumerate(exchange.passages, 1):
        names = [name for name in (passage.id, passage.title) if name]
        told = " · ".join([passage.provenance.value, passage.rule, *names])
        out.print(Text(f"  {number}  {told}", "cyan"))
        out.print(Text(_indented(passage.text)))
    out.print(Text(f"left: {len(exchange.left)} parts", "bold"))
    for left in exchange.left:
        out.print(Text(f"  {left.rule}", "cyan"))
        out.print(Text(_indented(left_text(exchange, left))))


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.strip().splitlines())
