"""Synthetic answers made from evidence: clean ones, and ones with a marked error. Wordings are our own.

An answer is a few sentences of the evidence with lead-ins and closings as chat models write them. Errors are
minimal edits (number, month, name, antonym, negation) or text from another source; clean ones also cover what
detectors wrongly flag: abstentions, restated questions, headings, politeness, number paraphrases.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from truthlens.core.text import sentences
from truthlens.hub.data import Example

SOURCE = "synthetic"

_LEAD_INS = (
    "Based on the given passages, ", "According to the provided passages, ", "Based on the context: ",
    "From the information provided, ", "The passages say the following. ", "Here is a short summary:\n\n",
    "Sure! Here is what the documents say:\n", "To answer your question: ", "Here are the main points:\n",
    "The text states that ", "In summary, ",
)  # fmt: skip
_CLOSINGS = (
    " I hope this helps!", " Let me know if you would like more detail.", "\n\nIs there anything else?",
    " Please refer to the passages for more information.", " Would you like me to go on?",
)  # fmt: skip
_ABSTENTIONS = (
    "Unable to answer based on given passages.", "I cannot answer this from the passages that were provided.",
    "The given context does not contain the information needed to answer this question.",
    "I'm sorry, but the documents do not mention that.", "There is not enough information in the context.",
    "I don't know based on what was provided.", "The passages do not say.",
    "Unfortunately, none of the sources address this question directly.",
)  # fmt: skip
_ANTONYMS = (
    ("increase", "decrease"), ("increased", "decreased"), ("increases", "decreases"), ("more", "less"),
    ("higher", "lower"), ("before", "after"), ("first", "last"), ("largest", "smallest"), ("best", "worst"),
    ("always", "never"), ("high", "low"), ("early", "late"), ("won", "lost"), ("winning", "losing"),
    ("inside", "outside"), ("above", "below"), ("larger", "smaller"), ("older", "younger"), ("hot", "cold"),
    ("north", "south"), ("east", "west"), ("male", "female"), ("rise", "fall"), ("rose", "fell"),
    ("with", "without"), ("accepted", "rejected"), ("bought", "sold"), ("long", "short"), ("top", "bottom"),
    ("safe", "dangerous"), ("open", "closed"), ("positive", "negative"), ("minimum", "maximum"),
    ("up", "down"), ("left", "right"), ("start", "end"), ("easy", "difficult"), ("common", "rare"),
)  # fmt: skip
_OPPOSITE = dict(_ANTONYMS) | {b: a for a, b in _ANTONYMS}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*")
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|will|should|has|have|had|does|did|could|would|may|must)\b")
_WORD = re.compile(r"[A-Za-z]+")
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class _Edit:
    """Characters ``start`` to ``end`` of a sentence become ``text``."""

    start: int
    end: int
    text: str


Corruption = Callable[[str, str, random.Random], "_Edit | None"]


def synthesize(sources: Sequence[Example], *, count: int, seed: int) -> list[Example]:
    """``count`` synthetic examples over the contexts of ``sources``, about half of them with marked errors.

    Returned examples keep the group of their source, so splits hold.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    made: list[Example] = []
    while sources and len(made) < count:
        base, other = dice.choice(sources), dice.choice(sources)
        example = _make(base, other, dice, number=len(made))
        if example is not None:
            made.append(example)
    return made


def _make(base: Example, other: Example, dice: random.Random, *, number: int) -> Example | None:
    kind = dice.random()
    spans: list[tuple[int, int]] = []
    if kind < 0.05:
        text = dice.choice(_ABSTENTIONS)
    else:
        pool = _pool(base)
        if len(pool) < 2:
            return None
        picked = sorted(dice.sample(range(len(pool)), min(len(pool), dice.randint(1, 5))))
        pieces: list[tuple[str, _Edit | None]] = [(_paraphrase(pool[place], dice), None) for place in picked]
        if kind < 0.55:
            pieces = _with_error(pieces, base, other, dice)
            if not any(edit for _, edit in pieces):
                return None
        text, spans = _compose(pieces, base.query, dice)
    return replace(
        base, id=f"synthetic-{number}", source=SOURCE, response=text, spans=tuple(spans), label=int(bool(spans)),
        quality="good",
    )  # fmt: skip


def _pool(example: Example) -> list[str]:
    return [
        passage[start:end]
        for passage in example.context
        for start, end in sentences(passage)
        if 30 <= end - start <= 260
    ]


def _with_error(
    pieces: list[tuple[str, _Edit | None]], base: Example, other: Example, dice: random.Random
) -> list[tuple[str, _Edit | None]]:
    context = " ".join(base.context)
    result = list(pieces)
    places = dice.sample(range(len(result)), len(result))
    wanted = 1 if dice.random() < 0.75 else 2
    for place in places:
        sentence = result[place][0]
        corruptions = dice.sample(CORRUPTIONS, len(CORRUPTIONS))
        for corruption in corruptions:
            edit = corruption(sentence, context, dice)
            if edit is not None:
                changed = sentence[: edit.start] + edit.text + sentence[edit.end :]
                result[place] = (changed, replace(edit, end=edit.start + len(edit.text)))
                wanted -= 1
                break
        if not wanted:
            break
    if wanted or dice.random() < 0.15:
        foreign = _pool(other) if other.group != base.group else []
        if foreign:
            sentence = dice.choice(foreign)
            result.insert(dice.randint(0, len(result)), (sentence, _Edit(0, len(sentence), sentence)))
    return result


def _compose(
    pieces: list[tuple[str, _Edit | None]], query: str, dice: random.Random
) -> tuple[str, list[tuple[int, int]]]:
    text = dice.choice(_LEAD_INS) if dice.random() < 0.4 else ""
    if query and dice.random() < 0.15:
        text += f"You asked: {query}\n"
    listed = len(pieces) > 2 and dice.random() < 0.25
    spans: list[tuple[int, int]] = []
    for number, (sentence, edit) in enumerate(pieces, start=1):
        if listed:
            text += f"\n{number}. "
        elif number > 1:
            text += " "
        if edit is not None and edit.end > edit.start:
            spans.append((len(text) + edit.start, len(text) + edit.end))
        text += sentence
    return text + (dice.choice(_CLOSINGS) if dice.random() < 0.15 else ""), spans


def _paraphrase(sentence: str, dice: random.Random) -> str:
    """``sentence`` with numbers written another way, sometimes."""
    if dice.random() < 0.5:
        return sentence
    match = _NUMBER.search(sentence)
    if match is None:
        return sentence
    digits = match[0]
    value = float(digits.replace(",", ""))
    after = sentence[match.end() :]
    if after.startswith("%"):
        return sentence[: match.end()] + " percent" + after[1:]
    if value >= 1e6 and value % 1e5 == 0:
        return f"{sentence[: match.start()]}{value / 1e6:g} million{after}"
    if "," in digits:
        return sentence[: match.start()] + digits.replace(",", "") + after
    if digits.isdigit() and 1 < value <= 10 and not after.startswith((".", ":", "/", "-")):
        return sentence[: match.start()] + _SMALL[int(value)] + after
    return sentence


def _change_number(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    matches = list(_NUMBER.finditer(sentence))
    if not matches:
        return None
    match = dice.choice(matches)
    value = float(match[0].replace(",", ""))
    others = {other for other in _NUMBER.findall(context) if other not in sentence}
    if others and dice.random() < 0.4:
        new = dice.choice(sorted(others))
    elif 1500 <= value <= 2100 and match[0].isdigit():
        new = str(int(value) + dice.choice((-20, -10, -3, -2, -1, 1, 2, 3, 10, 20)))
    elif match[0].isdigit():
        new = str(max(int(value * dice.choice((0.5, 2, 3, 10))) + dice.choice((0, 1, 2)), 1))
    else:
        new = f"{value * dice.choice((0.5, 1.5, 2, 3)):,.1f}"
    return None if new in context or new == match[0] else _Edit(*match.span(), new)


def _change_calendar(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    for names in (_MONTHS, _DAYS):
        match = re.search(rf"\b({'|'.join(names)})\b", sentence)
        if match:
            new = dice.choice([name for name in names if name not in sentence])
            return _Edit(*match.span(), new)
    return None


def _swap_name(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    matches = list(_NAME.finditer(sentence))
    others = sorted({name for name in _NAME.findall(context) if name not in sentence and len(name) > 3})
    if not matches or not others:
        return None
    match = dice.choice(matches)
    alike = [name for name in others if name.count(" ") == match[0].count(" ")]
    return _Edit(*match.span(), dice.choice(alike or others))


def _swap_antonym(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    matches = [match for match in _WORD.finditer(sentence) if match[0] in _OPPOSITE]
    if not matches:
        return None
    match = dice.choice(matches)
    return _Edit(*match.span(), _OPPOSITE[match[0]])


def _negate(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    dropped = re.search(r"\b(?:not|never) ", sentence)
    if dropped:
        following = re.match(r"\w+", sentence[dropped.end() :])
        return _Edit(dropped.start(), dropped.end() + following.end(), following[0]) if following else None
    match = _AUXILIARY.search(sentence)
    return _Edit(match.start(), match.end(), f"{match[0]} not") if match else None


def _cross_word(sentence: str, context: str, dice: random.Random) -> _Edit | None:
    """A content word gives way to another one of the same shape from elsewhere in the context."""
    matches = [match for match in _WORD.finditer(sentence) if len(match[0]) >= 6 and match[0].islower()]
    if not matches:
        return None
    match = dice.choice(matches)
    ending = match[0][-2:]
    others = sorted(
        {w for w in _WORD.findall(context) if w.islower() and len(w) >= 5 and w[-2:] == ending and w not in sentence}
    )  # fmt: skip
    return _Edit(*match.span(), dice.choice(others)) if others else None


CORRUPTIONS: tuple[Corruption, ...] = (
    _change_number, _change_number, _change_calendar, _swap_name, _swap_antonym, _negate, _cross_word,
)  # fmt: skip
