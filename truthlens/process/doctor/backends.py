"""Look at servers of models: addresses, keys, names and clocks. No text is sent to any."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from truthlens.core.errors import CallError
from truthlens.core.records.calls import ModelSpec
from truthlens.llm.http.request_builder import FIXED_HEADERS, has_key, key_in
from truthlens.policy import Policy
from truthlens.process.doctor.findings import CheckResult, error, ok, warning
from truthlens.process.doctor.look import HttpAnswer, LookError, get, shown_url
from truthlens.process.doctor.setup import Setup
from truthlens.process.start_checks import called

_MOST_SKEW_S = 30.0
_MOST_NAMES = 5
_REFUSED = (401, 403)
_SUFFIXES = ("/chat/completions", "/completions")


@dataclass(frozen=True, slots=True)
class _ModelServer:
    """A server of models: where its list is, and the variable with the key that it is asked with."""

    listing: str
    key_env: str | None
    direct: bool


async def look_at_backends(setup: Setup, policy: Policy | None) -> list[CheckResult]:
    """Return what is wrong with the servers of models, of the policy and the upstream."""
    needed = set[str]() if policy is None else _called(policy)
    upstream = None if setup.settings.upstream is None else f"{setup.settings.upstream}/v1"
    servers: dict[_ModelServer, list[str]] = {}
    if upstream is not None:
        servers[_ModelServer(_listing(upstream), None, direct=True)] = []
    found: list[CheckResult] = []
    for spec in _specs(policy):
        if not has_key(spec, setup.environ):
            found.append(_no_key(spec, needed=spec.name in needed))
        if (base := spec.base_url or upstream) is not None:
            server = _ModelServer(_listing(base), _key_name(spec, setup), direct=spec.base_url is None)
            servers.setdefault(server, []).append(spec.name)
        elif spec.name in needed:
            found.append(_no_address(spec.name))
    if upstream is None and _corrects(policy):
        found.append(_no_upstream())
    looks = [_look(setup, server, names, needed) for server, names in servers.items()]
    found += [each for group in await asyncio.gather(*looks) for each in group]
    return list(dict.fromkeys(found))


def _corrects(policy: Policy | None) -> bool:
    return policy is not None and any(plan.corrects for plan in policy.all_plans)


def _specs(policy: Policy | None) -> Iterator[ModelSpec]:
    if policy is None:
        return
    yield from (policy.models or {}).values()
    for name in sorted(_called(policy) - set(policy.models or {})):
        yield ModelSpec(name)


def _called(policy: Policy) -> set[str]:
    return {name for plan in policy.all_plans if plan.calls_models for name in called(plan)}


def _key_name(spec: ModelSpec, setup: Setup) -> str | None:
    return spec.api_key_env if spec.api_key_env and has_key(spec, setup.environ) else None


def _listing(base: str) -> str:
    base = base.rstrip("/")
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    return f"{base}/models"


def _no_key(spec: ModelSpec, *, needed: bool) -> CheckResult:
    what = f"the environment variable {spec.api_key_env!r} holds no key, which the model {spec.name!r} needs"
    tell = error if needed else warning
    return tell("backends.key", what, "the model cannot be called", "set it where the server runs")


def _no_address(name: str) -> CheckResult:
    return error(
        "backends.address",
        f"the model {name!r} has no base_url, and there is no upstream",
        "it cannot be called",
        "give it a base_url under models, or start with --upstream",
    )


def _no_upstream() -> CheckResult:
    return warning(
        "backends.upstream",
        "the policy corrects answers, and there is no upstream",
        "the model that gave an answer cannot be asked again; only models with a base_url can correct it",
        "start with --upstream, or say it here",
    )


async def _look(setup: Setup, server: _ModelServer, names: list[str], needed: set[str]) -> list[CheckResult]:
    where = shown_url(server.listing)
    headers = {name: value for name, value in FIXED_HEADERS.items() if name != "content-type"}
    if server.key_env is not None:
        try:
            headers["authorization"] = b"Bearer " + key_in(setup.environ, server.key_env)
        except CallError as unfit:
            return [
                error(
                    "backends.key", str(unfit), "the model cannot be called", "set it where the server runs"
                )
            ]
    for_whom = f" (models {', '.join(map(repr, names))})" if names else " (the upstream)"
    began = time.time()
    try:
        answer = await get(server.listing, setup.timeout_s, headers=headers, direct=server.direct)
    except LookError as failed:
        what = f"{where}{for_whom} {failed}"
        change = "start the server there, or fix base_url or --upstream"
        if server.direct or needed.intersection(names):
            why = "models there cannot be called" if names else "Envoy answers requests with 503"
            return [error("backends.reachable", what, why, change)]
        return [
            warning("backends.reachable", what, "no plan calls a model there now, and none could", change)
        ]
    return [*_answered(answer, server, names, where), *_clock(answer, where, (began + time.time()) / 2)]


def _answered(
    answer: HttpAnswer, server: _ModelServer, names: list[str], where: str
) -> Iterator[CheckResult]:
    if answer.status in _REFUSED and names and server.key_env is not None:
        yield error(
            "backends.key",
            f"{where} refuses the key in {server.key_env} ({answer.status})",
            f"the models {', '.join(map(repr, names))} cannot be called",
            "set the key that this server takes",
        )
        return
    if answer.status >= 500:
        yield error(
            "backends.reachable",
            f"{where} answers {answer.status}",
            "the server, or one before it, is not in order",
            "look into its log",
        )
        return
    listed = _names(answer)
    if listed is None:
        yield ok("backends.reachable", f"{where} answers ({answer.status}), without a list of models")
        return
    yield ok("backends.reachable", f"{where} answers, with {len(listed)} models")
    shown = ", ".join(map(repr, sorted(listed)[:_MOST_NAMES])) or "none"
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    for name in names:
        # Some servers put the kind before the name.
        if name not in listed and f"models/{name}" not in listed:
            yield error(
                "backends.model",
                f"the model {name!r} is not among those that {where} serves ({shown}{more})",
                "the server refuses calls of it",
                "write a name that it serves, under models and wherever the policy names it, or serve "
                "it there",
            )


def _names(answer: HttpAnswer) -> set[str] | None:
    if answer.status != 200:
        return None
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    entries = content.get("data") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        return None
    return {name for each in entries if isinstance(each, dict) and isinstance(name := each.get("id"), str)}


def _clock(answer: HttpAnswer, where: str, asked: float) -> Iterator[CheckResult]:
    try:
        skew = parsedate_to_datetime(answer.headers.get("date", "")).timestamp() - asked
    except (ValueError, OverflowError):
        return  # a server need not send its time
    if abs(skew) > _MOST_SKEW_S:
        yield warning(
            "clocks.system",
            f"the clock of {where} is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this "
            "machine's",
            "logs and reviews cannot be put in one order, and tokens of a login may count as expired",
            "let both follow one time server",
        )
