"""One scoring on one core: 300-token context, 80-token answer, tokenisation included; and how it scales.

python -m bench.detection.run [--model NAME] [--repeats 200] [--threads 1] [--sizes 300+80,1000+80]
"""

from __future__ import annotations

import resource
import statistics
import time

from bench.common.script import command, machine, on_one_core, write_result
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.process.settings import models_folder

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
    parser = command(__doc__)
    parser.add_argument("--model", default="truthlens-minilm-en-v2")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--sizes",
        default="300+80,1000+80,4000+80,300+400,300+6000",
        help="CONTEXT+ANSWER tokens, with commas",
    )
    options = parser.parse_args()
    if options.threads == 1:
        on_one_core()
    encoder = load_encoder(models_folder() / options.model, threads=options.threads)
    encoder.warm_up()
    result: dict = {
        "machine": machine(f"{options.threads} thread(s)"),
        "model": encoder.model,
        "rows": [],
    }
    from truthlens.detection.models.inputs.windows import load_tokenizer

    tokenizer = load_tokenizer(models_folder() / options.model)
    for size in options.sizes.split(","):
        context_tokens, answer_tokens = map(int, size.split("+"))
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
    write_result(options.out, "detect", result)


if __name__ == "__main__":
    main()
