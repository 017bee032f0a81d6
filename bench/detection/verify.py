"""Measure what the questions of ``verify`` cost by how many claims are doubtful: calls, tokens, added time.

python -m bench.detection.verify [--repeats 200] [--doubtful 0 3 10]

Evidence and answers are made of twins (data/twins/test): six passages and twelve sentences each. The first
stage is scripted: so many claims have a risk of 0.5, the others 0.05. Tokens are estimated by characters,
as budgets do. The detector's own work is measured; the model's time is drawn (log-normal, median 0.15 s a
call, calls of one answer side by side), not slept: it is scripted, no measurement.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from bench.common.script import command, write_result
from truthlens.core.records.calls import Completion, ModelRequest, TokenLogprob
from truthlens.core.records.claims import Finding
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.verify.detector import VerifyDetector
from truthlens.detection.detectors.verify.options import Options
from truthlens.lab.data.twins import read_twin_folder, twin_examples
from truthlens.lab.markdown import table
from truthlens.llm.token_estimate import prompt_tokens
from truthlens.text.claims.claims import scored_claims

_MEDIAN_S, _SPREAD = 0.15, 0.5
_PASSAGES, _SENTENCES = 6, 12
_YES = TokenLogprob("YES", math.log(0.9), (("YES", math.log(0.9)), ("NO", math.log(0.1))))


class Scripted:
    """An ``Ask`` that says YES at once and counts what it was sent."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.tokens = 0

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return YES with its log probability."""
        messages = request.body["messages"]
        assert isinstance(messages, list)
        self.prompts.append("".join(each["content"] for each in messages))
        self.tokens += prompt_tokens(request.body)
        return Completion("YES", request.model, "stop", logprobs=(_YES,))

    @property
    def shared(self) -> float:
        """Share (0..1) of all prompts that repeats the common begin of the first one."""
        if not self.prompts:
            return 0.0
        begin = os.path.commonprefix(self.prompts)  # noqa: RUF071 - characters are meant
        return len(begin) * (len(self.prompts) - 1) / sum(map(len, self.prompts))


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--twins", type=Path, default=Path("data/twins/test"))
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--doubtful", type=int, nargs="+", default=[0, 3, 10])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    exchanges = [_exchange(options.twins, rng) for _ in range(8)]
    with asyncio.Runner() as runner:
        rows = [runner.run(_row(exchanges, doubtful, options.repeats, rng)) for doubtful in options.doubtful]
    write_result(options.out, "verify", {"rows": rows})
    shown = {
        "doubtful claims": "{doubtful:.0f}", "calls": "{calls:.0f}", "prompt tokens": "{prompt_tokens:.0f}",
        "in the shared begin": "{shared:.0%}", "completion tokens": "{calls:.0f}", "own work": "{own_ms:.1f} ms",
        "added p50": "{p50_ms:.0f} ms", "p99": "{p99_ms:.0f} ms",
    }  # fmt: skip
    print(table(list(shown), ([each.format(**row) for each in shown.values()] for row in rows)))


def _exchange(twins: Path, rng: random.Random) -> tuple[Exchange, Answer]:
    rows = [each for each in twin_examples(read_twin_folder(twins)) if not each.label]
    chosen = rng.sample(rows, _PASSAGES)
    passages = [text for each in chosen for text in each.context]
    sentences = [
        each.response for each in rng.sample(rows, len(rows)) if len(scored_claims(each.response)) == 1
    ]
    return plain_exchange(chosen[0].query, passages, " ".join(sentences[:_SENTENCES]))


async def _row(
    exchanges: Sequence[tuple[Exchange, Answer]], doubtful: int, repeats: int, rng: random.Random
) -> dict[str, float]:
    own: list[float] = []
    added: list[float] = []
    calls: list[int] = []
    tokens: list[int] = []
    shared: list[float] = []
    for number in range(repeats):
        exchange, answer = exchanges[number % len(exchanges)]
        claims = scored_claims(answer.text)
        findings = tuple(
            Finding(each.start, each.end, 0.5 if place < doubtful else 0.05)
            for place, each in enumerate(claims)
        )
        ask, detector = Scripted(), VerifyDetector(Options(model="verifier"))
        began = time.perf_counter()
        await detector.examine(exchange, answer, [DetectorResult("encoder", 0.5, findings=findings)], ask=ask)
        own.append(time.perf_counter() - began)
        drawn = [_MEDIAN_S * math.exp(rng.gauss(0.0, _SPREAD)) for _ in ask.prompts]
        added.append(own[-1] + max(drawn, default=0.0))
        calls.append(len(ask.prompts))
        tokens.append(ask.tokens)
        shared.append(ask.shared)
    added.sort()
    return {
        "doubtful": doubtful,
        "calls": statistics.mean(calls),
        "prompt_tokens": statistics.mean(tokens),
        "shared": statistics.mean(shared),
        "own_ms": 1e3 * statistics.median(own),
        "p50_ms": 1e3 * added[len(added) // 2],
        "p99_ms": 1e3 * added[int(0.99 * (len(added) - 1))],
    }


if __name__ == "__main__":
    main()
