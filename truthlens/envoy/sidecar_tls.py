"""Envoy's side of TLS to the sidecar, and the files of secrets by which it takes over new certificates without a restart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from truthlens.core.errors import StartError

_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3."
_CLIENT, _ROOTS = "truthlens_client", "truthlens_roots"


@dataclass(frozen=True, slots=True)
class SidecarTls:
    """Files and names as Envoy sees them.

    Args:
        ca: roots of the sidecars' certificates.
        name: the alternative name that their certificates have.
        certificate: the chain that Envoy shows, with ``key``; ``None`` where it is not asked for one.
        key: its private key.
        secrets: a folder with the files of ``secret_files``, by which Envoy follows changes; without it Envoy reads once.

    Raises:
        StartError: one of them is given without another that it needs.
    """

    ca: str
    name: str
    certificate: str | None = None
    key: str | None = None
    secrets: str | None = None

    def __post_init__(self) -> None:
        """Refuse half a pair."""
        if (self.certificate is None) != (self.key is None):
            raise StartError("--extproc-cert and --extproc-key go together")

    def transport_socket(self) -> dict[str, Any]:
        """Return the ``transport_socket`` of the sidecars' cluster."""
        if self.secrets is None:
            common: dict[str, Any] = {"validation_context": self._roots()}
            if self.certificate is not None:
                common["tls_certificates"] = [self._pair()]
        else:
            common = {"validation_context_sds_secret_config": _from_file(self.secrets, _ROOTS)}
            if self.certificate is not None:
                common["tls_certificate_sds_secret_configs"] = [_from_file(self.secrets, _CLIENT)]
        # gRPC takes no connection that does not negotiate HTTP/2.
        common["alpn_protocols"] = ["h2"]
        context = {"@type": f"{_TLS}UpstreamTlsContext", "sni": self.name, "common_tls_context": common}
        return {"name": "envoy.transport_sockets.tls", "typed_config": context}

    def secret_files(self) -> dict[str, dict[str, Any]]:
        """Return the contents of the files in ``secrets``, by their names; Envoy takes one secret of each."""
        found: dict[str, dict[str, Any]] = {_ROOTS: {"validation_context": self._roots(watched=True)}}
        if self.certificate is not None:
            found[_CLIENT] = {"tls_certificate": self._pair(watched=True)}
        return {
            f"{name}.json": {"resources": [{"@type": f"{_TLS}Secret", "name": name, **secret}]}
            for name, secret in found.items()
        }

    def _roots(self, *, watched: bool = False) -> dict[str, Any]:
        ca = {"filename": self.ca, **(_watched(self.ca) if watched else {})}
        names = [{"san_type": "DNS", "matcher": {"exact": self.name}}]
        return {"trusted_ca": ca, "match_typed_subject_alt_names": names}

    def _pair(self, *, watched: bool = False) -> dict[str, Any]:
        files = {"certificate_chain": {"filename": self.certificate}, "private_key": {"filename": self.key}}
        return {**files, **(_watched(self.certificate or "") if watched else {})}


def _from_file(folder: str, name: str) -> dict[str, Any]:
    source = {"path_config_source": {"path": f"{folder}/{name}.json"}, "resource_api_version": "V3"}
    return {"name": name, "sds_config": source}


def _watched(path: str) -> dict[str, Any]:
    # The folder, in which cert-manager and the kubelet swap a symbolic link: the files themselves never move.
    return {"watched_directory": {"path": str(PurePosixPath(path).parent)}}
