"""Make contrasts from real answers: minimal pairs, located errors, evidence withheld or supplied.

Answers that models and people wrote are abstractive, and their style says nothing about support. Made into
pairs that differ in one fact, or in what the evidence says, they teach a classifier to compare and not to
know answers by heart. All rows keep the group of their source, so splits hold.
"""

from __future__ import annotations

import difflib
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from truthlens.detection.models.inputs.lexical import EvidenceIndex, index_evidence, keys_of
from truthlens.lab.data.dataset import Example
from truthlens.lab.data.paraphrase import reword
from truthlens.lab.data.perturbations import perturbed
from truthlens.text.claims.non_claims import claimless_ranges
from truthlens.text.sentences import sentences
from truthlens.text.words import words

PAIRS = "pairs"
EVIDENCE = "evidence"
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MOST_CHANGED = 8
_LEAST_ALIKE = 0.6
_SUPPORTED, _UNSUPPORTED = 0.6, 0.3  # shares of a sentence's idf in its best evidence sentence
_MOST_WITHHELD = 4


def locate_errors(rows: Sequence[Example]) -> list[Example]:
    """Return ``rows`` with unsupported, unmarked answers marked by comparison with a supported one.

    An answer that differs in few words from a supported answer to the same evidence is wrong in those words
    (where they are in several places: in some of them). The two also become a pair, as do answers that people
    marked, with the supported answer that they come nearest to.
    """
    supported: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if not row.label:
            supported[row.context].append(number)
    result = list(rows)
    free = {number for numbers in supported.values() for number in numbers}
    for number, row in enumerate(rows):
        if not row.label or not supported.get(row.context):
            continue
        tokens = _TOKEN.findall(row.response)
        candidates = [
            (_alike(tokens, _TOKEN.findall(rows[other].response)), other) for other in supported[row.context]
        ]
        alike, nearest = max(candidates)
        if alike < _LEAST_ALIKE:
            continue
        if row.spans is None:
            changed = tuple(_changed(rows[nearest].response, row.response))
            # Of several changes some may be mere rewording, so that none of them can be marked.
            result[number] = (
                replace(row, spans=changed) if len(changed) == 1 else replace(row, doubtful=changed)
            )
        if nearest in free:
            free.discard(nearest)
            pair = f"{row.id}|{rows[nearest].id}"
            result[number] = replace(result[number], pair=pair)
            result[nearest] = replace(result[nearest], pair=pair)
    return result


def _alike(left: Sequence[str], right: Sequence[str]) -> float:
    one, other = set(left), set(right)
    return len(one & other) / max(len(one | other), 1)


def _changed(supported: str, response: str) -> list[tuple[int, int]]:
    """Return the characters of ``response`` that ``supported`` does not have; ``[]`` if they are too many."""
    left = [match[0].lower() for match in _TOKEN.finditer(supported)]
    right = list(_TOKEN.finditer(response))
    spans: list[tuple[int, int]] = []
    count = 0
    matcher = difflib.SequenceMatcher(None, left, [match[0].lower() for match in right], autojunk=False)
    for kind, _, _, first, last in matcher.get_opcodes():
        if kind == "equal":
            continue
        # Where words were left out, what stands around the gap is what reads wrong.
        start, end = (max(first - 1, 0), min(last + 1, len(right))) if first == last else (first, last)
        count += end - start
        spans.append((right[start].start(), right[end - 1].end()))
    return spans if spans and count <= _MOST_CHANGED else []


def minimal_pairs(rows: Sequence[Example], *, count: int, seed: int) -> list[Example]:
    """Return ``count`` pairs of a supported answer (or some of its sentences) and the same with one error.

    Args:
        rows: labelled answers; the supported ones are used.
        count: pairs to make.
        seed: of the draw.

    Returns:
        The two rows of each pair one after the other; fewer where too few answers can be edited.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    pool = [row for row in rows if not row.label and len(row.response) >= 30]
    made: list[Example] = []
    for _ in range(count * 3):
        if not pool or len(made) >= 2 * count:
            break
        row = dice.choice(pool)
        made.extend(_pair(row, dice, number=len(made) // 2))
    return made


def _pair(row: Example, dice: random.Random, *, number: int) -> list[Example]:
    silent = claimless_ranges(row.response)
    ranges = [
        (start, end)
        for start, end in sentences(row.response)
        if end - start >= 20 and not any(s <= start and end <= e for s, e in silent)
    ]
    if not ranges:
        return []
    first = dice.randrange(len(ranges))
    last = min(len(ranges), first + dice.choice((1, 1, 2, 3)))
    text = row.response[ranges[first][0] : ranges[last - 1][1]]
    at = dice.randrange(last - first)
    offset = ranges[first + at][0] - ranges[first][0]
    sentence = row.response[slice(*ranges[first + at])]
    context = " ".join(row.context)
    edit = perturbed(sentence, context, dice)
    if edit is None:
        return []
    wrong = text[:offset] + edit.apply(sentence) + text[offset + len(sentence) :]
    span = (offset + edit.span[0], offset + edit.span[1])
    pair = f"{PAIRS}-{number}"
    clean = replace(
        row, id=f"{pair}-0", source=PAIRS, response=text, spans=(), label=0, pair=pair, quality="good"
    )
    return [clean, replace(clean, id=f"{pair}-1", response=wrong, spans=(span,), label=1)]


def other_evidence(rows: Sequence[Example], *, count: int, seed: int) -> list[Example]:
    """Return answers of which one sentence has lost its evidence, or gained it.

    Of a supported answer, the evidence sentences that hold most of one of its sentences are withheld: the
    sentence becomes a span. Of an unsupported answer, each sentence with a marked error is put, reworded,
    among the evidence: the marks go.

    Args:
        rows: answers with marks.
        count: answers to make.
        seed: of the draw.
    """
    dice = random.Random(seed)  # noqa: S311  # no secret: repeatable draws
    pool = [row for row in rows if row.spans is not None and len(row.response) >= 60]
    made: list[Example] = []
    for _ in range(count * 6):
        if not pool or len(made) >= count:
            break
        row = dice.choice(pool)
        changed = _supplied(row, dice) if row.spans and dice.random() < 0.5 else _withheld(row, dice)
        if changed is not None:
            made.append(replace(changed, id=f"{EVIDENCE}-{len(made)}", source=EVIDENCE, quality="good"))
    return made


def _withheld(row: Example, dice: random.Random) -> Example | None:
    units = [
        (number, start, end)
        for number, passage in enumerate(row.context)
        for start, end in sentences(passage)
    ]
    held = [words(row.context[number][start:end]) for number, start, end in units]
    if len(units) < 4:
        return None
    index = index_evidence(held)
    parts = [part for part in sentences(row.response) if part[1] - part[0] >= 30]
    dice.shuffle(parts)
    for start, end in parts:
        if any(s < end and e > start for s, e in row.spans or ()):
            continue
        gone = _supporting(index, row.response[start:end])
        if gone:
            context = _without(row.context, [units[number] for number in gone])
            spans = tuple(sorted([*(row.spans or ()), (start, end)]))
            return replace(row, context=context, spans=spans, label=1)
    return None


def _supporting(index: EvidenceIndex, sentence: str) -> set[int]:
    """Return the few units without which the evidence no longer holds ``sentence``; none where it never did, or still would."""
    keys = [key for word in words(sentence) if not word.stop for key in keys_of(word)[:1]]
    if len(keys) < 4 or _best(index, keys)[1] < _SUPPORTED:
        return set()
    gone: set[int] = set()
    while len(gone) < min(_MOST_WITHHELD, index.units - 2):
        unit, share = _best(index, keys, without=gone)
        if share < _UNSUPPORTED:
            return gone
        gone.add(unit)
    return gone if _best(index, keys, without=gone)[1] < _UNSUPPORTED else set()


def _best(index: EvidenceIndex, keys: Sequence[str], *, without: set[int] | None = None) -> tuple[int, float]:
    """Return the unit that holds most of ``keys``, and its share of their idf."""
    overlap = index.overlap(keys)
    if without:
        overlap[list(without)] = 0.0
    unit = int(overlap.argmax())
    return unit, float(overlap[unit]) / (sum(index.idf(key) for key in set(keys)) or 1.0)


def _without(context: Sequence[str], units: Sequence[tuple[int, int, int]]) -> tuple[str, ...]:
    texts = list(context)
    for number, start, end in sorted(units, reverse=True):
        texts[number] = texts[number][:start].rstrip() + " " + texts[number][end:].lstrip()
    return tuple(text for text in texts if text.strip()) or ("",)


def _supplied(row: Example, dice: random.Random) -> Example | None:
    """Return the row with evidence for every marked sentence: it is now supported."""
    context = list(row.context)
    if not context:
        return None
    for start, end in sentences(row.response):
        if not any(s < end and e > start for s, e in row.spans or ()):
            continue
        sentence = reword(row.response[start:end].strip(), dice)
        place = dice.randrange(len(context))
        cuts = [end for _, end in sentences(context[place])] or [len(context[place])]
        cut = dice.choice(cuts)
        context[place] = f"{context[place][:cut]} {sentence} {context[place][cut:]}".strip()
    return replace(row, context=tuple(context), spans=(), label=0)
