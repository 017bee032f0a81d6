"""Measure how much of an answer's own support stays in the window among distractors, by words alone.

python -m bench.detection.selection --data FOLDER [--rows 40] [--distractors 20 80] [--budget 300] [--side test]

No model runs. Of supported answers it measures, for each ranking: own share (tokens of the answer's own
passages in the window, of those that would fit), support kept (idf share of the answer's words that its own
passages hold and the chosen part of them still holds) and pairs kept (the same for pairs of neighbouring
words). Writes selection.json, .md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from bench.common.script import command, write_result
from bench.detection.crowds import Crowd, DistractorPool, as_passages, crowd
from truthlens.detection.models.inputs.assignment import claims_of, content_keys
from truthlens.detection.models.inputs.evidence_tokens import EvidenceTokens, encode_evidence
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.detection.models.inputs.selection import context_scores, overlap_scores, select_units
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.data.dataset import read_folder, split
from truthlens.lab.train.recipe import BUNDLED_RECIPE, MAIN_SOURCE
from truthlens.process.settings import models_folder
from truthlens.text.words import Word, words

SOURCES = (MAIN_SOURCE, "summedits", "wice", "bump")
RANKINGS = ("overlap", "context")
FIGURES = ("own share", "support kept", "pairs kept")
MOST_TOKENS = 200_000


def kept(tokenizer: Tokenizer, crowded: Crowd, *, budget: int) -> dict[str, tuple[float, float, float]]:
    """Return the three figures of one answer per ranking."""
    example = crowded.example
    evidence = encode_evidence(tokenizer, example.context, max_tokens=MOST_TOKENS)
    index = evidence.index
    owners = evidence.units[:, 0]
    own = np.array(crowded.own)[owners]
    claims = [claim.keys for claim in claims_of(example.response)]
    held = {key for word in _words(evidence, np.flatnonzero(own)) for key in keys_of(word)}
    wanted = {key for keys in claims for key in keys if key in held}
    weight = sum(map(index.idf, wanted)) or 1.0
    pairs = _pairs([words(example.response)]) & _pairs(evidence.words[unit] for unit in np.flatnonzero(own))
    result = {}
    for ranking in RANKINGS:
        if ranking == "context":
            scores = context_scores(index, claims, query=content_keys(example.query), owners=owners)
        else:
            scores = overlap_scores(index, claims)
        units = select_units(scores, sizes=evidence.sizes, budget=budget)
        read = units[own[units]]
        found = {key for word in _words(evidence, read) for key in keys_of(word)}
        result[ranking] = (
            float(evidence.sizes[read].sum() / min(budget, evidence.sizes[own].sum())),
            sum(map(index.idf, wanted & found)) / weight,
            len(pairs & _pairs(evidence.words[unit] for unit in read)) / max(len(pairs), 1),
        )
    return result


def _words(evidence: EvidenceTokens, units: Iterable[int]) -> list[Word]:
    return [word for unit in units for word in evidence.words[unit]]


def _pairs(groups: Iterable[Iterable[Word]]) -> set[tuple[str, str]]:
    stems = [[word.stem for word in group] for group in groups]
    return {pair for group in stems for pair in pairwise(group)}


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled data")
    parser.add_argument("--model", default="truthlens-minilm-en-v2", help="whose tokenizer counts")
    parser.add_argument("--models", type=Path, help="folder of model folders, instead of the repository's")
    parser.add_argument("--rows", type=int, default=40, help="supported answers of each source")
    parser.add_argument("--distractors", type=int, nargs="+", default=[20, 80])
    parser.add_argument("--budget", type=int, default=300, help="evidence tokens that fit the window")
    parser.add_argument("--side", choices=["train", "calibration", "test"], default="test")
    options = parser.parse_args()
    tokenizer = load_tokenizer(models_folder(options.models) / options.model)
    examples = read_folder(options.data)
    side = split(examples, BUNDLED_RECIPE)[options.side]
    lines = ["| source | rows | distractors | ranking | " + " | ".join(FIGURES) + " |", "| --- " * 7 + "|"]
    result = []
    for source in SOURCES:
        pool = DistractorPool(row for row in examples if row.source == source)
        rows = [row for row in side if row.source == source and not row.label]
        rows = [rows[place] for place in np.linspace(0, len(rows) - 1, options.rows).astype(int)]
        rows = list({row.id: row for row in rows}.values())
        found = defaultdict(list)
        for row in rows:
            own = replace(row, context=as_passages(row.context))
            for kind in ("random", "hard"):
                most = max(options.distractors)
                others = pool.hard(own, most) if kind == "hard" else pool.random(own, most, seed=0)
                for count in options.distractors:
                    crowded = crowd(own, others[:count], seed=0)
                    for ranking, values in kept(tokenizer, crowded, budget=options.budget).items():
                        found[f"{count} {kind}", ranking].append(values)
        for (which, ranking), values in found.items():
            means = dict(zip(FIGURES, np.mean(values, axis=0).tolist(), strict=True))
            result.append(
                {"source": source, "rows": len(values), "distractors": which, "ranking": ranking, **means}
            )
            cells = " | ".join(f"{value:.3f}" for value in means.values())
            lines.append(f"| {source} | {len(values)} | {which} | {ranking} | {cells} |")
    write_result(
        options.out,
        "selection",
        {"side": options.side, "budget": options.budget, "rows": result},
        "\n".join(lines),
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
