"""Run all checks of a set-up, those over the network side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from truthlens.process.doctor.backends import look_at_backends
from truthlens.process.doctor.envoy import look_at_envoy, of_clocks
from truthlens.process.doctor.findings import CheckResult, unknown, without_secrets
from truthlens.process.doctor.policy import look_at_policy, read_policy
from truthlens.process.doctor.ports import look_at_addresses, of_addresses
from truthlens.process.doctor.setup import Setup, secrets_of
from truthlens.process.doctor.sources import look_at_sources
from truthlens.process.doctor.stores import look_at_stores

GROUPS: Mapping[str, str] = {
    "policy": "Policy and models",
    "ports": "Addresses",
    "envoy": "Envoy",
    "backends": "Models and backend",
    "clocks": "Clocks",
    "stores": "Redis and databases",
    "sources": "Sources of evidence",
}
"""The groups of findings, in their order, with their headings."""


async def examine(setup: Setup) -> list[CheckResult]:
    """Return how every check of ``setup`` ended, by group; without secrets, as they may be printed."""
    seen, file = await asyncio.gather(
        look_at_addresses(setup), asyncio.to_thread(read_policy, setup.settings)
    )
    policy = file.policy
    groups = await asyncio.gather(
        _whole("policy", look_at_policy(setup, file, seen.readyz)),
        _whole("envoy", look_at_envoy(setup, file)),
        _whole("backends", look_at_backends(setup, policy)),
        _whole("stores", look_at_stores(setup, policy)),
        _whole("sources", look_at_sources(setup, policy)),
    )
    found = [
        *of_addresses(setup, seen),
        *of_clocks(setup, policy),
        *(each for group in groups for each in group),
    ]
    places = list(GROUPS)
    found.sort(key=lambda each: places.index(each.group))
    return without_secrets(found, secrets_of(setup, policy))


async def _whole(group: str, looking: Awaitable[list[CheckResult]]) -> list[CheckResult]:
    """Return the findings of a group; one that breaks says so, and costs no other group."""
    try:
        return await looking
    except Exception as broken:  # noqa: BLE001 - the border of a group
        # The type alone: its words may hold a secret.
        what = f"this group broke off ({type(broken).__name__})"
        return [
            unknown(
                f"{group}.broken", what, "nothing more is known of it", "report it as a mistake of TruthLens"
            )
        ]
