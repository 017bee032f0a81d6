"""Look at the Envoy in front: its configuration, where it asks, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from truthlens.core.limits import Limits
from truthlens.core.net import Address, is_loopback
from truthlens.envoy.checks.attachment import (
    SidecarEndpoint,
    attachment_diagnostics,
    endpoints_of,
    stat_prefixes_of,
)
from truthlens.envoy.checks.bootstrap import KNOWN_VERSION
from truthlens.envoy.checks.timeouts import clock_diagnostics, longest_hold_s, read_envoy
from truthlens.policy import InvalidPolicyError, Policy
from truthlens.policy.compile import read_text
from truthlens.process.doctor.envoy_admin import Running, read_admin
from truthlens.process.doctor.findings import CheckResult, error, of_diagnostics, ok, unknown, warning
from truthlens.process.doctor.look import LookError, shown_url
from truthlens.process.doctor.policy import ReadPolicy
from truthlens.process.doctor.setup import Setup
from truthlens.yamlfile.diagnostics import Diagnostic

# Counters of the filter: what each means where it is not 0, and what to do.
_COUNTERS = {
    "message_timeouts": (
        "Envoy stopped waiting for the sidecar",
        "answers passed unchecked, or clients got 504",
        (
            "compare message_timeout and max_message_timeout with the policy's clocks, and look at the "
            "load of the sidecar"
        ),
    ),
    "override_message_timeout_ignored": (
        "Envoy ignored that the sidecar asked for more time",
        "modes that ask models end early, and answers pass unchecked",
        "write a max_message_timeout above the longest hold of the policy",
    ),
    "spurious_msgs_received": (
        "the sidecar sent messages that Envoy did not expect",
        "Envoy ends its stream to the sidecar, and answers pass unchecked",
        "compare processing_mode with envoy/truthlens.yaml, and see that allow_mode_override is true",
    ),
    "rejected_header_mutations": (
        "Envoy refused headers that the sidecar sets",
        "clients do not see the verdict, or get an error",
        "remove mutation_rules from the filter, or let them allow x-truthlens-*",
    ),
}


async def look_at_envoy(setup: Setup, file: ReadPolicy) -> list[CheckResult]:
    """Return what is wrong with the Envoys of a set-up."""
    found: list[CheckResult] = []
    for path in setup.envoys:
        found += _of_file(setup, file, path)
    if setup.admin is not None:
        try:
            running = await read_admin(setup.admin, setup.timeout_s)
        except LookError as failed:
            what = f"the admin interface at {shown_url(setup.admin)} {failed}"
            why = "nothing is known of the Envoy that runs"
            return [*found, unknown("envoy.admin", what, why, "start Envoy, or fix --envoy-admin")]
        found += _of_running(setup, file, running)
    return found


def of_clocks(setup: Setup, policy: Policy | None) -> list[CheckResult]:
    """Return whether a stop leaves answers the time that the policy holds them."""
    plans = () if policy is None else [plan for plan in policy.all_plans if plan.enabled]
    if not plans:
        return []
    longest = max(plans, key=longest_hold_s)
    held_s, grace_s = longest_hold_s(longest), setup.settings.drain_grace_s
    if held_s <= grace_s:
        return [ok("clocks.drain", f"the longest hold is {held_s:g} s, a stop waits for {grace_s:g} s")]
    return [
        warning(
            "clocks.drain",
            f"decision {longest.decision!r} holds answers for up to {held_s:g} s, a stop waits for "
            f"{grace_s:g} s",
            "a restart cuts answers that are being corrected",
            f"write --drain-grace {held_s:g}, and let terminationGracePeriodSeconds exceed it by the "
            "notice; or a lower "
            "mitigation.deadline_s",
        )
    ]


def _of_file(setup: Setup, file: ReadPolicy, path: Path) -> list[CheckResult]:
    try:
        text = read_text(path)
    except InvalidPolicyError as unreadable:
        return of_diagnostics("envoy", unreadable.diagnostics)
    return _of_config(setup, file, text, str(path), lines=True)


def _of_config(setup: Setup, file: ReadPolicy, text: str, name: str, *, lines: bool) -> list[CheckResult]:
    clock, policy = read_envoy(text, file=name), file.policy
    limits = Limits() if policy is None else policy.limits
    diagnostics: list[Diagnostic] = list(clock.mistakes)
    if policy is not None:
        diagnostics = clock_diagnostics(policy, clock, policy_text=file.text)
    diagnostics += attachment_diagnostics(text, file=name, limits=limits)
    found = of_diagnostics("envoy", dict.fromkeys(diagnostics), lines=lines)
    if not found and policy is not None:
        found.append(ok("envoy.config", f"{name}: it fits the policy"))
    if policy is None:
        what = f"{name} was not compared with the policy, which cannot be used"
        found.append(unknown("envoy.clocks", what, "its times may be too short", "fix the policy"))
    return [*found, *_endpoints(setup, endpoints_of(text, file=name), lines=lines)]


def _endpoints(setup: Setup, endpoints: list[SidecarEndpoint], *, lines: bool) -> Iterator[CheckResult]:
    """Yield how the addresses of the ext_proc cluster differ from the sidecar's."""
    if not endpoints:
        return
    extproc = setup.settings.extproc
    health = setup.settings.health or extproc.health
    same = [each for each in endpoints if _is_same(each.address, extproc)]
    if not same:
        here = any(_is_here(each.address, extproc) for each in endpoints)
        tell = error if here else warning
        places = ", ".join(
            f"{each.address} ({each.place})" if lines else str(each.address) for each in endpoints
        )
        yield tell(
            "envoy.endpoint",
            f"Envoy asks TruthLens at {places}, and the sidecar is at {extproc}",
            "no exchange reaches this sidecar" if here else "this may be a Service, or another sidecar",
            "write the sidecar's address into the cluster, or start it there (--extproc)",
        )
    for each in same:
        yield from _tls(setup, each)
        port = each.health_port
        if port is not None and health is not None and port != health.port:
            yield error(
                "envoy.health",
                f"Envoy checks the health of {each.address} at port {port}, and the sidecar answers at "
                f"port {health.port}",
                "Envoy takes it for dead and sends no exchange",
                f"write health_check_config: {{port_value: {health.port}}}, or start the sidecar with "
                "--health",
            )


def _tls(setup: Setup, endpoint: SidecarEndpoint) -> Iterator[CheckResult]:
    served = setup.settings.tls_certificate is not None
    if endpoint.tls != served:
        who, other = ("Envoy", "the sidecar") if endpoint.tls else ("the sidecar", "Envoy")
        yield error(
            "envoy.tls",
            f"{who} speaks TLS at {endpoint.address}, and {other} does not",
            "no exchange reaches the sidecar",
            "give the cluster a transport_socket (truthlens envoy-config --extproc-ca), or the sidecar --tls-cert and "
            "--tls-key: both, or neither",
        )
    elif served and setup.settings.tls_client_ca is not None and not endpoint.certificate:
        yield error(
            "envoy.tls",
            f"Envoy shows no certificate at {endpoint.address}, and the sidecar asks for one (--tls-client-ca)",
            "the sidecar refuses its connections",
            "give the cluster's transport_socket a certificate (truthlens envoy-config --extproc-cert --extproc-key)",
        )


def _is_same(asked: Address, served: Address) -> bool:
    # A name may stand for any machine.
    return asked == served if not served.port else asked.port == served.port


def _is_here(asked: Address, served: Address) -> bool:
    return asked.host == served.host or not asked.port or is_loopback(asked.host) or asked.host == "localhost"


def _of_running(setup: Setup, file: ReadPolicy, running: Running) -> list[CheckResult]:
    name = shown_url(setup.admin or "")
    found = _of_config(setup, file, running.config, name, lines=False)
    if running.state == "LIVE":
        found.append(ok("envoy.ready", f"{name} says LIVE"))
    else:
        found.append(
            error(
                "envoy.ready",
                f"{name} says {running.state or 'nothing'}",
                "it takes no requests, or is about to stop",
                "wait for its start to end; else look into its log",
            )
        )
    return [*found, _version(running), *_clusters(running), *_counters(running)]


def _version(running: Running) -> CheckResult:
    if running.version.startswith(f"{KNOWN_VERSION}."):
        return ok("envoy.version", f"Envoy {running.version}")
    return warning(
        "envoy.version",
        f"Envoy {running.version}: TruthLens is tried with {KNOWN_VERSION}",
        "what another release does with two ext_proc filters in one chain, with held streams and with late replies is not known",
        f"run Envoy {KNOWN_VERSION}, or TruthLens's own tests with your Envoy (pytest -m envoy)",
    )


def _clusters(running: Running) -> Iterator[CheckResult]:
    asked = {str(each.address) for each in endpoints_of(running.config, file="")}
    for cluster, hosts in running.hosts.items():
        if not any(_named(host) in asked for host in hosts) and "truthlens" not in cluster:
            continue
        sick = [host for host, healthy in hosts.items() if not healthy]
        if sick:
            yield error(
                "envoy.cluster",
                f"Envoy takes {', '.join(sick)} of the cluster {cluster!r} for unhealthy",
                "it sends no exchange there: they pass unchecked, or are refused where it fails closed"
                if len(sick) == len(hosts)
                else "the others have all the load",
                "see that truthlens serve runs there, and answers health checks at the port that Envoy asks",
            )
        else:
            yield ok("envoy.cluster", f"all {len(hosts)} hosts of the cluster {cluster!r} are healthy")
        if count := running.stats.get(f"cluster.{cluster}.upstream_rq_active_overflow"):
            yield warning(
                "envoy.overflow",
                f"Envoy did not ask the sidecar about {count} exchanges: more than max_requests were "
                "under way",
                "they passed unchecked, or were refused",
                "raise max_requests of the cluster's circuit_breakers, and start more sidecars",
            )


def _named(host: str) -> str:
    return f"unix:{host}" if host.startswith("/") else host


def _counters(running: Running) -> Iterator[CheckResult]:
    for name, (what, why, change) in _COUNTERS.items():
        if count := _count(running, name):
            yield warning(f"envoy.{name}", f"{what}, {count} times since Envoy started", why, change)
    if failed := _count(running, "streams_failed"):
        yield warning(
            "envoy.streams_failed",
            f"{failed} exchanges with the sidecar failed since Envoy started "
            f"({_count(running, 'streams_started')} began)",
            "they passed unchecked, or were refused; starts and stops of a sidecar are among them",
            "look into the sidecar's log; where the number grows, into Envoy's as well",
        )


def _count(running: Running, name: str) -> int:
    """Return a counter of TruthLens's filters, all listeners together."""
    ends = tuple(f".ext_proc.{prefix}{name}" for prefix in stat_prefixes_of(running.config))
    return sum(value for stat, value in running.stats.items() if stat.endswith(ends))
