"""Measure how far citation marks move the scores of the default detectors: true and wrong answers, every form and place.

python -m bench.detection.citation_marks [--answers 200] [--forms 23]

Answers come from ``data/twins/train``. Each is scored as it is, and once with a mark of each form at one of three places:
behind the sentence, before its full stop, in the middle. Prints how many scores moved by more than 0.02, and how many true
answers are flagged, by form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from bench.common.script import command
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.engine import Engine
from truthlens.lab.data.dataset import Example
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.policy import load_policy
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder

MOVED = 0.02
FORMS = (
    "[S0]", "[doc-7]", "[1]", "(1)", "¹", "【1】", "【4:0†handbook.pdf】", "[^1]", "[S0][1]", "[1, 2]", "(Source: handbook.pdf)",
    "[handbook.pdf, p. 3]", "([S0])", "<sup>[1]</sup>", "[S0:12]", "(S0)", "<cite>1</cite>", '<cite id="1"/>', "<source>S0</source>",
    "{{1}}", "(p. 3)", "†1", "(Document 2)",
)  # fmt: skip
LABELS = ("S0", "doc-7", "1", "2", "handbook.pdf")
POLICY = Path(__file__).parents[2] / "config" / "truthlens.yaml"
TWINS = Path(__file__).parents[2] / "data" / "twins" / "train"


def marked(text: str, form: str, place: int) -> str:
    """Return the text with a mark: behind its last sentence, before the full stop, or behind the word in its middle."""
    if place == 0:
        return f"{text} {form}"
    if place == 1:
        end = len(text) - (text[-1:] in (".", "!", "?"))
        return f"{text[:end]} {form}{text[end:]}"
    at = text.find(" ", len(text) // 2)
    before = text[at - 1 : at]
    # Behind a number a mark would be a part of it.
    return marked(text, form, 0) if at < 0 or not before.isalpha() else f"{text[:at]} {form}{text[at:]}"


def sample(count: int) -> list[Example]:
    """Return so many true and so many wrong answers, spread over all groups."""
    rows = twin_examples(read_twin_folder(TWINS))
    found: list[Example] = []
    for label in (0, 1):
        own = [row for row in rows if row.label == label]
        found += islice(own, 0, None, max(1, len(own) // count))
        found = found[: count * (label + 1)]
    return found


async def scores(engine: Engine, plan: Plan, row: Example, texts: Sequence[str]) -> list[float]:
    """Return the scores of texts that answer the question of a row, whose passage has all the labels."""
    passages = [Passage(text, Provenance.TOOL, id=LABELS[0]) for text in row.context]
    passages += [Passage("Nothing is said of this here.", Provenance.TOOL, id=label) for label in LABELS[1:]]
    exchange = Exchange(Endpoint.CHAT, "", row.query, tuple(passages))
    answers = [Answer(at, AnswerKind.TEXT, text) for at, text in enumerate(texts)]
    return [verdict.score or 0.0 for verdict in await engine.detect(plan, exchange, answers)]


async def measure(count: int, forms: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Return for no mark and each form: scores that moved, and true and wrong answers that are flagged."""
    plan = load_policy(POLICY).plan_named("default")
    assert plan is not None
    plan = replace(plan, timeout_s=600.0)
    engine = build_engine(
        [plan], LateModel(lambda: load_encoder(models_folder() / BUNDLED_MODEL), shelves=(models_folder(),))
    )
    found = {form: [0, 0, 0] for form in ("", *forms)}
    for number, row in enumerate(sample(count)):
        texts = [
            row.response,
            *(marked(row.response, form, (number + at) % 3) for at, form in enumerate(forms)),
        ]
        own = await scores(engine, plan, row, texts)
        for form, score in zip(("", *forms), own, strict=True):
            found[form][0] += abs(score - own[0]) > MOVED
            found[form][1 + row.label] += score >= plan.threshold
    await engine.aclose()
    return [(form, *counts) for form, counts in found.items()]


def main() -> None:
    parser = command(__doc__, results=False)
    parser.add_argument("--answers", type=int, default=200, help="true ones, and as many wrong ones")
    parser.add_argument("--forms", type=int, default=len(FORMS), help="how many forms of marks")
    options = parser.parse_args()
    rows = asyncio.run(measure(options.answers, FORMS[: options.forms]))
    print(
        f"of {options.answers} true and as many wrong answers: moved by more than {MOVED}, true flagged, wrong flagged"
    )
    for form, moved, true, wrong in rows:
        print(f"{form or 'no mark':26} {moved:5} {true:5} {wrong:5}")


if __name__ == "__main__":
    main()
