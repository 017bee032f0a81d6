"""Recognise calls whose result a program reads and no user: query rewriting, titles, routing, SQL, translation.

Only where the prompt plainly says so: by the sentences that give the task, at the beginning or the end of the
system's message or of the user's last one, by the line with which a prompt ends for the model to go on, and by what
a user orders about a text of his own. Words in data, in questions, in conditions and behind a "not" do not count, and
instructions to answer the user, or to help him, outweigh them. Each message is read up to a bound at either end.
What the operator knows better he says with ``evidence.intermediate_calls``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from truthlens.core.records.exchange import Message
from truthlens.evidence.intermediate import patterns
from truthlens.evidence.intermediate.languages import OTHERS
from truthlens.evidence.roles import Speaker, speaker_of

_READ_CHARS = 2_000
_MAX_SENTENCE = 500
_FIRST_SENTENCES = 14
_LAST_SENTENCES = 4
_OWN_TEXT_ORDER_CHARS = 240
_OWN_TEXT_CHARS = 12


def _pieces(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return what ``.*`` joins in a pattern outside of brackets; one that has alternatives there stays whole."""
    depth, first, found = 0, 0, []
    for place, character in enumerate(pattern):
        if place and pattern[place - 1] == "\\":
            continue
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            return (re.compile(pattern),)
        if not depth and pattern.startswith(".*", place):
            found.append(pattern[first:place])
            first = place + 2
    return tuple(re.compile(piece) for piece in (*found, pattern[first:]))


_FORMS = tuple((_pieces(form.says), form.also) for form in (*patterns.ENGLISH, *OTHERS))
_ALSO = {also: re.compile(also, re.DOTALL) for _, listed in _FORMS for also in listed}
_JSON_TASK = re.compile(rf"#+ *task\b.*#+ *output\b.{{0,200}}?\{{\s*{patterns.JSON_FIELD}", re.DOTALL)
_END_CUE = re.compile(rf"(?:^|\n)[\s#*>\"'`]*{patterns.END_CUE}[\s\"'`*>]*[:：][\s\"'`*]*$")
_PASSAGE_TASK = re.compile(patterns.PASSAGE_TASK)
_PASSAGE_CUE = re.compile(rf"\n[\s*\"'`]*{patterns.PASSAGE_CUE}[\s*]*:[\s\"'`*]*$")
_OWN_TEXT = re.compile(patterns.OWN_TEXT, re.DOTALL)
_OWN_TEXT_NOT = re.compile(patterns.OWN_TEXT_NOT)
_ANSWERS_USER = re.compile(patterns.ANSWERS_USER)
_NO_ANSWER = re.compile(r"(?:\b(?:not|never|without|nor)\b|n't\b)\W*(?:\w+\W+){0,3}?(?:answer|explain)\w*")

_BULLET = re.compile(r"^[\s#*>•\-–・]+|^\s*\(?\d{1,2}[.)、]\s*")
# A line of its own: a heading, a bullet, a label; other lines of a paragraph are wrapped.
_OWN_LINE = re.compile(r"\s*(?:[#*>•\-–・<{\[`=]|\(?\d{1,2}[.)、]|[^\n:：]{1,40}[:：]|$)")
_STANDS_ALONE = re.compile(r"\s*(?:[#<`]|[-=_*]{3}|.*[.:!?。：！？\"”»]\s*$)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
# Where data begin: a label, a tag, a rule, a fence.
_DATA = re.compile(
    r"\s*(?:</?[\w -]{1,40}>|[-=_*]{3,}|```|\"\"\""
    r"|[\W\d_]*(?:(?:the|chat|original|user'?s?|new|latest|last|current|given|input|follow[- ]?up|retrieved|earlier|previous|ai) ){0,3}"
    r"(?:history|conversation|dialogue|dialog|context|texts?|passages?|documents?|input|examples?|question|query|message|user|human|facts|sources?|prompt|summary|new lines[\w ]*|article"
    r"|schema|answer|assistant|verlauf|gespräch|frage|kontext|dokument|quellen|nutzer|historique|contexte|historial|contexto|контекст|диалог|пользователь|вопрос"
    r"|历史对话|对话历史|对话|上下文|资料|文章|问题|用户|最新提问|原文|文档|会話|資料|質問|入力)\s*(?:\(?\d+\)?|\[\d+\])?\s*[:：])",
)
_ASKS = re.compile(
    r"(?:how|what|why|who|whom|whose|when|where|which|is|are|was|were|does|did|do(?! not|n't)|wie|was|warum|wer|wann|welche\w*|comment|pourquoi|quel\w*|qui|qué|cómo|cuál|quién|¿|как|почему|что|怎样|怎么|如何|为什么|什么)\b|[^.:：]*[?？]\W*$"
)
_DEPENDS = re.compile(
    r"(?:if|when|whenever|unless|in case|should|wenn|falls|si|quand|cuando|если|如果|若|当|必要|もし)\b|[^。]{0,4}(?:如果|若|必要时)"
    r"|.*(?:\b(?:if|where|as) (?:needed|necessary|required)\b|\bin your head\b|必要时)"
)
_NOT = re.compile(
    r"(?:\b(?:not|never|nothing|nor|without|no|don't|won't|cannot|can't|nicht|nie|kein\w*|pas|jamais|nunca|jamás|не|никогда)\b|n't|不要|不得|不能|禁止|切勿)[^,;.]{0,20}$"
)


def is_intermediate(messages: Sequence[Message], query: str, *, sourced: bool) -> bool:
    """Return whether the answer to these messages is a step of an application and not shown to a user as an answer.

    Args:
        messages: The conversation; a completions prompt is one user message.
        query: What the user asks, as far as it was found apart from the message's other parts.
        sourced: A tool's results are among the messages; then only the system's task counts.
    """
    systems = [message.text for message in messages if speaker_of(message.role) is Speaker.SYSTEM]
    if any(_gives_task(text) for text in systems):
        return True
    if sourced:
        return False
    last = next((each.text for each in reversed(messages) if speaker_of(each.role) is Speaker.USER), "")
    prompts = [last, *systems]
    return (
        any(_ends_with_cue(text) for text in prompts if text)
        or _gives_task(last, answering=any(map(_is_to_answer, systems)))
        or _reworks_own_text(last)
        or (query not in ("", last) and _reworks_own_text(query))
    )


def _gives_task(text: str, *, answering: bool = False) -> bool:
    """Return whether the instructions in a message give such a task, and none to answer a user.

    Where another message says to answer (``answering``), what stands behind the data is data or the question.
    """
    if _JSON_TASK.search(text[:_READ_CHARS].lower()):
        return True
    told = _instructions(text, ending=not answering)
    everything = "\n".join(told)
    if not told or _ANSWERS_USER.search(_NO_ANSWER.sub(" ", everything)):
        return False
    tasks = [each for each in told if not _ASKS.match(each) and not _DEPENDS.match(each)]
    if not tasks:
        return False
    known = {also: pattern.search(everything) is not None for also, pattern in _ALSO.items()}
    return any(
        all(known[each] for each in also) and any(_says(pieces, task) for task in tasks)
        for pieces, also in _FORMS
    )


def _says(pieces: Sequence[re.Pattern[str]], sentence: str) -> bool:
    place, first = 0, -1
    for piece in pieces:
        match = piece.search(sentence, place)
        if match is None:
            return False
        first = match.start() if first < 0 else first
        place = match.end()
    return _NOT.search(sentence[:first]) is None


def _is_to_answer(text: str) -> bool:
    return _ANSWERS_USER.search(_NO_ANSWER.sub(" ", "\n".join(_instructions(text)))) is not None


def _instructions(text: str, *, ending: bool = True) -> list[str]:
    """Return the sentences before the data of a message, and behind it, in lower case without bullets."""
    head = text[:_READ_CHARS].lower().replace("\u2019", "'")
    told: list[str] = []
    last: list[str] = []
    for line in _lines(head):
        if _DATA.match(line):
            break
        told += _sentences(line)
        if len(told) >= _FIRST_SENTENCES:
            break
    tail = text[-_READ_CHARS:].lower().replace("\u2019", "'") if ending else ""
    for line in reversed(_lines(tail)):
        if len(last) >= _LAST_SENTENCES or _DATA.match(line):
            break
        last = [*_sentences(line), *last]
    return list(dict.fromkeys((*told[:_FIRST_SENTENCES], *last[-_LAST_SENTENCES:])))


def _lines(text: str) -> list[str]:
    """Return the lines of ``text`` that are not blank, wrapped lines joined."""
    found: list[str] = []
    wraps = False
    for line in text.split("\n"):
        if wraps and not _OWN_LINE.match(line):
            found[-1] += " " + line.strip()
        elif line.strip():
            found.append(line)
        wraps = bool(line.strip()) and not _STANDS_ALONE.match(line)
    return found


def _sentences(line: str) -> Iterable[str]:
    for sentence in _SENTENCE_END.split(line):
        plain = _BULLET.sub("", sentence[:_MAX_SENTENCE]).strip()
        if plain:
            yield plain


def _ends_with_cue(text: str) -> bool:
    tail = text[-_READ_CHARS:].rstrip().lower()
    return _END_CUE.search(tail[-200:]) is not None or (
        _PASSAGE_CUE.search(tail[-200:]) is not None
        and _PASSAGE_TASK.search(text[:_READ_CHARS].lower()) is not None
    )


def _reworks_own_text(text: str) -> bool:
    """Return whether a user orders to translate or correct a text that he adds to the order."""
    head = text.lstrip()[:_READ_CHARS].lower()
    ends = [
        place
        for place in (head.find(mark, 0, _OWN_TEXT_ORDER_CHARS) for mark in (":", "：", "\n"))
        if place > 0
    ]
    if not ends:
        return False
    order, rest = head[: min(ends)], head[min(ends) :]
    return (
        _OWN_TEXT.match(order) is not None
        and _OWN_TEXT_NOT.search(order) is None
        and sum(character.isalnum() for character in rest) >= _OWN_TEXT_CHARS
    )
