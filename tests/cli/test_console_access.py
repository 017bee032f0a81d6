"""The options that say who may use the console: what they come to, and which of them contradict each other."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.test_newcomer import run_server
from tests.fakes.ports import free_port
from truthlens.cli import command_line
from truthlens.cli.console_access import OIDC_SECRET_VARIABLE, TOKEN_VARIABLE, console_access
from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.process.app import _check_login, _console_access
from truthlens.process.settings import Access, Login, Settings

LOCAL, OPEN = "127.0.0.1:8088", "0.0.0.0:8088"
DOCUMENT = Path(__file__).parents[2] / "docs" / "console-access.md"
OIDC = {
    "console_login": Login.OIDC,
    "console_oidc_issuer": "https://login.example.com",
    "console_oidc_client_id": "truthlens",
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Secrets in files."""
    texts = {"token": "t" * 32 + "\n", "viewer": "v" * 32, "empty": " \n", "short": "abc", "key": "k" * 32}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_nothing_given_is_no_login() -> None:
    assert console_access(console=LOCAL) == Access()


def test_a_token_is_a_login(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """By file or variable; no secret is shown where settings are printed."""
    access = console_access(
        console=OPEN, console_token_file=files["token"], console_viewer_token_file=files["viewer"]
    )
    assert (access.login, access.token, access.viewer_token) == (Login.TOKEN, "t" * 32, "v" * 32)
    assert "tttt" not in repr(access)
    assert "vvvv" not in repr(access)
    monkeypatch.setenv(TOKEN_VARIABLE, "x")
    assert console_access(console=OPEN).token == "x"


def test_a_proxy_is_named_by_network() -> None:
    access = console_access(
        console=OPEN,
        console_login=Login.PROXY,
        console_trusted_proxy=["127.0.0.1", "fd00::/8"],
        console_reviewer=["ada"],
    )
    assert access.trusted_proxies == (
        ipaddress.ip_network("127.0.0.1/32"),
        ipaddress.ip_network("fd00::/8"),
    )
    assert access.reviewers == ("ada",)
    assert console_access(console="unix:/s", console_login=Login.PROXY).trusted_proxies == ()


def test_a_provider_has_its_secret_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OIDC_SECRET_VARIABLE, "hush")
    access = console_access(console=OPEN, **OIDC)
    assert access.oidc
    assert access.oidc.client_secret == "hush"
    assert "hush" not in repr(access)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"console_login": Login.TOKEN}, "needs --console-token-file"),
    ({"console_login": Login.TOKEN, "console_viewer_token_file": "viewer"}, "needs --console-token-file"),
    ({"console_login": Login.NONE, "console_token_file": "token"}, "asks nobody"),
    ({"console_viewer_token_file": "viewer"}, "asks nobody"),
    ({"console_login": Login.PROXY, "console_trusted_proxy": ["::1"], "console_token_file": "token"}, "asks nobody"),
    ({"console_token_file": "token", "console_viewer_token_file": "token"}, "one of its own"),
    ({"console_token_file": "empty"}, "is empty"),
    ({"console_token_file": "token", "console_viewer_token_file": "empty"}, "is empty"),
    ({"console_login": Login.PROXY}, "--console-trusted-proxy"),
    ({"console_trusted_proxy": ["10.0.0.1/8"]}, "'10.0.0.1/8'"),
    ({"console_trusted_proxy": ["proxy.example"]}, "'proxy.example'"),
    ({"console_login": Login.PROXY, "console_trusted_proxy": ["::1"], "console_user_header": "X User"}, "'X User'"),
    ({"console_login": Login.PROXY, "console_trusted_proxy": ["::1"], "console_groups_header": "X_G"}, "'X_G'"),
    ({"console_user_header": "X-User"}, "goes with --console-login proxy"),
    ({"console_reviewer": ["ada"]}, "goes with --console-login proxy or oidc"),
    ({"console_token_file": "token", "console_reviewer_group": ["g"]}, "goes with --console-login proxy or oidc"),
    ({"console_oidc_issuer": "https://x"}, "goes with --console-login oidc"),
    ({"console_session_key_file": "key"}, "goes with --console-login token or oidc"),
    ({"console_token_file": "token", "console_session_key_file": "short"}, "16 or more"),
    ({"console_login": Login.OIDC}, "--console-oidc-issuer, --console-oidc-client-id, --console-oidc-client-secret-file"),
    ({**OIDC, "console_oidc_client_secret_file": "empty"}, "is empty"),
    ({**OIDC, "console_oidc_client_secret_file": "key", "console_oidc_issuer": "http://x.example"}, "expected https"),
    ({**OIDC, "console_oidc_client_secret_file": "key", "console_oidc_issuer": "login"}, "expected https"),
    ({**OIDC, "console_oidc_client_secret_file": "key", "console_oidc_scope": "profile"}, "contain openid"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), MISTAKES, ids=lambda value: str(value)[:60])
def test_mistakes_are_named(options: dict[str, Any], message: str, files: dict[str, Path]) -> None:
    """With what to do about them."""
    given = {
        name: files[value] if isinstance(value, str) and name.endswith("_file") else value
        for name, value in options.items()
    }
    with pytest.raises(StartError, match=re.escape(message)):
        console_access(console=OPEN, **given)


@pytest.mark.parametrize(
    ("console", "refused"),
    [
        ("127.0.0.1:1", False),
        ("localhost:1", False),
        ("[::1]:1", False),
        ("unix:/tmp/truthlens-none", False),
        ("0.0.0.0:1", True),
        ("[::]:1", True),
        (":1", True),
    ],
)
def test_a_console_for_other_machines_wants_a_login(console: str, refused: bool) -> None:
    settings = Settings(Address("127.0.0.1", 1), Address.parse(console, name="--console"))
    if refused:
        with pytest.raises(StartError, match="--console-token-file"):
            _check_login(settings)
    else:
        _check_login(settings)
        assert (_console_access(settings).hosts is None) is console.startswith("unix:")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "desk", "up"])
def test_it_does_not_start_open(command: str) -> None:
    extproc = () if command == "desk" else ("--extproc", f"127.0.0.1:{free_port()}")
    result = run_server(command, "--console", f"0.0.0.0:{free_port()}", *extproc)
    assert result.returncode == 1
    assert "nobody would have to log in" in result.stderr


def test_options_of_the_document_exist() -> None:
    """All that the document names are options of ``serve``, ``desk`` and ``up``."""
    named = set(re.findall(r"--console[a-z-]*", DOCUMENT.read_text("utf-8")))
    root: Any = typer.main.get_command(command_line())
    for command in ("serve", "desk", "up"):
        known = {flag for option in root.commands[command].params for flag in option.opts}
        assert named <= known
        assert {flag for flag in known if flag.startswith("--console-")} >= named - {"--console"}
