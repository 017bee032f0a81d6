"""Entries of the review queue, and a console that has one."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.desk.app import desk_app
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.process.endpoints import Readiness, WebParts
from truthlens.process.settings import Access, Login
from truthlens.review.records import NewEntry
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

QUESTION = "When can I get a vaccination?"
PASSAGES = (
    "Vaccinations are given on Wednesdays from 9:00 to 12:00. Please bring your vaccination card.",
    "The clinic is open from Monday to Friday, 8:00 to 17:00. It is closed on public holidays.",
)
ANSWER = (
    "Vaccinations are given on Thursdays. Please bring your vaccination card. "
    "The clinic also offers free dental surgery on Sundays."
)
TOKEN, VIEWER_TOKEN = "t" * 40, "v" * 40
TOKENS = Access(login=Login.TOKEN, token=TOKEN, viewer_token=VIEWER_TOKEN)
START = 1_767_323_045.0  # 2026-01-02 03:04:05 UTC, a Friday


def hashed(text: str) -> dict[str, Any]:
    return {"chars": len(text), "sha256": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()}


def span(text: str, part: str, score: float = 0.9, **more: Any) -> dict[str, Any]:
    start = text.index(part)
    return {
        "start": start, "end": start + len(part), "shown": [start, start + len(part)], "score": score, "detector": "encoder", "differences": [],
    } | more  # fmt: skip


def content(
    answers: tuple[str, ...] = (ANSWER,),
    spans: tuple[list[dict[str, Any]], ...] | None = None,
    *,
    passages: tuple[str, ...] = PASSAGES,
    question: str = QUESTION,
    text: bool = True,
) -> dict[str, Any]:
    """The content of an entry, as ``truthlens.review.entry.content`` describes it."""
    if spans is None:
        wrong = ANSWER.index("Thursdays")
        spans = tuple(
            [
                span(
                    each, "Thursdays", 0.93, kind="contradicted", reason="the nearest sentence names another day",
                    confidence=0.88, passage=0, sentence=[0, 56],
                    differences=[{"type": "date", "start": wrong, "end": wrong + 9, "evidence": [26, 36]}],
                ),
                span(each, "free dental surgery", 0.71, detector="numbers", kind="fabricated", reason="no passage says this", confidence=0.6, passage=1),
            ]
            if each == ANSWER
            else []
            for each in answers
        )  # fmt: skip
    made: dict[str, Any] = {
        "format": 1,
        "query": hashed(question),
        "passages": [{"id": f"d{at}", "provenance": "documents", "rule": "documents", **hashed(each)} for at, each in enumerate(passages)],
        "choices": [
            {
                "index": at, **hashed(each), "status": "checked", "score": 0.9, "threshold": 0.6, "spans": spans[at],
                "detectors": [
                    {"name": "encoder", "score": 0.93, "weight": 1.0, "ms": 12.5, "explanation": "2 of 30 tokens are marked", "details": {"max_token": 0.97}},
                    {"name": "numbers", "score": None, "reason": "no-figures", "weight": 1.0, "ms": 0.1, "explanation": "", "details": {}},
                ],
                "claims": [{"claim_type": "count", "outcome": "unverified", "verified": False, "start": 0, "end": 4, "value": "9"}],
            }
            for at, each in enumerate(answers)
        ],
    }  # fmt: skip
    if text:
        made["texts"] = {
            "query": question,
            "passages": [{"title": "", "text": each} for each in passages],
            "answers": list(answers),
        }
    return made


def entry(number: int = 0, **changes: Any) -> NewEntry:
    """The entry number ``number``: every third is of another decision, every seventh was not flagged."""
    flagged = number % 7 != 6
    made = NewEntry(
        id=f"rv_{number:020x}",
        created=START + number * 600,
        decision=("default", "support", "finance")[number % 3],
        mode="lightweight",
        action="annotate",
        policy_version="abc123",
        score=0.9 - number % 40 / 100 if flagged else 0.2,
        even_score=0.9 - number % 40 / 100 if flagged else 0.2,
        threshold=0.6,
        flagged=flagged,
        level="high" if flagged else "low",
        rule="flagged" if flagged else "control",
        sample=1.0 if flagged else 0.1,
        query_id=f"req-{number}",
        trace_id="0af7651916cd43dd8448eb211c80319c",
        model="",
        user_id="",
        scope={},
        auto=False,
        latency_s=0.0,
        tokens=0,
        detectors={"encoder": 0.93, "numbers": 0.71} if number % 2 else {"encoder": 0.93},
        kinds=("contradicted", "fabricated") if number % 2 else ("contradicted",),
        original_confidence=0.1,
        adjusted_confidence=0.05,
        total_claims=3,
        verified_claims=1,
        unverified_claims=2,
        has_text=True,
        excerpt="Vaccinations are given on Thursdays.",
        content=content(),
    )
    return replace(made, **changes)


def queue_in(folder: Path, url: str = "") -> ReviewQueue:
    """An empty queue in a SQLite file in ``folder``, or in the database ``url``."""
    if not url and not (folder / "reviews.db").exists():
        (folder / "reviews.db").write_bytes(_empty())
        (folder / "reviews.db").chmod(0o600)
    database = ReviewDatabase(checked_url(url or f"sqlite:///{folder / 'reviews.db'}"))
    database.upgrade()
    return ReviewQueue(database)


@functools.cache
def _empty() -> bytes:
    """The file of an empty queue; making one takes a hundred times as long as copying it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "reviews.db")
        database = ReviewDatabase(checked_url(f"sqlite:///{file}"))
        database.upgrade()
        database.dispose()
        assert {each.name for each in file.parent.iterdir()} == {file.name}
        return file.read_bytes()


def console_of(
    queue: ReviewQueue | None, *, access: Access | None = None, recent: Recent | None = None
) -> ASGIApp:
    """A console with that queue."""
    policy = PolicyHolder(compile_policy("hallucination: {threshold: 0.5}\n", file="p.yaml"))
    signals, recent = Metrics(), recent or Recent()
    return desk_app(
        WebParts(
            policy=policy,
            pipeline=pipeline_for(policy, engine_of({None: FixedDetector(scored(0.3))}), signals, recent),
            signals=signals,
            recent=recent,
            readiness=Readiness(models=["m1"], warm=True),
            access=access,
            reviews=queue,
        )
    )
