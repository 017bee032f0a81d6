"""The settings of the cascade: inheritance, and which of them cannot work together."""

from __future__ import annotations

from dataclasses import replace

from truthlens.core.records.enums import AskWhen, Streaming
from truthlens.core.records.plan import CascadeSettings, Plan
from truthlens.policy.schema import Behaviour
from truthlens.yamlfile.diagnostics import KeyPath, Report


def cascade_settings(
    base: CascadeSettings, keys: Behaviour, path: KeyPath, report: Report
) -> CascadeSettings:
    """Return ``base`` with the written ``keys`` over it."""
    section = keys.cascade
    if section is None:
        return base
    written = section.model_dump(exclude_none=True)
    if section.band is not None:
        low, high = section.band
        if low > high:
            report.error(
                (*path, "cascade", "band"),
                f"the band ends at {high:g}, below its begin at {low:g}",
                "write the lower score first",
            )
        written["band"] = (low, high)
    return replace(base, **written)


def check_cascade(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    """Report what of the cascade cannot work, or has no effect."""
    if not plan.enabled:
        return
    _check_gate(plan, keys, path, report)
    section = keys.cascade
    if section is None:
        return
    if not plan.asking:
        report.warn(
            (*path, "cascade"),
            "no detector of this decision asks models, so the cascade has one stage",
            "list a detector that does, such as judge, or remove it",
        )
    elif plan.cascade.when is AskWhen.ALWAYS and (section.band is not None or section.sample):
        report.warn(
            (*path, "cascade"),
            "with when: always every answer is asked about, and band and sample have no effect",
            "remove them, or write when: band",
        )


def _check_gate(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    """Report a gated stream whose sentences nothing could score: models are asked about whole answers."""
    written = keys.model_fields_set
    key = next((key for key in ("detectors", "streaming", "enabled") if key in written), None)
    if (
        key is not None
        and plan.streaming is Streaming.GATE
        and len(plan.asking) == len(plan.detectors)
        and plan.asking
    ):
        report.error(
            (*path, key),
            "streaming gate scores sentence by sentence, and models are asked about whole answers only: nothing would be "
            "scored before it leaves",
            "list a detector that asks no model as well, such as encoder, or write streaming: buffer",
        )
