"""How often the page that answers is among the first passages: by words, by vectors, and by both.

    python -m bench.retrieval.recall [--limit N] [--out bench/results]

The answerable questions of ``data/retrieval``. Words: the source `folder` (SQLite's full-text search). Vectors: a Qdrant folder
with the same passages, by the bundled sentence model, which is English. Both: the two as sources of one policy, merged by
reciprocal rank as every search is. Intervals are of 2,000 resamples of the questions; a difference is of the same questions.
Writes recall.json and .md.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from bench.common.script import command, machine, write_result
from bench.retrieval.corpus import FOLDER, CorpusQuestion, Language, QuestionKind, read_corpus
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import RetrievedPassage, SourceSpec
from truthlens.core.registry import source_types
from truthlens.detection.similarity import Similarity
from truthlens.lab.markdown import table
from truthlens.process.model_store import SIMILARITY_MODEL
from truthlens.process.settings import models_folder
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.retrieval.sources.folder.index import reading
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import update_index

K = 5
WAYS: Mapping[str, tuple[str, ...]] = {
    "words": ("words",),
    "vectors": ("vectors",),
    "words and vectors": ("words", "vectors"),
}
_RESAMPLES = 2_000
_COLLECTION = "pages"
_PIECES = "SELECT files.path, files.title, pieces.text FROM pieces JOIN files ON files.id = pieces.file"


@dataclass(frozen=True, slots=True)
class FoundRank:
    """Where the page of a question stands: the place of its first passage from 1 on, ``None`` where none is found."""

    question: CorpusQuestion
    way: str
    rank: int | None

    def within(self, k: int) -> bool:
        """Return whether one of the first ``k`` passages is of the page."""
        return self.rank is not None and self.rank <= k


def fill_collection(folder: Path, index: Path, model: Similarity) -> int:
    """Put the passages of an index into a Qdrant folder, each with its vector; return how many."""
    with reading(index) as connection:
        pieces = connection.execute(_PIECES).fetchall()
    vectors = model.embed([text for _, _, text in pieces])
    client = QdrantClient(path=str(folder))
    try:
        size = VectorParams(size=vectors.shape[1], distance=Distance.COSINE)
        client.create_collection(_COLLECTION, size)
        client.upsert(
            _COLLECTION,
            [
                PointStruct(
                    id=place, vector=vector.tolist(), payload={"text": text, "title": title, "page": path}
                )
                for place, ((path, title, text), vector) in enumerate(zip(pieces, vectors, strict=True))
            ],
        )
    finally:
        client.close()
    return len(pieces)


def rank_of(passages: Sequence[RetrievedPassage], pages: Sequence[str]) -> int | None:
    """Return the place of the first passage of one of ``pages``."""
    places = (place for place, each in enumerate(passages, 1) if each.passage.parent_id in pages)
    return next(places, None)


async def searched(place: Path, limit: int | None) -> tuple[list[FoundRank], int]:
    """Return the ranks of all questions by every way, and how many passages there are."""
    pages, index = FOLDER / "pages", place / "index.db"
    update_index(pages.resolve(), index, FolderOptions(path=str(pages), index=str(index)))
    model = Similarity.load(models_folder() / SIMILARITY_MODEL, threads=1)
    count = fill_collection(place / "vectors", index, model)
    common = {"timeout_s": 60, "cache_ttl_s": 0}
    written: Mapping[str, tuple[str, dict[str, Any]]] = {
        "words": ("folder", {"path": str(pages), "index": str(index)}),
        "vectors": (
            "qdrant",
            {
                "path": str(place / "vectors"),
                "collection": _COLLECTION,
                "title": "title",
                "parent_id": "page",
            },
        ),
    }
    specs = {
        name: SourceSpec(name, kind, source_types()[kind].options.model_validate(common | own))
        for name, (kind, own) in written.items()
    }

    async def embed(texts: Sequence[str]) -> Any:
        return await asyncio.to_thread(model.embed, texts)

    retriever = Retriever(embed=embed, environ={})
    retriever.use(specs, place)
    questions = [each for each in read_corpus().questions if each.kind is QuestionKind.ANSWERABLE][:limit]
    ranks: list[FoundRank] = []
    try:
        for question in questions:
            for way, sources in WAYS.items():
                found = await retriever.search(
                    sources, [question.question], k=K, deadline=Deadline.after(60), asker=Asker()
                )
                if found.failed:
                    raise RuntimeError(f"{way}: a search failed: {found.searches}")
                ranks.append(FoundRank(question, way, rank_of(found.passages, question.page)))
    finally:
        await retriever.aclose()
    return ranks, count


def interval(hits: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of ``hits``, by resampling."""
    drawn = random.Random(1)
    means = sorted(sum(drawn.choices(hits, k=len(hits))) / len(hits) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def figures(ranks: Sequence[FoundRank]) -> dict[str, Any]:
    """Return recall and mean reciprocal rank by way, and what both gain over each alone."""
    by_way = {way: [each for each in ranks if each.way == way] for way in WAYS}
    hits = {way: [float(each.within(K)) for each in own] for way, own in by_way.items()}
    rows: dict[str, Any] = {}
    for way, own in by_way.items():
        inverse = [1 / each.rank if each.within(K) and each.rank else 0.0 for each in own]
        rows[way] = {
            "recall": sum(hits[way]) / len(own),
            "interval": interval(hits[way]),
            "first": sum(each.within(1) for each in own) / len(own),
            "mrr": sum(inverse) / len(own),
        }
    both = "words and vectors"
    gains = {
        way: [after - before for after, before in zip(hits[both], hits[way], strict=True)]
        for way in WAYS
        if way != both
    }
    return {
        "questions": len(by_way[both]),
        "ways": rows,
        "gain_of_both": {
            way: {"mean": sum(each) / len(each), "interval": interval(each)} for way, each in gains.items()
        },
    }


def told(name: str, found: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of one language's figures."""
    rows = []
    for way, each in found["ways"].items():
        low, high = each["interval"]
        gain = found["gain_of_both"].get(way)
        over = "–"
        if gain is not None:
            least, most = gain["interval"]
            over = f"{gain['mean']:+.3f} ({least:+.3f} to {most:+.3f})"
        recall = f"{each['recall']:.3f} ({low:.3f}–{high:.3f})"
        rows.append(
            [
                f"{name} ({found['questions']})",
                way,
                recall,
                f"{each['first']:.3f}",
                f"{each['mrr']:.3f}",
                over,
            ]
        )
    return rows


def main() -> None:
    """Run from the command line."""
    parser = command(__doc__)
    parser.add_argument("--limit", type=int, default=None, help="so many questions alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        ranks, passages = asyncio.run(searched(Path(place), options.limit))
    groups = {"all": ranks}
    for language in Language:
        if own := [each for each in ranks if each.question.language is language]:
            groups[language.value] = own
    result = {name: figures(own) for name, own in groups.items()}
    head = ("questions", "searched by", f"recall@{K} (95 %)", "first", f"MRR@{K}", "both gain over it (95 %)")
    text = table(head, [row for name, found in result.items() for row in told(name, found)]).rstrip()
    write_result(
        options.out, "recall", {"machine": machine(), "k": K, "passages": passages, "groups": result}, text
    )
    print(f"{passages} passages of the pages; k = {K}\n\n{text}")


if __name__ == "__main__":
    main()
