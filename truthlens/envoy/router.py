"""Build Envoy's configuration for a request router: another external processor, before TruthLens.

What the router decides is not known here; TruthLens reads its request headers, where the policy trusts them.
The reason for each value is in ``envoy/README.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truthlens.core.errors import StartError

_HTTP = "type.googleapis.com/envoy.extensions.filters.http."
CLUSTER = "router"
FILTER = "envoy.filters.http.ext_proc/router"
_CLEARED = "envoy.filters.http.header_mutation/router"

_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")


def router_filters(headers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the filters before TruthLens's, the first of which removes ``headers`` from clients' requests.

    Raises:
        StartError: a name in ``headers`` is not one of a header, in lower case.
    """
    for name in headers:
        if not _NAME.fullmatch(name):
            raise StartError(f"--router-header is {name!r}, expected the name of a header, such as x-domain")
    mutations = {"request_mutations": [{"remove": name} for name in headers]}
    cleared = {
        "name": _CLEARED,
        "typed_config": {"@type": f"{_HTTP}header_mutation.v3.HeaderMutation", "mutations": mutations},
    }
    return [*([cleared] if headers else []), {"name": FILTER, "typed_config": _processor()}]


def _processor() -> dict[str, Any]:
    return {
        "@type": f"{_HTTP}ext_proc.v3.ExternalProcessor",
        "stat_prefix": "router",
        "grpc_service": {"envoy_grpc": {"cluster_name": CLUSTER}},
        "processing_mode": {
            "request_header_mode": "SEND",
            "request_body_mode": "BUFFERED",
            "request_trailer_mode": "SKIP",
            # Where this filter waited for a reply to response headers, Envoy would end a streamed answer that
            # has arrived whole while TruthLens still holds text of it.
            "response_header_mode": "SKIP",
            "response_body_mode": "NONE",
            "response_trailer_mode": "SKIP",
        },
        "message_timeout": "2s",
        "failure_mode_allow": True,
    }
