"""Policies behind Envoy configurations: what does not fit, and that the remedies fix it.

Each file in ``envoys`` is checked against ``careful-policy.yaml``, each in ``envoys-of-streams`` against
``streaming-policy.yaml``, and gives exactly the lines of the text file beside it.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.core.records.enums import Mode, OnUnchecked, Streaming
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import MitigationSettings, StreamSettings
from truthlens.envoy.checks.timeouts import clock_diagnostics, read_envoy
from truthlens.envoy.config import EnvoySettings, render
from truthlens.envoy.process import envoy_binary
from truthlens.policy import Policy, Severity, compile_policy, load_policy

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
POLICIES = {"envoys": "careful-policy.yaml", "envoys-of-streams": "streaming-policy.yaml"}
FIXTURES = sorted(file for folder in POLICIES for file in (HERE / folder).glob("*.yaml"))
# Envoy itself refuses these, or needs more than the file to load them.
NOT_FOR_ENVOY = {
    "cluster-by-cds",
    "duration-of-another-unit",
    "empty",
    "list-at-top",
    "not-yaml",
    "routes-by-rds",
}
SHIPPED_ENVOYS = [*sorted((ROOT / "envoy").glob("*.yaml")), ROOT / "deploy" / "compose" / "envoy.yaml"]
SHIPPED_POLICIES = [
    ROOT / "config" / "truthlens.yaml",
    *sorted((ROOT / "config" / "examples").glob("*.yaml")),
    ROOT / "deploy" / "kubernetes" / "policy.yaml",
]
SETTINGS = EnvoySettings(
    listen=Address("127.0.0.1", 10000),
    extproc=[Address("127.0.0.1", 18080)],
    upstream=Upstream("127.0.0.1", 8000, tls=False),
)
SHIPPED = read_envoy(render(SETTINGS), file="envoy.json")
EMPTY = compile_policy("hallucination: {}\n", file="p.yaml")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.stem


def _found(policy: Policy, text: str) -> list[str]:
    return [d.render() for d in clock_diagnostics(policy, read_envoy(text, file="envoy.yaml"))]


def _errors(plan: Plan, envoy: EnvoySettings) -> list[str]:
    policy = replace(EMPTY, default=plan)
    found = clock_diagnostics(policy, read_envoy(render(envoy), file="envoy.yaml"))
    return [d.remedy for d in found if d.severity is Severity.ERROR]


def test_agentic_asks_envoy_for_its_five_minutes() -> None:
    """The shipped configuration has the room; one that has not is told how much it takes."""
    plan = Plan("searches", mode=Mode.AGENTIC)
    assert _errors(plan, SETTINGS) == []
    (remedy,) = _errors(plan, replace(SETTINGS, max_message_timeout_s=60.0))
    assert "max_message_timeout: 302s or more" in remedy


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_configuration_gives_exactly_the_lines_beside_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Place, what stops what, and the value to write, word for word."""
    monkeypatch.chdir(HERE)
    policy = POLICIES[file.parent.name]
    found = clock_diagnostics(
        load_policy(policy),
        read_envoy(file.read_text("utf-8"), file=file.name),
        policy_text=Path(policy).read_text("utf-8"),
    )
    assert [d.render() for d in found] == file.with_suffix(".txt").read_text("utf-8").splitlines()


def test_there_are_fixtures_of_either_kind() -> None:
    """Sound ones too: nothing is said of them."""
    sound = [file.stem for file in FIXTURES if not file.with_suffix(".txt").read_text("utf-8")]
    assert len(FIXTURES) > 60
    assert len(sound) > 15
    assert {file.stem for file in FIXTURES} > NOT_FOR_ENVOY


@pytest.mark.envoy
@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_envoy_would_load_the_configuration(file: Path, tmp_path: Path) -> None:
    """What is checked are mistakes that Envoy itself does not find."""
    text = file.read_text("utf-8")
    path = tmp_path / ("envoy.json" if text.startswith("{") else "envoy.yaml")
    path.write_text(text, "utf-8")
    done = subprocess.run(
        [envoy_binary(), "--mode", "validate", "-c", str(path), "--log-level", "error"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is (file.stem not in NOT_FOR_ENVOY), done.stdout + done.stderr


@pytest.mark.parametrize("envoy", SHIPPED_ENVOYS, ids=_name)
@pytest.mark.parametrize("policy", SHIPPED_POLICIES, ids=_name)
def test_every_shipped_policy_fits_every_shipped_envoy(envoy: Path, policy: Path) -> None:
    """The one thing said: a plan that blocks what is unchecked wants an Envoy that fails closed."""
    compiled = load_policy(policy)
    found = clock_diagnostics(compiled, read_envoy(envoy.read_text("utf-8"), file=envoy.name))
    blocks = any(plan.on_unchecked is OnUnchecked.BLOCK for plan in (*compiled.plans, compiled.default))
    expected = blocks and "fail-closed" not in envoy.name
    assert [d.severity for d in found] == [Severity.WARNING] * expected
    assert all(d.key.endswith(".failure_mode_allow") for d in found)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.LIGHTWEIGHT])
@pytest.mark.parametrize("held_s", [None, 1.0, 300.0])
def test_every_mode_fits_the_shipped_settings(mode: Mode, held_s: float | None) -> None:
    """Up to a loop of five minutes."""
    plan = Plan("default", mode=mode, mitigation=MitigationSettings(deadline_s=held_s))
    assert _errors(plan, SETTINGS) == []


def test_a_hold_beyond_the_shipped_settings_is_found() -> None:
    """Both of Envoy's values stand in the way of ten minutes."""
    plan = Plan("default", mode=Mode.PREMIUM, mitigation=MitigationSettings(deadline_s=600))
    assert _errors(plan, SETTINGS) == [
        "write stream_idle_timeout: 612s or more, or in the policy mitigation.deadline_s: 327 or less for 'default'",
        "write max_message_timeout: 602s or more, or in the policy mitigation.deadline_s: 308 or less for 'default'",
    ]


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
def test_streams_fit_the_shipped_settings(streaming: Streaming) -> None:
    """With the times that plans have unless told otherwise."""
    assert _errors(Plan("default", streaming=streaming), SETTINGS) == []


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
def test_streams_fit_behind_the_shipped_router(streaming: Streaming) -> None:
    """Its filter does not wait for replies to response headers."""
    settings = replace(SETTINGS, router=Address("127.0.0.1", 18090))
    assert _errors(Plan("default", streaming=streaming), settings) == []


def test_a_decision_that_is_switched_off_holds_nothing() -> None:
    """Nor is its timeout compared."""
    plan = Plan("default", enabled=False, mode=Mode.PREMIUM, mitigation=MitigationSettings(deadline_s=600))
    assert _errors(plan, SETTINGS) == []


def test_every_decision_is_named() -> None:
    """Each with its own figures, though the value to change is the same."""
    plan = Plan("default", mode=Mode.STANDARD)
    policy = replace(EMPTY, default=plan)
    text = render(SETTINGS).replace('"max_message_timeout": "310s",', "")
    (only,) = _found(policy, text)
    assert "decision 'default' (mode standard)" in only
    loaded = load_policy(ROOT / "config" / "examples" / "whitepaper.yaml")
    held = [p for p in (*loaded.plans, loaded.default) if p.enabled and p.mode is not Mode.LIGHTWEIGHT]
    lines = _found(loaded, text)
    assert len(lines) == len(held) > 2
    for plan in held:
        assert any(f"{plan.decision!r}" in line and f"{plan.hold_s:g} s" in line for line in lines)


seconds = st.floats(0.1, 300).map(lambda value: round(value, 1))


@settings(deadline=None, max_examples=200)
@given(
    mode=st.sampled_from(Mode),
    deadline_s=st.none() | seconds,
    timeout_s=seconds,
    streaming=st.sampled_from(Streaming),
    max_hold_s=seconds.filter(lambda value: value <= 60),
    base=seconds,
    most=seconds,
    idle=seconds,
)
def test_each_remedy_fixes_its_mistake(
    *,
    mode: Mode,
    deadline_s: float | None,
    timeout_s: float,
    streaming: Streaming,
    max_hold_s: float,
    base: float,
    most: float,
    idle: float,
) -> None:
    """Whatever the times: Envoy's value as suggested leaves no error of that value, and so does the plan's."""
    plan = Plan(
        "default",
        mode=mode,
        timeout_s=timeout_s,
        streaming=streaming if mode is Mode.LIGHTWEIGHT else Streaming.BUFFER,
        stream=StreamSettings(max_hold_s=max_hold_s),
        mitigation=MitigationSettings(deadline_s=deadline_s),
    )
    written = {"message_timeout": base, "max_message_timeout": most, "stream_idle_timeout": idle}

    (processor,) = SHIPPED.processors
    (route,) = processor.routes

    def errors(plan: Plan, written: dict[str, float]) -> list[str]:
        clock = replace(
            processor,
            message_timeout=replace(processor.message_timeout, value=written["message_timeout"]),
            max_message_timeout=replace(processor.max_message_timeout, value=written["max_message_timeout"]),
            routes=(replace(route, idle=replace(route.idle, value=written["stream_idle_timeout"])),),
        )
        found = clock_diagnostics(replace(EMPTY, default=plan), replace(SHIPPED, processors=(clock,)))
        return [d.remedy for d in found if d.severity is Severity.ERROR]

    found = errors(plan, written)
    for remedy in found:
        suggested = re.match(r"write (\w+): ([\d.]+)s or more", remedy)
        assert suggested
        name, value = suggested[1], float(suggested[2])
        assert value > written[name]
        assert not any(f"write {name}:" in other for other in errors(plan, {**written, name: value}))
        lowered = re.search(r"in the policy ([\w.]+): ([\d.]+) or less", remedy)
        if lowered is None:
            continue
        less = float(lowered[2])
        assert less < (plan.timeout_s if lowered[1] == "timeout_s" else plan.hold_s)
        shorter = (
            replace(plan, timeout_s=less)
            if lowered[1] == "timeout_s"
            else replace(plan, mitigation=MitigationSettings(deadline_s=less))
        )
        assert not any(f"write {name}:" in other for other in errors(shorter, written))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [("1.5s", True), ("0s", True), ("5s", True), ("0.000000001s", True)]
    + [
        (text, False)
        for text in ("300ms", "10", ".5s", "+5s", "5S", "1e1s", "-1s", "5 s", "5.s", "1m", "1.0000000001s")
    ],
)
@pytest.mark.envoy
def test_durations_are_read_as_envoy_reads_them(text: str, accepted: bool, tmp_path: Path) -> None:
    """Decimal seconds and nothing else; asked of Envoy itself."""
    config = render(SETTINGS).replace('"message_timeout": "10s"', f'"message_timeout": "{text}"')
    mistakes = read_envoy(config, file="envoy.json").mistakes
    assert ([d.key.rpartition(".")[2] for d in mistakes] == []) is accepted
    path = tmp_path / "envoy.json"
    path.write_text(config)
    done = subprocess.run(
        [envoy_binary(), "--mode", "validate", "-c", str(path), "--log-level", "error"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0) is accepted


@settings(deadline=None, max_examples=60)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-1, 2000)
        | st.sampled_from(["", "5s", "SEND", "truthlens", "llm"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "static_resources",
                        "listeners",
                        "clusters",
                        "filter_chains",
                        "filters",
                        "typed_config",
                        "name",
                        "routes",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    ),
    st.sampled_from(
        [
            "http_filters",
            "route_config",
            "clusters",
            "processing_mode",
            "grpc_service",
            "routes",
            "message_timeout",
        ]
    ),
)
def test_no_shape_of_a_file_breaks_the_check(value: object, key: str) -> None:
    """A part of another shape than Envoy's is a mistake or nothing, never an exception."""
    config = json.loads(render(SETTINGS))

    def put(node: object) -> None:
        if isinstance(node, dict):
            for name, inner in node.items():
                if name == key:
                    node[name] = value
                else:
                    put(inner)
        elif isinstance(node, list):
            for inner in node:
                put(inner)

    put(config)
    for text in (json.dumps(config), json.dumps(value)):
        for line in _found(EMPTY, text):
            assert re.match(r"envoy\.yaml:\d+: ", line)


@pytest.mark.parametrize(
    ("times", "named"),
    [
        ({"message_timeout_s": 0}, "message_timeout_s is 0"),
        ({"message_timeout_s": 311}, "message_timeout_s is 311"),
        ({"max_message_timeout_s": 3601, "idle_timeout_s": 0}, "max_message_timeout_s is 3601"),
        ({"idle_timeout_s": 310}, "idle_timeout_s is 310"),
        ({"idle_timeout_s": -1}, "idle_timeout_s is -1"),
    ],
)
def test_settings_that_end_exchanges_in_the_wrong_order_are_refused(
    times: dict[str, float], named: str
) -> None:
    """The filter's own timeout comes first, for it alone fails open or closed as configured."""
    with pytest.raises(StartError, match=named):
        replace(SETTINGS, **times)


def test_settings_may_have_no_idle_timeout() -> None:
    """0 stands for none, as in Envoy."""
    plan = Plan("default", mode=Mode.STANDARD)
    assert _errors(plan, replace(SETTINGS, idle_timeout_s=0)) == []
