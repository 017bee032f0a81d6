"""Make twins of real supported answers by editing their evidence, not the answers.

A value or word that a supported answer shares with its evidence is exchanged in the evidence, and in a copy of the
answer: each of the two answers is then true of one evidence and false of the other. What is exchanged is a number, a
date or a name for another one, two names or numbers of the evidence for each other (the same words, other
relations), a word for its opposite, or a statement for its negation. The wording of an answer tells nothing of its
label, so a model can only learn from them by reading the evidence. All rows keep the group of their source.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from truthlens.lab.data.dataset import Example
from truthlens.lab.data.perturbations import DAYS, MONTHS
from truthlens.lab.data.twins import substituted
from truthlens.text.sentences import sentences

EVIDENCE_TWINS = "evidence_twins"
_NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/-]|[.,]\d)")
_NAME = re.compile(r"(?<![\w’'-])[A-Z][a-z’'-]{2,}(?: [A-Z][a-z’'-]{2,})*(?![\w’'-])")
_CALENDAR = re.compile(rf"\b(?:{'|'.join(DAYS + MONTHS)})\b")
_EXCLUSIVE = """
increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell rising/falling
higher/lower highest/lowest more/fewer most/fewest larger/smaller largest/smallest longer/shorter longest/shortest
older/younger oldest/youngest newer/older faster/slower earlier/later before/after first/last inside/outside
above/below upper/lower north/south northern/southern east/west eastern/western always/never all/none with/without
accepted/rejected approved/rejected won/lost win/lose buy/sell bought/sold buys/sells import/export open/closed
opened/closed opens/closes male/female man/woman men/women boy/girl father/mother brother/sister husband/wife
son/daughter positive/negative minimum/maximum left/right winter/summer morning/evening free/paid hot/cold
public/private required/optional allowed/forbidden safe/dangerous present/absent best/worst beginning/end
start/end started/ended teacher/student employer/employee profit/loss domestic/foreign alive/dead guilty/innocent
red/blue black/white green/yellow silver/bronze small/large long/short young/old early/late high/low cheap/expensive
permanent/temporary active/inactive full/empty success/failure succeeded/failed passed/failed includes/excludes
including/excluding several/no outdoors/indoors raise/lower raised/lowered supported/opposed supports/opposes
agreed/refused confirmed/denied
"""
_PAIRS = [tuple(pair.split("/")) for pair in _EXCLUSIVE.split()]
_OPPOSITE = {word: other for one, two in reversed(_PAIRS) for word, other in ((two, one), (one, two))}
"""Of a word that stands in several pairs the first one."""
_WORD = re.compile(r"[A-Za-z]+")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|will|should|has|have|had|does|did|could|would|must)\b(?! not|n't)"
)
_NOT = re.compile(r"\b(?P<verb>is|are|was|were|can|will|should|has|have|had|does|did|could|would|must) not\b")
_LONGEST_EVIDENCE = 6_000
_NEAR = 0.5
"""Share of an answer sentence's longer words that its evidence sentence holds, where a word of both is turned round."""
_NO_NAMES = frozenset(
    [
        "The",
        "This",
        "That",
        "These",
        "Those",
        "There",
        "They",
        "Their",
        "When",
        "Where",
        "While",
        "What",
        "Which",
        "With",
        "Without",
        "From",
        "Into",
        "Also",
        "And",
        "But",
        "For",
        "His",
        "Her",
        "She",
        "You",
        "Your",
        "Its",
        "Our",
        "After",
        "Before",
        "During",
        "However",
        "Because",
        "Although",
        "Since",
        "Some",
        "Many",
        "Most",
        "Each",
        "Every",
        "All",
        "Both",
        "According",
        "Based",
        "Passage",
        "Passages",
        "Yes",
        "Here",
        "Then",
        "Thus",
        "Therefore",
        "Additionally",
        "Overall",
    ]  # a list to read
)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What becomes what: in the whole evidence and answer, or (``unit``) in one evidence sentence alone."""

    kind: str
    words: dict[str, str]
    unit: tuple[int, int, int] | None = None
    sentence: tuple[int, int] | None = None


def evidence_twins(rows: Sequence[Example], *, count: int, seed: int) -> list[Example]:
    """Return about ``count`` rows: four for each answer that could be turned, or two where it is turned one way.

    Args:
        rows: labelled answers; the supported ones are used.
        count: rows to make.
        seed: of the draw.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    pool = [
        row for row in rows
        if not row.label and 20 <= len(row.response) <= 1_500 and sum(map(len, row.context)) <= _LONGEST_EVIDENCE
    ]  # fmt: skip
    names = [found[0] for row in pool[:4_000] for found in _NAME.finditer(row.response) if found.start()]
    made: list[Example] = []
    for _ in range(count * 4):
        if not pool or len(made) >= count:
            break
        row = dice.choice(pool)
        for find in dice.sample(_FINDERS, len(_FINDERS)):
            exchange = find(row, names, dice)
            rows_of = [] if exchange is None else _four(row, exchange, number=len(made))
            if rows_of:
                made.extend(rows_of)
                break
    return made


def _four(row: Example, exchange: _Exchange, *, number: int) -> list[Example]:
    """Return both answers against both evidences."""
    words = exchange.words
    if exchange.unit is None:
        context = tuple(_exchanged(text, words)[0] for text in row.context)
        response, new = _exchanged(row.response, words)
        _, old = _exchanged(row.response, {word: word for word in words})
    else:
        passage, start, end = exchange.unit
        text = row.context[passage]
        changed = text[:start] + _exchanged(text[start:end], words)[0] + text[end:]
        context = (*row.context[:passage], changed, *row.context[passage + 1 :])
        first, last = exchange.sentence or (0, len(row.response))
        part, spans = _exchanged(row.response[first:last], words)
        response = row.response[:first] + part + row.response[last:]
        new = [(first + s, first + e) for s, e in spans]
        kept = _exchanged(row.response[first:last], {word: word for word in words})[1]
        old = [(first + s, first + e) for s, e in kept]
    if context == row.context or response == row.response or not new or not old:
        return []
    pair = f"{EVIDENCE_TWINS}-{number}"
    base = replace(row, source=EVIDENCE_TWINS, quality="good", pair=pair, kind=exchange.kind, doubtful=())
    return [
        replace(base, id=f"{pair}-0", label=0, spans=()),
        replace(base, id=f"{pair}-1", context=context, label=1, spans=tuple(old)),
        replace(base, id=f"{pair}-2", context=context, response=response, label=0, spans=()),
        replace(base, id=f"{pair}-3", response=response, label=1, spans=tuple(new)),
    ]


def _exchanged(text: str, words: dict[str, str]) -> tuple[str, list[tuple[int, int]]]:
    """Return ``text`` with whole words (or values) exchanged at once, and where the new ones stand."""
    pattern = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    whole = rf"(?<![\w.,’'-])(?:{pattern})(?![\w’'-]|[.,]\d)|(?<=[,;:(]\s)(?:{pattern})\b"
    return substituted(re.compile(whole), text, lambda found: words[found[0]])


def _shared(pattern: re.Pattern[str], row: Example) -> list[str]:
    evidence = "\n".join(row.context)
    held = set(pattern.findall(evidence))
    return sorted({found for found in pattern.findall(row.response) if found in held})


def _new_number(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    shared = [value for value in _shared(_NUMBER, row) if len(value) > 1 or "|" not in "".join(row.context)]
    if not shared:
        return None
    old = dice.choice(shared)
    digits = [place for place, mark in enumerate(old) if mark.isdigit()]
    # Of a year the last two, so that it stays one.
    at = dice.choice(digits[2:] if len(old) == 4 and old.isdigit() else digits)
    choices = [mark for mark in ("0123456789" if at else "123456789") if mark != old[at]]
    new = old[:at] + dice.choice(choices) + old[at + 1 :]
    whole = "\n".join([*row.context, row.response])
    return None if new in _NUMBER.findall(whole) else _Exchange("number", {old: new})


def _new_calendar(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    shared = _shared(_CALENDAR, row)
    if not shared:
        return None
    old = dice.choice(shared)
    whole = "\n".join([*row.context, row.response])
    others = [name for name in (DAYS if old in DAYS else MONTHS) if name not in whole]
    return _Exchange("date", {old: dice.choice(others)}) if others else None


def _labels(evidence: str) -> set[str]:
    """Return the names of fields, which stand for no value."""
    return {found for found in _NAME.findall(evidence) if re.search(rf"{re.escape(found)}\"?\s?:", evidence)}


def _named(row: Example) -> list[str]:
    labels = _labels("\n".join(row.context))
    return [
        name for name in _shared(_NAME, row)
        if name not in labels and not _NO_NAMES.intersection(name.split()) and not _CALENDAR.search(name)
    ]  # fmt: skip


def _new_name(row: Example, names: Sequence[str], dice: random.Random) -> _Exchange | None:
    shared = _named(row)
    if not shared or not names:
        return None
    old = dice.choice(shared)
    whole = "\n".join([*row.context, row.response])
    for _ in range(8):
        new = dice.choice(names)
        if len(new.split()) == len(old.split()) and not any(part in whole for part in new.split()):
            if _NO_NAMES.intersection(new.split()) or _CALENDAR.search(new):
                continue
            return _Exchange("name", dict(zip(old.split(), new.split(), strict=True)))
    return None


def _swapped(
    row: Example, held: Sequence[str], pattern: re.Pattern[str], kind: str, dice: random.Random
) -> _Exchange | None:
    """Exchange a value of the answer with another of the evidence, throughout the evidence."""
    evidence = "\n".join(row.context)
    others = sorted(
        {
            found for found in pattern.findall(evidence)
            if not _NO_NAMES.intersection(found.split()) and not _CALENDAR.search(found)
        }
        - _labels(evidence)
    )  # fmt: skip
    if not held:
        return None
    old = dice.choice(list(held))
    alike = [
        name for name in others
        if len(name.split()) == len(old.split())
        and not set(name.split()) & set(old.split())
        and not any(re.search(rf"\b{re.escape(part)}\b", row.response) for part in name.split())
    ]  # fmt: skip
    if not alike:
        return None
    new = dice.choice(alike)
    pairs = list(zip(old.split(), new.split(), strict=True))
    return _Exchange(kind, dict(pairs) | {b: a for a, b in pairs})


def _swapped_names(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    return _swapped(row, _named(row), _NAME, "role", dice)


def _swapped_numbers(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    held = [value for value in _shared(_NUMBER, row) if len(value) > 1]
    return _swapped(row, held, re.compile(_NUMBER.pattern), "attribute", dice)


def _near_unit(row: Example, sentence: str) -> tuple[int, int, int] | None:
    """Return the evidence sentence that holds most of the longer words of ``sentence``, if it holds enough."""
    wanted = {word.lower() for word in _WORD.findall(sentence) if len(word) > 3}
    best: tuple[float, tuple[int, int, int]] | None = None
    for passage, text in enumerate(row.context):
        for start, end in sentences(text):
            held = {word.lower() for word in _WORD.findall(text[start:end])}
            share = len(wanted & held) / max(len(wanted), 1)
            if best is None or share > best[0]:
                best = (share, (passage, start, end))
    return best[1] if best is not None and best[0] >= _NEAR else None


def _sentence(row: Example, dice: random.Random, fits: Callable[[str], bool]) -> tuple[int, int] | None:
    found = [(start, end) for start, end in sentences(row.response) if fits(row.response[start:end])]
    return dice.choice(found) if found else None


def _opposite(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    place = _sentence(row, dice, lambda text: any(word in _OPPOSITE for word in _WORD.findall(text)))
    if place is None:
        return None
    unit = _near_unit(row, row.response[slice(*place)])
    if unit is None:
        return None
    held = set(_WORD.findall(row.context[unit[0]][unit[1] : unit[2]]))
    both = sorted(
        word for word in set(_WORD.findall(row.response[slice(*place)])) if word in _OPPOSITE and word in held
    )
    both = [word for word in both if _OPPOSITE[word] not in held]
    if not both:
        return None
    old = dice.choice(both)
    return _Exchange("opposite", {old: _OPPOSITE[old]}, unit, place)


def _negated(row: Example, _names: Sequence[str], dice: random.Random) -> _Exchange | None:
    place = _sentence(row, dice, lambda text: bool(_AUXILIARY.search(text) or _NOT.search(text)))
    if place is None:
        return None
    sentence = row.response[slice(*place)]
    unit = _near_unit(row, sentence)
    if unit is None:
        return None
    text = row.context[unit[0]][unit[1] : unit[2]]
    dropped = _NOT.search(sentence)
    if dropped is not None:
        return (
            _Exchange("negation", {dropped[0]: dropped["verb"]}, unit, place) if dropped[0] in text else None
        )
    if " not " in text or "n't" in text:
        return None
    # One of the kind in each: with two it would be unclear which of them the answer means.
    mine, theirs = _AUXILIARY.findall(sentence), _AUXILIARY.findall(text)
    both = [verb for verb in mine if mine.count(verb) == 1 == theirs.count(verb)]
    if not both:
        return None
    verb = dice.choice(both)
    return _Exchange("negation", {verb: f"{verb} not"}, unit, place)


_Finder = Callable[[Example, Sequence[str], random.Random], "_Exchange | None"]
_FINDERS: tuple[_Finder, ...] = (
    _new_number, _new_calendar, _new_name, _swapped_names, _swapped_names, _swapped_numbers, _opposite, _negated,
)  # fmt: skip
"""All exchanges; roles, which are hardest, twice."""
