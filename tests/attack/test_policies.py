"""Edits of the policy of a running server, good and bad: it lives, scores as before, and says what it thinks of the file."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.gateway import Target, attacks, says
from tests.attack.texts import TRUE

pytestmark = pytest.mark.envoy

_GOOD = """\
hallucination: {{enabled: true, threshold: {threshold}, streaming: buffer, on_unchecked: annotate}}  # {number}
signals:
  keywords: [{{name: word, terms: [pharmacy, "dose?"]}}]
  domains: [{{name: shop, headers: {{x-domain: [shop]}}, keywords: [refund]}}]
models: [{{name: other, base_url: "http://127.0.0.1:1/v1", price: {{input: 1, output: 2}}}}]
decisions:
  - name: strict
    priority: 10
    rules: {{operator: AND, conditions: [{{type: keyword, name: word}}, {{operator: NOT, conditions: [{{type: domain, name: shop}}]}}]}}
    plugins: [{{type: hallucination, configuration: {{threshold: 0.5}}}}]
"""
# What YAML makes of a value by its mark, wrong for most values.
_MARKED = st.builds(
    "{} {}".format,
    st.sampled_from(
        [
            "!!int",
            "!!float",
            "!!bool",
            "!!timestamp",
            "!!binary",
            "!!null",
            "!!set",
            "!!omap",
            "!!python/name:os.system",
            "!x",
        ]
    ),
    st.sampled_from(["''", "x", "'-'", "1", "[]", "{}", "2001-99-99", ".inf", "0x"]),
)
_ODD = st.sampled_from(
    [*"{}[],:#&*!|>%@`'\"-?~\n\t\0\ufeff\ud7ff", " ", "- ", "? ", ": ", "!!int ''", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set", "!!omap",
     "!!python/object/apply:os.system [x]", "!!null x", "&a [*a]", "&a {a: *a}", "*b", "<<: 1", "<<: [*a, *a]", "---\n", "...\n", "%YAML 9.9\n", "0x", "0o9", "1:60:60",
     ".inf", ".nan", "-1", "1e400", "1" * 400, "9" * 5000, "2001-13-45", "true", "null", "[" * 300, "{a: " * 300, "- " * 500, "(" * 400, "(a|b)*" * 50,
     "\\u0000", "\U0001f9ea", "a" * 5000, "name: name: name", "enabled: yes please", "threshold: {cost_ratio: 0, prior: 0}", "mode: premium", "agentic"]
)  # fmt: skip


_TOKENS = _MARKED | _ODD
_VALUE = re.compile(r": ([^{},\[\]\n]+)")


@st.composite
def _edits(draw: st.DrawFn) -> bytes:
    """The good policy after somebody's keyboard went mad."""
    text = _GOOD.format(threshold=0.31, number="edited")
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 30)))
        match draw(st.integers(0, 6)):
            case 4 | 5 | 6:  # a value is another one
                start, end = draw(
                    st.sampled_from([found.span(1) for found in _VALUE.finditer(text)] or [(at, end)])
                )
                text = text[:start] + draw(_TOKENS) + text[end:]
            case 0:
                text = text[:at] + draw(_TOKENS) + text[at:]
            case 1:
                text = text[:at] + draw(_TOKENS) + text[end:]
            case 2:
                text = text[:at] + text[end:]
            case 3:
                text = text[:end] + text[at:end] * draw(st.integers(1, 5)) + text[end:]
    data = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"])), "replace")
    return draw(st.sampled_from([data, data, data[: len(data) // 2], data + b"\xff"]))


_numbers = itertools.count()


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _reloads(target: Target) -> dict[str, float]:
    text = httpx.get(f"{target.stack.console_url}/metrics", timeout=60).text
    lines = [line for line in text.splitlines() if line.startswith("truthlens_policy_reloads_total{")]
    return {line.partition('result="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def _put(target: Target, data: bytes) -> dict[str, float]:
    """Put a policy in the place of the old one, whole; return how many reloads of each result that led to."""
    before = _reloads(target)
    new = target.stack.policy.with_suffix(".new")
    new.write_bytes(data)
    new.replace(target.stack.policy)
    _until(lambda: _reloads(target) != before, f"no reload was counted after {data!r}")
    return {name: count - before.get(name, 0.0) for name, count in _reloads(target).items()}


def _told(target: Target) -> str | None:
    """What the process says of its policy."""
    error: str | None = httpx.get(f"{target.stack.console_url}/readyz", timeout=60).json()["policy"][
        "last_error"
    ]
    return error


def _good(target: Target, threshold: float) -> None:
    _put(target, _GOOD.format(threshold=threshold, number=next(_numbers)).encode())
    flagged = "true" if threshold == 0.0 else "false"
    _until(lambda: says(target.ask(TRUE)).get("detected") == flagged, "the good policy was not taken over")
    assert _told(target) is None


@attacks(ci=15, nightly=300)
@given(data=_edits())
def test_no_edit_ends_the_process_or_switches_detection_off(edited: Target, data: bytes) -> None:
    """A bad one leaves the plan as it was and is told; whatever it was, the next good one counts."""
    _good(edited, 0.0)
    results = _put(edited, data)
    assert edited.stack.sidecar is not None
    assert edited.stack.sidecar.poll() is None, f"the process ended after {data!r}"
    told, failed = _told(edited), results.get("failed", 0) > 0
    assert (told is not None) == failed, f"{told} after {results} of {data!r}"
    if failed:
        # Every answer is flagged at a threshold of nothing: the plan is the old one.
        assert says(edited.ask(TRUE)).get("detected") == "true", data
    _good(edited, 1.0)


def test_there_is_no_traceback_in_the_log(edited: Target) -> None:
    """A bad file is no surprise."""
    assert "Traceback" not in (edited.stack.folder / "sidecar.log").read_text()
