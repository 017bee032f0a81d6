"""Score with the bundled detector behind ``Rescore`` and ``Compare``, each pair of texts once.

Scores are those of ``Engine.detect``. They are kept on disk, each with the CPU seconds that it took, which
count again wherever the score is asked for again; simulated time moves on by them. Scores of other weights or
other code of the detector are not used.
"""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from truthlens.core.records.enums import AnswerKind, DetectorName, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import Verdict
from truthlens.detection.building import OneModel, build_engine
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.similarity import Similarity

# The encoder alone, as in the figures that the docs give.
_PLAN = Plan(decision="bench", timeout_s=600.0, detectors=(DetectorSpec(DetectorName.ENCODER),))


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
        self._engine = build_engine([_PLAN], OneModel(encoder))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        kept.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(kept / "scores.sqlite", isolation_level=None)
        self._kept.execute("create table if not exists scores (key text primary key, value blob)")
        self._versions = {"score": _version(model), "similar": _version(similarity)}

    def close(self) -> None:
        """Stop the workers."""
        self._kept.close()
        asyncio.run_coroutine_threadsafe(self._engine.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def score(self, exchange: Exchange, texts: Sequence[str]) -> tuple[list[Verdict], float]:
        """Return one verdict per text (its threshold has no meaning), and the CPU seconds that all took.

        Texts that are new share one job, as the choices of an exchange do, and its seconds in equal parts.
        """
        evidence = [passage.text for passage in exchange.passages]
        keys = [self._key("score", exchange.query, *evidence, text) for text in texts]
        found: dict[str, Any] = {key: self._read(key) for key in keys}
        new = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
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
                found[key] = replace(verdict, results=()), seconds
                self._write(key, found[key])
        return [found[key][0] for key in keys], sum(found[key][1] for key in keys)

    def similar(self, left: Sequence[str], right: Sequence[str]) -> tuple[np.ndarray, float]:
        """Return the similarities, shape (left, right), and the CPU seconds that they took."""
        key = self._key("similar", str(len(left)), *left, *right)
        found: tuple[np.ndarray, float] | None = self._read(key)
        if found is None:
            started = time.process_time()
            found = self._similarity.similar(left, right), time.process_time() - started
            self._write(key, found)
        return found

    def _key(self, kind: str, *parts: str) -> str:
        digest = hashlib.sha256(f"{kind} {self._versions[kind]}".encode())
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()

    def _read(self, key: str) -> Any:
        row = self._kept.execute("select value from scores where key = ?", (key,)).fetchone()
        return None if row is None else pickle.loads(row[0])

    def _write(self, key: str, value: object) -> None:
        self._kept.execute("insert or replace into scores values (?, ?)", (key, pickle.dumps(value)))


def _version(model: Path) -> str:
    """Digest of a model and of the code that decides its figures."""
    # Sentence vectors have no part in a verdict, and change on their own.
    vectors = "similarity" in model.name
    root = Path(__file__).parents[2] / "truthlens"
    code = [*root.glob("detection/**/*.py"), *root.glob("text/**/*.py")]
    digest = hashlib.sha256((model / "manifest.json").read_bytes())
    for file in sorted(file for file in code if (file.parent.name == "similarity") == vectors):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Scorer:
    """``Rescore`` and ``Compare`` of one exchange on one core: concurrent requests wait for each other.

    ``seconds`` is the CPU time of all that was asked.
    """

    def __init__(self, detector: Detector, exchange: Exchange, *, threshold: float) -> None:
        self._detector = detector
        self._exchange = exchange
        self._threshold = threshold
        self._core = asyncio.Lock()
        self.seconds = 0.0

    async def __call__(self, texts: Sequence[str]) -> Sequence[Verdict]:
        """Return one verdict per text."""
        return await self._scored(self._exchange, texts)

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the semantic similarity of each left text to each right one."""
        found, seconds = self._detector.similar(left, right)
        await self._spend(seconds)
        return [[float(value) for value in row] for row in found]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float | None]:
        """Return how far ``text`` supports each claim; ``None`` where that is not known."""
        alone = replace(self._exchange, passages=(Passage(text, Provenance.DOCUMENTS),))
        verdicts = await self._scored(alone, claims)
        return [None if verdict.score is None else 1.0 - verdict.score for verdict in verdicts]

    async def _scored(self, exchange: Exchange, texts: Sequence[str]) -> list[Verdict]:
        verdicts, seconds = self._detector.score(exchange, texts)
        await self._spend(seconds)
        return [replace(verdict, threshold=self._threshold) for verdict in verdicts]

    async def _spend(self, seconds: float) -> None:
        self.seconds += seconds
        async with self._core:
            await asyncio.sleep(seconds)
