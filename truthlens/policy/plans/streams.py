"""The settings of streamed answers: inheritance, and which of them cannot work together."""

from __future__ import annotations

from dataclasses import replace

from truthlens.core.records.enums import Mode, OnFlagged, OnUnchecked, Reasoning, Streaming, WarningPosition
from truthlens.core.records.plan import Plan, StreamSettings
from truthlens.policy.schema import Behaviour
from truthlens.yamlfile.diagnostics import KeyPath, Report

_GATE_ONLY = ("mark_template", "notice_template", "max_hold_s", "max_hold_bytes")


def stream_settings(base: StreamSettings, keys: Behaviour) -> StreamSettings:
    """Return ``base`` with the written ``keys`` over it."""
    section = keys.stream
    written = {} if section is None else section.model_dump(exclude_none=True)
    if keys.on_flagged is not None:
        written["on_flagged"] = keys.on_flagged
    return replace(base, **written)


def check_streams(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    """Report settings of ``plan`` that streams cannot have.

    What cannot work is an error where it is written and where it is inherited into. ``warning_position``
    alone is about whole answers where it is inherited: the warning of a stream that has left comes behind it.
    """
    _check_mode(plan, keys, path, report)
    _check_block(plan, keys, path, report)
    _check_flagged(plan, keys, path, report)
    _check_reasoning(plan, keys, path, report)
    _check_warning(plan, keys, path, report)


def _check_mode(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    written = keys.model_fields_set
    if plan.mode is Mode.LIGHTWEIGHT or plan.streaming is Streaming.BUFFER:
        return
    key = next((key for key in ("streaming", "mode", "default_mode", "enabled") if key in written), None)
    if key is None:
        return
    report.error(
        (*path, key),
        f"mode {plan.mode} changes whole answers and cannot work with streaming {plan.streaming}, "
        "where text leaves before it is scored",
        "write streaming: buffer, or mode lightweight",
    )


def _check_block(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    written = keys.model_fields_set
    key = next((key for key in ("on_unchecked", "streaming", "enabled") if key in written), None)
    if plan.streaming is Streaming.OBSERVE and plan.on_unchecked is OnUnchecked.BLOCK and key is not None:
        report.error(
            (*path, key),
            "on_unchecked block cannot work with streaming observe, where text leaves before it is checked",
            "write streaming: gate or buffer, or on_unchecked: annotate",
        )


def _check_flagged(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    enforced = plan.stream.on_flagged is not OnFlagged.MARK
    if keys.on_flagged is None:
        # Observing where withholding was inherited would let through what is to be held back.
        if plan.streaming is Streaming.OBSERVE and enforced and "streaming" in keys.model_fields_set:
            report.error(
                (*path, "streaming"),
                f"streaming observe cannot {plan.stream.on_flagged} a flagged sentence, as on_flagged asks: text leaves "
                "before it is scored",
                "write streaming: gate, or on_flagged: mark",
            )
        return
    if plan.streaming is Streaming.OBSERVE and enforced:
        report.error(
            (*path, "on_flagged"),
            f"on_flagged {keys.on_flagged} cannot work with streaming observe, where text leaves before it is scored",
            "write streaming: gate, or on_flagged: mark",
        )
    elif plan.streaming is Streaming.BUFFER:
        report.warn(
            (*path, "on_flagged"),
            "on_flagged has no effect with streaming buffer, where the mode acts on the whole answer",
            "write streaming: gate, or remove it",
        )


def _check_reasoning(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    written = keys.model_fields_set
    key = next((key for key in ("reasoning", "streaming", "enabled") if key in written), None)
    if plan.streaming is Streaming.GATE and plan.reasoning is Reasoning.SCORE and key is not None:
        report.error(
            (*path, key),
            "reasoning score cannot work with streaming gate, where reasoning leaves before it is scored",
            "write streaming: buffer or observe, or reasoning: pass",
        )


def _check_warning(plan: Plan, keys: Behaviour, path: KeyPath, report: Report) -> None:
    if plan.streaming is Streaming.BUFFER:
        return
    if keys.warning_position is WarningPosition.BEFORE:
        report.error(
            (*path, "warning_position"),
            f"warning_position before cannot work with streaming {plan.streaming}, where the answer has left before "
            "the warning is known",
            "write warning_position: after, or streaming: buffer",
        )
    section = keys.stream
    if section is None or plan.streaming is Streaming.GATE:
        return
    for name in _GATE_ONLY:
        if getattr(section, name) is not None:
            message = f"{name} has no effect with streaming {plan.streaming}, which holds no text"
            report.warn((*path, "stream", name), message, "write streaming: gate, or remove it")
