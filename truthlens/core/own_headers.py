"""Which header names are TruthLens's own, as servers read them that fold names."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Servers that hand headers on as variables fold "-", "_" and more into one character. RE2 reads this pattern too.
OWN_HEADER = "x[^a-z0-9]truthlens[^a-z0-9].*"

DETAILS_HEADER = "x-truthlens-details"
"""By which a client asks for the ``truthlens`` object, where the operator trusts it."""

_OWN = re.compile(OWN_HEADER)


def own_headers(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the lower-case ``names`` that some server reads as ``x-truthlens-…``."""
    return tuple(name for name in names if _OWN.fullmatch(name))
