"""Servers of models: reachable, with a key, with the model, with the same time; and nothing is sent to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.http_sources import Answer, answering, dropping, endless, silent, source_server
from tests.fakes.ports import free_port
from tests.fakes.setups import at_paths, setup_of, wrong
from truthlens.core.net import Upstream
from truthlens.policy import load_policy
from truthlens.process.doctor.backends import look_at_backends
from truthlens.process.doctor.findings import CheckLevel, CheckResult

LISTED = at_paths({"/v1/models": {"data": [{"id": "critic"}, {"id": "models/small"}, {"no": 1}]}})


async def found(folder: Path, url: str, *, key: str | None = "sk-key", extra: str = "") -> list[CheckResult]:
    """What is found of a policy whose judge asks ``critic``, which takes a key, at ``url``."""
    policy = f"""\
models:
- {{name: critic, base_url: "{url}/v1", api_key_env: KEY}}
{extra}
hallucination: {{detectors: [encoder, {{name: judge, model: critic}}]}}
"""
    setup = setup_of(folder, policy, environ={} if key is None else {"KEY": key}, timeout_s=1.0)
    return await look_at_backends(setup, load_policy(setup.settings.config))


async def test_a_model_that_is_served_is_right(tmp_path: Path) -> None:
    """Its server is asked once for its list, with the key; a name may stand behind its kind."""
    async with source_server(LISTED) as server:
        small = f'- {{name: small, base_url: "{server.url}/v1/chat/completions", api_key_env: KEY}}'
        every = await found(tmp_path, server.url, extra=small)
    assert wrong(every) == {}
    (asked,) = server.asked
    assert asked.target == "GET /v1/models HTTP/1.1"
    assert asked.headers["authorization"] == "Bearer sk-key"
    assert "sk-key" not in str(every)


@pytest.mark.parametrize(
    ("answer", "check", "said"),
    [
        (answering({"data": [{"id": "llama"}]}), "backends.model", "'llama'"),
        (answering({"data": []}), "backends.model", "none"),
        (answering({}, status="401 Unauthorized"), "backends.key", "refuses the key in KEY"),
        (answering({}, status="502 Bad Gateway"), "backends.reachable", "502"),
        (dropping, "backends.reachable", "cannot be"),
        (silent, "backends.reachable", "no answer within 1 s"),
        (endless, "backends.reachable", "more than 4 MiB"),
    ],
)
async def test_a_server_that_cannot_be_used_is_an_error(
    tmp_path: Path, answer: Answer, check: str, said: str
) -> None:
    """With what is wrong about it, and no word of the server or of the key."""
    async with source_server(answer) as server:
        told = wrong(await found(tmp_path, server.url))
    assert told[check].severity is CheckLevel.ERROR
    assert said in told[check].what
    assert "sk-key" not in str(told)


@pytest.mark.parametrize(
    "answer", [answering({}, status="404 Not Found"), answering(b"hello"), answering({"data": 1})]
)
async def test_a_server_without_a_list_is_reachable(tmp_path: Path, answer: Answer) -> None:
    """Not all have one."""
    async with source_server(answer) as server:
        assert wrong(await found(tmp_path, server.url)) == {}


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://no-such-host.invalid"])
async def test_nobody_at_the_address_is_an_error(tmp_path: Path, url: str) -> None:
    """A name that does not resolve is told from a port that nobody listens at."""
    told = wrong(await found(tmp_path, url.format(port=free_port())))
    assert set(told) == {"backends.reachable"}
    assert ("does not resolve" in told["backends.reachable"].what) == ("invalid" in url)


@pytest.mark.parametrize("key", [None, "  ", "k\ney"])
async def test_a_key_that_is_not_there_is_an_error_where_the_model_is_called(
    tmp_path: Path, key: str | None
) -> None:
    """The server is asked all the same, without one."""
    async with source_server(LISTED) as server:
        told = wrong(await found(tmp_path, server.url, key=key))
        assert "authorization" not in server.asked[0].headers
    assert set(told) == {"backends.key"}
    assert "'KEY'" in told["backends.key"].what


async def test_a_model_that_no_plan_calls_is_a_warning_at_most(tmp_path: Path) -> None:
    """It may be wanted later."""
    async with source_server(LISTED) as server:
        idle = f'- {{name: idle, base_url: "http://127.0.0.1:{free_port()}/v1"}}'
        told = wrong(await found(tmp_path, server.url, extra=idle))
    assert [each.severity for each in told.values()] == [CheckLevel.WARNING]


async def test_a_model_without_an_address_needs_an_upstream(tmp_path: Path) -> None:
    """Which is asked for its models without a key of ours."""
    policy = "hallucination: {default_mode: standard, detectors: [encoder, {name: judge, model: critic}]}\n"
    setup = setup_of(tmp_path, policy)
    told = wrong(await look_at_backends(setup, load_policy(setup.settings.config)))
    assert {name: each.severity for name, each in told.items()} == {
        "backends.address": CheckLevel.ERROR,
        "backends.upstream": CheckLevel.WARNING,
    }
    async with source_server(LISTED) as server:
        setup = setup_of(tmp_path, policy, upstream=Upstream.parse(server.url))
        assert wrong(await look_at_backends(setup, load_policy(setup.settings.config))) == {}
        assert wrong(await look_at_backends(setup, None)) == {}


@pytest.mark.parametrize(
    ("date", "said"),
    [
        ("Mon, 01 Jan 2001 00:00:00 GMT", "behind"),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "ahead of"),
        ("soon", None),
    ],
)
async def test_a_clock_that_differs_is_a_warning(tmp_path: Path, date: str, said: str | None) -> None:
    """By the server's Date; one that cannot be read says nothing."""
    answer = answering({"data": [{"id": "critic"}]}, "content-type: application/json", f"date: {date}")
    async with source_server(answer) as server:
        told = wrong(await found(tmp_path, server.url))
    assert (said in told["clocks.system"].what) if said else told == {}
