"""Sentences said another way, with the same meaning: what a clean answer may do.

Wordings are our own.

Only rewordings that hold in nearly any context: numbers in another notation, near-synonyms, contractions,
dropped parentheses and sentence adverbs.
"""

from __future__ import annotations

import random
import re

_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SYNONYMS = {
    "about": ("approximately", "around"), "approximately": ("about", "around"), "also": ("in addition", "as well"),
    "because": ("since", "as"), "begin": ("start",), "begins": ("starts",), "began": ("started",), "big": ("large",),
    "buy": ("purchase",), "bought": ("purchased",), "children": ("kids",), "kids": ("children",),
    "however": ("but", "though"), "started": ("began",), "show": ("indicate",),
    "shows": ("indicates",), "showed": ("indicated",), "said": ("stated", "reported"), "says": ("states", "reports"),
    "use": ("employ", "make use of"), "uses": ("employs",), "used": ("employed",), "help": ("assist", "aid"),
    "helps": ("assists", "aids"), "need": ("require",), "needs": ("requires",), "required": ("needed",),
    "large": ("big", "sizeable"), "many": ("numerous", "a lot of"), "important": ("essential", "key"), "quickly": ("rapidly", "fast"),
    "usually": ("typically", "generally"), "typically": ("usually", "generally"), "often": ("frequently",), "rarely": ("seldom",),
    "ended": ("finished",), "ensure": ("make sure",), "such as": ("like", "for example"),
    "in order to": ("to",), "due to": ("because of", "owing to"), "prior to": ("before",), "in addition": ("also", "moreover"),
    "roughly": ("about", "approximately"), "people": ("individuals",), "doctor": ("physician",), "doctors": ("physicians",),
    "car": ("vehicle",), "cars": ("vehicles",), "company": ("firm",), "job": ("position",), "film": ("movie",),
    "movie": ("film",), "died": ("passed away",), "choose": ("select", "pick"),
    "allow": ("let", "permit"), "allows": ("lets", "permits"), "keep": ("maintain",), "whole": ("entire",), "entire": ("whole",),
    "contains": ("includes", "has"), "includes": ("contains",), "consists of": ("is made up of",), "difficult": ("hard",),
    "simple": ("easy",), "main": ("primary", "chief"), "primary": ("main",), "various": ("different", "several"), "announced": ("made known",),
    "injured": ("hurt",), "attempt": ("try",), "attempted": ("tried",), "home": ("house",), "whilst": ("while",), "while": ("whereas",),
    "per cent": ("percent",), "percent": ("per cent",), "united states": ("U.S.", "US"), "u.s.": ("United States",),
    "united kingdom": ("UK",), "purchase": ("buy",), "located": ("situated",), "near": ("close to",), "amount": ("quantity",), "method": ("approach", "way"),
    "reduce": ("lower", "decrease"), "reduces": ("lowers", "decreases"), "reduced": ("lowered",), "causes": ("leads to",),
    "caused": ("led to",), "cause": ("lead to",), "illness": ("disease",), "disease": ("illness",), "wealthy": ("rich",), "huge": ("enormous",),
    "remove": ("take out",), "removed": ("taken out",), "additional": ("further", "extra"), "enough": ("sufficient",),
}  # fmt: skip
_SYNONYM = re.compile(
    rf"\b({'|'.join(sorted(map(re.escape, _SYNONYMS), key=len, reverse=True))})(?!\w)", re.IGNORECASE
)
_CONTRACTIONS = (
    ("is not", "isn't"), ("are not", "aren't"), ("was not", "wasn't"), ("were not", "weren't"), ("do not", "don't"),
    ("does not", "doesn't"), ("did not", "didn't"), ("cannot", "can't"), ("will not", "won't"), ("it is", "it's"),
    ("should not", "shouldn't"), ("would not", "wouldn't"), ("has not", "hasn't"), ("have not", "haven't"),
)  # fmt: skip
_PARENTHESIS = re.compile(r"\s\([^()]{2,60}\)")
_ADVERB = re.compile(
    r"^(?:However|Moreover|Furthermore|In addition|Additionally|Also|Meanwhile|Indeed|In fact|Overall), "
)


def reword(sentence: str, dice: random.Random) -> str:
    """Return ``sentence`` with none, one or several of the rewordings; the same meaning."""
    for rewording in (_numbers, _synonyms, _contract, _drop_parenthesis, _drop_adverb):
        if dice.random() < 0.45:
            sentence = rewording(sentence, dice)
    return sentence


def _numbers(sentence: str, dice: random.Random) -> str:
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


def _synonyms(sentence: str, dice: random.Random) -> str:
    def other(match: re.Match[str]) -> str:
        if dice.random() < 0.3:
            return match[0]
        new = dice.choice(_SYNONYMS[match[0].lower()])
        return new[0].upper() + new[1:] if match[0][0].isupper() else new

    return _SYNONYM.sub(other, sentence)


def _contract(sentence: str, dice: random.Random) -> str:
    for long, short in _CONTRACTIONS:
        if f" {long} " in sentence:
            return sentence.replace(f" {long} ", f" {short} ", 1)
        if f" {short} " in sentence:
            return sentence.replace(f" {short} ", f" {long} ", 1)
    return sentence


def _drop_parenthesis(sentence: str, dice: random.Random) -> str:
    return _PARENTHESIS.sub("", sentence, count=1)


def _drop_adverb(sentence: str, dice: random.Random) -> str:
    match = _ADVERB.match(sentence)
    if match is None:
        return sentence
    rest = sentence[match.end() :]
    return rest[0].upper() + rest[1:] if rest else sentence
