"""The evidence of a request: passages with provenance, what is left and why, and the query.

Passages come from messages of tools and other sources, the request's documents, and from what ``prompt`` finds in the system's and
the user's messages. What a model said is never evidence, as it does not vouch for itself: neither an assistant's messages nor what
a completion continues. Passages are data; nothing here reads them as instructions.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import check
from truthlens.core.limits import Limits
from truthlens.core.records.enums import IntermediateCalls, Provenance, Reason, SystemEvidence
from truthlens.core.records.exchange import LeftText, Message, Passage
from truthlens.core.records.settings import EvidenceRules
from truthlens.evidence.documents import document_passages, json_passages
from truthlens.evidence.intermediate.calls import is_intermediate
from truthlens.evidence.language.label_words import Part, is_unspaced, part_of_label
from truthlens.evidence.language.mood import is_asking, mood
from truthlens.evidence.language.relation import is_about
from truthlens.evidence.passages import passages_of
from truthlens.evidence.prompt_sections.prompt_reader import Block, read_prompt
from truthlens.evidence.roles import Speaker, speaker_of

PATTERN_TIMEOUT = "evidence-pattern-timeout"

# An operator's pattern may be catastrophic on some text; it gets so long per message and no longer.
_PATTERN_TIMEOUT_S = 0.1
_DEFAULTS = Limits()
_MAX_LEFT = 1_000
_MIN_PASTED = 60
_MAX_LONE = 60
_PASTED_CHARS = 20_000
# What languages of programs and templates write for nothing, in any case: Python, JSON, Ruby, JavaScript, numbers, tables, empty values.
_NULLS = frozenset(
    ("none", "null", "nil", "undefined", "nan", "n/a", "#n/a", "[]", "{}", "()", '""', "''", "-")
)
# With which a question refers to the one before it: words that it begins with, and pronouns.
_REFERS = re.compile(
    r"^(?:and|but|or|also|what about|how about|why|why not|really|are you sure|then|ok(?:ay)?,? (?:and|but)|und|aber|et|mais|y|pero|а|и|но|e|ma|那|那么|还有|じゃあ|では|それで)\b"
    r"|\b(?:it|its|they|them|their|he|she|him|his|her|that|those|these|this one|there|one|the same|the other|er|sie|es|dort|il|elle|ils|elles|lui|"
    r"ella|ello|ellos|allí|он|она|оно|они|его|её|там|этот|эта)\b|它|他|她|那个|这个|其|それ|そこ|彼",
    re.IGNORECASE,
)
_MAX_WORDS = 9
_MAX_WORDS_BEHIND = 14


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages in the order of the request, each text once; ``notes`` are codes of what went wrong.

    ``left`` are the parts of the messages that are no evidence. ``unchecked`` says why there is nothing to check an answer against, or
    that what comes back is no answer to a user; ``None`` where an answer can be checked.
    """

    passages: tuple[Passage, ...]
    query: str
    notes: tuple[str, ...] = ()
    left: tuple[LeftText, ...] = ()
    unchecked: Reason | None = None


def take_evidence(
    messages: Sequence[Message],
    documents: Iterable[object],
    rules: EvidenceRules,
    limits: Limits = _DEFAULTS,
    *,
    continued: bool = False,
) -> Evidence:
    """Return the passages and query of a request.

    The query is what the last user message asks, or an earlier one where it asks nothing.

    Args:
        messages: The conversation; a completions prompt is one user message.
        documents: Entries of the request's ``documents`` field.
        rules: What counts as evidence.
        limits: Bounds on it.
        continued: Whether the answer goes on where the last message ends, as with a completions prompt: what it continues is no
            evidence.

    Raises:
        BodyTooLargeError: There is more evidence than ``limits`` allow.
        StoppedError: Nobody waits for it any more.
        ValueError: One of ``rules.user_patterns`` is no regular expression with one group.
    """
    reader = _Reader(messages, rules, limits, continued=continued)
    reader.read(document_passages(documents, Provenance.DOCUMENTS, rule="documents-field"))
    passages = _distinct(reader.passages())
    check_evidence(passages, limits)
    unchecked = None
    if rules.intermediate_calls is IntermediateCalls.ALL or (
        rules.intermediate_calls is IntermediateCalls.DETECT
        and is_intermediate(messages, reader.query, sourced=reader.sourced)
    ):
        unchecked, passages = Reason.NOT_AN_ANSWER, ()
    elif not passages:
        unchecked = Reason.UNSURE_CONTEXT if reader.unsure else Reason.NO_CONTEXT
    return Evidence(
        passages=passages,
        query=reader.query,
        notes=tuple(dict.fromkeys(reader.notes)),
        left=tuple(reader.left[:_MAX_LEFT]),
        unchecked=unchecked,
    )


def check_evidence(passages: Sequence[Passage], limits: Limits) -> None:
    """Raise ``BodyTooLargeError`` where ``passages`` are more, or longer together, than ``limits`` allow."""
    check(len(passages), limits.max_passages, key="max_passages")
    check(sum(len(each.text) for each in passages), limits.max_prompt_chars, key="max_prompt_chars")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern of ``EvidenceRules.user_patterns`` once; it matches across lines, ``^`` at each.

    Raises:
        ValueError: It is no regular expression, or has other than one group.
    """
    try:
        compiled = regex.compile(pattern, regex.MULTILINE | regex.DOTALL)
    except regex.error as error:
        raise ValueError(f"user pattern {pattern!r} is no regular expression: {error}; fix it") from error
    if compiled.groups != 1:
        raise ValueError(f"user pattern {pattern!r} has {compiled.groups} groups; expected one, the passage")
    return compiled


class _Reader:
    """One request while its evidence is taken."""

    def __init__(
        self, messages: Sequence[Message], rules: EvidenceRules, limits: Limits, *, continued: bool
    ) -> None:
        self._continued = continued
        self._messages = messages
        self._rules = rules
        self._limits = limits
        self._marks = frozenset(mark.strip().lower() for mark in rules.marks)
        self._found: dict[int, list[Passage]] = {}
        self._documents: list[Passage] = []
        self.left: list[LeftText] = []
        self.notes: list[str] = []
        self.query = ""
        self._topics = ""
        self.unsure = False
        self.sourced = False

    def read(self, documents: list[Passage]) -> None:
        """Read the messages: the users' first, as what of the operator's is evidence depends on the question."""
        self._documents = list(filter(_says_something, documents))
        speakers = self._speakers()
        questions: list[str] = []
        for place, message in enumerate(self._messages):
            checkpoint()
            check(sum(map(len, self._found.values())), self._limits.max_passages, key="max_passages")
            if message.documents and speakers[place] is not Speaker.UNKNOWN:
                self._keep(
                    place,
                    document_passages(message.documents, _PROVENANCE[speakers[place]], rule="document-part"),
                )
            match speakers[place]:
                case Speaker.SOURCE:
                    self._keep(place, self._source(message.text))
                    self.sourced = True
                case Speaker.USER:
                    questions.append("" if self._is_example(place) else self._user(place, message.text))
                case Speaker.ASSISTANT:
                    self._leave(place, 0, len(message.text), "assistant")
                case Speaker.UNKNOWN:
                    self._leave(place, 0, len(message.text), "unknown-role")
        self.query = _with_earlier(questions)
        self._topics = "\n".join(questions)[-2000:]
        self._take_pasted(speakers)
        self._leave_lone()
        systems = [place for place, speaker in enumerate(speakers) if speaker is Speaker.SYSTEM]
        for place in systems:
            checkpoint()
            # Text without a mark only counts where nothing else of the request is evidence.
            alone = not self._documents and not any(self._found.values())
            self._system(
                place, self._messages[place], unmarked=alone and self._rules.system is SystemEvidence.AUTO
            )

    def _speakers(self) -> list[Speaker]:
        """Return who speaks in each message; where all are the system's, the user does."""
        speakers = [speaker_of(message.role, self._rules.roles) for message in self._messages]
        if set(speakers) == {Speaker.SYSTEM} and self._rules.system is not SystemEvidence.NEVER:
            # Some applications put all that they ask into a system message.
            return [Speaker.USER] * len(speakers)
        return speakers

    def passages(self) -> Iterable[Passage]:
        """Return what was found, in the order of the request."""
        for place in sorted(self._found):
            yield from self._found[place]
        yield from self._documents

    def _keep(self, place: int, passages: Iterable[Passage]) -> None:
        self._found.setdefault(place, []).extend(filter(_says_something, passages))

    def _leave(self, place: int, start: int, end: int, rule: str) -> None:
        if start < end and len(self.left) < _MAX_LEFT:
            self.left.append(LeftText(place, start, end, rule))

    def _is_example(self, place: int) -> bool:
        """Return whether a user's message is a worked example that the application sends with every request."""
        following = self._messages[place + 1] if place + 1 < len(self._messages) else None
        if following is None:
            # What the model answers now is no example, whatever it is named.
            return False
        name = self._messages[place].name.lower()
        made = following.text.rstrip().endswith("[[ ## completed ## ]]")
        if not (name.startswith("example") or made):
            return False
        self._leave(place, 0, len(self._messages[place].text), "example")
        return True

    def _source(self, text: str) -> list[Passage]:
        found = json_passages(text, Provenance.TOOL, max_values=self._limits.max_json_values)
        if found is not None:
            return [replace(each, rule="source-role") for each in found]
        plain = text.strip()
        if not plain:
            return []
        whole = [Passage(text=plain, provenance=Provenance.TOOL, rule="source-role")]
        if plain.startswith("{") and "\n{" not in plain:
            return whole
        parts = self._passages(plain, Provenance.TOOL, "source-role")
        marked = "<" in plain or plain.startswith(("{", "```"))
        return parts if marked or any(each.id or each.title for each in parts) else whole

    def _user(self, place: int, text: str) -> str:
        """Take the evidence of a user's message; return what it asks."""
        own, rest = self._patterns(text)
        self._keep(place, own)
        fields = _json_fields(rest, self._limits)
        if fields is not None:
            passages, asked = fields
            self._keep(place, passages)
            return asked
        prompt = read_prompt(rest, system=False, marks=self._marks, continued=self._continued)
        # Positions are those of the message: where a pattern was cut out of it there are none.
        self._blocks(place, prompt.text, prompt.blocks, Provenance.USER, leaves=not own)
        self.unsure = self.unsure or any(block.rule == "unsure" for block in prompt.blocks)
        return prompt.question

    def _take_pasted(self, speakers: Sequence[Speaker]) -> None:
        """Take documents that the user pasted into turns of their own, before the question about them."""
        users = [place for place, speaker in enumerate(speakers) if speaker is Speaker.USER]
        for place in users[:-1]:
            text = self._messages[place].text
            if self._found.get(place):
                continue
            found = mood(text[:_PASTED_CHARS])
            told = found.reference_score - found.asks - found.first
            if (
                len(text) >= _MIN_PASTED
                and told >= 1.4
                and not is_asking(text)
                and is_about(self.query, text, least=1)
            ):
                self._keep(place, self._passages(text, Provenance.USER, "pasted-text"))

    def _leave_lone(self) -> None:
        """Leave a short text behind a mark where nobody asks anything: it may be what the user wants, in words that are not known."""
        if self.query or any(each.role.lower() != "user" for each in self._messages):
            return
        found = [each for passages in self._found.values() for each in passages]
        if found and sum(len(each.text) for each in found) <= _MAX_LONE and found[0].rule == "label":
            self._found.clear()
            self.unsure = True

    def _system(self, place: int, message: Message, *, unmarked: bool) -> None:
        mode = self._rules.system
        if mode is SystemEvidence.NEVER or message.name.lower().startswith("example"):
            self._leave(
                place, 0, len(message.text), "system-never" if mode is SystemEvidence.NEVER else "example"
            )
            return
        prompt = read_prompt(
            message.text,
            system=True,
            asked=self.query,
            topics=self._topics,
            unmarked=unmarked,
            min_chars=self._rules.system_min_chars,
            marks=self._marks,
        )
        weak = [block for block in prompt.evidence if block.weak]
        said = "\n".join(prompt.text[block.start : block.end] for block in weak)
        blocks = prompt.blocks
        if weak and not is_about(self.query, said):
            # "Background: …" may be about the company as well as about the question.
            self.unsure = True
            blocks = [replace(block, part=None, rule="unsure") if block.weak else block for block in blocks]
        self.unsure = self.unsure or any(block.rule == "unsure" for block in blocks)
        self._blocks(place, prompt.text, blocks, Provenance.SYSTEM)

    def _blocks(
        self, place: int, text: str, blocks: Sequence[Block], provenance: Provenance, *, leaves: bool = True
    ) -> None:
        for (evidence, rule), alike in itertools.groupby(
            blocks, lambda block: (block.part is Part.EVIDENCE, block.rule)
        ):
            group = list(alike)
            if evidence:
                said = text[group[0].start : group[-1].end]
                self._keep(place, self._passages(said, provenance, rule))
            elif leaves:
                for block in group:
                    if block.part is None:
                        self._leave(place, block.start, block.end, rule)

    def _passages(self, text: str, provenance: Provenance, rule: str) -> list[Passage]:
        return passages_of(text, provenance, rule, max_values=self._limits.max_json_values)

    def _patterns(self, text: str) -> tuple[list[Passage], str]:
        passages: list[Passage] = []
        for pattern in self._rules.user_patterns:
            found: list[Passage] = []
            rest: list[str] = []
            done = 0
            try:
                for match in compile_pattern(pattern).finditer(text, timeout=_PATTERN_TIMEOUT_S):
                    passage = (match[1] or "").strip()
                    if passage:
                        found.append(Passage(text=passage, provenance=Provenance.USER, rule="pattern"))
                        rest.append(text[done : match.start()])
                        done = match.end()
            except TimeoutError:
                self.notes.append(PATTERN_TIMEOUT)
                continue
            passages += found
            text = "\n".join((*rest, text[done:])) if found else text
        return passages, text


def _says_something(passage: Passage) -> bool:
    """Return whether a passage is more than the null value that a template writes where nothing was retrieved."""
    return passage.text.strip().casefold() not in _NULLS


_PROVENANCE = {
    Speaker.SYSTEM: Provenance.SYSTEM,
    Speaker.USER: Provenance.USER,
    Speaker.ASSISTANT: Provenance.TOOL,
    Speaker.SOURCE: Provenance.TOOL,
}


def _json_fields(text: str, limits: Limits) -> tuple[list[Passage], str] | None:
    """Return the evidence and the question of a user message that is a JSON object with fields for both; else ``None``."""
    plain = text.strip()
    if not (plain.startswith("{") and plain.endswith("}")):
        return None
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    passages: list[Passage] = []
    asked = ""
    for key, item in value.items():
        part = part_of_label(key)
        if part is Part.EVIDENCE and not isinstance(item, bool | int | float):
            entries = item if isinstance(item, list) else [item]
            passages += document_passages(entries, Provenance.USER, rule="json-field")
        elif part in (Part.QUESTION, Part.INPUT) and isinstance(item, str) and not asked:
            asked = item.strip()
    check(len(passages), limits.max_passages, key="max_passages")
    return (passages, asked) if passages and asked else None


def _distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return the passages without repeated texts, as each turn may carry the same documents again."""
    kept: dict[str, Passage] = {}
    for passage in passages:
        first = kept.setdefault(passage.text, passage)
        if first is not passage and not first.id and passage.id:
            kept[passage.text] = replace(first, id=passage.id)
    return tuple(kept.values())


def _with_earlier(questions: Sequence[str]) -> str:
    """Return the last question that asks something, behind the one before it where it refers to that.

    Args:
        questions: Of the user's messages in order; ``""`` for a message that asks nothing.
    """
    asked = [question for question in questions if question]
    if not asked:
        return ""
    last = asked[-1]
    if len(asked) > 1 and _refers(last) and asked[-2] != last:
        return f"{asked[-2]}\n{last}"
    return last


def _refers(question: str) -> bool:
    """Return whether a question cannot be understood alone: a short one that begins with "and", or has a pronoun."""
    size = len(question) / 1.6 if is_unspaced(question) else len(question.split())
    refers = _REFERS.search(question)
    return refers is not None and size <= (_MAX_WORDS_BEHIND if refers.start() == 0 else _MAX_WORDS)
