"""Define the settings of a process: addresses, paths, sizes.

Read once, by the command line.

Every field has a flag and an environment variable (``TRUTHLENS_<FIELD>``, see ``truthlens serve --help``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truthlens.core.net import Address, Upstream

DEFAULT_LISTEN = "127.0.0.1:10000"
DEFAULT_EXTPROC = "127.0.0.1:18080"
DEFAULT_CONSOLE = "127.0.0.1:8088"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one serving process.

    Args:
        extproc: address of the gRPC server.
        console: address of the console and metrics.
        config: policy file; ``None`` for the built-in policy.
        models: folder of model folders; ``None`` for the one that came with the package.
        threads: threads of one scoring.
        workers: scorings at the same time.
        tls_certificate: PEM chain for ext_proc; ``None`` for plaintext.
        tls_key: PEM key that belongs to it.
        tls_client_ca: PEM roots of accepted client certificates; ``None`` accepts all.
        drain_notice_s: how long health says NOT_SERVING before streams are refused.
        drain_grace_s: how long exchanges in flight may then take.
        reload: whether the policy file is watched.
        upstream: the backend that models without a base URL of their own are asked at; ``None`` for none.
        redis: URL of the Redis that keeps what mode auto has learned, and results of models where the policy's
            ``cache.redis`` allows it; ``None`` for this process's memory.
        secret: shared by the processes of a fleet, so that each knows the calls of the others when they come
            back through the gateway; ``None`` for one that the processes of this user on this machine share.
        console_hosts: names, beside loopback and its own address, by which browsers may call the console.
        review_database: URL of the database of the review queue; ``None`` for no queue.
        console_token: what the console wants of everybody but probes and Prometheus; ``None`` for nothing.
    """

    extproc: Address
    console: Address
    config: Path | None = None
    models: Path | None = None
    threads: int = 1
    workers: int = 1
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    drain_notice_s: float = 3.0
    drain_grace_s: float = 65.0
    reload: bool = True
    upstream: Upstream | None = None
    redis: str | None = None
    secret: bytes | None = None
    console_hosts: tuple[str, ...] = ()
    console_token: str | None = None
    review_database: str | None = None


def models_folder(override: Path | None = None) -> Path:
    """Return the folder of model folders: ``override``, the repository's ``models/`` or the installed one."""
    if override is not None:
        return override
    package = Path(__file__).parent
    checkout = package.parent / "models"
    return checkout if checkout.is_dir() else package / "_models"


def shipped_policy() -> Path:
    """Return the policy file that TruthLens ships with: the repository's or the installed one."""
    package = Path(__file__).parent
    checkout = package.parent / "config" / "truthlens.yaml"
    return checkout if checkout.is_file() else package / "_config" / "truthlens.yaml"
