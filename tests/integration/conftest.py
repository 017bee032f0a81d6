"""One deployment for the tests of many modules; the policy has a decision for everything that they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.gateway import FAULTS, Gateway, policy
from tests.integration.support.streams.stage import SteppedBackend, envoy_stats, metric, until

POLICY = """\
trusted_headers: [x-domain, x-truthlens-details]
hallucination:
  enabled: true
  default_mode: lightweight
  detectors: [encoder]
signals:
  domains:
    - {name: support, headers: {x-domain: [support]}}
    - {name: detailed, headers: {x-domain: [detailed]}}
    - {name: strict, headers: {x-domain: [strict]}}
    - {name: after, headers: {x-domain: [after]}}
    - {name: unchecked, headers: {x-domain: [unchecked]}}
    - {name: flag-all, headers: {x-domain: [flag-all]}}
    - {name: program, headers: {x-domain: [program]}}
    - {name: shadow, headers: {x-domain: [shadow]}}
decisions:
  - name: switched-off
    priority: 90
    rules: {operator: OR, conditions: [{type: domain, name: unchecked}]}
    plugins: [{type: hallucination, configuration: {enabled: false}}]
  - name: strict
    priority: 80
    rules: {operator: OR, conditions: [{type: domain, name: strict}]}
    plugins: [{type: hallucination, configuration: {on_unchecked: block}}]
  - name: detailed
    priority: 70
    rules: {operator: OR, conditions: [{type: domain, name: detailed}]}
    plugins: [{type: hallucination, configuration: {details: true}}]
  - name: after
    priority: 60
    rules: {operator: OR, conditions: [{type: domain, name: after}]}
    plugins: [{type: hallucination, configuration: {threshold: 0.0, warning_position: after, warning_template: "Check this."}}]
  - name: flag-all
    priority: 50
    rules: {operator: OR, conditions: [{type: domain, name: flag-all}]}
    plugins: [{type: hallucination, configuration: {threshold: 0.0}}]
  - name: program
    priority: 45
    rules: {operator: OR, conditions: [{type: domain, name: program}]}
    plugins:
      - type: hallucination
        configuration: {threshold: 0.0, details: true, on_unchecked: block, evidence: {intermediate_calls: all}}
  - name: in-shadow
    priority: 42
    rules: {operator: OR, conditions: [{type: domain, name: shadow}]}
    plugins:
      - type: hallucination
        configuration: {shadow: true, threshold: 0.0, default_mode: standard, on_unchecked: block}
  - name: chosen-model
    priority: 40
    rules: {operator: OR, conditions: [{type: domain, name: support}]}
    modelRefs: [{model: house-model}]
    plugins: [{type: hallucination, configuration: {threshold: 0.99}}]
"""


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Backend, sidecar and Envoy, for all modules of a worker; one detector, for what they test is the way to it and back."""
    stack = Stack(tmp_path_factory.mktemp("stack"), POLICY, patient=True)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def stack(deployment: Stack) -> Stack:
    """The deployment with a backend that has been reset."""
    deployment.backend.received.clear()
    deployment.backend.reply = lambda _request: json_reply(completion("Hello."))
    return deployment


@pytest.fixture
def fresh_stack(tmp_path: Path) -> Iterator[Stack]:
    """A deployment of its own, for tests that break it; not started."""
    stack = Stack(tmp_path, POLICY)
    yield stack
    stack.stop()


@pytest.fixture(scope="session")
def stream_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment with a plan for every way of treating streams."""
    stack = Stack(tmp_path_factory.mktemp("streams"), policy(), backend=SteppedBackend(), patient=True)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def gateway(stream_deployment: Stack) -> Iterator[Gateway]:
    """That deployment; whatever a test does, nothing stays behind, and Envoy finds every message in order."""
    log = stream_deployment.folder / "sidecar.log"
    before, logged = envoy_stats(stream_deployment), len(log.read_text())
    yield Gateway(stream_deployment)
    until(lambda: metric(stream_deployment, "truthlens_streams") == 0, "no stream left")
    until(lambda: metric(stream_deployment, "truthlens_held_bytes") == 0, "no held bytes")
    stats = envoy_stats(stream_deployment)
    assert {fault: stats[fault] - before[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0)
    told = log.read_text()[logged:]
    assert not [word for word in ("Traceback", "failed", "aborted", "never retrieved") if word in told]
