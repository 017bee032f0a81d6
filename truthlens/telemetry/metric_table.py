"""Declare metrics as rows: a ``MetricTable`` has one attribute for each, in the order of its rows.

Where the buckets of histograms end is here, too, for all metrics of a kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import Metric

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there

SCORE_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Of scores and risks, 0 to 1."""
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Of times, in seconds."""


class MetricTable:
    """Makes the metric of each row of its class, in ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        for attribute, row in vars(type(self)).items():
            if isinstance(row, _Row):
                setattr(self, attribute, row.made(registry))


@dataclass(frozen=True, slots=True)
class _Row:
    kind: type[Counter | Gauge | Histogram]
    name: str
    labels: tuple[str, ...]
    text: str
    buckets: tuple[float, ...] = ()

    def made(self, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
        bounds: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        return self.kind(self.name, self.text, self.labels, registry=registry, **bounds)


class _PlainCounter(Counter):
    """A counter whose series have its name unchanged."""

    def collect(self) -> Iterable[Metric]:
        """Return the metric with the library's suffix taken off its samples."""
        for metric in super().collect():
            metric.samples = [each._replace(name=each.name.removesuffix("_total")) for each in metric.samples]
            yield metric


# As ``dataclasses.field`` does, a row says that it is what an instance has in its place.
def counter(name: str, *labels: str, text: str, plain: bool = False) -> Counter:
    """Declare a counter; its series end in ``_total``, those of a ``plain`` one do not."""
    return cast("Counter", _Row(_PlainCounter if plain else Counter, name, labels, text))


def gauge(name: str, *labels: str, text: str) -> Gauge:
    """Declare a gauge."""
    return cast("Gauge", _Row(Gauge, name, labels, text))


def histogram(name: str, buckets: tuple[float, ...], *labels: str, text: str) -> Histogram:
    """Declare a histogram whose buckets end at ``buckets``."""
    return cast("Histogram", _Row(Histogram, name, labels, text, buckets))
