"""Define where known values come from besides the passages, such as a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.exchange import Exchange


class ValueKind(StrEnum):
    """What a value is."""

    CURRENCY = "currency"
    PERCENTAGE = "percentage"
    DATE = "date"
    RATIO = "ratio"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that a source knows.

    ``amounts`` are the readings of a number, ``parts`` those of a date (``year``, ``quarter``, ``month``, ``day``). ``unit`` is a
    currency's name (``dollar``; ``money`` for any), ``x`` for ratios, or ``""``. ``label`` names what it is of, in words. ``source`` is the
    source's own name, from configuration. ``confidence`` (0..1) is how sure a finding from it is: 1.0 for a database, 0.8 for passages.
    """

    kind: ValueKind
    amounts: Sequence[Decimal]
    unit: str
    label: str
    source: str
    confidence: float = 1.0
    parts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class Source(Protocol):
    """Gives the values that are known for an exchange; safe to call from several threads."""

    def values(
        self, exchange: Exchange, kinds: frozenset[ValueKind], *, stop: StopCheck
    ) -> Sequence[KnownValue]:
        """Return the known values of these kinds.

        It bounds its own time and the number of its values. An exception is taken for ``detector-error``.
        """
