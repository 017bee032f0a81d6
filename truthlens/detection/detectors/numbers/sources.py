"""Define where known values come from besides the passages, such as a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Protocol

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.exchange import Exchange
from truthlens.text.values.typed import ValueKind


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value that a source knows.

    ``amounts`` are the readings of a number: of a percentage in percent (85), and 0.85 beside it where the source cannot tell, ``parts`` those of a date
    (``text.values.moments``). ``unit`` is a currency's name (``dollar``), ``x`` for ratios, or ``""``. ``label`` names what it is of,
    in words or as a column: ``net_operating_income``. ``source`` is the source's own name, from configuration. ``confidence``
    (0..1) is how sure a finding from it is: 1.0 for a database, 0.8 for passages.
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
