"""Define the settings of a process: addresses, paths, sizes.

Read once, by the command line.

Every field has a flag and an environment variable (``TRUTHLENS_<FIELD>``, see ``truthlens serve --help``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from truthlens.core.net import Address, Upstream

DEFAULT_LISTEN = "127.0.0.1:10000"
DEFAULT_DRAIN_GRACE_S = 65.0
DEFAULT_EXTPROC = "127.0.0.1:18080"
DEFAULT_SOCKET_MODE = 0o600
DEFAULT_CONSOLE = "127.0.0.1:8088"
DEFAULT_USER_HEADER = "X-Forwarded-User"
DEFAULT_GROUPS_HEADER = "X-Forwarded-Groups"
DEFAULT_NAME_CLAIM = "preferred_username"
DEFAULT_GROUPS_CLAIM = "groups"
DEFAULT_SCOPE = "openid profile email"


class Login(StrEnum):
    """How people and programs log in to the console."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - a way of login
    PROXY = "proxy"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True)
class Oidc:
    """The OpenID provider that people log in at, and what of its ID tokens says who they are.

    Args:
        issuer: its URL, as in its discovery document.
        client_id: the console's name there.
        client_secret: what the console proves itself with.
        name_claim: the claim that holds the user's name.
        groups_claim: the claim that holds a list of groups.
        scope: what is asked for, separated by spaces.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name_claim: str = DEFAULT_NAME_CLAIM
    groups_claim: str = DEFAULT_GROUPS_CLAIM
    scope: str = DEFAULT_SCOPE


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use the console.

    Args:
        hosts: names, beside loopback and its own address, by which browsers may call the console; ``None`` for any
            (a unix socket, where the proxy in front of it checks them).
        login: how people log in.
        token: its holders are reviewers; with login ``token``, and for programs with login ``oidc``.
        viewer_token: its holders are viewers.
        trusted_proxies: whose ``X-Forwarded-*`` headers and user header are believed.
        user_header: the header in which a trusted proxy says who asks.
        groups_header: the header in which it says of which groups they are, separated by commas.
        reviewers: names of the users that are reviewers.
        reviewer_groups: groups whose members are reviewers.
        oidc: the provider of login ``oidc``.
        session_key: signs sessions, the same in all processes that share them; ``None`` for a random one.

    Raises:
        ValueError: a token is given that would not be asked for.
    """

    hosts: frozenset[str] | None = frozenset()
    login: Login = Login.NONE
    token: str | None = field(default=None, repr=False)
    viewer_token: str | None = field(default=None, repr=False)
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    user_header: str = DEFAULT_USER_HEADER
    groups_header: str = DEFAULT_GROUPS_HEADER
    reviewers: tuple[str, ...] = ()
    reviewer_groups: tuple[str, ...] = ()
    oidc: Oidc | None = None
    session_key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what would leave the console open against the wish of whoever wrote it."""
        if (self.token or self.viewer_token) and self.login not in (Login.TOKEN, Login.OIDC):
            raise ValueError(f"login {self.login} asks nobody for a token")


def shipped_policy() -> Path:
    """Return the policy file that TruthLens ships with: the repository's or the installed one."""
    package = Path(__file__).parents[1]
    checkout = package.parent / "config" / "truthlens.yaml"
    return checkout if checkout.is_file() else package / "_config" / "truthlens.yaml"


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Which exchanges are captured, and where to.

    Args:
        file: JSON lines; ``{pid}`` in its name becomes the id of the process.
        sample: share of the exchanges, 0..1.
        most_exchanges: after so many nothing more is captured until the next start; ``None`` for no end.
        most_bytes: of one file; then it becomes ``FILE.1``, and a new one is begun.
        files: files at most, the oldest is deleted.
    """

    file: Path
    sample: float = 1.0
    most_exchanges: int | None = 10_000
    most_bytes: int = 64 << 20
    files: int = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one serving process.

    Args:
        extproc: address of the gRPC server.
        console: address of the console and metrics.
        config: policy file, by default the shipped one.
        models: folder of model folders; ``None`` for the one that came with the package.
        threads: threads of one scoring.
        workers: scorings at the same time.
        tls_certificate: PEM chain for ext_proc; ``None`` for plaintext.
        tls_key: PEM key that belongs to it.
        tls_client_ca: PEM roots of accepted client certificates; ``None`` accepts all.
        tls_client_names: alternative names of which a client's certificate needs one; empty for any.
        socket_mode: permission bits of a unix socket of ext_proc.
        drain_notice_s: how long health says NOT_SERVING before streams are refused.
        drain_grace_s: how long exchanges in flight may then take.
        reload: whether the policy file is watched.
        upstream: the backend that models without a base URL of their own are asked at; ``None`` for none.
        redis: URL of the Redis that keeps what mode auto has learned, and results of models where the policy's
            ``cache.redis`` allows it; ``None`` for this process's memory.
        secret: shared by the processes of a fleet, so that each knows the calls of the others when they come
            back through the gateway; ``None`` for one that the processes of this user on this machine share.
        access: who may use the console.
        review_database: URL of the database of the review queue; ``None`` for no queue.
        health: where health checks are answered by threads of their own; ``None`` for 1000 above the port of ``extproc``.
        capture: whether exchanges are captured with their texts; ``None`` for none.
    """

    extproc: Address
    console: Address
    config: Path = field(default_factory=shipped_policy)
    models: Path | None = None
    threads: int = 1
    workers: int = 1
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    tls_client_names: frozenset[str] = frozenset()
    socket_mode: int = DEFAULT_SOCKET_MODE
    drain_notice_s: float = 3.0
    drain_grace_s: float = DEFAULT_DRAIN_GRACE_S
    reload: bool = True
    upstream: Upstream | None = None
    redis: str | None = None
    secret: bytes | None = None
    access: Access = Access()
    review_database: str | None = None
    health: Address | None = None
    capture: CaptureSettings | None = None


def models_folder(override: Path | None = None) -> Path:
    """Return the folder of model folders: ``override``, the repository's ``models/`` or the installed one."""
    if override is not None:
        return override
    package = Path(__file__).parents[1]
    checkout = package.parent / "models"
    return checkout if checkout.is_dir() else package / "_models"
