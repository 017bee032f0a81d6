"""Measure the explanations of flagged spans (kind, nearest sentence, differences); refit coefficients.

python -m bench.detection.explanations --data FOLDER [--limit 300] [--fit] [--out bench/results]

The spans are those that people marked, so that this is independent of any detector. Conflicts and minimal
edits are *contradicted*; baseless spans and unsupported parts of claims are not; sentences of another source
and attributions to people who do not exist are *fabricated*. Groups are split as in training; figures are of
the held-out side.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.common.script import command, machine, write_result
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import Span
from truthlens.detection.explain.explainer import Explainer
from truthlens.detection.explain.span_kind import CONTRADICTED, FABRICATED, Standing, probabilities
from truthlens.lab.data.dataset import Shares, split_of
from truthlens.text.sentences import sentences

SHARES = Shares(calibration=0.15, test=0.15)
PEOPLE = (
    "Ilse Varnholt",
    "Tomas Breckow",
    "Nadia Kestrel",
    "Oren Falkbach",
    "Maud Sillery",
    "Piet Laarhoven",
)
PLACES = ("Harrow Point Institute", "Meldrum College", "Sandvik Observatory", "Board of Northern Ports")
FORMS = (
    ", according to {person} of the {place}",
    ", as {name} et al. ({year}) have shown",
    ", a finding of {person} in {year}",
    " (see {name} and {other}, {year})",
)
NUMBER = re.compile(r"(?<![\w.,/-])\d{1,4}(?![\w.,/%-])")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+ [A-Z][a-z]+\b")
AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|will|should|has|does|did|may|must)\b")


@dataclass(frozen=True, slots=True)
class Case:
    """One span to explain: ``kind`` as people or its making say; ``baseless`` where it is one of two."""

    source: str
    side: str
    context: tuple[str, ...]
    query: str
    text: str
    span: tuple[int, int]
    kind: str


def rows(folder: Path, name: str) -> list[dict]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def cases(folder: Path, limit: int, seed: int) -> list[Case]:
    """Return at most ``limit`` cases of every source, kind and side."""
    dice = random.Random(seed)
    found: dict[tuple[str, str, str], list[Case]] = {}
    for case in (*marked(folder), *made(folder, dice)):
        found.setdefault((case.source, case.side, case.kind), []).append(case)
    return [case for key in sorted(found) for case in dice.sample(found[key], min(limit, len(found[key])))]


def marked(folder: Path) -> Iterator[Case]:
    kinds = {
        "Conflict": "contradicted",
        "Subtle Baseless Info": "unsupported",
        "Evident Baseless Info": "baseless",
    }
    for name in ("ragtruth_qa.train", "bump", "wice_tokens.train"):
        for row in rows(folder, name):
            for span in row["spans"]:
                word = next((kind for part, kind in kinds.items() if part in span["kind"]), None)
                word = word or ("contradicted" if name == "bump" else "unsupported")
                yield case_of(row, row["response"], (span["start"], span["end"]), word, row["source"])


def made(folder: Path, dice: random.Random) -> Iterator[Case]:
    listed = rows(folder, "ragtruth_qa.train")
    for row in dice.sample(listed, min(1200, len(listed))):
        own, other = dice.choice(row["context"]), dice.choice(dice.choice(listed)["context"])
        sentence, foreign = pick(own, dice), pick(other, dice)
        if not sentence or not foreign or foreign in " ".join(row["context"]):
            continue
        text = f"{sentence} {foreign}"
        yield case_of(row, text, (len(sentence) + 1, len(text)), "fabricated", "foreign")
        person, second = dice.sample(PEOPLE, 2)
        form = dice.choice(FORMS).format(
            person=person, place=dice.choice(PLACES), year=dice.randint(1990, 2024),
            name=person.split()[1], other=second.split()[1],
        )  # fmt: skip
        bare = sentence.rstrip(".!? ")
        yield case_of(row, f"{bare}{form}.", (len(bare), len(bare) + len(form)), "fabricated", "attribution")
        edit = edited(own, " ".join(row["context"]), dice)
        if edit is not None:
            yield case_of(row, edit.text, (edit.start, edit.end), "contradicted", "edited")


@dataclass(frozen=True, slots=True)
class Edit:
    """A sentence of the evidence made false.

    ``text`` has the new part at ``start`` to ``end``; ``was`` is the old one.
    """

    text: str
    start: int
    end: int
    was: str
    rest: str


def edited(passage: str, context: str, dice: random.Random, *, numbers_only: bool = False) -> Edit | None:
    """Return one sentence of ``passage`` with another number, another name or a negation in it."""
    pattern = NUMBER if numbers_only else dice.choice((NUMBER, AUXILIARY, NAME))
    pool = [(s, e) for s, e in sentences(passage) if 40 <= e - s <= 300 and pattern.search(passage, s, e)]
    if not pool:
        return None
    start, end = dice.choice(pool)
    match = dice.choice(list(pattern.finditer(passage, start, end)))
    if pattern is AUXILIARY:
        new = f"{match[0]} not"
    else:
        new = dice.choice(PEOPLE) if pattern is NAME else str(int(match[0]) + dice.choice((3, 7, 11, 40)))
    if re.search(rf"\b{new}\b", context) or re.match(r" not\b|n't", passage[match.end() : match.end() + 5]):
        return None
    at = match.start() - start
    text = passage[start : match.start()] + new + passage[match.end() : end]
    return Edit(text, at, at + len(new), match[0], passage[match.start() : end].strip())


def pick(text: str, dice: random.Random) -> str:
    pool = [text[start:end] for start, end in sentences(text) if 40 <= end - start <= 220]
    return dice.choice(pool) if pool else ""


def case_of(row: dict, text: str, span: tuple[int, int], kind: str, source: str) -> Case:
    group = f"{row['source']}:{row.get('group') or row['id']}"
    side = "train" if split_of(group, SHARES) == "train" else "held-out"
    return Case(source, side, tuple(row["context"]), row.get("query") or "", text, span, kind)


def explainer_of(case: Case) -> Explainer:
    return Explainer([Passage(text, Provenance.DOCUMENTS) for text in case.context], query=case.query)


def standings(listed: list[Case]) -> list[Standing]:
    return [explainer_of(case).find(case.text, Span(*case.span, 1.0)).standing for case in listed]


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    ranks = np.empty(len(scores))
    ordered = np.sort(scores)
    ranks[:] = (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right") + 1) / 2
    good = int(positive.sum())
    if not 0 < good < len(scores):
        return float("nan")
    return float((ranks[positive].sum() - good * (good + 1) / 2) / (good * (len(scores) - good)))


def ece(confidence: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float:
    places = np.minimum((confidence * 10).astype(int), 9)
    total = 0.0
    for place in range(10):
        inside = places == place
        if inside.any():
            share = weight[inside].sum() / weight.sum()
            gap = np.average(confidence[inside], weights=weight[inside]) - np.average(
                right[inside], weights=weight[inside]
            )
            total += share * abs(gap)
    return float(total)


def fit(x: np.ndarray, y: np.ndarray, weight: np.ndarray, ridge: float) -> np.ndarray:
    """Fit the bias and weights of a ridge logistic, by Newton steps."""
    full = np.hstack([np.ones((len(x), 1)), x])
    penalty = np.full(full.shape[1], ridge)
    penalty[0] = 0.0
    beta = np.zeros(full.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-full @ beta))
        gradient = full.T @ (weight * (p - y)) + penalty * beta
        hessian = (full * (weight * p * (1 - p))[:, None]).T @ full + np.diag(penalty)
        beta -= np.linalg.solve(hessian, gradient)
    return beta


# What a source weighs in the fit and in the pooled figures, so that none decides by its size alone.
WEIGHTS = {
    ("ragtruth", "contradicted"): 0.25, ("bump", "contradicted"): 0.1, ("edited", "contradicted"): 0.05, ("ragtruth", "unsupported"): 0.2,
    ("ragtruth", "baseless"): 0.15, ("wice", "unsupported"): 0.1, ("foreign", "fabricated"): 0.08,
    ("attribution", "fabricated"): 0.07,
}  # fmt: skip


def weights_of(listed: list[Case]) -> np.ndarray:
    keys = [(case.source, case.kind) for case in listed]
    counts = {key: keys.count(key) for key in set(keys)}
    return np.array([WEIGHTS[key] / counts[key] for key in keys]) * len(listed)


def refit(listed: list[Case], found: list[Standing]) -> None:
    weight = weights_of(listed)
    kinds = np.array([case.kind for case in listed])
    made_up = kinds == "fabricated"
    tasks = {
        "CONTRADICTED": (CONTRADICTED, kinds == "contradicted", np.ones(len(kinds), dtype=bool)),
        "FABRICATED": (FABRICATED, made_up, made_up | (kinds == "unsupported")),
    }
    for name, (rule, y, use) in tasks.items():
        x = np.array([[asdict(each)[column] for column in rule.weights] for each in found])
        beta = fit(x[use], y[use].astype(float), weight[use], ridge=3.0)
        listing = ", ".join(
            f'"{column}": {value:.2f}' for column, value in zip(rule.weights, beta[1:], strict=True)
        )
        print(f"{name} = Logistic({beta[0]:.2f}, MappingProxyType({{{listing}}}))")


def figures(listed: list[Case], found: list[Standing]) -> dict:
    by_kind = [probabilities(each) for each in found]
    guesses = np.array([max(each, key=each.__getitem__).value for each in by_kind])
    confidence = np.array([max(each.values()) for each in by_kind])
    contradicted = np.array([each[SpanKind.CONTRADICTED] for each in by_kind])
    kinds = np.array([case.kind for case in listed])
    sources = np.array([case.source for case in listed])
    truth = kinds == "contradicted"
    said = guesses == "contradicted"
    rest = (kinds == "baseless") & ~said
    right = (guesses == kinds) | rest
    weight = weights_of(listed)
    result: dict = {"cases": len(listed), "by_source": {}}
    for source in ("ragtruth", "bump", "wice", "edited", "foreign", "attribution"):
        here = sources == source
        if not here.any():
            continue
        entry = {"cases": int(here.sum()), "right": round(float(right[here].mean()), 3)}
        if truth[here].any() and not truth[here].all():
            recall, specificity = said[here & truth].mean(), (~said[here & ~truth]).mean()
            entry |= {
                "auroc_contradicted": round(auroc(contradicted[here], truth[here]), 3),
                "accuracy_contradicted_or_not": round(float((said == truth)[here].mean()), 3),
                "balanced_accuracy": round(float((recall + specificity) / 2), 3),
                "recall": round(float(recall), 3),
                "specificity": round(float(specificity), 3),
            }
        result["by_source"][source] = entry
    recalls = [right[kinds == kind].mean() for kind in ("contradicted", "unsupported", "fabricated")]
    exact = kinds != "baseless"
    result["three_kinds"] = {
        "balanced_accuracy": round(float(np.mean(recalls)), 3),
        "recalls": {
            k: round(float(r), 3)
            for k, r in zip(("contradicted", "unsupported", "fabricated"), recalls, strict=True)
        },
        "confidence_ece": round(ece(confidence[exact], right[exact], weight[exact]), 3),
        "mean_confidence": round(float(np.average(confidence[exact], weights=weight[exact])), 3),
    }
    result["pooled"] = {
        "auroc_contradicted": round(auroc(contradicted, truth), 3),
        "balanced_accuracy": round(float((said[truth].mean() + (~said[~truth]).mean()) / 2), 3),
        "ece_contradicted": round(ece(contradicted, truth, weight), 3),
    }
    return result


def retrieval(listed: list[Case], dice: random.Random) -> dict:
    """Return whether a sentence with one number changed is found again, and whether its number is named."""
    asked = found = named = 0
    for case in listed:
        edit = edited(dice.choice(case.context), " ".join(case.context), dice, numbers_only=True)
        if edit is None:
            continue
        (span,) = explainer_of(case).explain(edit.text, [Span(edit.start, edit.end, 1.0)])
        asked += 1
        if span.passage is None or span.explanation is None or span.explanation.sentence is None:
            continue
        low, high = span.explanation.sentence
        shown = case.context[span.passage]
        # Passages overlap in this data: a twin of the sentence elsewhere is as right
        found += edit.rest in shown[low : high + 2]
        named += any(
            each.evidence is not None and edit.was in shown[slice(*each.evidence)]
            for each in span.explanation.differences
        )
    return {
        "sentences": asked,
        "nearest_is_the_origin": round(found / max(asked, 1), 3),
        "number_named": round(named / max(asked, 1), 3),
    }


def duration(repeats: int = 9) -> dict:
    """Time ten spans over forty passages of our own text, in milliseconds and relative to tokenising it."""
    from truthlens.text.words import words

    dice = random.Random(5)
    stock = [
        "harbour",
        "museum",
        "ferry",
        "keeper",
        "letters",
        "winter",
        "copper",
        "library",
        "timber",
        "archive",
    ]
    passages = [
        " ".join(
            f"The {' '.join(dice.choices(stock, k=12))} cost {dice.randint(2, 99)} euros." for _ in range(6)
        )
        for _ in range(40)
    ]
    text = " ".join(
        f"The {' '.join(dice.choices(stock, k=10))} cost {number + 100} euros." for number in range(10)
    )
    spans = [Span(start, end, 0.9) for start, end in sentences(text)]
    records = [Passage(each, Provenance.DOCUMENTS) for each in passages]
    explained, split = [], []
    for _ in range(repeats):
        start = time.process_time()
        Explainer(records).explain(text, spans)
        middle = time.process_time()
        for each in passages:
            words(each)
        explained.append(middle - start)
        split.append(time.process_time() - middle)
    return {
        "milliseconds": round(min(explained) * 1e3, 1),
        "times_word_splitting": round(min(explained) / min(split), 2),
    }


def main() -> None:
    parser = command(__doc__, results=False)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled *.jsonl.gz files")
    parser.add_argument(
        "--limit", type=int, default=1_000_000, help="most spans of one source, kind and side"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fit", action="store_true", help="print coefficients fitted on the train side")
    parser.add_argument("--out", type=Path, default=None, help="folder to write explanations.json into")
    options = parser.parse_args()
    listed = cases(options.data, options.limit, options.seed)
    side = "train" if options.fit else "held-out"
    listed = [case for case in listed if case.side == side]
    found = standings(listed)
    if options.fit:
        refit(listed, found)
        return
    result = {
        "machine": machine(),
        "limit": options.limit,
        "side": side,
        **figures(listed, found),
        "retrieval": retrieval(
            [case for case in listed if case.source == "ragtruth"], random.Random(options.seed)
        ),
        "duration_10_spans_40_passages": duration(),
    }
    print(json.dumps(result, indent=1))
    if options.out is not None:
        write_result(options.out, "explanations", result)


if __name__ == "__main__":
    main()
