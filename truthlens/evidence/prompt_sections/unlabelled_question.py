"""Find the question where nothing marks it: what asks outside of the evidence, and else what is left."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.evidence.language.label_words import Part
from truthlens.evidence.language.mood import Mood, is_asking, sentence_kind
from truthlens.evidence.prompt_sections.prompt_state import ASKED_CHARS, NO_OWNER, Draft
from truthlens.evidence.units.elements import find_elements
from truthlens.evidence.units.unit import TALK, Kind
from truthlens.text.sentences import sentences

_ORDER_CHARS = 6000


def find_unmarked_question(draft: Draft) -> None:
    """Take as the question what asks outside of the evidence; a message without evidence is the question as a whole."""
    if _is_order_alone(draft):
        for place in range(len(draft.units)):
            draft.own(place, *NO_OWNER)
    if not draft.has(Part.EVIDENCE):
        for place, (_, rule) in enumerate(draft.owner):
            draft.own(place, Part.QUESTION, "unsure" if rule == "unsure" else "message")
        return
    if _take_nested(draft):
        return
    free = [place for place in range(len(draft.units)) if _may_ask(draft, place)]
    texts = [place for place in free if draft.units[place].kind is Kind.TEXT]
    if (
        not _take_paragraphs(draft, texts)
        and not _take_labelled_orders(draft, free)
        and not _take_announcement(draft)
    ):
        _take_order(draft, texts)


def _is_order_alone(draft: Draft) -> bool:
    """Return whether all that marks opened is an order of the user, who asks nothing else: "No context here: write a haiku"."""
    taken = [at for at in range(len(draft.units)) if draft.owner[at][0] is Part.EVIDENCE]
    said = "\n".join(draft.text[slice(*draft.kept(at))] for at in taken)
    if (
        not taken
        or len(said) > ASKED_CHARS
        or any(draft.owner[at][1] not in ("label", "tag") for at in taken)
    ):
        return False
    read = sum((draft.units[at].mood for at in taken), Mood())
    rest = (
        draft.text[unit.start : unit.body] if at in taken else draft.said(at)
        for at, unit in enumerate(draft.units)
    )
    return ((read.orders > 0 and not read.states) or is_asking(said)) and not any(
        is_asking(each.strip(" :：\n")[:ASKED_CHARS]) for each in rest
    )


def _may_ask(draft: Draft, place: int) -> bool:
    unit = draft.units[place]
    if (
        draft.owner[place][0] is not None
        or draft.owner[place][1] == "continued"
        or draft.is_example(place)
        or draft.is_under_example(place)
    ):
        return False
    if unit.kind is Kind.LABEL:
        return unit.part not in (Part.ANSWER, Part.HISTORY)
    return unit.kind is not Kind.RULE and not (unit.kind is Kind.ELEMENT and unit.part in TALK)


def _take_nested(draft: Draft) -> bool:
    """Take a question that stands between tags inside of an element of evidence, as one of its parts."""
    for place, unit in enumerate(draft.units):
        if not unit.is_evidence_element:
            continue
        parts = find_elements(draft.text, unit.body, unit.body_end)
        asked = [each for each in parts if each.part is Part.QUESTION]
        if asked and any(each.part is Part.EVIDENCE for each in parts):
            draft.insert(place + 1, asked[-1].content_start, asked[-1].content_end)
            draft.own(place + 1, Part.QUESTION, "tag")
            return True
    return False


def _take_paragraphs(draft: Draft, texts: Sequence[int]) -> bool:
    """Take the paragraphs that ask; without one, those that do not talk to the model."""
    plain = [place for place in texts if not draft.opens[place] and not draft.units[place].mood.guides]
    chosen = [place for place in plain if draft.asks(place)] or plain
    for place in chosen:
        draft.own(place, Part.QUESTION, "asks")
    return bool(chosen)


def _take_labelled_orders(draft: Draft, free: Sequence[int]) -> bool:
    """Take what asks behind labels for instructions: "Task: Summarize the report."."""
    chosen = [
        place
        for place in free
        if draft.units[place].part is Part.INSTRUCTION and is_asking(draft.units[place].rest)
    ]
    for place in chosen:
        draft.own(place, Part.QUESTION, "asks", (draft.units[place].body, draft.units[place].end))
    return bool(chosen)


def _take_announcement(draft: Draft) -> bool:
    """Take a label of evidence that is the order itself: "Summarize the following text:"."""
    for place, unit in enumerate(draft.units):
        if (
            unit.kind is Kind.LABEL
            and unit.part is Part.EVIDENCE
            and is_asking(draft.text[unit.start : unit.body])
        ):
            start, unit.start = unit.start, unit.body
            draft.insert(place, start, unit.body)
            draft.own(place, Part.QUESTION, "order")
            return True
    return False


def _take_order(draft: Draft, texts: Sequence[int]) -> None:
    """Take what asks among the talk to the model: the last sentence that does, and else a paragraph."""
    for place in reversed(texts):
        span = _asking_sentence(draft, place)
        if span is not None:
            draft.own(place, Part.QUESTION, "order", span)
            return
    for place in reversed(texts):
        if is_asking(draft.said(place)):
            draft.own(place, Part.QUESTION, "order")
            return


def _asking_sentence(draft: Draft, place: int) -> tuple[int, int] | None:
    """Return the last question of a paragraph to the model, and else its first sentence that asks for something itself."""
    first = draft.units[place].start
    said = draft.said(place)[:_ORDER_CHARS]
    asked = [(start, end) for start, end in sentences(said) if _is_asked(said[start:end])]
    questions = [span for span in asked if said[span[0] : span[1]].rstrip().endswith(("?", "？"))]
    chosen = questions[-1] if questions else asked[0] if asked else None
    return (first + chosen[0], first + chosen[1]) if chosen is not None else None


def _is_asked(sentence: str) -> bool:
    plain = sentence.strip()
    if plain.rstrip("\"'”).").endswith(("?", "？")):
        return True
    return is_asking(plain) and sentence_kind(plain) != "guides"
