"""Check whether a policy's time limits fit into an Envoy configuration, and which value to change.

The reading is done in ``bootstrap``. Nothing is measured and no Envoy is asked: what is compared are the
values of two files. Why each value is what it is in the shipped files is in ``envoy/README.md``, the whole in
``docs/time.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from truthlens.core.records.enums import OnUnchecked
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.envoy.checks.bootstrap import (
    KNOWN_VERSION,
    EnvoyClock,
    Neighbour,
    ProcessorClock,
    RouteClock,
    read_envoy,
)
from truthlens.envoy.checks.nodes import Setting
from truthlens.envoy.checks.routes import check_routes
from truthlens.envoy.config import FAIL_OPEN_HEADERS
from truthlens.policy.policy import Policy
from truthlens.yamlfile.diagnostics import Diagnostic, Report
from truthlens.yamlfile.source import read_document

_PIECEWISE = ("STREAMED", "FULL_DUPLEX_STREAMED")
_LOSSES = f"seen with Envoy {KNOWN_VERSION}; envoyproxy/envoy issues 41654 and 47449"

__all__ = ["EnvoyClock", "clock_diagnostics", "longest_hold_s", "read_envoy"]

# Two clocks that end together are a race. A second tells who wins; Envoy's values are suggested with more to
# spare.
_RACE_S = 1.0
_SPARE_S = 10.0
_DEFAULT_MAX_REQUESTS = 1024


def clock_diagnostics(policy: Policy, envoy: EnvoyClock, *, policy_text: str = "") -> list[Diagnostic]:
    """Return all errors, then all warnings, of ``policy`` behind ``envoy``; empty where everything fits.

    Every place is one of the Envoy file. With ``policy_text``, the text of the policy's file, remedies also
    name the line there.
    """
    report = Report(envoy.file, envoy.lines, list(envoy.mistakes))
    places = _policy_places(policy_text, policy.file)
    for processor in envoy.processors:
        _Check(report, policy, processor, places).run()
    # Filters and routes may share a value, and then say the same of it.
    return list(dict.fromkeys([*report.errors, *report.warnings]))


def longest_hold_s(plan: Plan) -> float:
    """The most seconds that ``plan`` holds anything: a whole answer, or text of a stream."""
    return max(plan.hold_s, plan.streamed_hold_s or 0.0)


@dataclass(frozen=True, slots=True)
class _Check:
    """The checks of one filter; ``places`` says where in the policy a plan's keys are."""

    report: Report
    policy: Policy
    processor: ProcessorClock
    places: Callable[[Plan, str], str]

    def run(self) -> None:
        if not self.processor.routes:
            self.report.error(
                self.processor.path,
                "the filter is disabled on every route, so that no exchange is checked",
                "enable it on the routes of the LLM (ExtProcPerRoute)",
            )
        for route in self.processor.routes:
            self._modes(route)
            for plan in self._plans(route):
                self._message_timeout(plan, route)
                self._ceilings(plan, route)
            self._unchecked(route)
            self._route(route)
            check_chain(self.report, route, self._plans(route))
        check_routes(self.report, self.processor)
        self._filter()
        self._cluster()

    def _plans(self, route: RouteClock) -> list[Plan]:
        """Return the plans that an exchange of this route can have and under which an answer is held."""
        plans = [*self.policy.plans, self.policy.default]
        pinned = [plan for plan in plans if plan.decision in route.decisions]
        return [plan for plan in pinned[:1] or plans if plan.enabled]

    def _message_timeout(self, plan: Plan, route: RouteClock) -> None:
        if plan.override_s is None:
            self._own_timeout(plan, route)
        else:
            self._override(plan, route)

    def _own_timeout(self, plan: Plan, route: RouteClock) -> None:
        """Check a plan that asks for no more time: it is bound by ``message_timeout``."""
        limit, held_s = self.processor.message_timeout, longest_hold_s(plan)
        needed = held_s + MARGIN_S
        if limit.value >= needed:
            return
        streamed = held_s > plan.hold_s
        what = f"hold text of a stream for {held_s:g} s" if streamed else f"take {held_s:g} s for an answer"
        remedy = self._remedy(plan, limit, "message_timeout", needed, room_s=limit.value - MARGIN_S)
        if limit.value <= held_s:
            message = (
                f"{_named(plan)} may {what}, but {_says(limit, 'message_timeout')}: "
                f"{_after(limit.value, route, streamed=streamed)}"
            )
            self.report.error(limit.path, message, remedy)
        else:
            message = (
                f"{_named(plan)} may {what}, and {_says(limit, 'message_timeout')}: less than "
                f"{MARGIN_S:g} s are left for the way of the body"
            )
            self.report.warn(limit.path, message, remedy)

    def _override(self, plan: Plan, route: RouteClock) -> None:
        """Check a plan that calls models: it asks for its time, and gets at most ``max_message_timeout``."""
        asked, most, base = (
            plan.hold_s + MARGIN_S,
            self.processor.max_message_timeout,
            self.processor.message_timeout,
        )
        room_s = max(most.value, base.value)
        if room_s >= asked:
            return
        says = "max_message_timeout is not set" if not most.value else _says(most, "max_message_timeout")
        message = (
            f"{_named(plan)} holds an answer for up to {plan.hold_s:g} s and asks Envoy for {asked:g} s, but {says}, "
            f"so that this is ignored and {_says(base, 'message_timeout')}: {_after(base.value, route)}"
        )
        remedy = self._remedy(plan, most, "max_message_timeout", asked, room_s=room_s - MARGIN_S)
        self.report.error(most.path, message, remedy)

    def _ceilings(self, plan: Plan, route: RouteClock) -> None:
        """Check the limits that end an exchange whatever the filter says."""
        held_s, idle = longest_hold_s(plan), route.idle
        needed = held_s + MARGIN_S
        held = f"{_named(plan)} holds an answer for up to {held_s:g} s, which takes more than {needed:g} s of Envoy"
        if 0 < idle.value <= needed:
            name = str(idle.path[-1])
            message = f"{held}, but {_says(idle, name)} and ends an exchange in which nothing moves, with 504 in any case"
            room_s = idle.value - MARGIN_S - _RACE_S
            self.report.error(
                idle.path, message, self._remedy(plan, idle, name, needed + _SPARE_S, room_s=room_s)
            )
        cluster = self.processor.cluster
        for stream in (route.stream, *([cluster.stream] if cluster else ())):
            if 0 < stream.value <= needed:
                says = _says(stream, "max_stream_duration")
                message = f"{held}, but {says}, in which the backend must have answered as well"
                remedy = f"remove it, or write the longest time of the backend plus {needed:g} s"
                self.report.error(stream.path, message, remedy)

    def _remedy(self, plan: Plan, limit: Setting[float], name: str, needed: float, *, room_s: float) -> str:
        """Return both remedies: more time from Envoy, or less for the plan if it has any to give."""
        key = "mitigation.deadline_s"
        if plan.override_s is None:
            key = "timeout_s"
            room_s = round(room_s - (longest_hold_s(plan) - plan.timeout_s), 3)
        raised = f"{'write' if limit.written else 'add'} {name}: {needed:g}s or more"
        # Less than one detection takes is no deadline.
        if room_s <= 0 or (plan.override_s is not None and room_s < plan.timeout_s):
            return raised
        return f"{raised}, or in the policy {key}: {room_s:g} or less for {plan.decision!r}{self.places(plan, key)}"

    def _modes(self, route: RouteClock) -> None:
        modes = route.modes
        expected = [
            (modes.request_headers, ("SEND", "DEFAULT"), "the decision is made from the request headers"),
            (modes.request_body, ("BUFFERED",), "the evidence is taken out of whole request bodies"),
            (
                modes.response_headers,
                ("SEND", "DEFAULT"),
                "the body of an answer is asked for in reply to its headers",
            ),
            (
                modes.response_body,
                ("NONE",),
                "TruthLens asks for the body of each answer that it can score, which takes NONE here",
            ),
        ]
        for setting, accepted, reason in expected:
            if setting.value not in accepted:
                message = (
                    f"the mode is {setting.value}{'' if setting.written else ' by default'}, and {reason}"
                )
                self.report.error(setting.path, message, f"write {accepted[0]}")

    def _unchecked(self, route: RouteClock) -> None:
        blocking = [plan.decision for plan in self._plans(route) if plan.on_unchecked is OnUnchecked.BLOCK]
        if route.fails_open.value and blocking:
            names = ", ".join(repr(name) for name in blocking)
            self.report.warn(
                route.fails_open.path,
                f"failure_mode_allow passes answers unchecked while the sidecar is down or late, and on_unchecked: block "
                f"of {names} cannot hold them back",
                "write failure_mode_allow: false, here or for the routes of these decisions",
            )

    def _route(self, route: RouteClock) -> None:
        if route.timeout is not None and route.timeout.value:
            self.report.warn(
                route.timeout.path,
                f"{_says(route.timeout, 'timeout')} and cuts answers, streams too, for which the backend needs longer",
                f"{'write' if route.timeout.written else 'add'} timeout: 0s",
            )
        if route.headers is None:
            return
        left_out = {n: v for n, v in FAIL_OPEN_HEADERS.items() if route.headers.get(n) != v}
        if left_out:
            listed = ", ".join(f"{name}: {value}" for name, value in left_out.items())
            self.report.warn(
                (*route.path, "response_headers_to_add"),
                "the route does not mark answers that the sidecar had no say in: they look like answers of a backend "
                "without TruthLens",
                f"add the response headers {listed}",
            )

    def _filter(self) -> None:
        processor = self.processor
        if not processor.allow_mode_override.value:
            self.report.error(
                processor.allow_mode_override.path,
                "Envoy ignores what TruthLens asks for, so that no answer is ever scored",
                "write allow_mode_override: true",
            )
        if processor.observability_mode.value:
            self.report.error(
                processor.observability_mode.path,
                "Envoy waits for no reply of the sidecar, so that no answer is ever changed or marked",
                "write observability_mode: false, or remove it",
            )
        base = processor.message_timeout
        asking = [
            plan for route in processor.routes for plan in self._plans(route) if plan.override_s is not None
        ]
        if base.value < MARGIN_S and asking:
            self.report.warn(
                base.path,
                f"{_says(base, 'message_timeout')}, in which a body must reach the sidecar before it can ask for more time",
                f"{'write' if base.written else 'add'} message_timeout: 10s",
            )

    def _cluster(self) -> None:
        cluster = self.processor.cluster
        if cluster is not None and cluster.max_requests.value <= _DEFAULT_MAX_REQUESTS:
            self.report.warn(
                cluster.max_requests.path,
                f"{_says(cluster.max_requests, 'max_requests', unit='')}: so many exchanges can be under way, each for as "
                "long as the model writes and the answer is held, and Envoy does not ask the sidecar about more",
                f"{'raise it' if cluster.max_requests.written else 'add max_requests'}, such as to 10000",
            )


def _named(plan: Plan) -> str:
    return f"decision {plan.decision!r} (mode {plan.mode})"


def _says(limit: Setting[float] | Setting[int], name: str, *, unit: str = " s") -> str:
    return f"{name} is {limit.value:g}{unit}{'' if limit.written else ' by default'}"


def _after(seconds: float, route: RouteClock, *, streamed: bool = False) -> str:
    if streamed:
        what = "the stream passes on unchecked" if route.fails_open.value else "the stream breaks off"
    else:
        what = (
            "the answer passes unchecked"
            if route.fails_open.value
            else "the client gets 504 instead of the answer"
        )
    return f"after {seconds:g} s {what}"


def _policy_places(text: str, file: str) -> Callable[[Plan, str], str]:
    """Map a plan and its key to `` (FILE:LINE)``, the line of the key or of its section."""
    document = read_document(text, file=file) if text else None
    data = document.data if document is not None else None
    if document is None or data is None:
        return lambda _plan, _key: ""
    sections: dict[str, tuple[str | int, ...]] = {}
    for index, decision in enumerate(data.get("decisions") or ()):
        path: tuple[str | int, ...] = ("decisions", index)
        for number, plugin in enumerate(decision.get("plugins") or ()):
            if plugin.get("type") == "hallucination":
                path = ("decisions", index, "plugins", number, "configuration")
                break
        sections[decision["name"]] = path
    report = document.report

    def place(plan: Plan, key: str) -> str:
        section = sections.get(plan.decision, ("hallucination",))
        return f" ({file}:{report.line((*section, *key.split('.')))})"

    return place


def check_chain(report: Report, route: RouteClock, plans: Sequence[Plan]) -> None:
    """Report the filters beside TruthLens's on ``route`` with which streams are lost; ``plans`` are those of the route.

    A response passes the filters backwards. A filter before TruthLens's in the list and answers response headers,
    but no bodies, lets Envoy go on from those headers to whatever has arrived by then: if that is the backend's
    end, the response ends there, and what TruthLens still holds is lost, with status 200. The same way
    TruthLens's own answer to headers ends what a filter behind it holds. Only ext_proc filters are looked at:
    others that answer headers late do the same.

    Source: tests/integration/test_two_filters.py, and the issues of ``_LOSSES``.
    """
    streamed = [plan for plan in plans if plan.streamed_hold_s is not None]
    for neighbour in route.neighbours:
        if neighbour.first and streamed:
            _before(report, neighbour, streamed)
        if not neighbour.first:
            _behind(report, neighbour)


def _before(report: Report, neighbour: Neighbour, streamed: Sequence[Plan]) -> None:
    modes = neighbour.modes
    if modes.response_headers.value == "SKIP" or modes.response_body.value != "NONE":
        return
    names = ", ".join(f"{plan.decision!r} (streaming {plan.streaming})" for plan in streamed)
    report.error(
        modes.response_headers.path,
        f"{neighbour.name!r} comes before TruthLens and answers response headers, but no bodies: where the backend's end "
        f"arrives first, Envoy ends the answer and loses what TruthLens still holds of it, under {names} ({_LOSSES})",
        "write response_header_mode: SKIP, or, where TruthLens needs no header of it, put it behind TruthLens's",
    )


def _behind(report: Report, neighbour: Neighbour) -> None:
    body = neighbour.modes.response_body
    if body.value in _PIECEWISE:
        report.warn(
            body.path,
            f"{neighbour.name!r} comes behind TruthLens and gets answers piece by piece: where it still holds some when "
            f"TruthLens answers the response headers and the backend has ended, Envoy loses them ({_LOSSES})",
            "put this filter before TruthLens's",
        )
