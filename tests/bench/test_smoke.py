"""Every benchmark runs, small: that it starts and what it gives, and nothing of how long it takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.made_data import write_data
from tests.fakes.tiny_base import write_base

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Small:
    """How a benchmark is run small, the file that it writes, and members that its result must have.

    ``{data}`` and ``{base}`` stand for made-up data and a tiny encoder. ``rows`` names the member that
    must hold something.
    """

    arguments: str
    file: str = ""
    rows: str = ""
    out: str = "--out"
    says: str = ""


SMALL = {
    "bench.common.behaviour": Small("record --tree {root} --data {data} --count 10", "", out="--out", says="10 exchanges"),
    "bench.common.held_out": Small("--data {data}", says="rows"),
    "bench.detection.ablation": Small(
        "--data {data} --twins {twins} --base {base} --runs {out}/runs --rows 8 --steps 1 --threads 1 --variants all",
        "ablation.json", "variants",
    ),
    "bench.detection.cascade": Small("--rows 6", "cascade.json", "plans"),
    "bench.detection.citation_marks": Small("--answers 4 --forms 2", out="", says="no mark"),
    "bench.detection.claims": Small("--tokens 40 --evidence 2 --repeats 1", "claims.json", "rows"),
    "bench.detection.detectors": Small("--rows 3 --repeats 1", "detectors.json", "rows", "--output"),
    "bench.detection.distractors": Small(
        "--data {data} --rows 4 --points 0 1 --kinds random --threads 1", "distractors.json", "curve"
    ),
    "bench.detection.explanations": Small("--data {data} --limit 8", "explanations.json", "by_source"),
    "bench.detection.miss_rate": Small(
        "{data}/bump.jsonl.gz --split all --limit 12 --rounds 2", "miss_rate.json", "rows"
    ),
    "bench.detection.peer": Small(
        "--shape tiny --sizes 20+10 --repeats 1 --work {out}/peer", "peer.json", "rows"
    ),
    "bench.detection.run": Small("--repeats 1 --sizes 40+20", "detect.json", "rows"),
    "bench.detection.verify": Small("--repeats 2", "verify.json", "rows"),
    "bench.detection.selection": Small("--data {data} --rows 1 --distractors 2", "selection.json", "rows"),
    "bench.detection.similarity": Small(
        "--data {data} --most 12 --skip-original", "similarity.json", "alignment", "--output"
    ),
    "bench.evidence.prompts": Small("fresh", out="", says="framework"),
    "bench.gateway.footprint": Small("", out="", says="MB resident"),
    "bench.gateway.hostile": Small("--only control --size 20000", "hostile.json", "rows"),
    "bench.gateway.passing": Small("--rounds 1 --requests 2", out="", says="the sidecar lets it pass"),
    "bench.gateway.run": Small("--requests 3 --clients 4 --seconds 1", "gateway.json", "paths"),
    "bench.mitigation.auto": Small("--days 1 --per-day 4 --runs 1", "auto.json", "rows"),
    "bench.mitigation.run": Small(
        "--data {data} --rows 4 --modes lightweight", "mitigation.json", "configurations"
    ),
    "bench.retrieval.agentic": Small("--smoke", "agentic.json", "rows"),
    "bench.retrieval.folder_latency": Small("--passages 40 --searches 4", out="", says="one subfolder"),
    "bench.retrieval.recall": Small("--limit 3", "recall.json", "groups"),
    "bench.retrieval.verdicts": Small("--limit 2", out="", says="page_among_passages"),
    "bench.review.pages": Small("--entries 30 --times 1", "review-pages.json", "figures", "--output"),
    "bench.review.writing": Small(
        "--blocks 2 --seconds 0.4", "review-writing.json", "with", "--output"
    ),
    "bench.soak.run": Small(
        "--exchanges 40 --every 60 --clients 4 --detectors encoder --faults edit-policy,kill-redis --pause 0.5 --patient",
        "soak.json", "processes",
    ),
    "bench.streaming.follow": Small("--repeats 1 --answers 40 --evidence 100", "follow.json", "rows"),
    "bench.streaming.run": Small("--smoke", "stream.json"),
}  # fmt: skip
# Processes that a benchmark starts by itself.
PARTS = {
    "bench.common.bare",
    "bench.soak.backend",
    "bench.streaming.backend",
    "bench.streaming.bare",
    "bench.streaming.others",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up data, for those that read a folder."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("module", SMALL)
def test_a_benchmark_runs(module: str, data: Path, tmp_path: Path) -> None:
    """It ends well, and writes a result with rows in it, or says what it found."""
    small = SMALL[module]
    places: dict[str, Callable[[], Any]] = {
        "root": lambda: ROOT,
        "data": lambda: data,
        "out": lambda: tmp_path,
        "base": lambda: write_base(tmp_path / "base"),
        "twins": lambda: _copied(ROOT / "data" / "twins" / "train" / "example.yaml", tmp_path / "twins"),
    }
    arguments = re.sub(r"\{(\w+)\}", lambda name: str(places[name[1]]()), small.arguments).split()
    if small.out:
        arguments += [small.out, str(tmp_path / "record.json" if "record" in arguments else tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]
    assert small.says in ended.stdout
    if small.file:
        result = json.loads((tmp_path / small.file).read_text())
        assert result[small.rows] if small.rows else result


def _copied(file: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(file, folder)
    return folder


def test_each_benchmark_is_tried_here() -> None:
    """Those that make starts, and every module that can be started."""
    started = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "bench").rglob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    }
    # What measures the tree itself is tried by tests/test_budget.py, the audit by tests of its own.
    assert started - {"bench.house", "bench.audit"} == SMALL.keys() | PARTS
    assert set(re.findall(r"-m (bench\.[\w.]+)", (ROOT / "Makefile").read_text())) <= SMALL.keys() | {
        "bench.audit"
    }
