"""Measure claim alignment by meaning and by words, the cost of int8, speed, and memory.

python -m bench.detection.similarity --data FOLDER [--model FOLDER] [--most 300] [--skip-original] [--output bench/results]

Each question is one claim and up to twenty candidates, one of which (or, among answers of two models to one
prompt, any of those that a reader chose, or none) says the same. Half of the source texts choose the mix of
meaning, words and characters, the other half is reported. ``--skip-original`` leaves out the comparison with
float32, which needs PyTorch. Writes similarity.json and similarity.md.
"""

from __future__ import annotations

import argparse
import platform
import random
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.common.script import machine, write_result
from truthlens.detection.similarity import Similarity, shared_characters, shared_words
from truthlens.lab.data.dataset import Example, Shares, read_examples, split_of
from truthlens.process.settings import models_folder
from truthlens.text.sentences import sentences
from truthlens.text.sentences_v1 import sentences_v1

MODEL = "truthlens-similarity-en-v1"
CANDIDATES = 20
TWO = "answers of two models"
SERVED = "mean of all"
THIRD = 1 / 3
# Weights of meaning, words and characters.
MIXES = {
    "meaning": (1.0, 0.0, 0.0),
    "words": (0.0, 1.0, 0.0),
    "characters": (0.0, 0.0, 1.0),
    "meaning, words": (0.5, 0.5, 0.0),
    "meaning, characters": (0.5, 0.0, 0.5),
    "words, characters": (0.0, 0.5, 0.5),
    SERVED: (THIRD, THIRD, THIRD),
}
FLOORS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
HALVES = Shares(calibration=0.0, test=0.5)
SALT = "similarity-1"

# Sentences of one model's answer, and those of another's that say the same of the same matter, chosen by a
# reader who saw no figures: (row, row): {sentence: sentences}. Sentences that are not named claim nothing, or
# are open to argument. The reader saw them as ``sentences_v1`` cuts them.
READ = {
    (16769, 16768): {1: [3], 2: [4, 5], 3: [6], 4: []},
    (13451, 13448): {2: [1], 3: [1], 4: [3], 5: [], 6: [4], 7: [], 8: []},
    (15585, 15586): {1: [1, 2], 2: [3], 3: [1, 2, 5], 4: [], 6: [4], 7: [5]},
    (15124, 15123): {1: [1, 2], 2: [3], 3: [1], 4: [5]},
    (17333, 17330): {0: [0], 1: [1], 2: [], 3: [2], 4: [3], 5: [4], 6: [0]},
    (13773, 13772): {3: [7], 4: [1]},
    (16484, 16487): {0: [0, 4], 1: [1], 2: [2], 3: [3, 4]},
    (17356, 17357): {1: [2], 3: [2], 5: [3, 4], 7: [3]},
    (15866, 15867): {1: [], 2: [1], 3: [2], 4: [], 5: []},
    (15015, 15017): {1: [], 2: [], 3: [1], 4: [], 5: [], 6: [], 7: [], 8: [2]},
    (17602, 17601): {2: [7], 3: [1, 7], 4: [2, 6], 5: [8], 6: [8]},
    (13876, 13877): {1: [0], 2: [], 3: [1], 4: [3], 5: [3]},
    (17727, 17726): {1: [0], 3: [0], 5: [], 7: []},
    (16228, 16226): {1: [0], 2: [1], 3: [3], 4: [], 5: []},
    (15293, 15291): {1: [9], 2: [6], 3: [1], 4: [3], 6: [7], 8: [9]},
    (14651, 14650): {1: [0], 2: [5], 4: [0, 5]},
    (16547, 16544): {1: [1], 2: [0], 4: [], 5: [], 6: [], 7: []},
    (12287, 12284): {2: [], 3: [], 4: [], 5: [], 6: [1]},
    (16064, 16067): {0: [0, 3], 1: [1], 2: [], 3: [1], 4: [2]},
    (17720, 17722): {0: [3], 1: [4], 2: [], 3: [], 4: [5], 5: [6], 6: [7]},
    (15670, 15668): {1: [3], 3: [3, 4], 4: [4, 5], 5: [1], 6: []},
    (13750, 13751): {1: [2], 2: [3], 3: [4], 4: [], 5: [4, 5], 6: [7]},
    (16191, 16193): {1: [2], 2: [4], 3: [2, 4], 6: [2]},
    (13462, 13460): {1: [], 2: [0, 1], 3: [], 4: [2], 5: [], 6: [4]},
    (14192, 14195): {0: [1], 1: [2], 2: [3]},
    (12238, 12237): {2: [2]},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A claim, candidates, and the numbers of those that say the same, which may be none.

    ``beside`` holds the other claims that are compared in the same call.
    """

    group: str
    claim: str
    candidates: tuple[str, ...]
    right: tuple[int, ...]
    beside: tuple[str, ...] = ()


def two_answers(rows: Sequence[Example]) -> Iterator[Question]:
    """Yield the claims of one model's answer among the sentences of another's to the same prompt."""
    by_id = {row.id: row for row in rows}
    for (first, second), chosen in READ.items():
        one, other = by_id[f"ragtruth-{first}"], by_id[f"ragtruth-{second}"]
        claims, candidates = cut(one.response, sentences_v1), cut(other.response, sentences_v1)
        for number, right in chosen.items():
            beside = tuple(claims[:number] + claims[number + 1 :])
            yield Question(one.group, claims[number], tuple(candidates), tuple(right), beside)


def edited(rows: Sequence[Example], dice: random.Random) -> Iterator[Question]:
    """Yield the sentences of one version of a summary among another version's and the article's own."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    for group, members in sorted(groups.items()):
        dice.shuffle(members)
        for one, other in zip(members[::2], members[1::2], strict=False):
            claims, candidates = cut(one.response), cut(other.response)
            changed = [
                n for n, pair in enumerate(zip(claims, candidates, strict=False)) if pair[0] != pair[1]
            ]
            if len(claims) != len(candidates) or not changed:
                continue
            number = dice.choice(changed)
            article = [sentence for passage in one.context for sentence in cut(passage)]
            article = [sentence for sentence in article if sentence not in candidates]
            room = max(0, CANDIDATES - len(candidates))
            beside = dice.sample(article, min(room, len(article)))
            yield Question(group, claims[number], (*candidates, *beside), (number,))


def supported(rows: Sequence[Example], dice: random.Random) -> Iterator[Question]:
    """Yield the supported texts of one or two sentences, their only passage among those of other rows."""
    chosen = [row for row in rows if not row.label and len(row.context) == 1]
    dice.shuffle(chosen)
    passages = sorted({row.context[0] for row in chosen})
    for row in chosen:
        others = [text for text in dice.sample(passages, CANDIDATES) if text != row.context[0]]
        yield Question(row.group, row.response, (row.context[0], *others[: CANDIDATES - 1]), (0,))


def cut(text: str, ranges: Callable[[str], list[tuple[int, int]]] = sentences) -> list[str]:
    return [text[start:end] for start, end in ranges(text)]


def questions(folder: Path, *, most: int) -> dict[str, list[Question]]:
    """Return the questions of each data set, always the same."""

    def read(name: str) -> list[Example]:
        return read_examples(folder / f"{name}.jsonl.gz")

    def some(made: Iterator[Question]) -> list[Question]:
        found = list(made)
        return random.Random(3).sample(found, min(most, len(found)))

    return {
        TWO: list(two_answers(read("ragtruth_qa.train"))),
        "BUMP, edited sentence": some(edited(read("bump"), random.Random(1))),
        "SummEdits, edited sentence": some(edited(read("summedits"), random.Random(1))),
        "FEVER-symmetric, claim and evidence": some(supported(read("fever_symmetric"), random.Random(1))),
        "BEGIN, reply and its source": some(supported(read("begin"), random.Random(1))),
        "SNLI, entailed caption": some(supported(read("snli"), random.Random(1))),
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """One question and what is near its claim: shape (3, candidates), by meaning, words and characters."""

    question: Question
    parts: NDArray[np.float32]

    def by(self, mix: str) -> NDArray[np.float32]:
        """Return the similarities, shape (candidates,)."""
        return np.array(MIXES[mix]) @ self.parts


def compare(model: Similarity, question: Question) -> Compared:
    claims, candidates = [question.claim, *question.beside], question.candidates
    vectors = model.embed([question.claim, *candidates])
    cosine = np.clip(vectors[1:] @ vectors[0], 0.0, 1.0)
    parts = [cosine, shared_words(claims, candidates)[0], shared_characters(claims, candidates)[0]]
    return Compared(question, np.stack(parts))


def accuracy(compared: Sequence[Compared], mix: str) -> float:
    """Return the share of questions with a right candidate whose nearest candidate is right."""
    return statistics.fmean(int(c.by(mix).argmax()) in c.question.right for c in compared if c.question.right)


def floors(compared: Sequence[Compared]) -> list[dict[str, float]]:
    """Return the effect of a lowest similarity for a partner, with the mix that is served."""
    rows = []
    partners = sum(bool(c.question.right) for c in compared)
    for floor in FLOORS:
        taken = [figures for figures in ((c, c.by(SERVED)) for c in compared) if figures[1].max() >= floor]
        right = sum(int(figures.argmax()) in c.question.right for c, figures in taken)
        precision = right / len(taken) if taken else 1.0
        rows.append({"floor": floor, "precision": precision, "recall": right / max(partners, 1)})
    return rows


def separation(compared: Sequence[Compared], mix: str) -> float:
    """Return the AUROC of the nearest candidate's figure: is there a partner at all?"""
    top: dict[bool, list[float]] = {True: [], False: []}
    for c in compared:
        top[bool(c.question.right)].append(float(c.by(mix).max()))
    return statistics.fmean((a > b) + 0.5 * (a == b) for a in top[True] for b in top[False])


def alignment(model: Similarity, sets: dict[str, list[Question]]) -> dict[str, Any]:
    """Return accuracy by data set and mix per side of the split, and what only two models' answers show."""
    result: dict[str, Any] = {}
    for side, name in (("choosing", "train"), ("reported", "test")):
        compared = {
            data: [compare(model, q) for q in asked if split_of(q.group, HALVES, salt=SALT) == name]
            for data, asked in sets.items()
        }
        two = compared[TWO]
        result[side] = {
            "claims": {data: sum(bool(c.question.right) for c in each) for data, each in compared.items()},
            "accuracy": {
                mix: {data: accuracy(each, mix) for data, each in compared.items()} for mix in MIXES
            },
            "without_partner": sum(not c.question.right for c in two),
            "separation": {mix: separation(two, mix) for mix in MIXES},
            "floors": floors(two),
        }
    return result


def original_cost(folder: Path, model: Similarity, sets: dict[str, list[Question]]) -> dict[str, float]:
    """Return what rounding changed, over real sentences."""
    import torch

    from truthlens.detection.models.inputs.windows import load_tokenizer
    from truthlens.lab.similarity import load_base, original_vectors
    from truthlens.lab.train.model import BUNDLED_BASE, find_base

    asked = [question for each in sets.values() for question in each[:40]]
    texts = sorted({text for question in asked for text in (question.claim, *question.candidates[:4])})
    encoder = load_base(find_base(BUNDLED_BASE).folder)
    tokenizer = load_tokenizer(folder)
    tokenizer.enable_truncation(max_length=model.manifest.max_tokens)
    expected = original_vectors(encoder, [torch.tensor([tokenizer.encode(text).ids]) for text in texts])
    found = model.embed(texts)
    error = 1.0 - (expected * found).sum(axis=1)
    change = np.abs(expected @ expected.T - found @ found.T)
    exact = dict(zip(texts, expected, strict=True))
    same = [
        int((np.stack([exact[t] for t in q.candidates[:4]]) @ exact[q.claim]).argmax())
        == int((model.embed(q.candidates[:4]) @ model.embed([q.claim])[0]).argmax())
        for q in asked
    ]
    return {
        "texts": len(texts),
        "error_mean": float(error.mean()),
        "error_max": float(error.max()),
        "change_p99": float(np.percentile(change, 99)),
        "change_max": float(change.max()),
        "same_nearest": statistics.fmean(same),
    }


def speed(folder: Path, sets: dict[str, list[Question]]) -> dict[str, float]:
    """Return the milliseconds of one 20 × 20 comparison on one thread, each of unseen texts.

    ``cpu`` is the time of the thread, which other processes on the machine disturb less.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = Similarity.load(folder)
    model.warm_up()
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    texts = sorted({t for q in sets[TWO] for t in (q.claim, *q.candidates)})
    random.Random(5).shuffle(texts)
    figures = defaultdict(list)
    for start in range(0, len(texts) - 40, 40):
        left, right = texts[start : start + 20], texts[start + 20 : start + 40]
        for kind in ("", "remembered_"):
            wall, cpu = time.perf_counter(), time.thread_time()
            model.similar(left, right)
            figures[f"{kind}wall_ms"].append(1e3 * (time.perf_counter() - wall))
            figures[f"{kind}cpu_ms"].append(1e3 * (time.thread_time() - cpu))
    return {
        "comparisons": len(figures["cpu_ms"]),
        **{f"median_{name}": statistics.median(kept) for name, kept in figures.items()},
        "slowest_cpu_ms": max(figures["cpu_ms"]),
        "loaded_mib": (loaded - before) / 1024,
        "peak_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def markdown(result: dict[str, Any]) -> str:
    lines = [f"{result['machine']}, Python {platform.python_version()}."]
    for side, found in result["alignment"].items():
        data = list(found["claims"])
        lines += [
            "",
            f"Nearest candidate right, {side} half; last column: AUROC of a partner being there:",
            "",
        ]
        lines += [
            "| by | " + " | ".join(f"{name} ({found['claims'][name]})" for name in data) + " | mean | AUROC |"
        ]
        lines += ["| --- " * (len(data) + 3) + "|"]
        for mix, row in found["accuracy"].items():
            cells = " | ".join(f"{row[name]:.3f}" for name in data)
            mean = statistics.fmean(row.values())
            lines.append(f"| {mix} | {cells} | {mean:.3f} | {found['separation'][mix]:.3f} |")
        lines += ["", f"Floors ({SERVED}; {found['without_partner']} claims have no partner):", ""]
        lines += ["| floor | precision | recall |", "| --- | --- | --- |"]
        lines += [f"| {f['floor']} | {f['precision']:.3f} | {f['recall']:.3f} |" for f in found["floors"]]
    for part in ("speed", "int8"):
        if part in result:
            lines += [
                "",
                f"{part}: " + ", ".join(f"{key} {value:.4g}" for key, value in result[part].items()),
            ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=models_folder() / MODEL)
    parser.add_argument("--most", type=int, default=300, help="questions of a data set")
    parser.add_argument("--skip-original", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    arguments = parser.parse_args()
    sets = questions(arguments.data, most=arguments.most)
    # Speed and memory first, before anything else has grown the process.
    result: dict[str, Any] = {"machine": machine(), "speed": speed(arguments.model, sets)}
    model = Similarity.load(arguments.model)
    result["alignment"] = alignment(model, sets)
    if not arguments.skip_original:
        result["int8"] = original_cost(arguments.model, model, sets)
    text = markdown(result)
    write_result(arguments.output, "similarity", result, text)
    print(text)


if __name__ == "__main__":
    main()
