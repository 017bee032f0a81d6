"""The set-up that is looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from truthlens.policy import Policy
from truthlens.process.settings import Settings

DEFAULT_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What the processes of a set-up are started with, and where its Envoy is.

    Args:
        settings: of a sidecar.
        envoys: bootstrap files.
        admin: URL of a running Envoy's admin interface; ``None`` for none.
        timeout_s: the most seconds that one look over the network may take.
        environ: where keys and URLs come from.
        free_memory: gives the bytes that a process may still take, ``None`` where that is not known.
    """

    settings: Settings
    envoys: tuple[Path, ...] = ()
    admin: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    free_memory: Callable[[], int | None] = lambda: None


def secrets_of(setup: Setup, policy: Policy | None) -> Iterator[str]:
    """Yield what may never be printed: passwords of URLs, and the contents of variables that the policy names."""
    for url in (setup.settings.redis, setup.settings.review_database, setup.admin):
        yield from _passwords(url or "")
    named: set[str] = set()
    if policy is not None:
        named |= {spec.api_key_env for spec in (policy.models or {}).values() if spec.api_key_env}
        options = [spec.options for spec in policy.sources.values()]
        options += [getattr(each, "embeddings", None) for each in options]
        options += [
            each
            for plan in policy.all_plans
            for detector in plan.detectors
            for each in getattr(detector.options, "databases", ())
        ]
        for each in options:
            named |= {name for key in ("api_key_env", "url_env") if (name := getattr(each, key, None))}
    for name in named:
        if value := setup.environ.get(name, "").strip():
            yield value
            yield from _passwords(value)


def _passwords(url: str) -> Iterator[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)
