"""Decide who may use the console: hosts, origins, logins, sessions, roles, CSRF tokens and rate limits.

Pages use ``user_of``, ``csrf_token`` and ``check_csrf``; ``rules`` has the table of paths.
"""

from truthlens.console.access.control import AccessControl
from truthlens.console.access.csrf import check_csrf, csrf_token
from truthlens.console.access.errors import AccessError
from truthlens.console.access.middleware import Security
from truthlens.console.access.pages import refusal, signed_in
from truthlens.console.access.users import Role, User, user_of

__all__ = [
    "AccessControl",
    "AccessError",
    "Role",
    "Security",
    "User",
    "check_csrf",
    "csrf_token",
    "refusal",
    "signed_in",
    "user_of",
]
