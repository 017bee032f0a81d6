"""Take the claims of an answer that are put to the model, each with the passages that it cites. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.records.exchange import Answer, Exchange
from truthlens.detection.citation_sources import Sources
from truthlens.detection.detectors.budget.options import Method, Options
from truthlens.detection.detectors.citations.report import Options as CitationOptions
from truthlens.detection.detectors.citations.report import report_on, without_citations
from truthlens.text.citations import find_citations
from truthlens.text.spans import trimmed


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence of the answer: characters ``start`` to ``end``, its text without citations, and the passages that it cites.

    ``passages`` are indices into the exchange's, empty where it cites none that exists.
    """

    start: int
    end: int
    text: str
    passages: tuple[int, ...] = ()

    @property
    def cited(self) -> bool:
        """Whether it cites a passage."""
        return bool(self.passages)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that are looked at, and the characters of those and of all."""

    taken: tuple[CitedClaim, ...]
    total_chars: int
    left_out: int


def take_claims(exchange: Exchange, answer: Answer, options: Options) -> Claims:
    """Return the first claims that are long enough.

    The source takes every sentence; the other methods leave out those that claim nothing, such as greetings and questions.
    """
    sources = Sources(exchange)
    report = report_on(answer.text, sources, CitationOptions())
    cited = find_citations(answer.text, sources.labels)
    read = without_citations(answer.text, cited)
    found: list[CitedClaim] = []
    for sentence in report.sentences:
        if not (sentence.factual or options.method is Method.SEED):
            continue
        start, end = trimmed(answer.text, sentence.start, sentence.end)
        text = read.text[read.place(start) : read.place(end)].strip()
        if len(text) >= options.claim_chars:
            found.append(CitedClaim(start, end, text, sentence.passages))
    return Claims(
        tuple(found[: options.max_claims]),
        sum(len(each.text) for each in found),
        max(0, len(found) - options.max_claims),
    )


def citing(claim: CitedClaim, exchange: Exchange) -> list[str]:
    """Return the ids of the passages that a claim cites; one without an id is named by its number."""
    return list(dict.fromkeys(exchange.passages[place].id or str(place + 1) for place in claim.passages))
