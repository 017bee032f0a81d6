"""The record of one ``truthlens calibrate --fusion``, and the check of plans against it; none is fitted here.

It says what findings are worth in a verdict, and what measured it. A policy's ``fusion`` names such a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.plan import Plan
from truthlens.policy.plans import records
from truthlens.yamlfile.diagnostics import KeyPath

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class FusionWeights(records.Frozen):
    """See ``core.records.coefficients.Coefficients``; by detector."""

    intercept: float = Field(allow_inf_nan=False)
    opinions: dict[str, Weight]
    accusations: dict[str, Weight] = Field(default_factory=dict)
    vouchers: Weight = 0.0
    whole: dict[str, Weight] = Field(default_factory=dict)
    most: dict[str, Weight] = Field(default_factory=dict)

    @property
    def coefficients(self) -> Coefficients:
        """The same, as the fusion takes them."""
        return Coefficients(**self.model_dump())


class FusionFigures(records.Frozen):
    """How weights tell claims that they were not fitted on.

    ``found`` is the share of the unsupported ones that is found where 5 % of the supported ones are flagged.
    """

    auroc: float
    log_loss: float
    found: float


class FusionRecord(records.Record):
    """Weights and where they come from; ``before`` are the figures of the shipped ones.

    ``scored_with`` names what gave the findings. ``date`` is the UTC day, ``truthlens`` the version of the tool.
    """

    called = "record of weights"
    format: Literal[1] = 1
    kind: Literal["fusion"] = "fusion"
    weights: FusionWeights
    before: FusionFigures
    after: FusionFigures
    claims: int = Field(ge=0)
    unsupported: int = Field(ge=0)
    answers: int = Field(ge=0)
    scored_with: records.ScoredWith
    data: records.DataFile
    date: str
    truthlens: str


@dataclass(frozen=True, slots=True)
class Fusions(records.Lookup):
    """The records of weights of one policy file."""

    def record(self, name: str, path: KeyPath, *, decision: str) -> FusionRecord | None:
        """Return the record that ``fusion`` at ``path`` names; ``None``, with a report, if it cannot be used."""
        remedy = self._remedy(decision)
        content = self.content(name, path, what="the weights of the verdict", remedy=remedy)
        if content is None:
            return None
        try:
            return FusionRecord.read(content)
        except records.RecordError as error:
            self.report.error(path, f"{name!r} is no record of weights of the verdict: {error}", remedy)
            return None

    def check(self, record: FusionRecord, plan: Plan, path: KeyPath) -> None:
        """Report where the findings of ``plan`` come from something other than what ``record`` was fitted with."""
        made, own = record.scored_with, []
        names = {spec.name for spec in plan.detectors}
        if made.detectors.keys() != names:
            own.append(
                f"for the detectors {', '.join(sorted(made.detectors))}, and the plan has {', '.join(sorted(names))}"
            )
        found = records.differences(made, plan, own)
        if self.identify is not None:
            model = self.model(plan, path, so="the weights of its verdict")
            if model is None:
                return
            if model.sha256 != made.model_sha256:
                found.append(
                    f"for the model {made.model!r}, and the plan's is {model.name!r}, or was changed"
                )
        if found:
            message = f"the weights of the verdict were fitted {'; '.join(found)}"
            self.report.error(path, message, f"{self._remedy(plan.decision)}, or write fusion: default here")

    def _remedy(self, decision: str) -> str:
        return f"run: truthlens calibrate --fusion --config {self.report.file} --decision {decision} --write"
