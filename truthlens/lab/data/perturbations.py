"""Edit a sentence slightly so that it says something else: the wrong answers of minimal pairs.

Wordings are our own.

Every edit takes a sentence, the evidence's text and dice, and gives the characters to replace, or ``None``
where the sentence holds nothing that it could change. What it inserts is never in the sentence already.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

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
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*")
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|will|should|has|have|had|does|did|could|would|may|must)\b")
_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Perturbation:
    """Characters ``start`` to ``end`` of a sentence become ``text``."""

    start: int
    end: int
    text: str

    def apply(self, sentence: str) -> str:
        """Return ``sentence`` with the edit in it."""
        return sentence[: self.start] + self.text + sentence[self.end :]

    @property
    def span(self) -> tuple[int, int]:
        """The characters of the edited sentence that the edit put there."""
        return self.start, self.start + len(self.text)


Corruption = Callable[[str, str, random.Random], "Perturbation | None"]


def _change_number(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
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
    return None if new in context or new == match[0] else Perturbation(*match.span(), new)


def _change_calendar(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    for names in (MONTHS, DAYS):
        match = re.search(rf"\b({'|'.join(names)})\b", sentence)
        if match:
            new = dice.choice([name for name in names if name not in sentence])
            return Perturbation(*match.span(), new)
    return None


def _swap_name(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    matches = list(_NAME.finditer(sentence))
    others = sorted({name for name in _NAME.findall(context) if name not in sentence and len(name) > 3})
    if not matches or not others:
        return None
    match = dice.choice(matches)
    alike = [name for name in others if name.count(" ") == match[0].count(" ")]
    return Perturbation(*match.span(), dice.choice(alike or others))


def _swap_antonym(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    matches = [match for match in _WORD.finditer(sentence) if match[0] in _OPPOSITE]
    if not matches:
        return None
    match = dice.choice(matches)
    return Perturbation(*match.span(), _OPPOSITE[match[0]])


def _negate(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    dropped = re.search(r"\b(?:not|never) ", sentence)
    if dropped:
        following = re.match(r"\w+", sentence[dropped.end() :])
        return (
            Perturbation(dropped.start(), dropped.end() + following.end(), following[0])
            if following
            else None
        )
    match = _AUXILIARY.search(sentence)
    return Perturbation(match.start(), match.end(), f"{match[0]} not") if match else None


def _cross_word(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Replace a content word by another one of the same shape from elsewhere in the context."""
    matches = [match for match in _WORD.finditer(sentence) if len(match[0]) >= 6 and match[0].islower()]
    if not matches:
        return None
    match = dice.choice(matches)
    ending = match[0][-2:]
    others = sorted(
        {w for w in _WORD.findall(context) if w.islower() and len(w) >= 5 and w[-2:] == ending and w not in sentence}
    )  # fmt: skip
    return Perturbation(*match.span(), dice.choice(others)) if others else None


def _swap_roles(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Swap two names of the sentence: the same words, another relation."""
    matches = list(_NAME.finditer(" " + sentence))
    spans = [(match.start() - 1, match.end() - 1, match[0]) for match in matches if match.start() > 0]
    if len({text for _, _, text in spans}) < 2:
        return None
    first, second = sorted(dice.sample(spans, 2))
    if first[2] == second[2]:
        return None
    between = sentence[first[1] : second[0]]
    return Perturbation(first[0], second[1], f"{second[2]}{between}{first[2]}")


def _overstate(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Replace a hedge or bound by a stronger or contrary one: over-extrapolation."""
    matches = list(_HEDGE.finditer(sentence))
    if not matches:
        return None
    match = dice.choice(matches)
    new = dice.choice(_HEDGES[match[0].lower()])
    return Perturbation(*match.span(), new.capitalize() if match[0][0].isupper() else new)


def _change_unit(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    matches = list(_UNIT.finditer(sentence))
    if not matches:
        return None
    match = dice.choice(matches)
    family = next(family for family in _UNIT_FAMILIES if match["unit"].lower() in family)
    new = dice.choice([unit for unit in family if unit != match["unit"].lower()])
    return Perturbation(match.start("unit"), match.end("unit"), new)


def _add_detail(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Add a detail that the evidence does not give, at the sentence's end."""
    body = sentence.rstrip()
    if len(body) < 25 or body[-1] not in ".!" or body[-2].isspace():
        return None
    other = dice.choice(_NUMBER.findall(context) or ["40"])
    detail = dice.choice(_DETAILS).format(
        year=dice.randint(1950, 2024), percent=dice.randint(3, 97), count=dice.randint(2, 900), other=other
    )
    return None if detail.strip(" ,") in context else Perturbation(len(body) - 1, len(body) - 1, detail)


def _invent_name(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Replace a name by one that does not occur in the evidence."""
    matches = list(_NAME.finditer(sentence))
    if not matches:
        return None
    match = dice.choice(matches)
    parts = match[0].split()
    new = " ".join(
        dice.choice(_INVENTED_FIRST if place + 1 < len(parts) else _INVENTED_LAST)
        for place in range(len(parts))
    )
    return None if new in context else Perturbation(*match.span(), new)


_HEDGES = {
    "some": ("all", "no", "most"), "many": ("all", "few"), "most": ("all", "few"), "few": ("many", "most"),
    "may": ("will", "cannot"), "might": ("will", "cannot"), "can": ("must", "cannot"), "could": ("would", "could not"),
    "often": ("always", "rarely"), "sometimes": ("always", "never"), "usually": ("always", "rarely"),
    "rarely": ("often", "always"), "about": ("exactly", "at least twice"), "around": ("exactly", "more than"),
    "approximately": ("exactly", "more than"), "almost": ("more than", "hardly"), "nearly": ("more than", "barely"),
    "at least": ("at most", "exactly"), "at most": ("at least",), "up to": ("at least", "more than"),
    "more than": ("less than", "exactly"), "less than": ("more than",), "likely": ("certain", "unlikely"),
    "possible": ("certain", "impossible"), "suggests": ("proves",), "suggest": ("prove",), "should": ("need not",),
    "recommended": ("required", "discouraged"), "only": ("not only",), "partly": ("entirely",), "both": ("neither",),
    "including": ("excluding",), "optional": ("mandatory",), "required": ("optional",), "before": ("after",),
    "after": ("before",), "during": ("before",), "until": ("from",), "several": ("two hundred",), "typically": ("never",),
}  # fmt: skip
_HEDGE = re.compile(
    rf"\b({'|'.join(sorted(map(re.escape, _HEDGES), key=len, reverse=True))})\b", re.IGNORECASE
)
_UNIT_FAMILIES = (
    ("seconds", "minutes", "hours", "days", "weeks", "months", "years"), ("second", "minute", "hour", "day", "week", "month", "year"),
    ("milligrams", "grams", "kilograms", "ounces", "pounds"), ("mg", "g", "kg"), ("inches", "feet", "yards", "miles"),
    ("millimeters", "centimeters", "meters", "kilometers"), ("teaspoon", "tablespoon", "cup"), ("teaspoons", "tablespoons", "cups"),
    ("thousand", "million", "billion"), ("dollars", "euros", "pounds"), ("percent", "times"), ("cm", "mm", "km"),
    ("celsius", "fahrenheit"), ("daily", "weekly", "monthly"),
)  # fmt: skip
_UNITS = sorted({unit for family in _UNIT_FAMILIES for unit in family}, key=len, reverse=True)
_UNIT = re.compile(rf"\d[ -]?(?P<unit>{'|'.join(_UNITS)})\b", re.IGNORECASE)
_DETAILS = (
    ", a figure that has since grown by {percent} percent", ", according to a study of {count} people", " since {year}",
    ", mostly because of its low price", " in more than {count} countries", ", which was confirmed by officials in {year}",
    ", and it was later sold for ${count} million", " with the help of local volunteers", ", as experts had warned for years",
    ", and is now taught in many schools", " on average {percent} days a year", ", which is why it became so popular",
    ", although critics strongly disagree", ", and children under {percent} are not allowed", " and costs about ${other}",
    ", as first described in {year}", " for up to {percent} hours", ", making it the largest of its kind",
    ", and the process should be repeated every {percent} minutes", ", especially in winter", " without any side effects",
    ", which also improves sleep and memory", " at a temperature of {percent} degrees", ", the family said in a statement",
)  # fmt: skip
_INVENTED_FIRST = (
    "Martin", "Elena", "Harold", "Priya", "Oskar", "Lucinda", "North", "Saint", "New", "Upper", "Tomas", "Grand",
)  # fmt: skip
_INVENTED_LAST = (
    "Halvorsen", "Brightwater", "Okafor", "Castellan", "Verlaine", "Ridgemont", "Tanaka", "Aldermoor", "Quill", "Novak",
    "Larkspur", "Delmara", "Whitcombe", "Farrow", "Kestrel", "Montrose",
)  # fmt: skip

CORRUPTIONS: tuple[Corruption, ...] = (
    _change_number, _change_number, _change_calendar, _swap_name, _swap_antonym, _negate, _cross_word, _swap_roles,
    _overstate, _change_unit, _add_detail, _invent_name,
)  # fmt: skip
"""All edits; numbers, which matter most and fit most sentences, twice."""


def perturbed(sentence: str, context: str, dice: random.Random) -> Perturbation | None:
    """Return an edit that ``sentence`` has something for, drawn from all of them; ``None`` where none has."""
    edits = (edit(sentence, context, dice) for edit in dice.sample(CORRUPTIONS, len(CORRUPTIONS)))
    return next((edit for edit in edits if edit is not None), None)
