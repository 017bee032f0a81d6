"""Responses of the OpenAI chat and completions APIs: their answers, and their bodies with new answers.

Deliberately not here: deciding what an answer's new text is (``delivery``), streams.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from truthlens.api.answer_citations import awaits_citations, split_citations
from truthlens.api.content import text_of_part
from truthlens.api.members.bookkeeping import is_identifier
from truthlens.api.members.filter import LOGPROBS_DROPPED, Level, Members
from truthlens.api.reasoning import split_reasoning
from truthlens.api.visible_text import Shown, load_shown, show_choice, unread_of, without_copies
from truthlens.core.errors import DialectError, check
from truthlens.core.limits import Limits
from truthlens.core.records.enums import AnswerKind, Endpoint
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.llm.token_estimate import text_tokens
from truthlens.text import json_edit

# The member of a body, or of a chunk, that only we give.
OWN_MEMBER = "truthlens"
_GAP = "\n\n"

_DEFAULTS = Limits()


@dataclass(frozen=True, slots=True)
class Response:
    """One JSON response.

    ``answers`` has one entry per choice, in the response's order, ``finish_reasons`` likewise. ``id`` is ``""`` where it is
    no identifier. ``usage`` is the backend's own count, whole numbers only. ``forged``: the backend sent a ``truthlens`` member, which
    must not leave. ``citations`` is the evidence that came with the answers. ``body_text`` and ``echoes`` are what
    ``rewrite_response`` edits.
    """

    endpoint: Endpoint
    answers: tuple[Answer, ...]
    finish_reasons: tuple[str | None, ...] = ()
    id: str = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    forged: bool = False
    citations: tuple[object, ...] = ()
    body_text: str = field(default="", repr=False)
    echoes: tuple[str, ...] = field(default=(), repr=False)


def parse_response(body: bytes, exchange: Exchange, limits: Limits = _DEFAULTS) -> Response:
    """Parse the answers of a response.

    ``Answer.index`` is the choice's own ``index`` where all choices have one of their own, else its place. An
    answer given in parts is the parts' texts, one directly after the other. Text in other members than the
    API's own comes behind it, a blank line between (``AnswerKind.OTHER``); see ``shown``. Reasoning is no
    answer, unless there is no other.

    Args:
        body: Decoded response body.
        exchange: The request half. Where an answer starts with ``echoed``, the answer is what follows.
        limits: Bounds on what is read.

    Raises:
        BodyTooLargeError: There are more JSON values, choices or characters of answers than ``limits`` allow.
        DialectError: The body is not UTF-8, not JSON, or not of the API's shape.
    """
    text = json_edit.decode(body)
    response, repeated = load_shown(text, max_values=limits.max_json_values)
    choices = response.get("choices")
    if choices is None and response.get("error") is not None:
        raise DialectError("body is an error object; expected choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise DialectError(f"choices is {json_edit.describe(choices)}; expected a list of objects")
    check(len(choices), limits.max_choices, key="max_choices")
    beside = [*unread_of(response), *repeated]
    if beside and not choices:
        raise DialectError("choices is empty, and text stands beside it; expected it in a choice")
    answers: list[Answer] = []
    echoes: list[str] = []
    citations: list[object] = []
    for index, whole in zip(_indexes(choices), choices, strict=True):
        cited, choice = (
            split_citations(whole, holder="message") if awaits_citations(exchange) else ((), whole)
        )
        citations += cited
        answer, echo = _answer(index, choice, beside, exchange)
        answers.append(answer)
        echoes.append(echo + answer.lead)
    check_answers(answers, limits)
    named, model = response.get("id"), response.get("model")
    return Response(
        endpoint=exchange.endpoint,
        answers=tuple(answers),
        finish_reasons=tuple(_string_or_none(choice.get("finish_reason")) for choice in choices),
        id=named if isinstance(named, str) and is_identifier("id", named) else "",
        model=json_edit.show(model) if isinstance(model, str) else "",
        usage=usage_counts(response.get("usage")),
        forged=OWN_MEMBER in response,
        citations=tuple(citations),
        body_text=text,
        echoes=tuple(echoes),
    )


def answer_of(answer: Answer, *, echoed: str = "") -> tuple[Answer, str]:
    """Return the answer of a choice out of all that it says, and the echo before it.

    Args:
        answer: All text of the choice, with what came with it.
        echoed: Where the text starts with it, the answer is what follows.
    """
    echo = echoed if echoed and answer.text.startswith(echoed) else ""
    lead, text = split_reasoning(answer.text[len(echo) :])
    kind, reasoning = answer.kind, answer.reasoning
    if lead.strip():
        reasoning = f"{reasoning}{_GAP}{lead}" if reasoning.strip() else lead
    if kind in (AnswerKind.TEXT, AnswerKind.OTHER) and not text.strip():
        kind = AnswerKind.EMPTY
    if kind is AnswerKind.EMPTY and reasoning.strip():
        # What a client can show in place of an answer is one.
        kind, text, lead, reasoning = AnswerKind.REASONING, reasoning, "", ""
    return replace(answer, kind=kind, text=text, lead=lead, reasoning=reasoning), echo


def _answer(
    index: int, choice: Mapping[str, object], beside: list[str], exchange: Exchange
) -> tuple[Answer, str]:
    shown = show_choice(choice, exchange.endpoint)
    text = shown.whole()
    reasoning = _GAP.join(dict.fromkeys(filter(str.strip, shown.reasoning)))
    unread = without_copies([*shown.unread, *beside], [text, split_reasoning(text)[1], reasoning])
    answer = Answer(
        index,
        _kind(shown, text),
        json_edit.show(text),
        reasoning=reasoning,
        unread_tokens=sum(map(text_tokens, unread)),
        call_tokens=sum(map(text_tokens, shown.calls)),
    )
    return answer_of(answer, echoed=exchange.echoed)


def _kind(shown: Shown, text: str) -> AnswerKind:
    if shown.tool_call:
        return AnswerKind.TOOL_CALL
    if not text.strip():
        return AnswerKind.REFUSAL if shown.refused else AnswerKind.EMPTY
    if text == shown.text:
        return AnswerKind.TEXT
    return AnswerKind.REFUSAL if shown.only_refused else AnswerKind.OTHER


def rewrite_response(
    response: Response, texts: Mapping[int, str], truthlens: Mapping[str, object] | None
) -> bytes:
    """Return the response's body with new answers and, if given, the ``truthlens`` object.

    Everything else keeps its place and its characters. The changed choices lose their ``logprobs``, which
    describe a text that is gone, and those with an answer that is new itself whatever may repeat the old one;
    ``truthlens.notes`` says so, also where no object was asked for. A ``truthlens`` member that the backend
    sent is removed.

    Args:
        response: What ``parse_response`` gave.
        texts: New text by ``Answer.index``; other choices are not touched. Text that the backend echoed
            stays in front of it.
        truthlens: The object to add, or ``None``.

    Raises:
        ValueError: ``texts`` names a choice that the response lacks or that holds no text.
    """
    known_texts(response.answers, texts)
    dropped: list[str] = []
    replaced = {
        place
        for place, answer in enumerate(response.answers)
        if answer.index in texts and _is_replaced(answer.text, texts[answer.index])
    }

    def edit_choice(position: int, raw: str) -> str:
        # A body that repeats ``choices`` was read by its last; an earlier one may be of any shape.
        answer = response.answers[position] if position < len(response.answers) else None
        if answer is None or answer.index not in texts or not raw.startswith("{"):
            return raw
        old = response.echoes[position] + answer.text
        new = response.echoes[position] + texts[answer.index]
        return _edit_choice(raw, old, new, response.endpoint, dropped)

    def edit_top(key: str, raw: str) -> str | None:
        return None if key == OWN_MEMBER else edit_choices(key, raw, edit_choice)

    text = json_edit.edit_object(response.body_text, edit_top)
    noted = {LOGPROBS_DROPPED} if dropped else set()
    if replaced:
        members = Members(response.endpoint, streamed=False)
        for place in replaced:
            members.forbid(response.answers[place].text)
        text = members.cleaned(
            text, lambda place: Level.REPLACED if place in replaced else Level.ALL, top=Level.REPLACED
        )
        noted |= members.notes
    if truthlens is not None or noted:
        text = json_edit.append_member(text, OWN_MEMBER, json_edit.dump(with_notes(truthlens, noted)))
    return text.encode()


def known_texts(answers: Iterable[Answer], changed: Collection[int]) -> dict[int, str]:
    """Return the texts that can be changed, by ``Answer.index``.

    Raises:
        ValueError: One of ``changed`` is not among them.
    """
    known = {answer.index: answer.text for answer in answers if answer.kind is AnswerKind.TEXT}
    if unknown := sorted(set(changed) - set(known)):
        raise ValueError(f"choices {unknown} cannot be changed; with text: {sorted(known)}")
    return known


def edit_choices(key: str, raw: str, edit: Callable[[int, str], str | None]) -> str:
    """Return the member ``key`` of a body, with each choice edited where it is the list of choices."""
    return json_edit.edit_array(raw, edit) if key == "choices" and raw.startswith("[") else raw


def _is_replaced(old: str, new: str) -> bool:
    """Return whether ``new`` is a text of its own, not ``old`` with something before or after it."""
    return not (new.endswith(old) or new.startswith(old))


def with_notes(truthlens: Mapping[str, object] | None, notes: Collection[str]) -> dict[str, object]:
    """Return the ``truthlens`` object with further notes; an object of these alone if there is none."""
    extra = dict(truthlens) if truthlens is not None else {}
    if notes:
        given = extra.get("notes")
        extra["notes"] = [*(given if isinstance(given, list | tuple) else ()), *sorted(notes, reverse=True)]
    return extra


def check_answers(answers: Iterable[Answer], limits: Limits) -> None:
    """Raise ``BodyTooLargeError`` if the texts of ``answers`` together exceed ``limits``."""
    check(sum(len(answer.text) for answer in answers), limits.max_answer_chars, key="max_answer_chars")


def _edit_choice(raw: str, old: str, new: str, endpoint: Endpoint, dropped: list[str]) -> str:
    def edit(key: str, value: str) -> str | None:
        if key == "logprobs" and value != "null":
            dropped.append(key)
            return None
        if endpoint is Endpoint.COMPLETIONS:
            return json_edit.dump(new) if key == "text" else value
        if key == "message" and value.startswith("{"):
            return json_edit.edit_object(
                value,
                lambda name, content: _edit_content(content, old, new) if name == "content" else content,
            )
        return value

    return json_edit.edit_object(raw, edit)


def _edit_content(raw: str, old: str, new: str) -> str:
    """Return the new content in the shape of the old: a string, or parts.

    In parts, text before or after an unchanged answer goes into the first or the last text part;
    an answer that is new itself takes the first text part's place, and the other text parts go.
    """
    if not raw.startswith("["):
        return json_edit.dump(new)
    texts = text_parts(raw)
    if not texts:
        return raw
    first, last = min(texts), max(texts)
    if new.endswith(old):
        return edit_parts(raw, {first: new[: len(new) - len(old)] + texts[first]})
    if new.startswith(old):
        return edit_parts(raw, {last: texts[last] + new[len(old) :]})
    return edit_parts(raw, {**dict.fromkeys(texts), first: new})


def text_parts(raw: str) -> dict[int, str]:
    """Return the texts of content in parts, by their places."""
    parts = enumerate(json.loads(raw))
    return {place: text for place, part in parts if (text := text_of_part(part)) is not None}


def edit_parts(raw: str, texts: Mapping[int, str | None]) -> str:
    """Return content in parts with other texts at some places; a part whose text is ``None`` goes."""

    def edit(place: int, part: str) -> str | None:
        text = texts.get(place)
        if text is None:
            return None if place in texts else part
        value = json_edit.dump(text)
        if part.startswith('"'):
            return value
        return json_edit.edit_object(part, lambda key, member: value if key == "text" else member)

    return json_edit.edit_array(raw, edit)


def _indexes(choices: list[dict[str, object]]) -> list[int]:
    given = [choice.get("index") for choice in choices]
    own = [index for index in given if isinstance(index, int) and not isinstance(index, bool)]
    return own if len(own) == len(given) == len(set(own)) else list(range(len(choices)))


def usage_counts(usage: object) -> dict[str, int]:
    """Return the whole numbers of a ``usage`` object; empty for anything else."""
    if not isinstance(usage, dict):
        return {}
    return {
        key: value for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)
    }


def _string_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
