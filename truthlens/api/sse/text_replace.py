"""Replace the answer text of a buffered SSE stream.

Deliberately not here: how frames are changed (``rewriter``), what the new text is (``delivery``).
"""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.api.sse.chunks import Choice, ChunkKind
from truthlens.api.sse.rewriter import StreamRewriter
from truthlens.core.records.exchange import Answer
from truthlens.text.sentences import sentences


@dataclass(frozen=True, slots=True)
class Carrier:
    """Frames that carry characters ``start`` (inclusive) to ``end`` (exclusive) of a choice's text.

    ``places`` has several frames only where a character is cut over them: a surrogate pair in two halves.
    """

    start: int
    end: int
    places: tuple[int, ...]


def retell(draft: StreamRewriter, answer: Answer, new: str, *, echo: str) -> None:
    """Replace the text of ``answer`` in the stream by ``new``.

    What ``new`` has before or after an unchanged answer is inserted next to it. A text that is new itself
    comes in sentences, in the frames of the old text; a frame more for each sentence beyond them.

    Args:
        draft: The stream.
        answer: A choice of the stream that holds text.
        new: Its new text, another than it has.
        echo: What is before the answer in the choice's text, and stays.
    """
    if new.endswith(answer.text):
        _put_before(draft, answer.index, new[: len(new) - len(answer.text)], at=len(echo))
    elif new.startswith(answer.text):
        _put_after(draft, answer.index, new[len(answer.text) :])
    else:
        _replace(draft, answer.index, new, at=len(echo))


def carriers(draft: StreamRewriter, index: int) -> list[Carrier]:
    """Return the frames that carry the text of choice ``index``, in order, without gaps."""
    choice = Choice(index, draft.transcript.endpoint)
    starts: list[int] = []
    places: list[list[int]] = []
    for place, chunk in enumerate(draft.chunks):
        start, torn = choice.length, choice.torn
        deltas = draft.deltas(place, index)
        for delta in deltas:
            choice.add(delta)
        if chunk.kind is ChunkKind.DONE:
            choice.end()
        if not any(delta.text for delta in deltas):
            continue
        if torn:
            places[-1].append(place)
        else:
            starts.append(start)
            places.append([place])
    choice.end()
    ends = [*starts, choice.length][1:]
    return [Carrier(start, end, tuple(group)) for start, end, group in zip(starts, ends, places, strict=True)]


def _put_before(draft: StreamRewriter, index: int, notice: str, *, at: int) -> None:
    """Put ``notice`` at character ``at`` of the choice's text."""
    first = next(carrier for carrier in carriers(draft, index) if carrier.end > at)
    if first.start == at:
        draft.put_before(first.places[0], index, notice)
        return
    text = draft.transcript.choices[index].text
    _say(draft, index, first, text[first.start : at] + notice + text[at : first.end])


def _put_after(draft: StreamRewriter, index: int, notice: str) -> None:
    last = carriers(draft, index)[-1]
    if _finishes(draft, last.places[-1], index):
        _say(draft, index, last, draft.transcript.choices[index].text[last.start :] + notice)
    else:
        draft.put_after(last.places[-1], index, notice)


def _replace(draft: StreamRewriter, index: int, new: str, *, at: int) -> None:
    """Replace the choice's text from character ``at`` on."""
    draft.drop_copies(index, draft.transcript.choices[index].text[at:])
    replaced = [carrier for carrier in carriers(draft, index) if carrier.end > at]
    places = [place for carrier in replaced for place in carrier.places]
    pieces = _pieces(new)
    if len(pieces) > len(places) and _finishes(draft, places[-1], index):
        # No text comes behind a finish.
        kept = len(places) - 1
        pieces = [*pieces[:kept], "".join(pieces[kept:])]
    pieces[0] = draft.transcript.choices[index].text[replaced[0].start : at] + pieces[0]
    for place, piece in zip(places, pieces, strict=False):
        draft.say(place, index, piece)
    for piece in pieces[len(places) :]:
        draft.put_after(places[-1], index, piece)
    for place in places[len(pieces) :]:
        draft.silence(place, index)


def _say(draft: StreamRewriter, index: int, carrier: Carrier, text: str) -> None:
    draft.say(carrier.places[0], index, text)
    for place in carrier.places[1:]:
        draft.silence(place, index)


def _finishes(draft: StreamRewriter, place: int, index: int) -> bool:
    return any(delta.finish_reason is not None for delta in draft.deltas(place, index))


def _pieces(text: str) -> list[str]:
    """Split ``text`` before each sentence but the first; one piece at least."""
    cuts = [start for start, _end in sentences(text)[1:]]
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
