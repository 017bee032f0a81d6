"""Records as JSON and texts about them: answers over structured data. Values and wordings are our own."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, TypeVar

from truthlens.lab.data.dataset import Example

_T = TypeVar("_T")

TABLES = "tables"
_KINDS = (
    "hotel", "restaurant", "clinic", "bookshop", "gym", "museum", "garage", "bakery", "cinema", "hostel",
)  # fmt: skip
_FIRST = (
    "Green", "Harbour", "Old Mill", "Silver", "Corner", "North", "Maple", "Union", "Lantern", "River",
    "Golden",
)  # fmt: skip
_LAST = ("House", "Garden", "Works", "Point", "Rooms", "Place", "Lane", "Hall", "Yard", "Table", "Loft")
_CITIES = (
    "Dover", "Lund", "Porto", "Galway", "Bergen", "Graz", "Toledo", "Exeter", "Ghent", "Turku", "Salem",
    "Boise",
)  # fmt: skip
_STREETS = (
    "Mill Road", "High Street", "Quay Street", "Elm Avenue", "Station Road", "Park Lane", "Castle Row",
)  # fmt: skip
_FLAGS = {
    "outdoor_seating": ("has outdoor seating", "has no outdoor seating"),
    "wheelchair_access": ("is accessible by wheelchair", "is not accessible by wheelchair"),
    "takes_reservations": ("takes reservations", "does not take reservations"),
    "free_wifi": ("offers free Wi-Fi", "does not offer free Wi-Fi"),
    "parking": ("has parking", "has no parking"),
    "dogs_allowed": ("welcomes dogs", "does not allow dogs"),
    "accepts_cards": ("accepts cards", "takes cash only"),
}  # fmt: skip
_OPENINGS = ("", "Here is an overview. ", "Based on the data, ", "Sure. ", "According to the record, ")
_INVENTED = (
    "It has won several local awards.", "Guests often praise the friendly staff.", "It was founded by two sisters.",
    "It is known for its live music on weekends.", "Children get a discount.", "The building dates from the last century.",
    "It is one of the most popular places in the area.", "There is a large car park behind it.",
)  # fmt: skip


def records(*, count: int, seed: int) -> list[Example]:
    """Return ``count`` answers over JSON records, two about each: a supported and a wrong one, as a pair."""
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    made: list[Example] = []
    while len(made) < count:
        record = _record(dice)
        facts = _facts(record, dice)
        dice.shuffle(facts)
        facts = facts[: dice.randint(2, 5)]
        wrong = dice.randrange(len(facts) + 1)
        opening, pair = dice.choice(_OPENINGS), f"{TABLES}-{len(made) // 2}"
        context = (json.dumps(record, indent=dice.choice((None, 1, 2))),)
        for label in (0, 1):
            text, spans = opening, []
            for number, (start, true, false, end) in enumerate(facts):
                value = false if label and number == wrong else true
                begin = len(text) + len(start)
                text += start + value + end + " "
                if label and number == wrong:
                    spans.append((begin, begin + len(value)))
            if label and wrong == len(facts):
                sentence = dice.choice(_INVENTED)
                spans.append((len(text), len(text) + len(sentence)))
                text += sentence
            made.append(
                Example(
                    id=f"{pair}-{label}", source=TABLES, task="table", query=f"Describe {record['name']}.", context=context,
                    response=text.strip(), label=label, spans=tuple(spans), group=f"{TABLES}:{pair}", pair=pair,
                )
            )  # fmt: skip
    return made[:count]


def _record(dice: random.Random) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": f"{dice.choice(_FIRST)} {dice.choice(_LAST)}",
        "type": dice.choice(_KINDS),
        "city": dice.choice(_CITIES),
        "address": f"{dice.randint(1, 240)} {dice.choice(_STREETS)}",
        "stars": dice.choice((1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)),
        "reviews": dice.randint(3, 2400),
        "opened": dice.randint(1890, 2023),
        "price_per_person": dice.randint(5, 180),
        "hours": {
            "Monday-Friday": f"{dice.randint(6, 11)}:00-{dice.randint(15, 23)}:00",
            "Sunday": dice.choice(("closed", f"{dice.randint(9, 12)}:30-{dice.randint(14, 20)}:00")),
        },
    }
    flags = dice.sample(sorted(_FLAGS), dice.randint(2, len(_FLAGS)))
    record["attributes"] = {flag: dice.choice((True, False)) for flag in flags}
    keep = {"name", "type", "city"} | set(dice.sample(sorted(record), dice.randint(4, len(record))))
    return {key: value for key, value in record.items() if key in keep}


def _facts(record: dict[str, Any], dice: random.Random) -> list[tuple[str, str, str, str]]:
    """Return the sentences as (start, true value, false value, end)."""
    name = record["name"]
    subject = dice.choice((name, "It", f"This {record['type']}"))

    facts = [
        (f"{name} is a {record['type']} in ", record["city"], _another(_CITIES, record["city"], dice), "."),
        (f"{name} is a ", record["type"], _another(_KINDS, record["type"], dice), f" in {record['city']}."),
    ]
    if "stars" in record:
        wrong = _another((1.0, 2.0, 3.0, 4.0, 4.5, 5.0), record["stars"], dice)
        facts.append((f"{subject} is rated ", f"{record['stars']:g}", f"{wrong:g}", " stars."))
    for key, start, low, high, end in (
        ("reviews", f"{subject} has ", 1, 9999, " reviews."),
        ("opened", f"{subject} opened in ", 1800, 2024, "."),
        ("price_per_person", "Expect to pay about $", 1, 999, " per person."),
    ):
        if key in record:
            value = record[key]
            facts.append((start, str(value), str(_another_number(value, low, high, dice)), end))
    if "address" in record:
        street = record["address"].split(" ", 1)[1]
        facts.append((f"{subject} is on ", street, _another(_STREETS, street, dice), "."))
    if "hours" in record:
        opens, closes = record["hours"]["Monday-Friday"].split("-")
        facts.append(
            (f"On weekdays it opens at {opens} and closes at ", closes, f"{int(closes[:-3]) - 1}:00", ".")
        )
        sunday = record["hours"]["Sunday"]
        true, false = ("closed", "open") if sunday == "closed" else ("open", "closed")
        facts.append((f"{subject} is ", true, false, " on Sundays."))
    for flag, value in record.get("attributes", {}).items():
        yes, no = _FLAGS[flag]
        facts.append((f"{subject} ", yes if value else no, no if value else yes, "."))
    if "attributes" in record:
        # What is not in the record is unsupported whatever is said of it, so that it serves as a wrong value.
        facts.extend(
            (f"{subject} ", f"is a {record['type']}", _FLAGS[flag][dice.randrange(2)], ".")
            for flag in sorted(set(_FLAGS) - set(record["attributes"]))[:1]
        )
    return facts


def _another(values: Sequence[_T], known: _T, dice: random.Random) -> _T:
    return dice.choice([value for value in values if value != known])


def _another_number(value: int, low: int, high: int, dice: random.Random) -> int:
    near = (value + 1, value - 2, value * 2, value + 10)
    return dice.choice([number for number in near if low <= number <= high and number != value] or [low])
