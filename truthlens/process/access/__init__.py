"""Decide who may use the console: hosts, origins, logins, sessions, roles, CSRF tokens and rate limits.

Pages use ``user_of``, ``csrf_token`` and ``check_csrf``; ``rules`` has the table of paths.
"""

from truthlens.process.access.control import AccessControl
from truthlens.process.access.middleware import Security
from truthlens.process.access.origins import check_csrf, csrf_token
from truthlens.process.access.pages import refusal
from truthlens.process.access.rate_limits import RateLimit
from truthlens.process.access.rules import AccessError
from truthlens.process.access.users import Role, User, callers_of, user_of

__all__ = [
    "AccessControl",
    "AccessError",
    "RateLimit",
    "Role",
    "Security",
    "User",
    "callers_of",
    "check_csrf",
    "csrf_token",
    "refusal",
    "user_of",
]
