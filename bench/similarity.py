"""How well claims are aligned by meaning and by words, what int8 costs, how fast it is, and what memory it takes.

python bench/similarity.py --data FOLDER [--model FOLDER] [--most 300] [--skip-original] [--output bench/results]

Each question is one claim and up to twenty candidates, one of which (or, among answers of two models to one prompt,
any of those that a reader chose, or none) says the same. Half of the source texts choose the share of words in the
mix, the other half is reported. ``--skip-original`` leaves out the comparison with float32, which needs PyTorch.
Writes similarity.json and similarity.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from truthlens.core.text import sentences
from truthlens.detection.overlap import shared_characters, shared_words
from truthlens.detection.similarity import Similarity
from truthlens.hub.data import Example, Shares, read_examples, split_of
from truthlens.settings import models_folder

MODEL = "truthlens-similarity-en-v1"
CANDIDATES = 20
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
FLOORS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
HALVES = Shares(calibration=0.0, test=0.5)

# Sentences of one model's answer, and those of another's that say the same of the same matter, chosen by a reader who saw
# no figures: (row, row): {sentence: sentences}. Sentences that are not named claim nothing, or are open to argument.
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
    """A claim, candidates, and the numbers of those that say the same; none may."""

    group: str
    claim: str
    candidates: tuple[str, ...]
    right: tuple[int, ...]


def two_answers(rows: Sequence[Example]) -> Iterator[Question]:
    """Claims of one model's answer among the sentences of another's to the same prompt."""
    by_id = {row.id: row for row in rows}
    for (first, second), chosen in READ.items():
        one, other = by_id[f"ragtruth-{first}"], by_id[f"ragtruth-{second}"]
        claims, candidates = cut(one.response), cut(other.response)
        for number, right in chosen.items():
            yield Question(one.group, claims[number], tuple(candidates), tuple(right))


def edited(rows: Sequence[Example], dice: random.Random) -> Iterator[Question]:
    """Sentences of one version of a summary among another version's and the article's own."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    for group, members in sorted(groups.items()):
        dice.shuffle(members)
        for one, other in zip(members[::2], members[1::2], strict=False):
            claims, candidates = cut(one.response), cut(other.response)
            changed = [n for n, pair in enumerate(zip(claims, candidates, strict=False)) if pair[0] != pair[1]]
            if len(claims) != len(candidates) or not changed:
                continue
            number = dice.choice(changed)
            article = [sentence for passage in one.context for sentence in cut(passage)]
            article = [sentence for sentence in article if sentence not in candidates]
            room = max(0, CANDIDATES - len(candidates))
            beside = dice.sample(article, min(room, len(article)))
            yield Question(group, claims[number], (*candidates, *beside), (number,))


def supported(rows: Sequence[Example], dice: random.Random) -> Iterator[Question]:
    """Supported texts of one sentence or two, their only passage among those of other rows."""
    chosen = [row for row in rows if not row.label and len(row.context) == 1]
    dice.shuffle(chosen)
    passages = sorted({row.context[0] for row in chosen})
    for row in chosen:
        others = [text for text in dice.sample(passages, CANDIDATES) if text != row.context[0]]
        yield Question(row.group, row.response, (row.context[0], *others[: CANDIDATES - 1]), (0,))


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def questions(folder: Path, *, most: int) -> dict[str, list[Question]]:
    """Per data set its questions, always the same."""

    def read(name: str) -> list[Example]:
        return read_examples(folder / f"{name}.jsonl.gz")

    def some(made: Iterator[Question]) -> list[Question]:
        found = list(made)
        return random.Random(3).sample(found, min(most, len(found)))

    return {
        "answers of two models": list(two_answers(read("ragtruth_qa.train"))),
        "BUMP, edited sentence": some(edited(read("bump"), random.Random(1))),
        "SummEdits, edited sentence": some(edited(read("summedits"), random.Random(1))),
        "FEVER-symmetric, claim and evidence": some(supported(read("fever_symmetric"), random.Random(1))),
        "BEGIN, reply and its source": some(supported(read("begin"), random.Random(1))),
        "SNLI, entailed caption": some(supported(read("snli"), random.Random(1))),
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """One question with the figures of its candidates, each of shape (candidates,)."""

    question: Question
    cosine: NDArray[np.float32]
    words: NDArray[np.float32]
    characters: NDArray[np.float32]

    def mixed(self, share: float) -> NDArray[np.float32]:
        return (1.0 - share) * self.cosine + share * self.words


def compare(model: Similarity, question: Question) -> Compared:
    vectors = model.embed([question.claim, *question.candidates])
    cosine = np.clip(vectors[1:] @ vectors[0], 0.0, 1.0)
    claim, candidates = [question.claim], list(question.candidates)
    words, characters = shared_words(claim, candidates)[0], shared_characters(claim, candidates)[0]
    return Compared(question, cosine, words, characters)


def accuracy(compared: Sequence[Compared], figures: Sequence[NDArray[np.float32]]) -> float:
    """Share of the questions with a right candidate whose nearest candidate is right."""
    hits = [int(f.argmax()) in c.question.right for c, f in zip(compared, figures, strict=True) if c.question.right]
    return statistics.fmean(hits) if hits else float("nan")


def floors(compared: Sequence[Compared], share: float) -> list[dict[str, float]]:
    """What a lowest similarity for a partner does to the answers of two models."""
    rows = []
    for floor in FLOORS:
        taken = [c for c in compared if c.mixed(share).max() >= floor]
        right = sum(int(c.mixed(share).argmax()) in c.question.right for c in taken)
        with_partner = sum(bool(c.question.right) for c in compared)
        rows.append(
            {
                "floor": floor,
                "precision": round(right / max(len(taken), 1), 3),
                "recall": round(right / max(with_partner, 1), 3),
            }
        )
    return rows


def separation(compared: Sequence[Compared], share: float) -> float:
    """AUROC of the nearest candidate's figure: is there a partner at all?"""
    top = {True: [], False: []}  # type: dict[bool, list[float]]
    for c in compared:
        top[bool(c.question.right)].append(float(c.mixed(share).max()))
    pairs = [(a > b) + 0.5 * (a == b) for a in top[True] for b in top[False]]
    return statistics.fmean(pairs) if pairs else float("nan")


def alignment(model: Similarity, sets: dict[str, list[Question]]) -> dict[str, Any]:
    """Accuracy by data set and side of the split, by share of words in the mix."""
    table: dict[str, Any] = {}
    for name, asked in sets.items():
        sides: dict[str, list[Compared]] = {"choosing": [], "reported": []}
        for question in asked:
            side = "reported" if split_of(question.group, HALVES, salt="similarity-1") == "test" else "choosing"
            sides[side].append(compare(model, question))
        table[name] = {
            side: {
                "questions": sum(bool(c.question.right) for c in compared),
                "without": sum(not c.question.right for c in compared),
                "characters": accuracy(compared, [c.characters for c in compared]),
                "by_share": {str(share): accuracy(compared, [c.mixed(share) for c in compared]) for share in SHARES},
                "separation": {str(share): separation(compared, share) for share in SHARES},
                "floors": {str(share): floors(compared, share) for share in SHARES},
            }
            for side, compared in sides.items()
        }
    return table


def original_cost(folder: Path, model: Similarity, sets: dict[str, list[Question]]) -> dict[str, float]:
    """What rounding changed, over real sentences."""
    from transformers import AutoModel

    from truthlens.hub.embedder import original_vectors
    from truthlens.hub.model import BUNDLED_BASE, find_base

    asked = [question for each in sets.values() for question in each[:40]]
    texts = sorted({text for question in asked for text in (question.claim, *question.candidates[:4])})
    base = find_base(BUNDLED_BASE).folder
    encoder = AutoModel.from_pretrained(base, attn_implementation="eager", add_pooling_layer=False).eval()
    import torch

    from truthlens.detection.windows import load_tokenizer

    tokenizer = load_tokenizer(folder)
    tokenizer.enable_truncation(max_length=model.manifest.max_tokens)
    expected = original_vectors(encoder, [torch.tensor([tokenizer.encode(text).ids]) for text in texts])
    found = model.embed(texts)
    error = 1.0 - (expected * found).sum(axis=1)
    change = np.abs(expected @ expected.T - found @ found.T)
    exact = {text: row for text, row in zip(texts, expected, strict=True)}
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
    """Milliseconds of one 20 × 20 comparison on one thread, each of texts that were not seen before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = Similarity.load(folder)
    model.warm_up()
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    texts = sorted({t for q in sets["answers of two models"] for t in (q.claim, *q.candidates)})
    random.Random(5).shuffle(texts)
    times, again = [], []
    for start in range(0, len(texts) - 40, 40):
        left, right = texts[start : start + 20], texts[start + 20 : start + 40]
        for kept in (times, again):
            begun = time.perf_counter()
            model.similar(left, right)
            kept.append(1e3 * (time.perf_counter() - begun))
    return {
        "comparisons": len(times),
        "median_ms": statistics.median(times),
        "fastest_ms": min(times),
        "slowest_ms": max(times),
        "remembered_median_ms": statistics.median(again),
        "loaded_mb": (loaded - before) / 1024,
        "peak_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def markdown(result: dict[str, Any], share: float) -> str:
    lines = [f"{result['machine']}, Python {platform.python_version()}.", ""]
    for side in ("choosing", "reported"):
        shares = [str(s) for s in SHARES]
        lines += [f"Nearest candidate right, {side} half, by share of words in the mix:", ""]
        lines += ["| data | claims | characters | " + " | ".join(shares) + " |"]
        lines += ["| --- " * (3 + len(shares)) + "|"]
        for name, sides in result["alignment"].items():
            row = sides[side]
            cells = [f"{row['by_share'][s]:.3f}" for s in shares]
            lines.append(f"| {name} | {row['questions']} | {row['characters']:.3f} | {' | '.join(cells)} |")
        means = [statistics.fmean(sides[side]["by_share"][s] for sides in result["alignment"].values()) for s in shares]
        lines += [f"| mean | | | {' | '.join(f'{mean:.3f}' for mean in means)} |", ""]
        two = result["alignment"]["answers of two models"][side]
        lines.append("AUROC of a partner being there: " + ", ".join(f"{s}: {two['separation'][s]:.3f}" for s in shares))
        lines += ["", f"Floors at share {share}:", "", "| floor | precision | recall |", "| --- | --- | --- |"]
        lines += [f"| {f['floor']} | {f['precision']} | {f['recall']} |" for f in two["floors"][str(share)]]
        lines.append("")
    for part in ("speed", "int8"):
        if part in result:
            lines += [f"{part}: " + ", ".join(f"{k} {v:.4g}" for k, v in result[part].items()), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=models_folder() / MODEL)
    parser.add_argument("--most", type=int, default=300, help="questions of a data set")
    parser.add_argument("--share", type=float, default=0.0, choices=SHARES, help="whose floors are printed")
    parser.add_argument("--skip-original", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    sets = questions(arguments.data, most=arguments.most)
    # Speed and memory first, before anything else has grown the process.
    result: dict[str, Any] = {"machine": machine(), "speed": speed(arguments.model, sets)}
    model = Similarity.load(arguments.model)
    result["alignment"] = alignment(model, sets)
    if not arguments.skip_original:
        result["int8"] = original_cost(arguments.model, model, sets)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "similarity.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = markdown(result, arguments.share)
    (arguments.output / "similarity.md").write_text(text + "\n", encoding="utf-8")
    print(text)


def machine() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]} ({len(names)} cores)" if names else platform.machine()


if __name__ == "__main__":
    main()
