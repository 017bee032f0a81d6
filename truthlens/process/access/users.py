"""Users and their roles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from starlette.requests import HTTPConnection

from truthlens.process.settings import Access

_LONGEST_NAME = 128


class Role(StrEnum):
    """What a user may do; a later one may do all that an earlier one may: ``viewer`` < ``reviewer``."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"

    @property
    def _rank(self) -> int:
        return list(Role).index(self)

    # Those of texts would compare by the alphabet.
    def __lt__(self, other: str) -> bool:
        return self._rank < Role(other)._rank

    def __le__(self, other: str) -> bool:
        return self._rank <= Role(other)._rank

    def __gt__(self, other: str) -> bool:
        return self._rank > Role(other)._rank

    def __ge__(self, other: str) -> bool:
        return self._rank >= Role(other)._rank


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    role: Role


def user_of(request: HTTPConnection) -> User:
    """Return who sent a request that the access control let through.

    Raises:
        KeyError: it did not pass the access control.
    """
    user: User = request.scope["user"]
    return user


def callers_of(request: HTTPConnection) -> tuple[str, str]:
    """Return what the requests of one client address, and those of one user, are counted by.

    Raises:
        KeyError: it did not pass the access control.
    """
    return f"address {request.scope['truthlens.address']}", f"user {user_of(request).name}"


def is_name(text: str) -> bool:
    """Return whether a text may be a user's name: printable, no more than 128 characters, no space around it."""
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable() and text == text.strip()


def role_of(name: str, groups: Collection[str], access: Access) -> Role:
    """Return the role that the settings give to a user with these groups."""
    listed = name in access.reviewers or not set(access.reviewer_groups).isdisjoint(groups)
    return Role.REVIEWER if listed else Role.VIEWER
