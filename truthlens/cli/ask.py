"""``ask``: answer a question from a folder or a policy's sources, with citations, and check the answer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from truthlens.cli import options
from truthlens.cli.plan_target import Target, find_target, offline_settings
from truthlens.cli.scoring import shortened
from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_run import AgenticRun, AgenticStep, AgenticStop
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import CallFailure, ModelSpec
from truthlens.core.records.retrieval import SearchRecord, SourceSpec
from truthlens.core.records.verdict import Verdict
from truthlens.core.risk import ClaimLevel, claim_level
from truthlens.delivery import format_score, scored_object
from truthlens.detection.explain.explainer import explained
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient
from truthlens.llm.http.request_builder import has_key
from truthlens.llm.offline import OfflineModels
from truthlens.mitigation.agentic.loop import FALLBACK_S, AgenticLoop
from truthlens.process.ask import (
    FAILURES,
    AskError,
    AskParts,
    answered,
    checked_pair,
    evidence_of,
    make_indexes,
    run_object,
)
from truthlens.process.model_store import SimilarityShelf
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.telemetry import logs

# Titles and answers may hold brackets, which are no markup.
out = Console(soft_wrap=True, highlight=False, markup=False)
progress_out = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)

_NOT_ACCEPTED = 3


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked, in one argument.")],
    docs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that is searched in the place of the policy's sources."),
    ] = None,
    config: options.Config = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="Source of the policy; may be given again (default: all of them)."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="TRUTHLENS_CHAT_MODEL",
            help="Model that searches and answers (default: the policy's, where it names one alone).",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        options.setting("base-url", "Where --model is asked, such as http://localhost:8000/v1."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="VAR", help="Environment variable with the key for --base-url."),
    ] = None,
    upstream: options.Upstream = None,
    decision: options.Decision = "default",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="What the question is about, for sources with a filter; repeat for more.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Score the answer by the detectors of the decision.")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question from documents: a model searches, writes and cites until its answer is accepted.

    Exit status 0: the answer was accepted. 3: it was not, or a limit ended the search. 1: an error. Limits
    are variables: AGENTIC_MAX_ITERATIONS (10), AGENTIC_MAX_TOKENS (50000), AGENTIC_MAX_DURATION (300 s);
    what the policy of --config says under agentic goes before them.

    A folder: truthlens ask --docs handbook/ --model qwen3 --base-url http://localhost:8000/v1 "How long?"

    A policy: truthlens ask --config policy.yaml --source manuals "How long is the warranty?"
    """
    if not question.strip():
        raise AskError("the question is empty")
    # Without this, what is logged would go to standard output, between the lines of --json.
    logs.configure(level="warning", form=logs.LogFormat.CONSOLE)
    target = find_target(offline_settings(config, None), decision)
    sources = _sources(target, docs, source or ())
    base = Path.cwd() if docs is not None else Path(target.policy.file).parent
    settings = target.plan.agentic if config is not None else _settings()
    name, models = _models(target, model, base_url, api_key_env)
    for each in {name: None, **dict.fromkeys(settings.models)}:
        _demand_reachable(models.get(each, ModelSpec(each)), upstream)
    _make_indexes(sources, base)
    asking = _Question(question, name, sources, base, _scope(scope or ()), models, upstream)
    searches: list[SearchRecord] = []
    run = asyncio.run(_run(asking, target, settings, searches))
    verdict = _verdict(question, run, target, models, upstream) if check and run.answer else None
    if as_json:
        shown = None if verdict is None else _verdict_object(question, run, target, verdict)
        typer.echo(json.dumps(run_object(run, shown), ensure_ascii=False))
    else:
        _print(run, target, verdict)
    if run.stop in FAILURES:
        raise AskError(_failure(run, searches, models.get(name, ModelSpec(name)), upstream))
    if not run.accepted:
        raise typer.Exit(_NOT_ACCEPTED)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and what it may use."""

    text: str
    model: str
    sources: Mapping[str, SourceSpec]
    base: Path
    scope: Mapping[str, str]
    models: Mapping[str, ModelSpec]
    upstream: str | None


async def _run(
    question: _Question, target: Target, settings: AgenticSettings, searches: list[SearchRecord]
) -> AgenticRun:
    shelf = SimilarityShelf(target.settings)

    async def embed(texts: Sequence[str]) -> Any:
        return await asyncio.to_thread((await shelf()).embed, texts)

    client = LlmClient(upstream=question.upstream, environ=os.environ)
    client.use(question.models)
    retriever = Retriever(embed=embed, environ=os.environ, observe=searches.append)
    try:
        try:
            retriever.use(question.sources, question.base)
        except (ValueError, OSError, ImportError) as error:
            raise AskError(f"a source cannot be used: {error}") from error
        deadline = Deadline.after(settings.max_duration_s + FALLBACK_S)
        # The run ends at its own limit; behind it there has to be room for the step that passes it and for a
        # fallback answer, each of which may show all evidence.
        tokens = settings.max_tokens + 2 * settings.evidence_chars
        budget = Budget(tokens, target.plan.mitigation.max_cost_usd)
        caller = Caller(client, deadline=deadline, budget=budget, models=question.models)
        return await answered(
            question.text,
            question.model,
            AskParts(AgenticLoop(settings), retriever, question.sources),
            ask=caller,
            asker=Asker(question.scope),
            deadline=deadline,
            observe=_show_step if progress_out.is_terminal else lambda step: None,
        )
    finally:
        await retriever.aclose()
        await client.aclose()


def _sources(target: Target, docs: Path | None, named: Sequence[str]) -> Mapping[str, SourceSpec]:
    known = target.policy.sources
    if docs is not None:
        known = {"docs": SourceSpec("docs", "folder", FolderOptions(path=str(docs)))}
    if not known:
        raise AskError(
            "there is nothing to search; give --docs DIR, or --config FILE of a policy with sources"
        )
    for name in named:
        if name not in known:
            raise AskError(f"there is no source {name!r}; there are: {', '.join(known)}")
    return {name: known[name] for name in named or known}


def _settings() -> AgenticSettings:
    try:
        return AgenticSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        variable = f"AGENTIC_{str(first['loc'][0]).removesuffix('_s').upper()}"
        raise AskError(f"the environment variable {variable} cannot be used: {first['msg']}") from None


def _models(
    target: Target, given: str | None, base_url: str | None, api_key_env: str | None
) -> tuple[str, Mapping[str, ModelSpec]]:
    """Return the model's name, and the policy's models with the one of ``base_url``."""
    models = dict(target.policy.models or {})
    name = _model_name(given, models)
    if base_url is not None:
        models[name] = ModelSpec(name, base_url.rstrip("/"), api_key_env)
    elif api_key_env is not None:
        raise AskError("--api-key-env needs --base-url URL")
    elif target.policy.models is not None and name not in models:
        raise AskError(
            f"the policy has no model {name!r}; it has: {', '.join(models)}; or give --base-url URL"
        )
    return name, models


def _model_name(given: str | None, models: Mapping[str, ModelSpec]) -> str:
    if given:
        return given
    if len(models) == 1:
        return next(iter(models))
    known = f"; the policy has: {', '.join(models)}" if models else ""
    raise AskError(f"no model is given; name one with --model NAME (or TRUTHLENS_CHAT_MODEL){known}")


def _demand_reachable(spec: ModelSpec, upstream: str | None) -> None:
    if spec.base_url is None and upstream is None:
        raise AskError(
            f"the model {spec.name!r} has no address; give --base-url URL, such as http://localhost:8000/v1"
        )
    if not has_key(spec, os.environ):
        raise AskError(
            f"the environment variable {spec.api_key_env} holds no key for the model {spec.name!r}"
        )


def _scope(pairs: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name or not value:
            raise AskError("--scope is NAME=VALUE, with neither of them empty")
        found[name.lower()] = value
    return MappingProxyType(found)


def _make_indexes(sources: Mapping[str, SourceSpec], base: Path) -> None:
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=progress_out, transient=True, disable=not progress_out.is_terminal
    ) as shown:
        task = shown.add_task("reading", total=None)
        make_indexes(
            sources, base, progress=lambda done, total: shown.update(task, completed=done, total=total)
        )


def _verdict(
    question: str, run: AgenticRun, target: Target, models: Mapping[str, ModelSpec], upstream: str | None
) -> Verdict | None:
    """Return the verdict of the plan's detectors, ``None`` where there is no evidence or detection is off."""
    if not target.plan.enabled or not evidence_of(run):
        return None
    asked = OfflineModels(models, environ=os.environ, upstream=upstream) if target.plan.asking else None
    exchange, answer = checked_pair(question, run)
    with target.scorer(asked) as scorer:
        (verdict,) = explained(exchange, (answer,), (scorer.verdict(exchange, answer),))
    return verdict


def _verdict_object(question: str, run: AgenticRun, target: Target, verdict: Verdict) -> Mapping[str, object]:
    exchange, answer = checked_pair(question, run)
    return scored_object(target.plan, verdict, text=answer.text, passages=exchange.passages)


def _show_step(step: AgenticStep) -> None:
    tool = f" {step.tool}" if step.tool else ""
    progress_out.print(f"{step.node.value}{tool}  {step.duration_s:.1f} s  {step.summary}", style="dim")


def _print(run: AgenticRun, target: Target, verdict: Verdict | None) -> None:
    parts = [run.answer] if run.answer else []
    if cited := [each for each in run.passages if each.cited]:
        titled = (
            f"  [{each.document_id}]{each.title and f' {each.title}'} ({each.source})" for each in cited
        )
        parts.append("\n".join(("sources:", *titled)))
    if not run.accepted and run.stop not in FAILURES:
        stop = "released with a high risk" if run.released else run.stop.value
        parts.append(f"not accepted: {stop}" + ("" if run.answer else "; there is no answer"))
    if run.search_failed and run.stop not in FAILURES:
        parts.append("a search failed: what was not found may be there")
    if verdict is not None:
        parts.append("\n".join(_verdict_lines(run.answer, target, verdict)))
    if parts:
        out.print("\n\n".join(parts))


def _verdict_lines(text: str, target: Target, verdict: Verdict) -> Iterator[str]:
    if verdict.score is None:
        yield f"check: {verdict.status.value}, {verdict.reason}"
        return
    word = "detected" if verdict.flagged else "not detected"
    score = format_score(verdict.score, verdict.threshold)
    yield f"check: {word}, score {score}, threshold {verdict.threshold:g}, {verdict.status.value}"
    for claim in verdict.claims:
        if claim_level(claim.risk, target.plan.even_threshold) is ClaimLevel.FLAGGED:
            shown = shortened(text[claim.start : claim.end])
            yield f"  {claim.outcome.value} risk {claim.risk:.2f}: {shown}"


def _failure(run: AgenticRun, searches: Sequence[SearchRecord], spec: ModelSpec, upstream: str | None) -> str:
    match run.stop:
        case AgenticStop.BAD_DECISION:
            return f"the model {spec.name!r} did not reply in the form that was asked for; name another model"
        case AgenticStop.SEARCH_FAILED:
            failed = {f"{each.source}: {each.result.value}" for each in searches if each.result.is_failure}
            return f"not all sources could be searched ({', '.join(sorted(failed))}), and nothing was found"
    where = f"at {spec.base_url or upstream}"
    remedy = "; is its server running?" if run.failure == CallFailure.CONNECTION else ""
    return f"the model {spec.name!r} {where} gave no answer: {run.failure}{remedy}"
