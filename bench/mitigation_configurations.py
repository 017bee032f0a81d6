"""What is compared: modes, consensus mechanisms, thresholds, and how good the scripted models are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bench.mitigation_data import Case
from bench.mitigation_editor import Habits
from bench.mitigation_panel import Panel
from truthlens.core.calls import ModelSpec
from truthlens.core.records import Consensus, Mode, Plan, PremiumSettings, StandardSettings

JUDGE = "judge"
SHIPPED_THRESHOLDS = (0.15, 0.25, 0.4)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run every exchange.

    ``always`` asks the verification models about every exchange, side by side with detection; otherwise they are
    asked once an answer was flagged, and unflagged answers pass.
    """

    name: str
    mode: Mode
    threshold: float
    consensus: Consensus | None = None
    judge: bool = False
    always: bool = False
    self_check: bool = False
    habits: Habits = field(default_factory=Habits)
    panel: Panel = field(default_factory=Panel)
    shown: bool = True

    def plan(self, case: Case) -> Plan:
        """The plan for one exchange: the two models after the first one verify."""
        return Plan(
            decision="bench",
            mode=self.mode,
            threshold=self.threshold,
            standard=StandardSettings(self_check=self.self_check),
            premium=PremiumSettings(
                verification_models=(case.other(1).model, case.other(2).model),
                judge_model=JUDGE if self.judge else None,
                consensus=self.consensus,
            ),
        )


def models_of(case: Case) -> dict[str, ModelSpec]:
    """All models of an exchange, equally reliable."""
    return {name: ModelSpec(name) for name in (*(given.model for given in case.prompt.answers), JUDGE)}


def configurations(recommended: float) -> list[Configuration]:
    """All that are compared; names tell what differs from the defaults.

    Args:
        recommended: the model's own threshold.
    """
    light = Configuration("lightweight", Mode.LIGHTWEIGHT, recommended)
    standard = Configuration("standard", Mode.STANDARD, recommended)
    found = [light, standard, *_at(light), *_at(standard)]
    for mends in (0.5, 0.8, 0.95):
        for errs in (0.0, 0.1, 0.3):
            habits = Habits(mends=mends, errs=errs)
            if habits != standard.habits:
                found.append(replace(standard, name=f"standard p={mends:g} e={errs:g}", habits=habits))
    found.append(replace(standard, name="standard discerning=0.5", habits=Habits(discerns=0.5)))
    found.append(replace(standard, name="standard+self-check", self_check=True))
    for consensus in Consensus:
        judged = consensus in (Consensus.JUDGE, Consensus.DEBATE)
        one = Configuration(
            f"premium {consensus}", Mode.PREMIUM, recommended, consensus=consensus, judge=judged, always=True
        )
        found += [one, replace(one, name=f"{one.name}, flagged only", always=False)]
        if consensus is Consensus.JUDGE:
            for q in (0.6, 0.95):
                found.append(replace(one, name=f"{one.name} q={q:g}", panel=replace(one.panel, judges=q)))
        if consensus in (Consensus.JUDGE, Consensus.REPLACEMENT):
            found += _at(one)
        if consensus is Consensus.REPLACEMENT:
            found.append(replace(one, name=f"{one.name}+judge", judge=True))
    return found


def _at(one: Configuration) -> Sequence[Configuration]:
    return [replace(one, name=f"{one.name} @{limit:g}", threshold=limit) for limit in SHIPPED_THRESHOLDS]
