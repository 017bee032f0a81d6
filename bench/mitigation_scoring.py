"""The bundled detector behind ``Rescore`` and ``Compare``; each pair of text and evidence is scored once.

Scores are those of ``Engine.detect``. They are kept on disk, each with the CPU seconds that it took, which count again
wherever the score is asked for again; simulated time moves on by them. Other weights or other code of the detector
begin another file.
"""

from __future__ import annotations

import asyncio
import hashlib
import shelve
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from truthlens.core.records import Answer, AnswerKind, Exchange, Passage, Plan, Provenance, Verdict
from truthlens.detection.engine import Engine, load_encoder
from truthlens.detection.similarity import Similarity

_PLAN = Plan(decision="bench", timeout_s=600.0)


class Detector:
    """The engine and the embedder with one thread each; asked from another thread's simulated loop.

    Args:
        model: folder of the bundled model.
        similarity: folder of the embedder.
        kept: folder for the scores that were made.
    """

    def __init__(self, model: Path, similarity: Path, *, kept: Path) -> None:
        encoder = load_encoder(model, threads=1)
        encoder.warm_up()
        self.recommended = encoder.manifest.recommended_threshold
        self._similarity = Similarity.load(similarity, threads=1)
        self._similarity.warm_up()
        self._engine = Engine({None: encoder})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        kept.mkdir(parents=True, exist_ok=True)
        # Closed by ``close``: it lives as long as the detector.
        self._kept = shelve.open(str(kept / f"scores-{_version(model, similarity)}"))  # noqa: SIM115

    def close(self) -> None:
        """Stop the workers."""
        self._kept.close()
        asyncio.run_coroutine_threadsafe(self._engine.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def score(self, exchange: Exchange, texts: Sequence[str]) -> tuple[list[Verdict], float]:
        """One verdict per text (its threshold is without meaning), and the CPU seconds that all took.

        Texts that are new share one job, as the choices of an exchange do, and its seconds in equal parts.
        """
        evidence = [passage.text for passage in exchange.passages]
        keys = [_key("score", exchange.query, *evidence, text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._kept}
        if new:
            answers = [
                Answer(number, AnswerKind.TEXT if text.strip() else AnswerKind.EMPTY, text)
                for number, text in enumerate(new.values())
            ]
            started = time.process_time()
            job = self._engine.detect(_PLAN, exchange, answers)
            verdicts = asyncio.run_coroutine_threadsafe(job, self._loop).result()
            seconds = (time.process_time() - started) / len(new)
            for key, verdict in zip(new, verdicts, strict=True):
                # Each detector's own result is not looked at here, and cannot be pickled.
                self._kept[key] = replace(verdict, results=()), seconds
        found: list[tuple[Verdict, float]] = [self._kept[key] for key in keys]
        return [verdict for verdict, _ in found], sum(seconds for _, seconds in found)

    def similar(self, left: Sequence[str], right: Sequence[str]) -> tuple[np.ndarray, float]:
        """Similarities, shape (left, right), and the CPU seconds that they took."""
        key = _key("similar", str(len(left)), *left, *right)
        if key not in self._kept:
            started = time.process_time()
            self._kept[key] = self._similarity.similar(left, right), time.process_time() - started
        found: tuple[np.ndarray, float] = self._kept[key]
        return found


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _version(*models: Path) -> str:
    """Digest of all that decides a score."""
    code = sorted(Path(__file__).parents[1].glob("truthlens/detection/*.py"))
    digest = hashlib.sha256()
    for file in [*code, *(model / "manifest.json" for model in models)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Scorer:
    """``Rescore`` and ``Compare`` of one exchange; ``seconds`` is the CPU time of all that was asked of it."""

    def __init__(self, detector: Detector, exchange: Exchange, *, threshold: float) -> None:
        self._detector = detector
        self._exchange = exchange
        self._threshold = threshold
        self.seconds = 0.0

    async def __call__(self, texts: Sequence[str]) -> Sequence[Verdict]:
        """One verdict per text."""
        return await self._scored(self._exchange, texts)

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """Semantic similarity of each left text to each right one."""
        found, seconds = self._detector.similar(left, right)
        await self._spend(seconds)
        return [[float(value) for value in row] for row in found]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float]:
        """How far ``text`` supports each claim."""
        alone = replace(self._exchange, passages=(Passage(text, Provenance.DOCUMENTS),))
        verdicts = await self._scored(alone, claims)
        return [1.0 if verdict.score is None else 1.0 - verdict.score for verdict in verdicts]

    async def _scored(self, exchange: Exchange, texts: Sequence[str]) -> list[Verdict]:
        verdicts, seconds = self._detector.score(exchange, texts)
        await self._spend(seconds)
        return [replace(verdict, threshold=self._threshold) for verdict in verdicts]

    async def _spend(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(seconds)
