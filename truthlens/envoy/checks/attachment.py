"""Check how TruthLens is attached to an Envoy: sizes, protocols, headers and neighbours.

``timeouts`` looks at the rest of the same bootstrap. Of a policy only the limits count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from truthlens.core.limits import Limits
from truthlens.core.net import Address
from truthlens.envoy.checks.bootstrap import (
    ActiveRoute,
    PlacedFilter,
    active_routes,
    cluster_named,
    filters_of,
)
from truthlens.envoy.checks.nodes import ConfigNode, as_yaml, flag
from truthlens.yamlfile.diagnostics import Diagnostic, Report
from truthlens.yamlfile.source import read_document

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_DECOMPRESSOR = "envoy.extensions.filters.http.decompressor.v3.Decompressor"
_BUFFER = "envoy.extensions.filters.http.buffer.v3.Buffer"
_MUTATION = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
_UPSTREAM_TLS = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_OWN_CERTIFICATES = (
    "tls_certificates",
    "tls_certificate_sds_secret_configs",
    "tls_certificate_provider_instance",
)
_NAMESPACE = "truthlens"
_PROBE = "x-truthlens-status"
# Envoy's own limit where a listener names none.
_BUFFER_BYTES = 1 << 20
# What a message of ext_proc has beside its body.
_ENVELOPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SidecarEndpoint:
    """Where Envoy asks a sidecar, its port of health checks (``None``: the same), and the place in the file.

    ``tls``: it speaks TLS there; ``certificate``: it shows one.
    """

    address: Address
    health_port: int | None
    place: str
    tls: bool = False
    certificate: bool = False


def attachment_diagnostics(text: str, *, file: str, limits: Limits) -> list[Diagnostic]:
    """Return all errors, then all warnings, of the bootstrap ``text``; empty where everything fits.

    What is no bootstrap with an ext_proc filter has none: ``timeouts`` reports that.
    """
    document = read_document(as_yaml(text), file=file)
    report = Report(file, document.report.lines)
    if document.data is not None:
        root = ConfigNode(document.data, ())
        for placed in filters_of(root):
            _AttachmentCheck(report, root, placed, limits).run()
    return list(dict.fromkeys([*report.errors, *report.warnings]))


def endpoints_of(text: str, *, file: str) -> list[SidecarEndpoint]:
    """Return where the bootstrap ``text`` asks TruthLens, as far as the addresses stand in it."""
    document = read_document(as_yaml(text), file=file)
    if document.data is None:
        return []
    root = ConfigNode(document.data, ())
    found: dict[str, SidecarEndpoint] = {}
    for placed in filters_of(root):
        cluster = _cluster(root, placed)
        if cluster is None:
            continue
        tls = cluster.under("transport_socket", "typed_config")
        common = tls["common_tls_context"]
        speaks_tls = tls.type == _UPSTREAM_TLS
        certified = any(common[name].written for name in _OWN_CERTIFICATES)
        for group in cluster.under("load_assignment", "endpoints").each():
            for entry in group["lb_endpoints"].each():
                line = document.report.line(entry.path)
                if (endpoint := _endpoint(entry["endpoint"], f"{file}:{line}")) is not None:
                    found.setdefault(
                        str(endpoint.address), replace(endpoint, tls=speaks_tls, certificate=certified)
                    )
    return list(found.values())


def stat_prefixes_of(text: str) -> set[str]:
    """Return what stands before the counters of TruthLens's filters: ``""``, or a name and a dot."""
    document = read_document(as_yaml(text), file="")
    if document.data is None:
        return set()
    named = (
        each.entry["typed_config"]["stat_prefix"].text for each in filters_of(ConfigNode(document.data, ()))
    )
    return {f"{name}." if name else "" for name in named}


def _endpoint(node: ConfigNode, place: str) -> SidecarEndpoint | None:
    health = node.under("health_check_config", "port_value").value
    port = health if isinstance(health, int) and health else None
    pipe = node.under("address", "pipe", "path").text
    socket = node.under("address", "socket_address")
    number = socket["port_value"].value
    if pipe:
        return SidecarEndpoint(Address(pipe, 0), port, place)
    if not isinstance(number, int):
        return None
    return SidecarEndpoint(Address(socket["address"].text, number), port, place)


def _cluster(root: ConfigNode, placed: PlacedFilter) -> ConfigNode | None:
    name = placed.entry["typed_config"].under("grpc_service", "envoy_grpc", "cluster_name")
    return cluster_named(root, name.text)


@dataclass(frozen=True, slots=True)
class _AttachmentCheck:
    report: Report
    root: ConfigNode
    placed: PlacedFilter
    limits: Limits

    def run(self) -> None:
        routes = list(active_routes(self.placed))
        for route in routes:
            self._full_duplex(route)
            self._buffers(route)
            self._own_headers(route)
        self._messages()
        self._protocol()
        self._metadata()
        self._neighbours()

    def _full_duplex(self, route: ActiveRoute) -> None:
        modes = route.find("processing_mode")
        duplex = [
            name
            for name in ("request_body_mode", "response_body_mode")
            if modes[name].value in ("FULL_DUPLEX_STREAMED", 4)
        ]
        fails_open = route.find("failure_mode_allow")
        if duplex and flag(fails_open).value:
            self.report.error(
                fails_open.path,
                f"failure_mode_allow is true with {duplex[0]}: FULL_DUPLEX_STREAMED, in which Envoy "
                "has given each piece away "
                "before it is answered: nothing is left to pass on when the sidecar fails, and the "
                "exchange breaks off",
                f"write {duplex[0]}: {'BUFFERED' if duplex[0].startswith('request') else 'NONE'}, or "
                "failure_mode_allow: false",
            )

    def _buffers(self, route: ActiveRoute) -> None:
        needed = self.limits.max_body_bytes
        named = [
            place[name]
            for place in (route.route, route.host)
            for name in ("request_body_buffer_limit", "per_request_buffer_limit_bytes")
        ]
        listener = self.placed.listener["per_connection_buffer_limit_bytes"]
        written = next((each for each in (*named, listener) if each.written), listener)
        limit = _number(written)
        limit = _BUFFER_BYTES if limit is None else limit
        if limit < needed:
            says = f"{written.path[-1]} is {limit} bytes{'' if written.written else ' by default'}"
            self.report.error(
                written.path,
                f"{says}, and the policy checks bodies of up to {needed} (limits.max_body_bytes): a "
                "larger request gets 413 and a "
                "larger answer 500, also where the filter fails open",
                f"add request_body_buffer_limit: {max(needed, 64 << 20)} to the route, or in the "
                "policy limits.max_body_bytes: "
                f"{limit} or less",
            )

    def _own_headers(self, route: ActiveRoute) -> None:
        missing = [way for way in ("request", "response") if not self._removes(route, way)]
        if missing:
            self.report.warn(
                route.route.path,
                f"nothing removes x-truthlens-* of {' and '.join(f'{way}s' for way in missing)} on the "
                "way to and from the "
                "backend: while the sidecar is not asked, headers that a client or a backend wrote "
                "pass for TruthLens's",
                "copy the header_mutation filter from the backend's cluster of envoy/truthlens.yaml",
            )

    def _removes(self, route: ActiveRoute, way: str) -> bool:
        table = self.placed.manager["route_config"]
        for place in (route.route, route.host, table):
            if any(each.text.lower() == _PROBE for each in place[f"{way}_headers_to_remove"].each()):
                return True
        if any(_strips(each, way) for each in self.placed.manager["http_filters"].each()):
            return True
        clusters = [cluster_named(self.root, name) for name in route.targets]
        behind = [
            list(cluster.under("typed_extension_protocol_options", _HTTP_OPTIONS, "http_filters").each())
            for cluster in clusters
            if cluster is not None
        ]
        # Of a cluster that is not in the file nothing is known.
        return len(behind) < len(clusters) or all(
            any(_strips(each, way) for each in chain) for chain in behind
        )

    def _messages(self) -> None:
        service = self.placed.entry["typed_config"]["grpc_service"]
        node = service.under("envoy_grpc", "max_receive_message_length")
        limit = _number(node)
        needed = self.limits.max_body_bytes + _ENVELOPE_BYTES
        if limit is not None and limit < needed:
            self.report.error(
                node.path,
                f"Envoy takes messages of up to {limit} bytes from the sidecar, which sends bodies of up to "
                f"{self.limits.max_body_bytes} back (limits.max_body_bytes): such an exchange fails",
                f"write max_receive_message_length: {needed} or more, or remove it",
            )

    def _protocol(self) -> None:
        cluster = _cluster(self.root, self.placed)
        if cluster is None:
            return
        options = cluster.under("typed_extension_protocol_options", _HTTP_OPTIONS)
        ways = (
            options.under("explicit_http_config", "http2_protocol_options"),
            options.under("use_downstream_protocol_config", "http2_protocol_options"),
            options["auto_config"],
            cluster["http2_protocol_options"],
        )
        if not any(way.written for way in ways):
            self.report.error(
                cluster.path,
                f"the cluster {cluster['name'].text!r} speaks HTTP/1.1, and gRPC needs HTTP/2: every "
                "exchange fails",
                "add http2_protocol_options to its HttpProtocolOptions, as envoy/truthlens.yaml does",
            )

    def _metadata(self) -> None:
        config = self.placed.entry["typed_config"]
        taken = config.under("metadata_options", "receiving_namespaces", "untyped")
        if not any(each.text == _NAMESPACE for each in taken.each()):
            self.report.warn(
                taken.path,
                f"the metadata namespace {_NAMESPACE!r} cannot be written, so that Envoy's access log "
                "has no verdict",
                f"add {_NAMESPACE} to metadata_options.receiving_namespaces.untyped",
            )

    def _neighbours(self) -> None:
        for entry in self.placed.manager["http_filters"].each():
            config = entry["typed_config"]
            if config.type == _DECOMPRESSOR and entry["disabled"].value is not True:
                self.report.error(
                    entry.path,
                    "a decompressor in one chain with ext_proc: a compressed body that the sidecar "
                    "asks for never arrives, and "
                    "the exchange hangs (envoyproxy/envoy issue 21205)",
                    "remove it; TruthLens reads compressed bodies by itself",
                )
            most = _number(config["max_request_bytes"]) if config.type == _BUFFER else None
            if most is not None and most < self.limits.max_body_bytes:
                self.report.warn(
                    config["max_request_bytes"].path,
                    f"the filter {entry['name'].text!r} refuses requests of more than {most} bytes, "
                    "which the policy would check "
                    f"(limits.max_body_bytes is {self.limits.max_body_bytes})",
                    "raise it, or remove the filter",
                )


def _number(node: ConfigNode) -> int | None:
    """Return the number at ``node``, which protobuf's JSON writes as text where it has 64 bits."""
    text = str(node.value)
    return int(text) if node.written and text.isascii() and text.isdigit() else None


def _strips(entry: ConfigNode, way: str) -> bool:
    """Return whether a filter removes TruthLens's headers of requests or responses."""
    config = entry["typed_config"]
    if config.type != _MUTATION:
        return False
    return any(_matches(each) for each in config.under("mutations", f"{way}_mutations").each())


def _matches(mutation: ConfigNode) -> bool:
    if mutation["remove"].text.lower() == _PROBE:
        return True
    return any(_tests(mutation.under("remove_on_match", "key_matcher")))


def _tests(matcher: ConfigNode) -> Iterator[bool]:
    yield matcher["exact"].text == _PROBE
    if prefix := matcher["prefix"].text:
        yield _PROBE.startswith(prefix)
    if regex := matcher.under("safe_regex", "regex").text:
        try:
            yield re.fullmatch(regex, _PROBE) is not None
        except re.error:
            yield False  # RE2 knows some that Python does not
