"""Measure what is taken as evidence of prompts in the form of real frameworks, what answers score against it, and what reading costs.

``python -m bench.evidence.prompts [develop|held_out|fresh|all] [--failures] [--answers] [--cost]``. By framework: the share of the
characters of evidence that is taken, of other characters taken, questions read exactly, and exchanges whose status is
right. ``--answers``: supported, invented and right answers that the bundled model flags at ``--threshold``.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml

from bench.evidence.cases import CASES, Case, Result, compare, load
from truthlens.core.errors import BodyTooLargeError
from truthlens.core.records.enums import AnswerKind, Provenance
from truthlens.core.records.exchange import Answer, Message, Passage
from truthlens.core.records.settings import EvidenceRules
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.evidence.extract import take_evidence
from truthlens.process.settings import models_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDERS = ("develop", "held_out", "fresh")
MODEL = "truthlens-minilm-en-v2"


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", choices=(*FOLDERS, "all"), default="all")
    parser.add_argument("--failures", action="store_true", help="name the cases that are not read right")
    parser.add_argument("--answers", action="store_true", help="score the answers of the cases")
    parser.add_argument("--threshold", type=float, default=0.6)
    parser.add_argument("--cost", action="store_true", help="time reading at 10 KB to 16 MB")
    arguments = parser.parse_args()
    folders = FOLDERS if arguments.folder == "all" else (arguments.folder,)
    for folder in folders:
        cases = load(folder)
        print(f"== {folder}")
        _print_shares(cases, failures=arguments.failures)
        if arguments.answers:
            _print_answers(cases, arguments.threshold)
    if arguments.cost:
        _print_cost()


def _print_shares(cases: Sequence[Case], *, failures: bool) -> None:
    rows: dict[str, list[Result]] = defaultdict(list)
    for case in cases:
        result = compare(case)
        rows[case.framework].append(result)
        good = result.evidence >= 0.95 and result.other <= 0.03 and result.question and result.status
        if failures and not good:
            print(f"{case.framework} | {case.variant} | {_line([result])}")
    print(f"{'framework':40} cases  evidence   other  question  status")
    for framework, results in rows.items():
        print(f"{framework[:40]:40} {_line(results)}")
    print(f"{'all':40} {_line([result for results in rows.values() for result in results])}")


def _line(results: Sequence[Result]) -> str:
    mean = statistics.fmean
    return (
        f"{len(results):5}     {mean(r.evidence for r in results):.3f}   {mean(r.other for r in results):.3f}"
        f"     {mean(r.question for r in results):.3f}   {mean(r.status for r in results):.3f}"
    )


def _print_answers(cases: Iterable[Case], threshold: float) -> None:
    """Print how many answers are flagged, and how many would be with the documents as marked by hand for evidence."""
    encoder = load_encoder(models_folder() / MODEL, threads=2)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for case in cases:
        exchange = case.exchange()
        marked = tuple(Passage(text, Provenance.USER) for text in case.evidence)
        by_hand = replace(exchange, passages=marked, query=case.question)
        for kind in ("supported", "invented", "right"):
            for text in getattr(case, kind):
                counts[kind][0] += 1
                if exchange.unchecked is not None:
                    counts[kind][2] += 1
                    continue
                answer = Answer(0, AnswerKind.TEXT, text)
                flagged = [
                    (encoder.detect(each, answer).score or 0.0) >= threshold for each in (exchange, by_hand)
                ]
                counts[kind][1] += flagged[0]
                counts[kind][3] += flagged[1]
    for kind, (total, flags, unchecked, by_hand_flags) in counts.items():
        print(
            f"{kind:10} {total:4} answers, {flags:3} flagged at {threshold} ({by_hand_flags:3} with the evidence marked by hand),"
            f" {unchecked:3} unchecked"
        )


def _print_cost() -> None:
    """Print the time to read prompts of several sizes, made of the hostile documents."""
    documents = yaml.safe_load((CASES / "hostile_documents.yaml").read_text("utf-8"))
    text = "\n\n".join(entry["document"] for entry in documents)
    print(f"== cost, {platform.machine()}, one thread, Python {platform.python_version()}")
    for size in (10_000, 100_000, 1_000_000, 5_000_000, 16_000_000):
        whole = (text * (size // len(text) + 1))[:size]
        for role, prompt in (
            ("user", f"Use the context to answer.\n\nContext:\n{whole}\n\nQuestion: What is the railway?\nAnswer:"),
            ("system", f"You are an assistant. Use the following context to answer.\n\n{whole}"),
        ):  # fmt: skip
            messages = [Message(role, prompt), Message("user", "What is the railway?")]
            started = time.perf_counter()
            try:
                found = len(take_evidence(messages, [], EvidenceRules()).passages)
                said = f"{found} passages"
            except BodyTooLargeError as error:
                said = type(error).__name__
            seconds = time.perf_counter() - started
            print(
                f"{role:7} {size / 1000:8.0f} KB  {seconds:7.3f} s  {seconds * 1e6 / size:6.3f} ms/KB  {said}"
            )


if __name__ == "__main__":
    main()
