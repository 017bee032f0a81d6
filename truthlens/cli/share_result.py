"""What ``calibrate --flag-share`` found, in words and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from truthlens.policy.plans.threshold_record import FlagShareGoal, Measured, RowCounts, ThresholdRecord
from truthlens.training.calibrate.flag_share import ShareChoice


@dataclass(frozen=True, slots=True)
class ShareResult:
    """The threshold for a share, and the shares that others would flag.

    ``limits`` and ``shares`` are thresholds and shares of the checked answers by name; ``unscored`` counts the
    answers that could not be checked by their reason.
    """

    asked: float
    choice: ShareChoice
    unscored: Mapping[str, int]
    limits: Mapping[str, float]
    shares: Mapping[str, float]

    @property
    def threshold(self) -> float:
        """The threshold."""
        return self.choice.threshold

    @property
    def goal(self) -> FlagShareGoal:
        """What it is for."""
        return FlagShareGoal(flag_share=self.asked)

    @property
    def measured(self) -> Measured:
        """What it does to the answers."""
        return Measured(flagged=self.choice.share)

    @property
    def counts(self) -> RowCounts:
        """How many answers there were."""
        return RowCounts(unlabelled=self.choice.checked, unscored=sum(self.unscored.values()))

    def as_object(self, record: ThresholdRecord) -> dict[str, Any]:
        """Return the data of ``--json``."""
        return {
            **record.model_dump(mode="json"),
            "flagged_95": [round(self.choice.low, 4), round(self.choice.high, 4)],
            "compared": {
                name: {"threshold": limit, "flagged": self.shares[name]}
                for name, limit in self.limits.items()
            },
            "unscored": dict(self.unscored),
        }

    def show(self, record: ThresholdRecord, out: Console) -> None:
        """Print what was found."""
        choice, made = self.choice, record.scored_with
        out.print(f"model      {made.model}, aggregation {made.aggregation}")
        out.print(f"answers    {choice.checked} checked, without labels")
        if self.unscored:
            reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.unscored.items()))
            out.print(f"unchecked  {sum(self.unscored.values())} ({reasons}); they do not count")
        out.print(f"threshold  {choice.threshold}, for a share of {self.asked:g}")
        out.print(
            f"flagged    {choice.share:.4f} of the checked answers ({choice.flagged} of {choice.checked})"
        )
        out.print(
            f"expected   {choice.low:.3f} to {choice.high:.3f} of further answers of the same traffic (95 %)"
        )
        out.print(
            "           which of them are wrong is not known: this sets how many are flagged, not how well"
        )
        table = Table()
        for column in ("", "threshold", "flagged"):
            table.add_column(column, justify="right" if column else "left")
        for name, limit in sorted(self.limits.items(), key=lambda item: item[1]):
            shown = name if name in ("chosen", "the plan's now") else ""
            table.add_row(shown, f"{limit:.4f}", f"{self.shares[name]:.4f}")
        out.print(table)
