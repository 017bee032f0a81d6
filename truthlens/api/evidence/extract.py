"""The evidence of a request: passages with provenance, and the query that is left.

Passages come from tool and function messages, system and developer messages, the request's documents,
and marked blocks inside user messages of every turn. Assistant messages are never evidence: a model does
not vouch for itself. Passages are data; nothing here reads them as instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from truthlens.api.evidence.documents import document_passages, json_passages
from truthlens.api.evidence.instructions import instruction_share
from truthlens.api.evidence.paragraphs import paragraph_passages, paragraphs
from truthlens.api.evidence.query import question_of
from truthlens.api.evidence.sections import take_sections
from truthlens.api.evidence.tags import Taken, take_tagged
from truthlens.core.cancellation import checkpoint
from truthlens.core.limits import Limits, check
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Message, Passage
from truthlens.core.records.plan import EvidenceRules

PATTERN_TIMEOUT = "evidence-pattern-timeout"

# An operator's pattern may be catastrophic on some text; it gets so long per message and no longer.
_PATTERN_TIMEOUT_S = 0.1
_TOOL_ROLES = ("tool", "function", "ipython")
_DEFAULTS = Limits()
_SYSTEM_ROLES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages in the order of the request, each text once; ``notes`` are codes of what went wrong."""

    passages: tuple[Passage, ...]
    query: str
    notes: tuple[str, ...] = ()


def take_evidence(
    messages: Sequence[Message],
    documents: Iterable[object],
    rules: EvidenceRules,
    limits: Limits = _DEFAULTS,
) -> Evidence:
    """Return the passages and query of a request.

    The query is what is left of the last user message, or of an earlier one where nothing is left.

    Args:
        messages: The conversation; a completions prompt is one user message.
        documents: Entries of the request's ``documents`` field.
        rules: What counts as evidence.
        limits: Bounds on it.

    Raises:
        BodyTooLargeError: There is more evidence than ``limits`` allow.
        StoppedError: Nobody waits for it any more.
        ValueError: One of ``rules.user_patterns`` is no regular expression with one group.
    """
    found: list[Passage] = []
    questions: list[str] = []
    notes: list[str] = []
    for message in messages:
        checkpoint()
        check(len(found), limits.max_passages, key="max_passages")
        if message.role in _TOOL_ROLES:
            found += _tool_passages(message.text, limits)
        elif message.role in _SYSTEM_ROLES:
            found += _system_passages(message.text, rules)
        elif message.role == "user":
            taken = _take_user(message.text, rules, notes)
            found += taken.passages
            questions.append(taken.rest)
    found += document_passages(documents, Provenance.DOCUMENTS)
    query = next((question for question in reversed(questions) if question), "")
    passages = _distinct(found)
    check_evidence(passages, limits)
    return Evidence(passages=passages, query=query, notes=tuple(dict.fromkeys(notes)))


def check_evidence(passages: Sequence[Passage], limits: Limits) -> None:
    """Raise ``BodyTooLargeError`` where ``passages`` are more, or longer together, than ``limits`` allow."""
    check(len(passages), limits.max_passages, key="max_passages")
    check(sum(len(each.text) for each in passages), limits.max_prompt_chars, key="max_prompt_chars")


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern of ``EvidenceRules.user_patterns`` once; it matches across lines, ``^`` at each.

    Raises:
        ValueError: It is no regular expression, or has other than one group.
    """
    return _compiled(pattern)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        compiled = regex.compile(pattern, regex.MULTILINE | regex.DOTALL)
    except regex.error as error:
        raise ValueError(f"user pattern {pattern!r} is no regular expression: {error}; fix it") from error
    if compiled.groups != 1:
        raise ValueError(f"user pattern {pattern!r} has {compiled.groups} groups; expected one, the passage")
    return compiled


def _tool_passages(text: str, limits: Limits) -> list[Passage]:
    documents = json_passages(text, Provenance.TOOL, max_values=limits.max_json_values)
    if documents is not None:
        return documents
    taken = _take_blocks(text, Provenance.TOOL)
    if not taken.passages:
        return [Passage(text=text.strip(), provenance=Provenance.TOOL)] if text.strip() else []
    # What stands around the sources of a tool's result is the tool's word as well.
    return [*taken.passages, *paragraph_passages(taken.rest, Provenance.TOOL)]


def _system_passages(text: str, rules: EvidenceRules) -> list[Passage]:
    taken = _take_blocks(text, Provenance.SYSTEM)
    if taken.passages:
        return list(taken.passages)
    if len(text) < rules.system_min_chars or instruction_share(text) >= rules.system_instruction_share:
        return []
    facts = [
        part for part in paragraphs(text) if instruction_share(part) < rules.system_instruction_share
    ] or paragraphs(text)
    return [Passage(text=part, provenance=Provenance.SYSTEM) for part in facts]


def _take_user(text: str, rules: EvidenceRules, notes: list[str]) -> Taken:
    own, rest = _take_patterns(text, rules.user_patterns, notes)
    taken = _take_blocks(rest, Provenance.USER)
    passages = (*own, *taken.passages)
    return Taken(passages, question_of(taken.rest) if passages else taken.rest.strip())


def _take_blocks(text: str, provenance: Provenance) -> Taken:
    tagged = take_tagged(text, provenance)
    sections = take_sections(tagged.rest, provenance)
    return Taken(tagged.passages + sections.passages, sections.rest)


def _take_patterns(text: str, patterns: Sequence[str], notes: list[str]) -> tuple[list[Passage], str]:
    passages: list[Passage] = []
    for pattern in patterns:
        found: list[Passage] = []
        rest: list[str] = []
        done = 0
        try:
            for match in _compiled(pattern).finditer(text, timeout=_PATTERN_TIMEOUT_S):
                passage = (match[1] or "").strip()
                if passage:
                    found.append(Passage(text=passage, provenance=Provenance.USER))
                    rest.append(text[done : match.start()])
                    done = match.end()
        except TimeoutError:
            notes.append(PATTERN_TIMEOUT)
            continue
        passages += found
        text = "\n".join((*rest, text[done:])) if found else text
    return passages, text


def _distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return the passages without repeated texts, as each turn may carry the same documents again."""
    kept: dict[str, Passage] = {}
    for passage in passages:
        first = kept.setdefault(passage.text, passage)
        if first is not passage and not first.id and passage.id:
            kept[passage.text] = replace(first, id=passage.id)
    return tuple(kept.values())
