"""Measure the cost of following an answer against scoring it once, and how long the last word waits.

python -m bench.streaming.follow [--model NAME] [--repeats 3]

Three ways on the same answers, in turn, through the engine and on one core: *end* scores the whole answer
when its last word has come; *observe* runs ahead what further text cannot change, and scores at the end;
*gate* does that too, and scores every sentence at its end. Passes are runs of the model's expensive part; the
lag is the time of the last call.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from bench.common.script import command, machine, on_one_core, write_result
from bench.detection.run import text
from truthlens.core.cancellation import StopCheck, never
from truthlens.core.records.enums import AnswerKind, DetectorName, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.building import OneModel, build_engine
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.detectors.encoder.loading import load_model
from truthlens.detection.engine import Engine
from truthlens.detection.incremental import Following
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.models.inputs.windows import Window, load_tokenizer
from truthlens.detection.models.runtime import PartedModel, State, TokenModel
from truthlens.process.settings import models_folder
from truthlens.text.sentences import sentences

# The encoder alone, as in the figures that the docs give.
PLAN = Plan("bench", threshold=0.5, timeout_s=120.0, detectors=(DetectorSpec(DetectorName.ENCODER),))


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one answer, one way: working ``calls``, what the model ran, CPU seconds, and the last call."""

    calls: int
    passes: int
    tokens_run: int
    cpu_s: float
    lag_ms: float


class CountingModel:
    """Counts calls of the expensive part of a model."""

    def __init__(self, model: TokenModel) -> None:
        self._model = model
        self._parts = model if isinstance(model, PartedModel) and model.parted else None
        self.name = model.name
        self.parted = self._parts is not None
        self.passes = 0
        self.tokens = 0

    def log_odds(self, windows: Sequence[Window], *, stop: StopCheck = never) -> list[NDArray[np.float32]]:
        """See ``TokenModel``."""
        self._count(windows)
        return self._model.log_odds(windows, stop=stop)

    def states(self, window: Window) -> State:
        """See ``PartedModel``."""
        assert self._parts is not None
        self._count([window])
        return self._parts.states(window)

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        """See ``PartedModel``; not counted, for it costs a hundredth of ``states``."""
        assert self._parts is not None
        return self._parts.odds_of(window, state)

    def _count(self, windows: Sequence[Window]) -> None:
        self.passes += len(windows)
        self.tokens += sum(len(window.input_ids) for window in windows)


async def end(following: Following, whole: str) -> tuple[int, float, Verdict]:
    """Score only at the last call."""
    return 1, *await last(following, whole)


async def observe(following: Following, whole: str) -> tuple[int, float, Verdict]:
    """Look after every word, as its delta arrives."""
    calls = 1
    for word in re.finditer(r"\S+\s*", whole):
        calls += await look_ahead(following, whole[: word.end()])
    return calls, *await last(following, whole)


async def gate(following: Following, whole: str) -> tuple[int, float, Verdict]:
    """Ask for a verdict on every sentence at its end, and look in between."""
    ranges = sentences(whole)
    waiting = iter(ranges[:-1])
    start, stop = next(waiting, (0, len(whole)))
    calls = 1
    for word in re.finditer(r"\S+", whole):
        if word.end() < stop:
            calls += await look_ahead(following, whole[: word.end()])
        elif stop < len(whole):
            calls += 1
            await following.detect_ranges([answer(whole[:stop])], [[(start, stop)]])
            start, stop = next(waiting, (stop, len(whole)))
    return calls, *await last(following, whole, ranges[-1])


async def look_ahead(following: Following, so_far: str) -> bool:
    """Run ahead what has become due, if anything has."""
    answers = [answer(so_far)]
    due = following.due(answers)
    if due:
        await following.ahead(answers)
    return due


WAYS: dict[str, Callable[[Following, str], Awaitable[tuple[int, float, Verdict]]]] = {
    "end": end,
    "observe": observe,
    "gate": gate,
}


async def last(following: Following, whole: str, *ranges: tuple[int, int]) -> tuple[float, Verdict]:
    """Return the milliseconds of the last call, and the verdict."""
    started = time.perf_counter()
    followed = await following.detect([answer(whole)], [ranges])
    return (time.perf_counter() - started) * 1000, followed.verdicts[0]


def answer(so_far: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, so_far)


async def measure(
    engine: Engine, model: CountingModel, exchange: Exchange, whole: str, repeats: int
) -> dict[str, Cost]:
    """Return the cost of each way, medians over ``repeats`` rounds of all ways in turn.

    Raises:
        SystemExit: the ways do not give one verdict.
    """
    found: dict[str, list[Cost]] = {name: [] for name in WAYS}
    for _ in range(repeats):
        scores = set()
        for name, way in WAYS.items():
            model.passes = model.tokens = 0
            cpu_s = time.process_time()
            calls, lag_ms, verdict = await way(engine.follow(PLAN, exchange), whole)
            cpu_s = time.process_time() - cpu_s
            found[name].append(Cost(calls, model.passes, model.tokens, cpu_s, lag_ms))
            scores.add((verdict.status, verdict.score, verdict.spans))
        if len(scores) != 1:
            raise SystemExit("the ways give different verdicts; expected one")
    return {name: median(costs) for name, costs in found.items()}


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        calls=costs[0].calls,
        passes=round(statistics.median(cost.passes for cost in costs)),
        tokens_run=round(statistics.median(cost.tokens_run for cost in costs)),
        cpu_s=statistics.median(cost.cpu_s for cost in costs),
        lag_ms=statistics.median(cost.lag_ms for cost in costs),
    )


async def run(options: argparse.Namespace) -> dict:
    folder = models_folder() / options.model
    manifest, tokenizer = load_manifest(folder), load_tokenizer(folder)
    model = CountingModel(load_model(folder, manifest=manifest))
    encoder = EncoderDetector(model, tokenizer, manifest)
    encoder.warm_up()
    engine = build_engine([PLAN], OneModel(encoder))
    rows = []
    print(
        f"{'evidence':>8} {'answer':>6}  {'way':8} {'calls':>5} {'passes':>6} {'tokens':>7} {'CPU s':>7} {'lag ms':>7}"
    )
    for evidence_tokens in options.evidence:
        passages = (Passage(text(tokenizer, evidence_tokens), Provenance.DOCUMENTS),)
        exchange = Exchange(Endpoint.CHAT, "", "What does the museum keep?", passages)
        for answer_tokens in options.answers:
            costs = await measure(engine, model, exchange, text(tokenizer, answer_tokens), options.repeats)
            for name, cost in costs.items():
                rows.append(
                    {
                        "evidence_tokens": evidence_tokens,
                        "answer_tokens": answer_tokens,
                        "way": name,
                        **asdict(cost),
                    }
                )
                print(
                    f"{evidence_tokens:8} {answer_tokens:6}  {name:8} {cost.calls:5} {cost.passes:6} "
                    f"{cost.tokens_run:7} {cost.cpu_s:7.3f} {cost.lag_ms:7.1f}",
                    flush=True,
                )
    await engine.aclose()
    return {
        "machine": machine("one core"),
        "model": encoder.model,
        "parted": model.parted,
        "repeats": options.repeats,
        "rows": rows,
    }


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--model", default="truthlens-minilm-en-v2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--answers", type=int, nargs="+", default=[40, 80, 200, 600, 2000], help="tokens")
    parser.add_argument("--evidence", type=int, nargs="+", default=[100, 300, 1000], help="tokens")
    options = parser.parse_args()
    on_one_core()
    result = asyncio.run(run(options))
    write_result(options.out, "follow", result)


if __name__ == "__main__":
    main()
