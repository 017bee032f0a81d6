"""Define what is compared: modes, consensus mechanisms, thresholds, and the scripted models' quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.mitigation.data import Case
from bench.mitigation.simulation.editor import Habits
from bench.mitigation.simulation.panel import Panel
from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import Consensus, PremiumSettings, StandardSettings

JUDGE = "judge"
SHIPPED_THRESHOLDS = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run every exchange.

    ``always`` asks the verification models about every exchange, side by side with detection; otherwise they
    are asked once an answer was flagged, and unflagged answers pass. ``converges`` is the plan's convergence
    threshold. ``shown`` puts it into the plot.
    """

    name: str
    mode: Mode
    threshold: float
    consensus: Consensus | None = None
    judge: bool = False
    always: bool = False
    self_check: bool = False
    converges: float | None = None
    habits: Habits = field(default_factory=Habits)
    panel: Panel = field(default_factory=Panel)
    shown: bool = True

    def plan(self, case: Case) -> Plan:
        """Return the plan for one exchange: the two models after the first one verify."""
        return Plan(
            decision="bench",
            mode=self.mode,
            threshold=self.threshold,
            standard=StandardSettings(self_check=self.self_check, convergence_threshold=self.converges),
            premium=PremiumSettings(
                verification_models=(case.other(1).model, case.other(2).model),
                judge_model=JUDGE if self.judge else None,
                consensus=self.consensus,
            ),
        )


def models_of(case: Case) -> dict[str, ModelSpec]:
    """Return all models of an exchange, equally reliable."""
    return {name: ModelSpec(name) for name in (*(given.model for given in case.prompt.answers), JUDGE)}


def configurations(recommended: float) -> list[Configuration]:
    """Return all configurations that are compared; names tell what differs from the defaults.

    Args:
        recommended: the model's own threshold.
    """
    light = Configuration("lightweight", Mode.LIGHTWEIGHT, recommended)
    standard = Configuration("standard", Mode.STANDARD, recommended)
    found = [light, *_at(light, shown=False), standard, *_at(standard)]
    for mends in (0.5, 0.8, 0.95):
        for errs in (0.0, 0.1, 0.3):
            habits = Habits(mends=mends, errs=errs)
            if habits != standard.habits:
                name = f"standard p={mends:g} e={errs:g}"
                found.append(replace(standard, name=name, habits=habits, shown=False))
    found += [
        replace(standard, name="standard discerning=0.5", habits=Habits(discerns=0.5), shown=False),
        replace(standard, name="standard converging below 0.15", converges=0.15, shown=False),
        replace(standard, name="standard+self-check", self_check=True),
    ]
    for consensus in Consensus:
        judged = consensus in (Consensus.JUDGE, Consensus.DEBATE)
        one = Configuration(
            f"premium {consensus}", Mode.PREMIUM, recommended, consensus=consensus, judge=judged, always=True
        )
        found += [one, replace(one, name=f"{one.name}, flagged only", always=False)]
        if consensus is Consensus.JUDGE:
            found += [
                replace(one, name=f"{one.name} q={q:g}", panel=Panel(judges=q), shown=False)
                for q in (0.6, 0.95)
            ]
            found += _at(one)
        if consensus is Consensus.REPLACEMENT:
            found += [*_at(one, shown=False), replace(one, name=f"{one.name}+judge", judge=True)]
    return found


def _at(one: Configuration, *, shown: bool = True) -> Sequence[Configuration]:
    return [
        replace(one, name=f"{one.name} @{limit:g}", threshold=limit, shown=shown)
        for limit in SHIPPED_THRESHOLDS
    ]
