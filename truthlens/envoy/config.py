"""Envoy's configuration for TruthLens, as plain data.

One function makes both the files in ``envoy/`` and what ``truthlens up`` runs, so that they cannot drift
apart. The choices behind every value are explained in ``envoy/README.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truthlens.api.paths import METHOD_OVERRIDE, PASSING_METHODS
from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.core.own_headers import OWN_HEADER
from truthlens.envoy.sidecar_tls import SidecarTls

_TYPE = "type.googleapis.com/envoy."
_HTTP = f"{_TYPE}extensions.filters.http."
_EXT_PROC = "envoy.filters.http.ext_proc"
_ROUTER = "router"
_ROUTER_FILTER = f"{_EXT_PROC}/{_ROUTER}"
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_MOST_MESSAGE_TIMEOUT_S = 3600.0  # Envoy refuses more
_BUFFER_BYTES = 64 << 20
_TLS_CONNECTION_S = 3600.0

# What is posted often, or in large bodies, and gets no answer of a model. The sidecar knows more of these
# (``paths``), and lets them pass at its first reply; Envoy takes no regular expression that holds them all.
_UNASKED = ("embeddings", "rerank", "score", "moderations", "audio/transcriptions", "files")

DEFAULT_ROUTER_HEADERS = ("x-domain",)

# Set by the route and overwritten by TruthLens: what a client sees when the sidecar could not be asked.
FAIL_OPEN_HEADERS = {
    "x-truthlens-enabled": "false",
    "x-truthlens-status": "unchecked",
    "x-truthlens-reason": "unavailable",
}
# Headers by which some servers serve another path than the request's. RE2 reads this pattern.
_PATH_OVERRIDE = "x[^a-z0-9](original|rewrite)[^a-z0-9]url"


@dataclass(frozen=True, slots=True)
class EnvoySettings:
    """What differs between deployments.

    Times in seconds, sizes in bytes.

    ``health`` has for each of ``extproc`` where its process answers health checks, ``None`` for where it does by default; only
    the port counts.

    ``sidecar_tls`` is ``None`` for plaintext to the sidecars.

    ``router`` is another external processor, which is asked before TruthLens; what it decides is its own.
    ``router_headers`` are the lower-case names of the request headers that only it may set.
    """

    listen: Address
    extproc: Sequence[Address]
    upstream: Upstream
    admin: Address | None = None
    failure_mode_allow: bool = True
    message_timeout_s: float = 10.0
    # The longest hold that the product has, a loop of 300 s, with what is asked for on top of it.
    max_message_timeout_s: float = 310.0
    # Longer than the longest message timeout: the filter fails open or closed as configured, this one answers
    # 504.
    idle_timeout_s: float = 330.0
    concurrency: int | None = None
    access_log: str | None = "/dev/stdout"
    router: Address | None = None
    router_headers: Sequence[str] = DEFAULT_ROUTER_HEADERS
    health: Sequence[Address] | None = None
    sidecar_tls: SidecarTls | None = None

    def __post_init__(self) -> None:
        """Refuse times that end an exchange in the wrong order, or that Envoy does not take.

        Raises:
            StartError: a time does not fit the others; the message says which and how.
        """
        if self.health is not None and len(self.health) != len(self.extproc):
            raise StartError(
                f"{len(self.health)} addresses for health checks of {len(self.extproc)} processes, expected one for each"
            )
        base, most, idle = self.message_timeout_s, self.max_message_timeout_s, self.idle_timeout_s
        if not 0 < base <= most:
            raise StartError(
                f"message_timeout_s is {base:g}, expected above 0 and at most max_message_timeout_s ({most:g})"
            )
        if most > _MOST_MESSAGE_TIMEOUT_S:
            raise StartError(
                f"max_message_timeout_s is {most:g}, expected at most {_MOST_MESSAGE_TIMEOUT_S:g}"
            )
        if 0 < idle <= most or idle < 0:
            raise StartError(
                f"idle_timeout_s is {idle:g}, expected above max_message_timeout_s ({most:g}), or 0 for none"
            )


def envoy_config(settings: EnvoySettings) -> dict[str, Any]:
    """Return the bootstrap configuration, ready for ``json.dumps`` or a YAML dump."""
    clusters = [_backend(settings), _sidecar(settings)]
    if settings.router:
        clusters.append({**_cluster(_ROUTER, [settings.router]), **_GRPC})
    config: dict[str, Any] = {
        "static_resources": {"listeners": [_listener(settings)], "clusters": clusters},
    }
    if settings.sidecar_tls is not None and settings.sidecar_tls.secrets is not None:
        config["node"] = {"id": "truthlens", "cluster": "truthlens"}  # Envoy takes no secrets without them
    if settings.admin:
        config["admin"] = {"address": _address(settings.admin)}
    return config


def render(settings: EnvoySettings) -> str:
    """Return the bootstrap configuration as JSON, which Envoy reads as well as YAML."""
    return json.dumps(envoy_config(settings), indent=1)


def _seconds(value: float) -> str:
    return f"{value:g}s"


def _listener(settings: EnvoySettings) -> dict[str, Any]:
    manager: dict[str, Any] = {
        "@type": f"{_TYPE}extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "llm",
        "codec_type": "AUTO",
        "http_protocol_options": {"accept_http_10": True},
        # A path is matched, and looked at by the sidecar, as the backend gets it.
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_FORWARD",
        "stream_idle_timeout": _seconds(settings.idle_timeout_s),
        "route_config": {
            "virtual_hosts": [{"name": "llm", "domains": ["*"], "routes": _routes(settings)}],
        },
        "http_filters": [
            *(_router_filters(settings.router_headers) if settings.router else []),
            {"name": _EXT_PROC, "typed_config": _processor(settings)},
            {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{_HTTP}router.v3.Router"}},
        ],
    }
    if settings.access_log:
        manager["access_log"] = [_access_log(settings.access_log)]
    return {
        "name": "llm",
        "address": _address(settings.listen),
        "per_connection_buffer_limit_bytes": 1 << 20,
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }


def _access_log(path: str) -> dict[str, Any]:
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": f"{_TYPE}extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {
                "json_format": {
                    "time": "%START_TIME%",
                    "request_id": "%REQ(X-REQUEST-ID)%",
                    "path": "%PATH(NQ)%",
                    "status": "%RESPONSE_CODE%",
                    "flags": "%RESPONSE_FLAGS%",
                    "details": "%RESPONSE_CODE_DETAILS%",
                    "duration_ms": "%DURATION%",
                    "truthlens": "%DYNAMIC_METADATA(truthlens)%",
                }
            },
        },
    }


def _routes(settings: EnvoySettings) -> list[dict[str, Any]]:
    route: dict[str, Any] = {
        "cluster": "llm_backend",
        # The default of 15 s cuts long answers; the client's own timeout and the idle timeout bound an
        # exchange.
        "timeout": "0s",
    }
    if settings.upstream.tls:
        route["host_rewrite_literal"] = settings.upstream.host
    if settings.upstream.prefix:
        route["regex_rewrite"] = {"pattern": {"regex": "^/"}, "substitution": f"{settings.upstream.prefix}/"}
    # No message at all to the sidecar for what holds no answer of a model, such as model lists and
    # embeddings, and no word of it: these pass while the sidecar is down, too, and bodies of any size.
    off = {"@type": f"{_HTTP}ext_proc.v3.ExtProcPerRoute", "disabled": True}
    filters = [_EXT_PROC, *([_ROUTER_FILTER] if settings.router else [])]
    methods = {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(PASSING_METHODS)}}}
    untouched = [
        {"match": match, "route": route, "typed_per_filter_config": dict.fromkeys(filters, off)}
        for match in (
            {"prefix": "/", "headers": [methods]},
            {"safe_regex": {"regex": f"(/v[12])?/({'|'.join(_UNASKED)})/?"}},
        )
    ]
    checked = {
        "match": {"prefix": "/"},
        "route": route,
        # Raises request and response buffering above the listener's limit.
        "request_body_buffer_limit": _BUFFER_BYTES,
        "response_headers_to_add": [
            {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
            for key, value in FAIL_OPEN_HEADERS.items()
        ],
    }
    return [*untouched, checked]


def _router_filters(headers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the filters before TruthLens's, the first of which removes ``headers`` from clients' requests.

    Raises:
        StartError: a name in ``headers`` is not one of a header, in lower case.
    """
    for name in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise StartError(f"--router-header is {name!r}, expected the name of a header, such as x-domain")
    cleared = _mutation("/router", {"request_mutations": [{"remove": name} for name in headers]})
    processor = {
        "@type": f"{_HTTP}ext_proc.v3.ExternalProcessor",
        "stat_prefix": "router",
        "grpc_service": {"envoy_grpc": {"cluster_name": _ROUTER}},
        # Where this filter waited for a reply to response headers, Envoy would end a streamed answer that
        # has arrived whole while TruthLens still holds text of it.
        "processing_mode": _modes(response_headers="SKIP"),
        "message_timeout": "2s",
        "failure_mode_allow": True,
    }
    return [*([cleared] if headers else []), {"name": _ROUTER_FILTER, "typed_config": processor}]


def _mutation(suffix: str, mutations: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"envoy.filters.http.header_mutation{suffix}",
        "typed_config": {"@type": f"{_HTTP}header_mutation.v3.HeaderMutation", "mutations": mutations},
    }


def _modes(*, response_headers: str) -> dict[str, Any]:
    return {
        "request_header_mode": "SEND",
        "request_body_mode": "BUFFERED",
        "request_trailer_mode": "SKIP",
        "response_header_mode": response_headers,
        "response_body_mode": "NONE",
        "response_trailer_mode": "SKIP",
    }


def _processor(settings: EnvoySettings) -> dict[str, Any]:
    return {
        "@type": f"{_HTTP}ext_proc.v3.ExternalProcessor",
        "grpc_service": {
            "envoy_grpc": {"cluster_name": "truthlens"},
            "retry_policy": {
                "num_retries": 2,
                "retry_on": "unavailable,connect-failure,reset,refused-stream",
            },
        },
        # TruthLens asks for the body of each answer that it can score, once it has seen the headers.
        "processing_mode": _modes(response_headers="SEND"),
        "allow_mode_override": True,
        "message_timeout": _seconds(settings.message_timeout_s),
        "max_message_timeout": _seconds(settings.max_message_timeout_s),
        "failure_mode_allow": settings.failure_mode_allow,
        "status_on_error": {"code": "ServiceUnavailable"},
        "request_attributes": ["request.id", "xds.route_name"],
        "metadata_options": {"receiving_namespaces": {"untyped": ["truthlens"]}},
    }


_LIMITS = {"thresholds": [{"max_connections": 10000, "max_pending_requests": 10000, "max_requests": 10000}]}


_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

# HTTP/2, and a processor that is frozen or cut off is found by keepalive.
_GRPC = {
    "typed_extension_protocol_options": {
        _HTTP_OPTIONS: {
            "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
            "explicit_http_config": {
                "http2_protocol_options": {"connection_keepalive": {"interval": "10s", "timeout": "3s"}}
            },
        }
    }
}


def _cluster(name: str, addresses: Sequence[Address]) -> dict[str, Any]:
    dns = any(address.port and not _is_ip(address.host) for address in addresses)
    return {
        "name": name,
        "type": "STRICT_DNS" if dns else "STATIC",
        "connect_timeout": "2s",
        "circuit_breakers": _LIMITS,
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(a)}} for a in addresses]}],
        },
    }


def _is_ip(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _backend(settings: EnvoySettings) -> dict[str, Any]:
    upstream = settings.upstream
    cluster = _cluster("llm_backend", [Address(upstream.host, upstream.port)])
    cluster["typed_extension_protocol_options"] = {_HTTP_OPTIONS: _no_words_of_ours()}
    if upstream.tls:
        cluster["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"{_TYPE}extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                "sni": upstream.host,
                "common_tls_context": {
                    "validation_context": {
                        "trusted_ca": {"filename": "/etc/ssl/certs/ca-certificates.crt"},
                        "match_typed_subject_alt_names": [
                            {"san_type": "DNS", "matcher": {"exact": upstream.host}}
                        ],
                    }
                },
            },
        }
    return cluster


def _no_words_of_ours() -> dict[str, Any]:
    """Return the filters before the backend, on any route, that remove our headers in both directions."""
    own, *overrides = (
        {"remove_on_match": {"key_matcher": {"safe_regex": {"regex": regex}}}}
        for regex in (OWN_HEADER, METHOD_OVERRIDE, _PATH_OVERRIDE)
    )
    # What passed as a GET of a path is served as one.
    mutations = {"request_mutations": [own, *overrides], "response_mutations": [own]}
    return {
        "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
        "explicit_http_config": {"http_protocol_options": {}},
        "http_filters": [
            _mutation("", mutations),
            {
                "name": "envoy.filters.http.upstream_codec",
                "typed_config": {"@type": f"{_HTTP}upstream_codec.v3.UpstreamCodec"},
            },
        ],
    }


def _sidecar(settings: EnvoySettings) -> dict[str, Any]:
    cluster = _cluster("truthlens", settings.extproc)
    (group,) = cluster["load_assignment"]["endpoints"]
    checked_at: Sequence[Address | None] = settings.health or [each.health for each in settings.extproc]
    for entry, health in zip(group["lb_endpoints"], checked_at, strict=True):
        if health is not None:
            # A port that is answered while the process is busy with exchanges.
            entry["endpoint"]["health_check_config"] = {"port_value": health.port}
    cluster["lb_policy"] = "LEAST_REQUEST"
    # Without this Envoy would send exchanges to processes that said they are draining.
    cluster["common_lb_config"] = {"healthy_panic_threshold": {"value": 0}}
    cluster["health_checks"] = [
        {
            "timeout": "1s",
            "interval": "1s",
            "no_traffic_interval": "1s",
            "unhealthy_threshold": 2,
            "healthy_threshold": 1,
            "grpc_health_check": {},
        }
    ]
    cluster.update(_GRPC)
    if settings.sidecar_tls is not None:
        cluster["transport_socket"] = settings.sidecar_tls.transport_socket()
        # A connection keeps the certificates that it began with, and ends when its last exchange has.
        renewed = {"common_http_protocol_options": {"max_connection_duration": _seconds(_TLS_CONNECTION_S)}}
        options = cluster["typed_extension_protocol_options"][_HTTP_OPTIONS]
        cluster["typed_extension_protocol_options"] = {_HTTP_OPTIONS: {**options, **renewed}}
    return cluster


def _address(address: Address) -> dict[str, Any]:
    """Return Envoy's ``Address`` message."""
    if not address.port:
        return {"pipe": {"path": address.host}}
    return {"socket_address": {"address": address.host, "port_value": address.port}}
