"""What is wrong with the page that a browser shows: for assistive technology, on narrow screens, under fingers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"


def axe_faults(page: Any) -> dict[str, list[str]]:
    """Return the serious and critical violations that axe finds, by rule, with up to three elements; opens all details."""
    if not _AXE.exists():
        pytest.skip("needs axe-core: npm ci --prefix tests/browser (what `make setup-test` does)")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_AXE.read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then(found => found.violations)")
    return {
        each["id"]: [node["html"][:200] for node in each["nodes"]][:3]
        for each in found
        if each["impact"] in ("serious", "critical")
    }


def too_wide(page: Any) -> int:
    """Return how wide the page is where it scrolls sideways, in CSS pixels; 0 where it fits."""
    width: int = page.evaluate(
        "document.documentElement.scrollWidth > innerWidth ? document.documentElement.scrollWidth : 0"
    )
    return width


def small_targets(page: Any) -> list[list[Any]]:
    """Return the controls, outside of dialogs, that are less than 44 CSS pixels high, each with its height."""
    small: list[list[Any]] = page.evaluate(
        """() => Array.from(document.querySelectorAll('main section button, main form button, nav a, .tabs a, select, summary, input, textarea'))
            .filter(e => e.checkVisibility() && e.type !== 'hidden' && !e.closest('dialog'))
            .map(e => [e.outerHTML.slice(0, 80), (e.matches('[type=checkbox], [type=radio]') ? e.closest('label') : e).getBoundingClientRect().height])
            .filter(([, height]) => height < 43.5)"""
    )
    return small
