"""Read a running Envoy by its admin interface: version, configuration, health of clusters, counters.

Source: Envoy's documentation, "Administration interface"; the shapes are those of Envoy 1.40.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truthlens.process.doctor.look import LookError, get

# A gateway of many routes has a large one.
_MOST_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Running:
    """What a running Envoy says of itself.

    ``version`` is its release, as ``1.40.0``. ``config`` is its configuration in force as the text of a bootstrap. ``state`` is what ``/ready`` says.
    ``hosts`` has, by cluster, each host with whether it counts as healthy. ``stats`` are counters and gauges.
    """

    version: str
    config: str
    state: str
    hosts: Mapping[str, Mapping[str, bool]]
    stats: Mapping[str, int]


async def read_admin(url: str, timeout_s: float) -> Running:
    """Return what the Envoy with the admin interface at ``url`` says.

    Raises:
        LookError: it does not answer, or not as Envoy does.
    """
    paths = (
        "/config_dump?include_eds",
        "/clusters?format=json",
        "/stats?format=json",
        "/server_info",
        "/ready",
    )
    answers = await asyncio.gather(
        *(get(f"{url.rstrip('/')}{path}", timeout_s, direct=True) for path in paths)
    )
    try:
        dump, clusters, stats, info = (json.loads(each.body) for each in answers[:4])
        return Running(
            # The commit, the release, and how it was built, with slashes between.
            info["version"].split("/")[1],
            json.dumps(_bootstrap(dump), indent=1),
            answers[4].body.decode("ascii", "replace").strip(),
            dict(_hosts(clusters)),
            dict(_stats(stats)),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise LookError("does not answer as Envoy's admin interface does") from None


def _bootstrap(dump: Mapping[str, Any]) -> dict[str, Any]:
    """Return the listeners, clusters and routes in force, from whatever source, as static resources."""
    parts = dump["configs"]
    listeners = [*_each(parts, "static_listeners", "listener"), *_active_listeners(parts)]
    clusters = [
        each
        for kind in ("static_clusters", "dynamic_active_clusters")
        for each in _each(parts, kind, "cluster")
    ]
    endpoints = {
        each.get("cluster_name", ""): each
        for each in _each(parts, "dynamic_endpoint_configs", "endpoint_config")
    }
    routes = {
        each.get("name", ""): each
        for kind in ("static_route_configs", "dynamic_route_configs")
        for each in _each(parts, kind, "route_config")
    }
    for cluster in clusters:
        named = (cluster.get("eds_cluster_config") or {}).get("service_name") or cluster.get("name")
        if "load_assignment" not in cluster and named in endpoints:
            cluster["load_assignment"] = endpoints[named]
    for manager in _managers(listeners):
        name = (manager.get("rds") or {}).get("route_config_name")
        if "route_config" not in manager and name in routes:
            manager["route_config"] = routes[name]
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _each(parts: list[Any], kind: str, member: str) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from (each[member] for each in part.get(kind, ()))


def _active_listeners(parts: list[Any]) -> Iterator[dict[str, Any]]:
    for part in parts:
        for each in part.get("dynamic_listeners", ()):
            if "active_state" in each:
                yield each["active_state"]["listener"]


def _managers(listeners: list[Any]) -> Iterator[dict[str, Any]]:
    for listener in listeners:
        for chain in (*listener.get("filter_chains", ()), listener.get("default_filter_chain") or {}):
            for entry in chain.get("filters", ()):
                if isinstance(config := entry.get("typed_config"), dict) and "http_filters" in config:
                    yield config


def _hosts(clusters: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, bool]]]:
    for cluster in clusters["cluster_statuses"]:
        hosts: dict[str, bool] = {}
        for host in cluster.get("host_statuses", ()):
            address = host.get("address", {})
            socket = address.get("socket_address", {})
            name = (
                address.get("pipe", {}).get("path") or f"{socket.get('address')}:{socket.get('port_value')}"
            )
            health = host.get("health_status", {})
            # Envoy names each reason for which it sends nothing there.
            bad = [key for key, value in health.items() if key.startswith("failed_") and value]
            eds = health.get("eds_health_status", "HEALTHY")
            hosts[name] = not bad and eds in ("HEALTHY", "UNKNOWN", "DEGRADED")
        yield cluster["name"], hosts


def _stats(stats: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for each in stats["stats"]:
        if isinstance(value := each.get("value"), int):
            yield each["name"], value
