"""The options that say who may use the console, for ``up`` and ``serve``."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from truthlens.cli.options import in_place_of, setting, setting_file
from truthlens.cli.secret_files import read_secret, read_text
from truthlens.core.errors import StartError
from truthlens.core.net import Address, is_loopback
from truthlens.process.settings import Access, Login, Oidc

TOKEN_VARIABLE = "TRUTHLENS_CONSOLE_TOKEN"  # noqa: S105 - the variable's name
OIDC_SECRET_VARIABLE = "TRUTHLENS_CONSOLE_OIDC_CLIENT_SECRET"  # noqa: S105 - the variable's name

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")


def console_access(
    *,
    console: str,
    console_host: Annotated[
        list[str] | None,
        setting(
            "console-host",
            "Another name by which browsers may call the console (its own address and loopback always may). Repeat "
            "for several.",
        ),
    ] = None,
    console_login: Annotated[
        Login | None,
        setting(
            "console-login",
            "How people log in to the console (docs/console-access.md). Default: token where one is given, else none, "
            "which only a console on 127.0.0.1 or a unix socket may have.",
        ),
    ] = None,
    console_token_file: Annotated[
        Path | None,
        setting_file(
            "console-token-file",
            f"Token whose holders may use and review everything; or put the token itself into {TOKEN_VARIABLE}.",
        ),
    ] = None,
    console_viewer_token_file: Annotated[
        Path | None,
        setting_file("console-viewer-token-file", "Token whose holders may look, and not review."),
    ] = None,
    console_trusted_proxy: Annotated[
        list[str] | None,
        setting(
            "console-trusted-proxy",
            "Address or network of a reverse proxy whose X-Forwarded headers are believed (127.0.0.1, 10.0.0.0/8). "
            "Repeat for several.",
        ),
    ] = None,
    console_user_header: Annotated[
        str | None,
        setting("console-user-header", "Header with the user's name, login proxy (X-Forwarded-User)."),
    ] = None,
    console_groups_header: Annotated[
        str | None,
        setting("console-groups-header", "Header with the user's groups, login proxy (X-Forwarded-Groups)."),
    ] = None,
    console_reviewer: Annotated[
        list[str] | None,
        setting(
            "console-reviewer",
            "Name of a user who may review, logins proxy and oidc; all others may look. Repeat for several.",
        ),
    ] = None,
    console_reviewer_group: Annotated[
        list[str] | None,
        setting(
            "console-reviewer-group",
            "Group whose members may review, logins proxy and oidc. Repeat for several.",
        ),
    ] = None,
    console_oidc_issuer: Annotated[
        str | None, setting("console-oidc-issuer", "URL of the OpenID provider, login oidc.")
    ] = None,
    console_oidc_client_id: Annotated[
        str | None, setting("console-oidc-client-id", "The console's client id at the provider.")
    ] = None,
    console_oidc_client_secret_file: Annotated[
        Path | None,
        setting_file(
            "console-oidc-client-secret-file",
            f"The console's client secret; or put the secret itself into {OIDC_SECRET_VARIABLE}.",
        ),
    ] = None,
    console_oidc_name_claim: Annotated[
        str | None,
        setting(
            "console-oidc-name-claim", "Claim of the ID token with the user's name (preferred_username)."
        ),
    ] = None,
    console_oidc_groups_claim: Annotated[
        str | None, setting("console-oidc-groups-claim", "Claim of the ID token with the groups (groups).")
    ] = None,
    console_oidc_scope: Annotated[
        str | None,
        setting(
            "console-oidc-scope", "Scopes that are asked for, separated by spaces (openid profile email)."
        ),
    ] = None,
    console_session_key_file: Annotated[
        Path | None,
        setting_file(
            "console-session-key-file",
            "Key (16 bytes or more) that signs sessions, so that they outlive a restart and hold in all processes. "
            "Default: a random one.",
        ),
    ] = None,
) -> Access:
    """Return who may use the console.

    Raises:
        StartError: the options contradict each other, or something is missing.
    """
    given = {name.removeprefix("console_"): value for name, value in locals().items() if value}
    token = _secret_text(console_token_file, "--console-token-file", TOKEN_VARIABLE)
    viewer_token = _secret_text(console_viewer_token_file, "--console-viewer-token-file")
    login = console_login or (Login.TOKEN if token is not None else Login.NONE)
    proxies = tuple(map(_network, given.get("trusted_proxy", ())))
    for is_wrong, message in (
        (
            login is Login.TOKEN and token is None,
            "--console-login token needs --console-token-file: openssl rand -hex 32 > FILE",
        ),
        (
            login in (Login.NONE, Login.PROXY) and (token or viewer_token),
            f"--console-login {login} asks nobody for a token; leave the token or this login out",
        ),
        (
            viewer_token is not None and viewer_token == token,
            "--console-viewer-token-file holds the token of the reviewers; give it one of its own",
        ),
        (
            login is Login.PROXY and not proxies and Address.parse(console, name="--console").port,
            "--console-login proxy needs --console-trusted-proxy, the proxy's address: 127.0.0.1",
        ),
    ):
        if is_wrong:
            raise StartError(message)
    _check_belonging(given, login)
    headers = {name: _header(given[name]) for name in ("user_header", "groups_header") if name in given}
    secret = _secret_text(
        console_oidc_client_secret_file, "--console-oidc-client-secret-file", OIDC_SECRET_VARIABLE
    )
    return Access(
        hosts=frozenset(given.get("host", ())),
        login=login,
        token=token,
        viewer_token=viewer_token,
        trusted_proxies=proxies,
        reviewers=tuple(given.get("reviewer", ())),
        reviewer_groups=tuple(given.get("reviewer_group", ())),
        oidc=_oidc(given, secret) if login is Login.OIDC else None,
        session_key=read_secret(console_session_key_file, "--console-session-key-file"),
        **headers,
    )


takes_console_access = in_place_of("access", console_access)
"""Gives a command the options of ``console_access``."""


def _check_belonging(given: Mapping[str, Any], login: Login) -> None:
    """Refuse options that this login does not read: who gave them expects something of them."""
    for start, logins in (
        ("user_header", (Login.PROXY,)),
        ("groups_header", (Login.PROXY,)),
        ("reviewer", (Login.PROXY, Login.OIDC)),
        ("oidc_", (Login.OIDC,)),
        ("session_key_file", (Login.TOKEN, Login.OIDC)),
    ):
        for option in sorted(given):
            if option.startswith(start) and login not in logins:
                flag = f"--console-{option.replace('_', '-')}"
                raise StartError(f"{flag} goes with --console-login {' or '.join(logins)}, not {login}")


def _header(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise StartError(f"{name!r} is no header's name; expected one such as X-Forwarded-User")
    return name


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise StartError(
            f"--console-trusted-proxy is {text!r}, expected an address or a network: 127.0.0.1, 10.0.0.0/8"
        ) from None


def _oidc(given: Mapping[str, Any], secret: str | None) -> Oidc:
    if importlib.util.find_spec("authlib") is None:
        raise StartError("--console-login oidc needs Authlib: pip install 'truthlens[oidc]'")
    issuer, client_id = given.get("oidc_issuer"), given.get("oidc_client_id")
    if not issuer or not client_id or not secret:
        needed = {"issuer": issuer, "client-id": client_id, "client-secret-file": secret}
        missing = ", ".join(f"--console-oidc-{name}" for name, value in needed.items() if not value)
        raise StartError(f"--console-login oidc needs {missing}")
    parts = urlsplit(issuer)
    local = parts.hostname is not None and (parts.hostname == "localhost" or is_loopback(parts.hostname))
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise StartError(f"--console-oidc-issuer is {issuer!r}, expected https://HOST or https://HOST/PATH")
    more = {
        name: given[f"oidc_{name}"]
        for name in ("name_claim", "groups_claim", "scope")
        if f"oidc_{name}" in given
    }
    found = Oidc(issuer, client_id, secret, **more)
    if "openid" not in found.scope.split():
        raise StartError(f"--console-oidc-scope is {found.scope!r}; it has to contain openid")
    return found


def _secret_text(file: Path | None, flag: str, variable: str | None = None) -> str | None:
    value = os.environ.get(variable) if variable else None
    if file is not None and value is not None:
        raise StartError(f"{flag} and {variable} are both set; give one")
    text = value if file is None else read_text(file, flag)
    if text is None:
        return None
    if not text.strip():
        source = variable if file is None else f"{flag} {file}"
        raise StartError(f"{source} is empty, so it would protect nothing: openssl rand -hex 32")
    return text.strip()
