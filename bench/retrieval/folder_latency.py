"""Time of one search in the source `folder`, and of keeping its index.

    python -m bench.retrieval.folder_latency [--passages 10000] [--searches 300] [--out bench/results]

Pages are made of the sentences of this repository's own documentation in random order, so that words are as
frequent as in real texts. A search is measured as a policy's source does it, with its thread: one at a time,
and eight. The mark: the whole step of retrieval takes 60 ms at most, with 10,000 passages. Writes
folder-latency.json and .md.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.common.script import command, machine, on_one_core, percentile, write_result
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import Search
from truthlens.lab.markdown import table
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.source import FolderSource
from truthlens.retrieval.sources.folder.updating import update_index
from truthlens.text.sentences import sentences

DOCS = Path(__file__).parents[2] / "docs"
MARK_MS = 60.0


def documentation() -> list[str]:
    """Return the sentences of the documentation that are no rows of tables."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))]
    found = [text[start:end] for text in texts for start, end in sentences(text)]
    return [each for each in found if len(each) > 40 and "|" not in each and not each.startswith("#")]


def fill(folder: Path, passages: int, drawn: random.Random) -> None:
    """Write pages of twenty sections each, of about 800 characters, in ten subfolders."""
    known = documentation()
    for page in range(passages // 20):
        sections = [
            f"## Section {number}\n\n{' '.join(drawn.choices(known, k=7))[:900]}" for number in range(20)
        ]
        path = folder / f"tenant{page % 10}" / f"page{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {page}\n\n" + "\n\n".join(sections), encoding="utf-8")


async def measure(
    source: FolderSource, texts: list[str], together: int, folder: str | None
) -> dict[str, Any]:
    """Return the milliseconds of one search, 50 % and 99 %, with ``together`` at one time."""
    taken: list[float] = []
    waiting = iter(texts)

    async def work() -> None:
        for text in waiting:
            started = time.perf_counter()
            fields = {"folder": folder} if folder else {}
            await source.search(Search(text, filter=fields), k=8, deadline=Deadline.after(30))
            taken.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(work() for _ in range(together)))
    return {"p50_ms": round(percentile(taken, 0.5), 1), "p99_ms": round(percentile(taken, 0.99), 1)}


async def run(folder: Path, passages: int, searches: int) -> dict[str, Any]:
    """Return all figures."""
    drawn = random.Random(1)
    fill(folder / "pages", passages, drawn)
    options = FolderOptions(path="pages", index="index.db")
    root, file = options.root(folder), options.index_file(folder)
    figures: dict[str, Any] = {}
    for name in ("made_s", "unchanged_s"):
        started = time.perf_counter()
        report = update_index(root, file, options)
        figures[name] = round(time.perf_counter() - started, 2)
    figures |= {"passages": report.pieces, "megabytes": round(file.stat().st_size / 1e6, 1)}
    known = documentation()
    claims = drawn.choices(known, k=searches)
    # A question of the length that people write, common words among its words.
    questions = [
        " ".join(["how do I know when the", *each.split()[:6]]) for each in drawn.choices(known, k=searches)
    ]
    source = FolderSource("bench", options, base=folder)
    try:
        await measure(source, questions[:20], 1, None)
        figures["searches"] = {
            "question": await measure(source, questions, 1, None),
            "claim": await measure(source, claims, 1, None),
            "question, one subfolder": await measure(source, questions, 1, "tenant3"),
            "question, 8 at a time": await measure(source, questions, 8, None),
        }
    finally:
        await source.aclose()
    return figures


def main() -> None:
    """Print and write the table."""
    parser = command(__doc__)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=300)
    arguments = parser.parse_args()
    on_one_core()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(run(Path(folder), arguments.passages, arguments.searches))
    rows = [[name, str(each["p50_ms"]), str(each["p99_ms"])] for name, each in figures["searches"].items()]
    told = (
        f"{figures['passages']:,} passages, {figures['megabytes']} MB, {machine('one used')}; "
        f"made in {figures['made_s']} s, looked through in {figures['unchanged_s']} s; mark {MARK_MS:.0f} ms"
    )
    text = f"{told}\n\n{table(['search', '50 % ms', '99 % ms'], rows)}".rstrip()
    write_result(arguments.out, "folder-latency", figures | {"machine": machine(), "mark_ms": MARK_MS}, text)
    print(text)


if __name__ == "__main__":
    main()
