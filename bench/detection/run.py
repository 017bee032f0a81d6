"""One scoring on one core: 300-token context, 80-token answer, tokenisation included; and how it scales.

python bench/detection/run.py [--model NAME] [--repeats 200] [--threads 1]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from pathlib import Path

from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.models.loading import load_encoder
from truthlens.settings import models_folder

SENTENCES = [
    "The harbour museum keeps {n} ship models in a brick warehouse near the eastern quay.",
    "Visitors pay {n} euros at the desk, and children under six come in free of charge.",
    "A volunteer restores wooden hulls every Thursday in workshop number {n}.",
    "Its archive holds {n} letters that sailors wrote home during long winters at sea.",
]


def text(tokenizer, tokens: int) -> str:
    """Return our own prose of about ``tokens`` tokens."""
    parts: list[str] = []
    while True:
        parts.append(SENTENCES[len(parts) % 4].format(n=len(parts) * 7 + 3))
        ids = tokenizer.encode(" ".join(parts), add_special_tokens=False).ids
        if len(ids) >= tokens:
            return " ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="truthlens-minilm-en-v2")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args()
    if options.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    encoder = load_encoder(models_folder() / options.model, threads=options.threads)
    encoder.warm_up()
    result: dict = {
        "machine": f"{platform.processor() or platform.machine()}, {options.threads} thread(s), Python {platform.python_version()}",
        "model": encoder.model,
        "rows": [],
    }
    from truthlens.detection.encoder.inputs.windows import load_tokenizer

    tokenizer = load_tokenizer(models_folder() / options.model)
    for context_tokens, answer_tokens in ((300, 80), (1000, 80), (4000, 80), (300, 400), (300, 6000)):
        exchange = Exchange(
            Endpoint.CHAT,
            "",
            "What does the museum keep?",
            (Passage(text(tokenizer, context_tokens), Provenance.DOCUMENTS),),
        )
        answer = Answer(0, AnswerKind.TEXT, text(tokenizer, answer_tokens))
        repeats = options.repeats if answer_tokens < 1000 else 5
        encoder.detect(exchange, answer)
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            found = encoder.detect(exchange, answer)
            times.append((time.perf_counter() - started) * 1000)
        times.sort()
        row = {
            "context_tokens": context_tokens,
            "answer_tokens": answer_tokens,
            "windows": found.coverage.windows if found.coverage else 0,
            "p50_ms": statistics.median(times),
            "p99_ms": times[int(len(times) * 0.99)],
        }
        result["rows"].append(row)
        print({key: round(value, 1) for key, value in row.items()})
    result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(result["machine"], "peak memory", round(result["peak_rss_mb"]), "MB")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "detect.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
