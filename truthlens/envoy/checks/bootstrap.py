"""Read what an Envoy bootstrap says about time and the ext_proc filter, with the line of each value.

Only what is in the file is read: no routes or clusters that come over xDS, no filters wrapped in others, no
settings of single weighted clusters. Whether Envoy would load the file is for ``envoy --mode validate``;
whether its values are any good is for ``clock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from truthlens.envoy.checks.nodes import ConfigNode, Setting, as_yaml, enum, flag, seconds
from truthlens.yamlfile.diagnostics import Diagnostic, KeyPath, Report
from truthlens.yamlfile.source import read_document

_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_PROCESSOR = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_FILTER_CONFIG = "envoy.config.route.v3.FilterConfig"

# Envoy's own values where a key is left out.
_MESSAGE_TIMEOUT_S = 0.2
_IDLE_TIMEOUT_S = 300.0
_ROUTE_TIMEOUT_S = 15.0
_MAX_REQUESTS = 1024

_HEADER_MODES = ("DEFAULT", "SEND", "SKIP")
KNOWN_VERSION = "1.40"
"""The Envoy whose behaviour was tried out: what the checks say holds of it."""

_BODY_MODES = ("NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED", "GRPC")


@dataclass(frozen=True, slots=True)
class ProcessingModes:
    """What Envoy sends to the sidecar before any override, by the names of Envoy's enumerations."""

    request_headers: Setting[str]
    request_body: Setting[str]
    response_headers: Setting[str]
    response_body: Setting[str]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another ext_proc filter of the chain that Envoy waits for.

    ``first`` says that it comes before TruthLens's.
    """

    name: str
    first: bool
    modes: ProcessingModes


@dataclass(frozen=True, slots=True)
class RouteClock:
    """A route on which the filter is active.

    Times in seconds, 0 for no limit.

    ``timeout`` and ``headers`` (of responses, set by the route; lower-case names) are ``None`` where the
    routes are not in the file. ``decisions`` are the names that the route gives in the metadata
    ``truthlens-decision``. ``neighbours`` are the other ext_proc filters that are active on the route.
    """

    path: KeyPath
    idle: Setting[float]
    stream: Setting[float]
    modes: ProcessingModes
    fails_open: Setting[bool]
    timeout: Setting[float] | None = None
    headers: Mapping[str, str] | None = None
    decisions: frozenset[str] = frozenset()
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """What a route matches, the clusters that it leads to, and whether the filter is on.

    Envoy's own answers have no cluster.
    """

    path: KeyPath
    match: ConfigNode
    targets: frozenset[str]
    checked: bool


@dataclass(frozen=True, slots=True)
class ClusterClock:
    """The sidecar's cluster: exchanges at one time, and the seconds that one may last (0: no limit)."""

    max_requests: Setting[int]
    stream: Setting[float]


@dataclass(frozen=True, slots=True)
class ProcessorClock:
    """An ext_proc filter that leads to TruthLens, and the routes on which it is active.

    ``max_message_timeout`` is 0 where it is left out: Envoy then takes no override. ``cluster`` is ``None``
    where it is not in the file. ``hosts`` are all routes of each virtual host in their order,
    ``unnormalised`` the settings of the ``manager`` by which paths are not normalised.
    """

    path: KeyPath
    message_timeout: Setting[float]
    max_message_timeout: Setting[float]
    allow_mode_override: Setting[bool]
    observability_mode: Setting[bool]
    cluster: ClusterClock | None
    routes: tuple[RouteClock, ...]
    hosts: tuple[tuple[RouteMatch, ...], ...]
    manager: KeyPath
    unnormalised: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvoyClock:
    """One bootstrap file.

    ``mistakes`` are those of the file itself, ``lines`` knows the line of every key.
    """

    file: str
    lines: Mapping[KeyPath, int]
    mistakes: tuple[Diagnostic, ...]
    processors: tuple[ProcessorClock, ...]


def read_envoy(text: str, *, file: str) -> EnvoyClock:
    """Read the clocks of the bootstrap ``text`` (YAML or JSON).

    Mistakes are kept in the result, never raised.
    """
    document = read_document(as_yaml(text), file=file)
    report = document.report
    processors: tuple[ProcessorClock, ...] = ()
    if document.data is not None:
        processors = _Reader(ConfigNode(document.data, ()), report).processors()
    mistakes = tuple(_about_envoy(diagnostic) for diagnostic in report.found)
    return EnvoyClock(file, report.lines, mistakes, processors)


def _about_envoy(diagnostic: Diagnostic) -> Diagnostic:
    if "hallucination" in diagnostic.remedy:
        return replace(diagnostic, remedy="name an Envoy bootstrap: a file with static_resources")
    return diagnostic


@dataclass(frozen=True, slots=True)
class PlacedFilter:
    """An ext_proc filter with the listener and the connection manager that it is in."""

    listener: ConfigNode
    manager: ConfigNode
    entry: ConfigNode


@dataclass(frozen=True, slots=True)
class ActiveRoute:
    """A route on which the filter is on, and the filter's settings there, the most specific first."""

    route: ConfigNode
    host: ConfigNode
    targets: frozenset[str]
    configs: tuple[ConfigNode, ...]

    def find(self, name: str) -> ConfigNode:
        """Return the most specific setting of that name."""
        found = [config[name] for config in self.configs]
        return next((each for each in found if each.written), found[-1])


@dataclass(frozen=True, slots=True)
class _Levels:
    """What route configuration, virtual host and route say of one filter, the most specific last."""

    off: bool
    overrides: tuple[ConfigNode, ...] = ()

    def find(self, name: str) -> ConfigNode | None:
        """Return the most specific override of that name."""
        return next((found for level in reversed(self.overrides) if (found := level[name]).written), None)


@dataclass(frozen=True, slots=True)
class _Reader:
    root: ConfigNode
    report: Report

    def processors(self) -> tuple[ProcessorClock, ...]:
        ours = filters_of(self.root)
        if not ours:
            where = self.root.under("static_resources", "listeners")
            self.report.error(
                where.path,
                "no listener of this file has an ext_proc filter, so that TruthLens sees no exchange",
                "copy the filter from envoy/truthlens.yaml, or name the file that has it",
            )
        return tuple(self._processor(each.manager, each.entry) for each in ours)

    def _processor(self, manager: ConfigNode, entry: ConfigNode) -> ProcessorClock:
        config = entry["typed_config"]
        return ProcessorClock(
            path=config.path,
            message_timeout=seconds(self.report, config["message_timeout"], _MESSAGE_TIMEOUT_S),
            max_message_timeout=seconds(self.report, config["max_message_timeout"], 0.0),
            allow_mode_override=flag(config["allow_mode_override"]),
            observability_mode=flag(config["observability_mode"]),
            cluster=self._cluster(config.under("grpc_service", "envoy_grpc", "cluster_name")),
            routes=tuple(self._routes(manager, entry)),
            hosts=tuple(_hosts(manager["route_config"], entry)),
            manager=manager.path,
            unnormalised=tuple(_unnormalised(manager)),
        )

    def _routes(self, manager: ConfigNode, entry: ConfigNode) -> Iterator[RouteClock]:
        config = entry["typed_config"]
        idle = seconds(self.report, manager["stream_idle_timeout"], _IDLE_TIMEOUT_S)
        stream = seconds(
            self.report, manager.under("common_http_protocol_options", "max_stream_duration"), 0.0
        )
        table = manager["route_config"]
        actions = [
            (host, route)
            for host in table["virtual_hosts"].each()
            for route in host["routes"].each()
            if route["route"].written
        ]
        if not actions:
            self.report.warn(
                table.path,
                "the routes do not stand in this file; their timeouts and headers are not checked",
                "check them by docs/time.md",
            )
            yield RouteClock(
                path=manager.path,
                idle=idle,
                stream=stream,
                modes=_modes([config]),
                fails_open=flag(config["failure_mode_allow"]),
                neighbours=tuple(_neighbours(manager, (), entry)),
            )
        for host, route in actions:
            levels = _levels((table, host, route), entry)
            if levels.off:
                continue
            action = route["route"]
            own_idle = action["idle_timeout"]
            own_stream = action.under("max_stream_duration", "max_stream_duration")
            yield RouteClock(
                path=route.path,
                idle=seconds(self.report, own_idle, 0.0) if own_idle.written else idle,
                stream=seconds(self.report, own_stream, 0.0) if own_stream.written else stream,
                modes=_modes([config, *levels.overrides]),
                fails_open=flag(levels.find("failure_mode_allow") or config["failure_mode_allow"]),
                timeout=seconds(self.report, action["timeout"], _ROUTE_TIMEOUT_S),
                headers=_headers((table, host, route)),
                decisions=_decisions((config, *levels.overrides)),
                neighbours=tuple(_neighbours(manager, (table, host, route), entry)),
            )

    def _cluster(self, name: ConfigNode) -> ClusterClock | None:
        cluster = cluster_named(self.root, name.text)
        if cluster is None:
            if name.written and not self.root.under("dynamic_resources", "cds_config").written:
                self.report.error(
                    name.path, f"there is no cluster {name.text!r} in this file", "add it, or fix the name"
                )
            return None
        limits = cluster.under("circuit_breakers", "thresholds")
        unset = ConfigNode({}, (*limits.path, 0))
        limit = next((t for t in limits.each() if t["priority"].value in (None, "DEFAULT", 0)), unset)
        node = limit["max_requests"]
        requests = node.value if isinstance(node.value, int) else _MAX_REQUESTS
        options = cluster.under(
            "typed_extension_protocol_options", _HTTP_OPTIONS, "common_http_protocol_options"
        )
        stream = seconds(self.report, options["max_stream_duration"], 0.0)
        return ClusterClock(Setting(requests, node.path, node.written), stream)


def filters_of(root: ConfigNode) -> list[PlacedFilter]:
    """Return TruthLens's filters: those of its name, or all ext_proc filters where none has it."""
    found = [
        PlacedFilter(listener, manager, entry)
        for listener in root.under("static_resources", "listeners").each()
        for manager in _managers(listener)
        for entry in manager["http_filters"].each()
        if entry["typed_config"].type == _PROCESSOR
    ]
    # Beside another processor of the chain, ours is known by its name.
    return [each for each in found if _names_truthlens(each.entry)] or found


def _managers(listener: ConfigNode) -> Iterator[ConfigNode]:
    for chain in (*listener["filter_chains"].each(), listener["default_filter_chain"]):
        for entry in chain["filters"].each():
            if entry["typed_config"].type == _MANAGER:
                yield entry["typed_config"]


def active_routes(placed: PlacedFilter) -> Iterator[ActiveRoute]:
    """Yield the routes to a backend on which a filter is on, with what the more general levels say."""
    table, entry = placed.manager["route_config"], placed.entry
    for host in table["virtual_hosts"].each():
        for route in host["routes"].each():
            if not route["route"].written:
                continue
            levels = _levels((table, host, route), entry)
            if not levels.off:
                yield ActiveRoute(
                    route,
                    host,
                    targets=_targets(route["route"]),
                    configs=(*levels.overrides[::-1], entry["typed_config"]),
                )


def cluster_named(root: ConfigNode, name: str) -> ConfigNode | None:
    """Return the cluster of that name, ``None`` where it is not in the file."""
    clusters = root.under("static_resources", "clusters").each()
    return next((each for each in clusters if name and each["name"].text == name), None)


def _names_truthlens(entry: ConfigNode) -> bool:
    config = entry["typed_config"]
    service = config["grpc_service"]
    names = (
        entry["name"],
        config["stat_prefix"],
        service.under("envoy_grpc", "cluster_name"),
        service.under("google_grpc", "target_uri"),
    )
    return any("truthlens" in name.text.lower() for name in names)


def _hosts(table: ConfigNode, entry: ConfigNode) -> Iterator[tuple[RouteMatch, ...]]:
    for host in table["virtual_hosts"].each():
        yield tuple(
            RouteMatch(
                route.path,
                route["match"],
                _targets(route["route"]),
                not _levels((table, host, route), entry).off,
            )
            for route in host["routes"].each()
        )


def _targets(action: ConfigNode) -> frozenset[str]:
    weighted = action.under("weighted_clusters", "clusters").each()
    return frozenset(
        name for node in (action, *weighted) if (name := node["cluster"].text or node["name"].text)
    )


def _unnormalised(manager: ConfigNode) -> Iterator[str]:
    for name in ("normalize_path", "merge_slashes"):
        if manager[name].value is not True:
            yield name
    # Sent on, sent back or refused; numbers are those of Envoy's enumeration.
    slashes = manager["path_with_escaped_slashes_action"]
    if slashes.value in (None, 0, 1, "IMPLEMENTATION_SPECIFIC_DEFAULT", "KEEP_UNCHANGED"):
        yield "path_with_escaped_slashes_action"


def _neighbours(manager: ConfigNode, places: tuple[ConfigNode, ...], ours: ConfigNode) -> Iterator[Neighbour]:
    """Yield the chain's other processors; none where TruthLens's cannot be told from them."""
    if not _names_truthlens(ours):
        return
    first = True
    for entry in manager["http_filters"].each():
        if entry.path == ours.path:
            first = False
            continue
        config, levels = entry["typed_config"], _levels(places, entry)
        waits = not flag(config["observability_mode"]).value
        if config.type == _PROCESSOR and waits and not levels.off and not _names_truthlens(entry):
            yield Neighbour(entry["name"].text, first, _modes([config, *levels.overrides]))


def _levels(places: tuple[ConfigNode, ...], entry: ConfigNode) -> _Levels:
    off = entry["disabled"].value is True
    overrides: list[ConfigNode] = []
    for place in places:
        own = place["typed_per_filter_config"][entry["name"].text]
        if own.type == _FILTER_CONFIG:
            off = own["disabled"].value is True
            own = own["config"]
        elif own.written:
            off = False
        if own.written:
            off = off or own["disabled"].value is True
            overrides.append(own["overrides"])
    return _Levels(off, tuple(overrides))


def _modes(levels: list[ConfigNode]) -> ProcessingModes:
    """Return the modes of the most specific level that has any; a level replaces the others as a whole."""
    written = [level["processing_mode"] for level in levels if level["processing_mode"].written]
    modes = written[-1] if written else levels[0]["processing_mode"]
    return ProcessingModes(
        request_headers=enum(modes["request_header_mode"], _HEADER_MODES),
        request_body=enum(modes["request_body_mode"], _BODY_MODES),
        response_headers=enum(modes["response_header_mode"], _HEADER_MODES),
        response_body=enum(modes["response_body_mode"], _BODY_MODES),
    )


def _headers(places: tuple[ConfigNode, ...]) -> dict[str, str]:
    """Return the headers that a route adds to responses, by lower-case name; the most specific place wins."""
    return {
        entry["header"]["key"].text.lower(): entry["header"]["value"].text
        for place in places
        for entry in place["response_headers_to_add"].each()
    }


def _decisions(levels: tuple[ConfigNode, ...]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for level in levels:
        for metadata in (level.under("grpc_service", "initial_metadata"), level["grpc_initial_metadata"]):
            for entry in metadata.each():
                if entry["key"].text.lower().removeprefix("x-") == "truthlens-decision":
                    names = entry["value"].text.split(",")
                    found = frozenset(name.strip() for name in names if name.strip())
    return found
