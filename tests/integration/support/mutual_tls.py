"""Mutual TLS between Envoy and sidecars, with certificates that can be renewed while both run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.certificates import SecretFolder, issued
from truthlens.envoy.sidecar_tls import SidecarTls

SERVER, CLIENT = "truthlens", "envoy.gateway"


class MutualTls:
    """A folder with the certificates of both sides, from one authority, and what Envoy and ``truthlens serve`` need of it."""

    def __init__(self, folder: Path, *, days: float = 30) -> None:
        self._days = days
        self.ca = issued(days=days)
        self.server, self.client = (
            SecretFolder(folder / name, issued(of, by=self.ca, days=days), self.ca)
            for name, of in (("server", SERVER), ("client", CLIENT))
        )
        certificate, key, ca = map(str, self.client.files)
        self.envoy = SidecarTls(ca, SERVER, certificate, key, str(folder))
        for name, content in self.envoy.secret_files().items():
            (folder / name).write_text(json.dumps(content))

    @property
    def arguments(self) -> list[str]:
        """What ``truthlens serve`` is started with."""
        options = zip(
            ("--tls-cert", "--tls-key", "--tls-client-ca"), map(str, self.server.files), strict=True
        )
        return [*(word for pair in options for word in pair), "--tls-client-name", CLIENT]

    def renew(self) -> None:
        """Put new certificates in the place of those of both sides."""
        self.server.swap(issued(SERVER, by=self.ca, days=self._days), self.ca)
        self.client.swap(issued(CLIENT, by=self.ca, days=self._days), self.ca)


def reconnecting(bootstrap: str) -> str:
    """Return Envoy's configuration with a new connection to the sidecars every second, each with the newest certificates."""
    config: dict[str, Any] = json.loads(bootstrap)
    for cluster in config["static_resources"]["clusters"]:
        for options in cluster.get("typed_extension_protocol_options", {}).values():
            if "common_http_protocol_options" in options:
                options["common_http_protocol_options"]["max_connection_duration"] = "1s"
    return json.dumps(config)
