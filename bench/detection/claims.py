"""What the verdict by claims costs: cutting and fusing an answer of 200 tokens, as CPU ms an answer.

python -m bench.detection.claims [--tokens 200] [--evidence 2 100 400] [--repeats 20] [--out bench/results]

Prose, a list, a table and JSON about the same museum; every other sentence repeats the evidence. The
detectors of the shipped policy run once and are not measured. *cut* cuts the claims, *fused* makes the verdict
(with cutting) when the evidence has been read, *first* when it has not: quotations are looked for in it, once
an exchange. *details* explains the spans and finds the sentences that claims are shown with, where somebody
asks for details. Each repeat has an answer with other figures. Figures are CPU time of the process, medians.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from tokenizers import Tokenizer

from bench.common.script import command, machine, on_one_core, write_result
from bench.detection.run import SENTENCES
from truthlens.core.cancellation import never
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.detection.claims.quotations import Quotations
from truthlens.detection.detectors.contradictions.detector import ContradictionDetector
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.detectors.numbers.detector import NumberDetector
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.explain.explainer import explained
from truthlens.detection.fusion import fused
from truthlens.detection.interfaces import Detector
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.process.settings import models_folder
from truthlens.text.claims.claims import scored_claims

PLAN = Plan("bench", threshold=0.6)
MODEL = "truthlens-minilm-en-v2"


def sentence(place: int, by: int) -> str:
    """Return sentence number ``place`` of the museum; every other one with a figure that is wrong by ``by``."""
    return SENTENCES[place % 4].format(n=3 + place * 7 + by * (place % 2))


def prose(by: int, count: int) -> str:
    """Return ``count`` sentences."""
    return " ".join(sentence(place, by) for place in range(count))


def listed(by: int, count: int) -> str:
    """Return a lead-in and a list of ``count`` items."""
    return "The museum in short:\n" + "\n".join(f"- {sentence(place, by)}" for place in range(count))


def table(by: int, count: int) -> str:
    """Return a table of ``count`` rows."""
    rows = (f"| room {place + 1} | {by + place * 7} | ship models |" for place in range(count))
    return "\n".join(["| room | objects | kind |", "| --- | --- | --- |", *rows])


def leaves(by: int, count: int) -> str:
    """Return JSON of ``count`` objects."""
    rooms = [{"room": place + 1, "objects": by + place * 7, "kind": "ship models"} for place in range(count)]
    return json.dumps({"museum": "harbour", "rooms": rooms})


KINDS: dict[str, Callable[[int, int], str]] = {"prose": prose, "list": listed, "table": table, "JSON": leaves}


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over the repeats, in CPU milliseconds; ``claims`` are those of an answer."""

    claims: int
    cut_ms: float
    fused_ms: float
    first_ms: float
    details_ms: float


def answers_of(kind: str, tokenizer: Tokenizer, tokens: int, count: int) -> list[Answer]:
    """Return ``count`` answers of that kind with as many tokens at least, each with other figures."""
    parts = 1
    while len(tokenizer.encode(KINDS[kind](1, parts), add_special_tokens=False).ids) < tokens:
        parts += 1
    return [Answer(0, AnswerKind.TEXT, KINDS[kind](1 + place, parts)) for place in range(count)]


def exchange_of(kilobytes: int) -> Exchange:
    """Return a question with so much evidence, in passages of 2 KB."""
    whole = prose(0, 1 + kilobytes * 1000 // 80)[: kilobytes * 1000]
    passages = (whole[start : start + 2000] for start in range(0, len(whole), 2000))
    return Exchange(
        Endpoint.CHAT,
        "",
        "What does the museum keep?",
        tuple(Passage(each, Provenance.DOCUMENTS) for each in passages),
    )


def found_by(detectors: Sequence[Detector], exchange: Exchange, answer: Answer) -> list[DetectorResult]:
    return [each.detect_all(exchange, [answer], aggregation=None, stop=never)[0] for each in detectors]


def cost_of(exchange: Exchange, answers: Sequence[Answer], found: Sequence[list[DetectorResult]]) -> Cost:
    """Return the cost of ``answers`` whose results are ``found``."""
    warm = Quotations(exchange.passages)
    warm.find("a text of some words that asks for the evidence")
    cut, known, first, details, claims = [], [], [], [], 0
    for answer, results in zip(answers, found, strict=True):

        def verdict(
            quotations: Quotations, answer: Answer = answer, results: list[DetectorResult] = results
        ) -> Verdict:
            return fused(PLAN, answer.text, results, quoted=quotations.find)

        first.append(milliseconds(lambda: verdict(Quotations(exchange.passages))))
        known.append(milliseconds(lambda: verdict(warm)))
        cut.append(milliseconds(partial(scored_claims, answer.text)))
        made = verdict(warm)
        details.append(milliseconds(partial(explained, exchange, (answer,), (made,))))
        claims = len(made.claims)
    return Cost(claims, *(statistics.median(each) for each in (cut, known, first, details)))


def milliseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the process for some work."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--tokens", type=int, default=200, help="of an answer")
    parser.add_argument("--evidence", type=int, nargs="+", default=[2, 100, 400], help="kilobytes")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    on_one_core()
    folder = models_folder() / MODEL
    tokenizer, encoder = load_tokenizer(folder), load_encoder(folder, threads=1)
    detectors: list[Detector] = [encoder, NumberDetector(Options()), ContradictionDetector()]
    small, rows = exchange_of(2), []
    print(
        f"{'answer':6} {'claims':>6} {'evidence':>9} {'cut ms':>8} {'fused ms':>9} {'first ms':>9} {'details ms':>11}"
    )
    for kind in KINDS:
        answers = answers_of(kind, tokenizer, options.tokens, options.repeats)
        # What they find costs the same to fuse, however much evidence it was found in.
        found = [found_by(detectors, small, answer) for answer in answers]
        for kilobytes in options.evidence:
            cost = cost_of(exchange_of(kilobytes), answers, found)
            rows.append({"answer": kind, "evidence_kb": kilobytes, **asdict(cost)})
            print(
                f"{kind:6} {cost.claims:6} {kilobytes:6} KB {cost.cut_ms:8.2f} {cost.fused_ms:9.2f} {cost.first_ms:9.2f} "
                f"{cost.details_ms:11.2f}",
                flush=True,
            )
    result = {"machine": machine(), "tokens": options.tokens, "repeats": options.repeats, "rows": rows}
    write_result(options.out, "claims", result)


if __name__ == "__main__":
    main()
