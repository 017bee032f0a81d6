"""What evidence on demand does to verdicts, on the corpus of ``data/retrieval``: ``python -m bench.retrieval.verdicts``.

Every question is asked twice, with a right and with a wrong answer, of a request without evidence (trigger ``no-context``), and
the answerable ones with a page about something else as evidence (trigger ``unsupported``). ``blind`` asks with the passages of other
questions: nothing may clear. Scored by the shipped plan, in this process, without Envoy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.retrieval.corpus import FOLDER, CorpusQuestion, read_corpus
from truthlens.core.deadline import Deadline
from truthlens.core.records.enums import Trigger
from truthlens.core.records.exchange import plain_exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SourceSpec
from truthlens.core.records.settings import RetrievalSettings
from truthlens.core.records.verdict import Verdict
from truthlens.core.registry import source_types
from truthlens.detection.building import LateModel, build_engine
from truthlens.exchange.assessor import Assessor, Case
from truthlens.exchange.retrieval_step import RetrievalStep
from truthlens.lab.evaluate.served_encoder import load_served
from truthlens.process.settings import models_folder
from truthlens.retrieval.retriever import Asker, Retriever

_TIME_S = 600.0
PLAN = Plan(
    "bench",
    timeout_s=_TIME_S,
    retrieval=RetrievalSettings(
        sources=("pages",), when=(Trigger.NO_CONTEXT, Trigger.UNSUPPORTED), timeout_s=60.0
    ),
)


async def _no_vectors(_texts: Sequence[str]) -> Any:
    raise NotImplementedError


class _Blind(Retriever):
    """Gives the passages of another question."""

    def __init__(self, others: dict[str, str], **parts: Any) -> None:
        super().__init__(**parts)
        self._others = others

    async def search(self, sources: Sequence[str], texts: Iterable[str], **bounds: Any) -> Any:
        wanted = [self._others.get(text, next(iter(self._others.values()))) for text in texts]
        return await super().search(sources, wanted, **bounds)


def outcome_of(verdict: Verdict) -> str:
    """Return how an answer comes out: the reason why it is unchecked, or whether it is flagged."""
    if verdict.score is None:
        return str(verdict.reason)
    return "flagged" if verdict.flagged else "clean"


async def measure(*, blind: bool, limit: int | None) -> dict[str, object]:
    """Return the figures, as counts of outcomes by kind of question and answer."""
    corpus = read_corpus(FOLDER)
    questions = corpus.questions[:limit]
    texts = [each.question for each in questions]
    others = dict(zip(texts, texts[len(texts) // 2 :] + texts[: len(texts) // 2], strict=True))
    parts = {"embed": _no_vectors, "environ": {}}
    retriever = _Blind(others, **parts) if blind else Retriever(**parts)
    counts: dict[str, Counter[str]] = {}
    times: list[float] = []
    found = 0
    with tempfile.TemporaryDirectory() as place:
        options = source_types()["folder"].options.model_validate(
            {
                "path": str(FOLDER / "pages"),
                "index": str(Path(place) / "index.db"),
                "timeout_s": 60,
                "cache_ttl_s": 0,
            }
        )
        retriever.use({"pages": SourceSpec("pages", "folder", options)}, FOLDER)
        while (
            await retriever.search(("pages",), ["ready"], k=1, deadline=Deadline.after(60), asker=Asker())
        ).failed:
            await asyncio.sleep(0.2)
        shelf = models_folder()
        engine = build_engine(
            [PLAN],
            LateModel(
                lambda: load_served(
                    shelf / "truthlens-minilm-en-v2", use_cpu=True, threads=1, max_windows=256
                ),
                shelves=(shelf,),
            ),
            queue_limit=1,
        )
        step = RetrievalStep(retriever)
        assessor = Assessor(engine, retrieval=lambda: step)

        async def score(question: CorpusQuestion, answer: str, passages: Sequence[str], name: str) -> None:
            nonlocal found
            exchange, asked = plain_exchange(question.question, passages, answer)
            if step.applies_before(PLAN, exchange):
                began = time.perf_counter()
                exchange = await step.before(PLAN, exchange, authorization=None, time_s=_TIME_S)
                times.append(time.perf_counter() - began)
                if name == "answerable right":
                    found += any(set(question.page) & {each.parent_id} for each in exchange.passages)
            if exchange.not_checkable is not None:
                counts.setdefault(name, Counter())[str(exchange.not_checkable)] += 1
                return
            case = Case(replace(PLAN), exchange, (asked,), Deadline.after(_TIME_S))
            first = await assessor.detect(case, (asked,))
            _, (verdict,) = await assessor.supported(case, first)
            cleared = first[0].flagged and not verdict.flagged
            counts.setdefault(name, Counter())["cleared" if cleared else outcome_of(verdict)] += 1

        by_path = corpus.by_path
        for place_, question in enumerate(questions):
            for answer in ("right", "wrong"):
                await score(question, getattr(question, answer), (), f"{question.kind.value} {answer}")
            if question.kind.value == "answerable":
                other = corpus.pages[(place_ * 7) % len(corpus.pages)]
                if other.path not in question.page:
                    for answer in ("right", "wrong"):
                        text = getattr(question, answer)
                        await score(
                            question, text, (by_path[other.path].text,), f"other page as evidence, {answer}"
                        )
        await engine.aclose()
        await retriever.aclose()
    times.sort()
    return {
        "counts": {name: dict(each) for name, each in counts.items()},
        "page_among_passages": found,
        "search_ms": {
            "p50": round(1e3 * times[len(times) // 2], 1),
            "p99": round(1e3 * times[int(len(times) * 0.99)], 1),
        },
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blind", action="store_true", help="search with other questions: nothing may clear")
    parser.add_argument("--limit", type=int, default=None, help="so many questions alone")
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(blind=arguments.blind, limit=arguments.limit)), indent=1))


if __name__ == "__main__":
    main()
