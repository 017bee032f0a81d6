"""Compare latency and peak memory on one core with ``lettucedetect``: same input, a process each.

python -m bench.detection.peer [--shape base] [--repeats 9] [--sizes 300+80,1000+80,3000+200]
python -m bench.detection.peer --parity --shape base        # token probabilities of one short input, theirs against ours

On a shared machine the wall clock counts the neighbours too; CPU time does so less, and is shown next to it.

Systems: the bundled int8 model; ``lettucedetect`` (its PyPI package, PyTorch) on ModernBERT weights; and the
same weights exported here: block-local attention, int8. The weights are random: speed and memory don't depend
on them. Both sides tokenise with the bundled model's tokenizer, so that one text is as many tokens to all.
The first run writes the checkpoint and its export into --work (about 1 GB for base) and keeps them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.common.script import command, machine, on_one_core, write_result
from truthlens.lab.markdown import table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

BUNDLED = "truthlens bundled int8"
PEER = "lettucedetect"
BLOCKS = "truthlens block-local int8"
SYSTEMS = {"peer": PEER, "bundled": BUNDLED, "blocks": BLOCKS}
SHAPES = {
    "tiny": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4},
    "17m": {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 7, "num_attention_heads": 4},
    "68m": {"hidden_size": 512, "intermediate_size": 768, "num_hidden_layers": 19, "num_attention_heads": 8},
    "base": {
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
    },
    "large": {
        "hidden_size": 1024,
        "intermediate_size": 2624,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
    },
}
SENTENCES = (
    "The harbour museum keeps {n} ship models in a brick warehouse near the eastern quay.",
    "Visitors pay {n} euros at the desk, and children under six come in free of charge.",
    "A volunteer restores wooden hulls every Thursday in workshop number {n}.",
    "Its archive holds {n} letters that sailors wrote home during long winters at sea.",
)
QUERY = "What does the museum keep?"


def text(tokenizer: Any, tokens: int) -> str:
    """Return our own prose of at least ``tokens`` tokens."""
    parts: list[str] = []
    while len(tokenizer.encode(" ".join(parts), add_special_tokens=False).ids) < tokens:
        parts.append(SENTENCES[len(parts) % 4].format(n=len(parts) * 7 + 3))
    return " ".join(parts)


def inputs(size: str) -> tuple[list[str], str]:
    """Return three passages and an answer of ``CONTEXT+ANSWER`` tokens."""
    from truthlens.detection.models.inputs.windows import load_tokenizer

    tokenizer = load_tokenizer(ROOT / "models" / "truthlens-minilm-en-v2")
    context, answer = (int(part) for part in size.split("+"))
    return [text(tokenizer, context // 3) for _ in range(3)], text(tokenizer, answer)


def prepare(shape: str, work: Path, *, rounded: bool = True) -> tuple[Path, Path]:
    """Make the random checkpoint and its export where they are missing; with ``rounded`` in int8."""
    import torch
    import transformers

    checkpoint, exported = work / f"modernbert-{shape}", work / f"modernbert-{shape}-onnx"
    if not (checkpoint / "config.json").is_file():
        torch.manual_seed(0)
        special = {
            "pad_token_id": 0,
            "cls_token_id": 101,
            "sep_token_id": 102,
            "bos_token_id": 101,
            "eos_token_id": 102,
        }
        config = transformers.ModernBertConfig(**SHAPES[shape], **special)
        transformers.ModernBertForTokenClassification(config).eval().save_pretrained(checkpoint)
        transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(ROOT / "models" / "truthlens-minilm-en-v2" / "tokenizer.json"),
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
            model_max_length=8192,
            model_input_names=["input_ids", "attention_mask"],
        ).save_pretrained(checkpoint)
    from truthlens.lab.export.convert import export_folder
    from truthlens.lab.export.quantize import quantize_folder

    if not (exported / "manifest.json").is_file():
        started = time.perf_counter()
        report = export_folder(checkpoint, exported)
        print(f"export of {shape}: {report} in {time.perf_counter() - started:.0f} s")
    done = "int8" in json.loads((exported / "manifest.json").read_text())["figures"]
    if rounded and not done:
        # Random weights need not survive rounding, and nothing here depends on their values.
        print(f"int8 of {shape}: {quantize_folder(exported, exported, force=True)}")
    return checkpoint, exported


def loaded(system: str, checkpoint: Path, exported: Path) -> Any:
    """Return a function that scores one answer, by the system's own public way in."""
    if system == PEER:
        import torch
        from lettucedetect.models.inference import HallucinationDetector

        torch.set_num_threads(1)
        detector = HallucinationDetector(method="transformer", model_path=str(checkpoint), device="cpu")
        return lambda passages, answer: detector.predict(
            context=passages, question=QUERY, answer=answer, output_format="spans"
        )
    from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
    from truthlens.core.records.exchange import Answer, Exchange, Passage
    from truthlens.detection.detectors.encoder.loading import load_encoder

    encoder = load_encoder(exported if system == BLOCKS else ROOT / "models" / "truthlens-minilm-en-v2")
    encoder.warm_up()

    def score(passages: list[str], answer: str) -> Any:
        evidence = tuple(Passage(passage, Provenance.DOCUMENTS) for passage in passages)
        return encoder.detect(
            Exchange(Endpoint.CHAT, "", QUERY, evidence), Answer(0, AnswerKind.TEXT, answer)
        )

    return score


def work_as(system: str, checkpoint: Path, exported: Path) -> None:
    """Run a child process: for each size on a line, score once and answer with the milliseconds."""
    on_one_core()
    score = loaded(system, checkpoint, exported)
    known: dict[str, tuple[list[str], str]] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        size = line.strip()
        passages, answer = known.setdefault(size, inputs(size))
        started, started_cpu = time.perf_counter(), time.process_time()
        score(passages, answer)
        elapsed, elapsed_cpu = time.perf_counter() - started, time.process_time() - started_cpu
        print(
            json.dumps({"ms": elapsed * 1000, "cpu_ms": elapsed_cpu * 1000, "peak_mb": peak_mb()}), flush=True
        )


def peak_mb() -> float:
    """Return the most resident memory of this process; getrusage would count the parent's before exec.

    Not from getrusage, which counts the parent's before exec too.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Child:
    """One system in a process of its own."""

    def __init__(self, system: str, checkpoint: Path, exported: Path) -> None:
        names = [str(Path(__file__)), "--child", system, str(checkpoint), str(exported)]
        self.process = subprocess.Popen(
            [sys.executable, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        while (line := self._line()) != "ready":
            if not line:
                raise SystemExit(f"{system} ended before it was ready; run it alone: {' '.join(names)}")

    def run(self, size: str) -> dict[str, float]:
        """Return the milliseconds and peak memory of scoring once."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        found: dict[str, float] = json.loads(self._line())
        return found

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def measure(options: argparse.Namespace) -> None:
    checkpoint, exported = prepare(options.shape, options.work)
    sizes = options.sizes.split(",")
    systems = [SYSTEMS[name] for name in options.systems.split(",")]
    rows: list[dict[str, Any]] = []
    peaks: dict[str, float] = {}
    for size in sizes:
        # A child for each size, so that its peak memory is this size's own.
        children = {system: Child(system, checkpoint, exported) for system in systems}
        times: dict[str, list[float]] = {system: [] for system in systems}
        cpu_times: dict[str, list[float]] = {system: [] for system in systems}
        for turn in range(options.repeats + 1):
            for system, child in children.items():
                found = child.run(size)
                if turn:  # the first turn warms up
                    times[system].append(found["ms"])
                    cpu_times[system].append(found["cpu_ms"])
                peaks[system] = found["peak_mb"]
        for child in children.values():
            child.close()
        for system in systems:
            rows.append(
                {
                    "size": size,
                    "system": system,
                    "p50_ms": statistics.median(times[system]),
                    "cpu_ms": statistics.median(cpu_times[system]),
                    "min_ms": min(times[system]),
                    "max_ms": max(times[system]),
                    "peak_mb": peaks[system],
                    "time_ratio": statistics.median(times[systems[0]]) / statistics.median(times[system]),
                    "cpu_ratio": statistics.median(cpu_times[systems[0]])
                    / statistics.median(cpu_times[system]),
                    "memory_ratio": peaks[systems[0]] / peaks[system],
                }
            )
            print(show(rows[-1]), flush=True)
    result = {
        "machine": machine("one core"),
        "shape": f"ModernBERT-{options.shape}, random weights",
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("lettucedetect", "torch", "transformers", "onnxruntime")
        },
        "repeats": options.repeats,
        "rows": rows,
    }
    write_result(options.out, "peer", result)
    print(f"\n{result['machine']}; {result['shape']}; medians of {options.repeats} runs in turn\n")
    shown = {
        "context + answer tokens": "{size}", "system": "{system}", "median ms": "{p50_ms:.0f}", "CPU ms": "{cpu_ms:.0f}",
        "peak MB": "{peak_mb:.0f}", "times faster": "{time_ratio:.1f}", "(CPU)": "{cpu_ratio:.1f}", "times less memory": "{memory_ratio:.1f}",
    }  # fmt: skip
    print(table(list(shown), ([each.format(**row) for each in shown.values()] for row in rows), right=True))


def show(row: dict[str, Any]) -> str:
    return f"{row['size']:>10} {row['system']:<28} {row['p50_ms']:9.1f} ms ({row['cpu_ms']:.1f} of CPU) {row['peak_mb']:7.0f} MB"


def parity(options: argparse.Namespace) -> None:
    """Compare the probabilities of one short input: the package against the exported fp32 file here."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    checkpoint, exported = prepare(options.shape, options.work, rounded=False)
    if "int8" in json.loads((exported / "manifest.json").read_text())["figures"]:
        shutil.rmtree(exported)
        checkpoint, exported = prepare(options.shape, options.work, rounded=False)
    from lettucedetect.detectors.transformer import TransformerDetector

    from truthlens.detection.detectors.encoder.loading import load_model
    from truthlens.detection.models.inputs.manifest import load_manifest
    from truthlens.detection.models.inputs.prompts import build_prompt
    from truthlens.detection.models.inputs.windows import build_windows, load_tokenizer

    passages, answer = inputs(options.sizes.split(",")[0])
    prompt = build_prompt("lettucedetect-v1", query=QUERY, passages=passages).text(passages)
    peer = TransformerDetector(model_path=str(checkpoint), device="cpu")
    tokens = peer.predict_prompt(prompt, answer, output_format="tokens")
    expected = np.array([token["prob"] for token in tokens])[:-1]
    del peer
    manifest = load_manifest(exported)
    built = build_windows(
        load_tokenizer(exported), manifest.input, query=QUERY, passages=passages, answer=answer
    )
    odds = load_model(exported, manifest=manifest).log_odds(built.windows)[0].astype(np.float64)
    difference = np.abs(1 / (1 + np.exp(-odds)) - expected).max()
    print(
        f"ModernBERT-{options.shape}: largest difference of token probabilities to lettucedetect "
        f"{difference:.2e} on {len(expected)} answer tokens of {len(built.windows[0].input_ids)}"
    )


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        work_as(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        return
    parser = command(__doc__)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="base")
    parser.add_argument(
        "--sizes", default="300+80,1000+80,3000+200", help="CONTEXT+ANSWER tokens, with commas"
    )
    parser.add_argument(
        "--systems", default=",".join(SYSTEMS), help="in turn; ratios are to the first (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--parity", action="store_true", help="compare probabilities instead of times")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "peer")
    options = parser.parse_args()
    try:
        importlib.metadata.version("lettucedetect")
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit("lettucedetect is not installed: pip install --no-deps lettucedetect") from None
    parity(options) if options.parity else measure(options)


if __name__ == "__main__":
    main()
