"""Rate limits: how often, of whom, and in how much memory."""

from __future__ import annotations

import pytest

from tests.fakes.guarded_app import client_of
from tests.process.access.test_logins import TOKENS, bearer, proxied
from tests.process.access.test_sessions import Clock
from truthlens.process.access import AccessError
from truthlens.process.access.rate_limits import _MOST_KEYS, WRITES_PER_MINUTE, RateLimit
from truthlens.process.settings import Access


def test_what_is_spent_comes_back() -> None:
    clock = Clock()
    limit = RateLimit(60, clock=clock)
    for _ in range(60):
        limit.take("a")
    with pytest.raises(AccessError) as refused:
        limit.take("a")
    assert refused.value.status_code == 429
    assert refused.value.headers == {"retry-after": "1"}
    limit.take("b")
    clock.now += 1
    limit.take("a")
    with pytest.raises(AccessError):
        limit.take("a")
    clock.now += 3600
    for _ in range(60):
        limit.take("a")
    with pytest.raises(AccessError):
        limit.take("a")


def test_memory_is_bounded() -> None:
    limit = RateLimit(1, clock=Clock())
    for number in range(_MOST_KEYS + 500):
        limit.take(str(number))
    assert len(limit._buckets) == _MOST_KEYS
    with pytest.raises(AccessError):
        limit.take(str(_MOST_KEYS + 499))


async def spend(access: Access, per_address: bool) -> list[int]:
    """Write more often than is allowed: from one address by many users, or by one user from many addresses."""
    codes = []
    async with client_of(access) as client:
        for number in range(WRITES_PER_MINUTE + 1):
            user, address = (f"u{number}", "10.9.9.9") if per_address else ("u", f"10.9.9.{number % 250}")
            headers = {"x-forwarded-user": user, "x-forwarded-for": f"1.2.3.4, {address}"}
            codes.append((await client.delete("/api/reviews/1", headers=headers)).status_code)
        headers = {"x-forwarded-user": "other", "x-forwarded-for": "10.7.7.7"}
        codes.append((await client.delete("/api/reviews/1", headers=headers)).status_code)
    return codes


async def test_an_address_and_a_user_write_only_so_often() -> None:
    """The address is what the proxy saw, not what the client said before it."""
    users = tuple(f"u{number}" for number in range(WRITES_PER_MINUTE + 1))
    access = proxied(reviewers=(*users, "u", "other"))
    for per_address in (True, False):
        codes = await spend(access, per_address)
        assert codes == [200] * WRITES_PER_MINUTE + [429, 200]


async def test_an_untrusted_client_cannot_choose_its_address() -> None:
    async with client_of(TOKENS, peer="10.5.5.5") as client:
        codes = [
            (
                await client.get("/", headers={**bearer("guess"), "x-forwarded-for": f"1.1.1.{number}"})
            ).status_code
            for number in range(11)
        ]
    assert codes == [401] * 10 + [429]


async def test_an_ipv6_client_is_its_network() -> None:
    codes = []
    access = proxied()
    async with client_of(access) as client:
        for number in range(WRITES_PER_MINUTE + 1):
            headers = {"x-forwarded-for": f"2001:db8::{number:x}"}
            codes.append((await client.delete("/api/reviews/1", headers=headers)).status_code)
    assert codes == [401] * WRITES_PER_MINUTE + [429]


async def test_probes_and_scoring_are_not_counted() -> None:
    """The gateway's own queue bounds scoring."""
    async with client_of(Access()) as client:
        for path in ("/healthz", "/metrics"):
            assert {(await client.get(path)).status_code for _ in range(1300)} == {200}
        codes = {(await client.post("/v1/detect", json={})).status_code for _ in range(1300)}
        assert codes == {200}
        for _ in range(1300):
            last = await client.get("/")
        assert last.status_code == 429
