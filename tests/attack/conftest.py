"""Deployments that the attacks share, each a real Envoy, a sidecar and a backend that decodes, started once a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from tests.attack.backend import DecodingBackend
from tests.attack.gateway import Target
from tests.attack.texts import WORD
from tests.integration.support.backend import Backend
from tests.integration.support.stack import Stack

# One detector: what it finds alone counts beside others. Without a plan of its own an answer meets all that are shipped.
_ALL = "detectors: [encoder], threshold: 0.3, details: true"
_GATE = f"{_ALL}, streaming: gate"
_PLANS = {
    "annotate": f"{_ALL}, streaming: buffer",
    "block": f"{_ALL}, streaming: buffer, on_unchecked: block",
    "withhold": f"{_GATE}, on_flagged: withhold",
    "stop": f"{_GATE}, on_flagged: stop",
    "stop-block": f"{_GATE}, on_flagged: stop, on_unchecked: block",
}
# By default an answer that cannot be checked passes; a question with the word is checked or refused.
_BY_WORD = f"""\
hallucination: {{enabled: true, threshold: 0.6, on_unchecked: annotate}}
signals:
  keywords: [{{name: word, terms: [{WORD}]}}]
decisions:
  - name: strict
    priority: 10
    rules: {{type: keyword, name: word}}
    plugins: [{{type: hallucination, configuration: {{on_unchecked: block, threshold: 0.5}}}}]
"""
_HOLDS_BACK = "hallucination: {threshold: 0.3, on_unchecked: block, streaming: buffer, timeout_s: 2}\n"


def _by_header() -> str:
    domains = ", ".join(f"{{name: {name}, headers: {{x-domain: [{name}]}}}}" for name in _PLANS)
    decisions = ", ".join(
        f"{{name: {name}, priority: {90 - place}, rules: {{type: domain, name: {name}}}, "
        f"plugins: [{{type: hallucination, configuration: {{{keys}}}}}]}}"
        for place, (name, keys) in enumerate(_PLANS.items())
    )
    return (
        "trusted_headers: [x-domain]\nhallucination: {enabled: true, default_mode: lightweight}\n"
        f"signals:\n  domains: [{domains}]\ndecisions: [{decisions}]\n"
    )


def _deployed(factory: pytest.TempPathFactory, name: str, policy: str) -> Iterator[Target]:
    backend = DecodingBackend()
    stack = Stack(factory.mktemp(name), policy, backend=cast("Backend", backend))
    try:
        stack.start()
        with Target(stack, backend).opened() as target:
            yield target
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def by_header(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A plan for every value of ``x-domain``, which is trusted."""
    yield from _deployed(tmp_path_factory, "by-header", _by_header())


@pytest.fixture(scope="session")
def by_word(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A question with one word in it is under the stricter of two plans."""
    yield from _deployed(tmp_path_factory, "by-word", _BY_WORD)


@pytest.fixture(scope="session")
def holds_back(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One plan, which lets nothing pass unchecked; nobody but the sizes use it."""
    yield from _deployed(tmp_path_factory, "holds-back", _HOLDS_BACK)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One whose policy is written again and again."""
    yield from _deployed(tmp_path_factory, "edited", _HOLDS_BACK)
