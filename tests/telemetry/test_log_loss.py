"""The log of a process whose disk is full."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
import structlog

from truthlens.telemetry import logs
from truthlens.telemetry.metrics import Metrics

_LOST = "truthlens_log_lines_lost_total"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_line_that_cannot_be_written_is_counted_and_costs_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every registry of metrics of the process tells of it. Closing the file fails as well."""
    registry = Metrics().registry
    before = registry.get_sample_value(_LOST)
    assert before is not None
    with contextlib.suppress(OSError), Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        logs.configure()
        monkeypatch.undo()
        for event in ("one", "two"):
            structlog.get_logger().info(event)
    assert registry.get_sample_value(_LOST) == before + 2


def test_what_can_be_written_is(capsys: pytest.CaptureFixture[str]) -> None:
    before = Metrics().registry.get_sample_value(_LOST)
    logs.configure()
    structlog.get_logger().info("one")
    assert '"event": "one"' in capsys.readouterr().err
    assert Metrics().registry.get_sample_value(_LOST) == before
