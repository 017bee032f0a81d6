"""Read the figures of the detector ``citations`` from verdicts: for the log line of an exchange and for metrics.

Figures and codes alone, no text: the detector's details hold none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from truthlens.core.records.enums import DetectorName
from truthlens.core.records.verdict import DetectorResult, Verdict


@dataclass(frozen=True, slots=True)
class CitationFigures:
    """One check of an answer's citations.

    ``risk`` is 0..1. ``level`` is low, moderate or high, ``""`` where claims were not counted. ``valid`` and ``invalid`` are
    labels, each once; ``uncited`` the long sentences without a citation among ``claims``. ``codes`` say what made the level.
    """

    risk: float
    level: str
    valid: int
    invalid: int
    claims: int
    uncited: int
    codes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return what is logged of the check."""
        return {
            "risk": round(self.risk, 4),
            "invalid": self.invalid,
            "uncited": self.uncited,
            "codes": list(self.codes),
        }


def citation_figures(verdicts: Sequence[Verdict]) -> Iterator[CitationFigures]:
    """Yield the figures of every choice whose citations were checked, in order."""
    for verdict in verdicts:
        for result in verdict.results:
            if result.detector == DetectorName.CITATIONS and result.score is not None:
                yield CitationFigures(
                    risk=result.score,
                    level=str(result.details.get("level", "")),
                    valid=_count(result, "valid_citations"),
                    invalid=_count(result, "invalid_citations"),
                    claims=_count(result, "total_claims"),
                    uncited=_count(result, "uncited_sentences"),
                    codes=tuple(str(result.details.get("codes", "")).split()),
                )


def _count(result: DetectorResult, name: str) -> int:
    value = result.details.get(name, 0)
    return int(value) if isinstance(value, int | float) else 0
