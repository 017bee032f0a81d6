"""The options that say which plan a command works on, and how the models are asked that its detectors ask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import typer

from truthlens.cli import options
from truthlens.cli.plan_target import Target, find_target, offline_settings
from truthlens.llm.offline import OfflineModels


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of ``detect``, ``eval`` and ``calibrate``; its fields are what Typer reads."""

    config: options.Config = None
    decision: options.Decision = "default"
    model: options.ModelName = None
    models: options.Models = None
    threads: options.Threads = 1
    upstream: options.Upstream = None
    replies: options.Replies = None
    recorded: options.Recorded = False

    def find(
        self, *, threshold: float | None = None, use_records: bool = True, use_fusion: bool = True
    ) -> Target:
        """Return the plan that is meant; see ``find_target``."""
        settings = offline_settings(self.config, self.models, threads=self.threads)
        return find_target(
            settings,
            self.decision,
            model=self.model,
            threshold=threshold,
            use_records=use_records,
            use_fusion=use_fusion,
        )

    def asked(self, target: Target) -> OfflineModels | None:
        """Return what asks the models of a plan's detectors; ``None`` where none of them asks any.

        Raises:
            RecordingError: the file of replies cannot be used.
        """
        if self.recorded and self.replies is None:
            raise typer.BadParameter("--recorded needs --replies FILE")
        if not target.plan.asking:
            return None
        return OfflineModels(
            target.policy.models or {},
            environ=os.environ,
            upstream=self.upstream,
            replies=self.replies,
            network=not self.recorded,
        )


takes_plan = options.in_place_of("plan", PlanOptions)
"""Gives a command the options of ``PlanOptions``."""


def calls_line(summary: Mapping[str, object]) -> str:
    """Return one line on the calls that were made."""
    cost = summary["cost_usd_per_1000_answers"]
    money = "models without a price" if cost is None else f"{cost} USD for 1,000 answers"
    return (
        f"models: {summary['calls']} calls ({summary['calls_per_1000_answers']} for 1,000 answers; recorded replies count),"
        f" {summary['prompt_tokens']} + {summary['completion_tokens']} tokens, {money}"
    )
