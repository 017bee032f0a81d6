"""Answer a question without an exchange: compose the loop of mode agentic with sources, models and detectors.

The command ``truthlens ask`` does this for one question, ``process/questions`` for those of ``/v1/ask``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from truthlens.core.deadline import Deadline
from truthlens.core.errors import TruthLensError
from truthlens.core.records.agentic_run import AgenticRun, AgenticStep, AgenticStop, CollectedPassage
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.retrieval import Retrieved, SearchRecord, SourceSpec
from truthlens.exchange.agentic_loop import run_loop
from truthlens.mitigation.agentic.collected import answer_of, exchange_of
from truthlens.mitigation.agentic.interfaces import AgenticTask
from truthlens.mitigation.agentic.loop import AgenticLoop
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import update_index

FAILURES = frozenset((AgenticStop.CALL_FAILED, AgenticStop.BAD_DECISION, AgenticStop.SEARCH_FAILED))
"""Stops of a run that failed; all others are an end that it came to by itself or by a limit."""

_WRITER_WAIT_S = 10.0


class AskError(TruthLensError):
    """A question cannot be asked, or its run failed; the message says what to change."""


@dataclass(frozen=True, slots=True)
class AskParts:
    """What questions are answered with.

    ``sources`` are those that may be searched, by name, all of them in use by ``retriever``. ``loop`` is one
    for all questions of its settings.
    """

    loop: AgenticLoop
    retriever: Retriever
    sources: Mapping[str, SourceSpec]


async def answered(
    question: str,
    model: str,
    parts: AskParts,
    *,
    ask: Ask,
    asker: Asker,
    deadline: Deadline,
    observe: Callable[[AgenticStep], None] = lambda step: None,
    searched: Callable[[Sequence[SearchRecord]], None] = lambda records: None,
) -> AgenticRun:
    """Return the run that answers ``question``, whatever failed in it; cancellation goes through.

    Args:
        question: in any language.
        model: takes the steps that the loop's settings name no model for.
        parts: loop, retriever and sources.
        ask: asks models within the question's budget and deadline.
        asker: on whose behalf the sources are searched.
        deadline: of the question; the run's own time counts as well.
        observe: told of every step that ended.
        searched: told of the searches of every use of a tool that ended.
    """

    async def search(sources: Sequence[str], query: str, k: int, deadline: Deadline) -> Retrieved:
        found = await parts.retriever.search(sources, [query], k=k, deadline=deadline, asker=asker)
        searched(found.searches)
        return found

    task = AgenticTask(question, model)
    return await run_loop(
        parts.loop,
        task,
        ask=ask,
        search=search,
        sources=tuple(parts.sources),
        retriever=parts.retriever,
        deadline=deadline,
        observe=observe,
    )


def make_indexes(
    sources: Mapping[str, SourceSpec], base: Path, *, progress: Callable[[int, int], None]
) -> None:
    """Bring the indexes of all folders among ``sources`` up to date; blocks until they can be searched.

    Args:
        sources: by name; those of other types are let be.
        base: where relative paths start.
        progress: told how many of how many changed files of a folder have been read.

    Raises:
        AskError: a folder holds nothing that can be read.
        TruthLensError: a folder or its index cannot be used.
        OSError: the folder of an index cannot be made.
    """
    for spec in sources.values():
        if not isinstance(spec.options, FolderOptions):
            continue
        root = spec.options.root(base)
        report = update_index(
            root, spec.options.index_file(base), spec.options, wait_s=_WRITER_WAIT_S, progress=progress
        )
        if report.pieces == 0:
            patterns = ", ".join(spec.options.patterns)
            raise AskError(f"the folder {root} holds no file with text among {patterns}; name another")


def evidence_of(run: AgenticRun) -> tuple[CollectedPassage, ...]:
    """Return the passages of a run that can prove something, in order; what a tool computed cannot."""
    return tuple(each for each in run.passages if not each.computed)


def checked_pair(question: str, run: AgenticRun) -> tuple[Exchange, Answer]:
    """Return what detectors score: the question with its evidence, and the run's answer."""
    return exchange_of(question, evidence_of(run)), answer_of(run.answer)


def run_object(run: AgenticRun, verdict: Mapping[str, object] | None) -> dict[str, object]:
    """Return a run as JSON, with the verdict on its answer.

    ``sources`` are in the order of the passages that ``verdict`` counts from 0; ``seconds`` are one step's.
    """
    return {
        "answer": run.answer,
        "accepted": run.accepted,
        "stop": "released" if run.released else run.stop.value,
        "failure": run.failure or None,
        "search_failed": run.search_failed,
        "iterations": run.iterations,
        "tokens": run.tokens,
        "steps": [
            {
                "node": each.node.value,
                "tool": each.tool or None,
                "seconds": round(each.duration_s, 3),
                "summary": each.summary,
            }
            for each in run.steps
        ],
        "sources": [
            {"id": each.document_id, "title": each.title or None, "source": each.source, "cited": each.cited}
            for each in evidence_of(run)
        ],
        "verdict": verdict,
    }
