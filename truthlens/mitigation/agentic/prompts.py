"""Make the requests of a run from its state; text that TruthLens did not write stands between its tags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.core.records.calls import ModelRequest, Role
from truthlens.mitigation.agentic.collected import exchange_of
from truthlens.mitigation.agentic.models import DECISION_TOKENS, REFINEMENT_TOKENS, SYNTHESIS_TOKENS
from truthlens.mitigation.agentic.state import AgenticState, SearchEntry
from truthlens.mitigation.agentic.synthesis import no_information
from truthlens.mitigation.agentic.tools.bounds import cut
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import relevant
from truthlens.prompts.excerpts import excerpts
from truthlens.prompts.model_requests import stand_alone, with_evidence

_LAST_IN_DECISION = 3
_LAST_IN_REFINEMENT = 5
_MOST_OVERVIEW_CHARS = 8_000
_MOST_EXCERPT_CHARS = 300
_MOST_QUESTION_CHARS = 20_000
_MOST_PARTIAL_CHARS = 8_000
_MOST_NOTE_CHARS = 500
_MOST_QUERY_CHARS = 300
_MOST_TOOL_CHARS = 2_000


def in_chinese(state: AgenticState) -> bool:
    """Return whether a run's prompts are in Chinese: as its question is."""
    return render.in_chinese(state.question)


def decision_request(
    state: AgenticState,
    *,
    model: str,
    own: bool,
    max_iterations: int,
    max_tokens: int,
    tools: Sequence[Mapping[str, Any]],
    behind: str = "",
) -> ModelRequest:
    """Return the request for the next decision; ``tools`` are those of the registry that are enabled."""
    return _request(
        "decision",
        state,
        model=model,
        own=own,
        length=DECISION_TOKENS,
        behind=behind,
        iteration_count=state.iteration_count,
        max_iterations=max_iterations,
        token_count=state.token_count,
        max_tokens=max_tokens,
        search_history=_searches(state.search_history[-_LAST_IN_DECISION:]),
        collected_results=_overview(state.collected_results),
        partial_answer=_partial(state),
        reasoning_trace="\n".join(
            delimiters.inline("note", cut(" ".join(each.split()), _MOST_NOTE_CHARS))
            for each in state.reasoning_trace[-_LAST_IN_DECISION:]
        ),
        available_tools="\n".join(_tool(each) for each in tools),
    )


def refinement_request(state: AgenticState, *, model: str, own: bool, behind: str = "") -> ModelRequest:
    """Return the request for a better query."""
    return _request(
        "refinement",
        state,
        model=model,
        own=own,
        length=REFINEMENT_TOKENS,
        behind=behind,
        search_history=_searches(state.search_history[-_LAST_IN_REFINEMENT:]),
        collected_results=_overview(state.collected_results),
    )


def synthesis_request(state: AgenticState, *, model: str, own: bool, most_chars: int) -> ModelRequest:
    """Return the request for the answer; it may take long for much evidence."""
    return _writing("synthesis", state, model=model, own=own, most_chars=most_chars, values={})


def fallback_request(state: AgenticState, *, model: str, own: bool, most_chars: int) -> ModelRequest:
    """Return the request for a fallback answer; it may take long for much evidence."""
    values = {"partial_answer": _partial(state)}
    return _writing("fallback_answer", state, model=model, own=own, most_chars=most_chars, values=values)


def _request(
    name: str, state: AgenticState, *, model: str, own: bool, length: int, behind: str, **values: object
) -> ModelRequest:
    chinese = in_chinese(state)
    prompt = render.render(name, chinese=chinese, part="user", question=_question(state), **values)
    body = stand_alone(
        system=render.render(name, chinese=chinese, part="system"),
        user=f"{prompt}\n\n{behind}" if behind else prompt,
        max_tokens=length,
    )
    return ModelRequest(model, Role.AGENT, body, own=own)


def _writing(
    name: str, state: AgenticState, *, model: str, own: bool, most_chars: int, values: Mapping[str, str]
) -> ModelRequest:
    chinese = in_chinese(state)

    def body(chars: int) -> Mapping[str, object]:
        prompt = render.render(
            name,
            chinese=chinese,
            part="user",
            question=_question(state),
            collected_results=_sources(state.question, state.collected_results, chars),
            no_information=no_information(chinese=chinese),
            **values,
        )
        system = render.render(name, chinese=chinese, part="system")
        return stand_alone(system=system, user=prompt, max_tokens=SYNTHESIS_TOKENS)

    asked = ModelRequest(model, Role.SYNTHESIZER, {}, own=own)
    exchange = exchange_of(state.question, state.collected_results)
    return with_evidence(asked, exchange, body, most_chars=most_chars)


def _question(state: AgenticState) -> str:
    return delimiters.tag("question", cut(state.question, _MOST_QUESTION_CHARS))


def _partial(state: AgenticState) -> str:
    text = cut(state.partial_answer, _MOST_PARTIAL_CHARS)
    return delimiters.tag("partial-answer", text) if text else ""


def _searches(entries: Sequence[SearchEntry]) -> str:
    return "\n".join(
        delimiters.inline(
            "search",
            cut(each.query, _MOST_QUERY_CHARS),
            tool=each.tool,
            results="failed" if each.failed and not each.results else each.results,
        )
        for each in entries
    )


def _overview(collected: Sequence[CollectedPassage]) -> str:
    """Return the beginnings of what was collected, the latest where not all of them can be shown."""
    shown: list[str] = []
    left = _MOST_OVERVIEW_CHARS
    for each in reversed(collected):
        entry = _source(each, cut(each.text, _MOST_EXCERPT_CHARS))
        if len(entry) > left:
            break
        left -= len(entry)
        shown.append(entry)
    return "\n".join(reversed(shown))


def _sources(question: str, collected: Sequence[CollectedPassage], most_chars: int) -> str:
    texts = [each.text for each in collected]
    near = relevant(texts, [question], most_chars=most_chars)
    kept = excerpts(texts, near=near.passages, most_chars=most_chars, around=near.sentences)
    return "\n".join(_source(each, text) for each, text in zip(collected, kept, strict=True) if text)


def _source(each: CollectedPassage, text: str) -> str:
    labels: dict[str, str] = {"document_id": each.document_id, "source": each.source}
    if each.title:
        labels["title"] = each.title
    if each.computed:
        labels["computed"] = "yes"
    return delimiters.tag("source", text, **labels)


def _tool(tool: Mapping[str, Any]) -> str:
    told = f"{tool['description']}\n{json.dumps(dict(tool['parameters']), ensure_ascii=False)}"
    return delimiters.tag("tool", cut(told, _MOST_TOOL_CHARS), tool_name=str(tool["name"]))
