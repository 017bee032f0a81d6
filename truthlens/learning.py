"""Store what mode auto learns, and export its arms as metrics."""

from __future__ import annotations

from truthlens.mitigation.auto.bandit import Bandit
from truthlens.settings import Settings
from truthlens.store.arm_store import MemoryArms
from truthlens.store.redis_arm_store import RedisArms
from truthlens.telemetry.metrics import Signals


def arm_store(settings: Settings) -> MemoryArms | RedisArms:
    """Return the store that the settings name: Redis, or the memory of this process.

    Raises:
        StartError: the URL of Redis cannot be used.
    """
    return RedisArms(settings.redis) if settings.redis else MemoryArms()


class ArmMetrics:
    """Sets ``truthlens_auto_*`` from a bandit and its store whenever the metrics are read."""

    def __init__(self, bandit: Bandit, store: MemoryArms | RedisArms, signals: Signals) -> None:
        self._bandit = bandit
        self._store = store
        self._signals = signals
        self._errors = 0
        signals.on_scrape(self.collect)

    def collect(self) -> None:
        """Bring the gauges up to date."""
        self._signals.auto_arm.clear()
        for decision, arms in self._bandit.snapshot().items():
            for mode, arm in arms.items():
                self._signals.auto_arm.labels(decision, mode.value, "alpha").set(arm.alpha)
                self._signals.auto_arm.labels(decision, mode.value, "beta").set(arm.beta)
        if isinstance(self._store, RedisArms):
            self._signals.auto_store_errors.inc(self._store.errors - self._errors)
            self._errors = self._store.errors
