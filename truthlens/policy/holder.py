"""The policy in force: one reference, swapped as a whole."""

from __future__ import annotations

from truthlens.core.errors import PolicyError
from truthlens.policy.policy import Policy


class PolicyHolder:
    """Holds the policy in force.

    An exchange takes ``current`` once, when it begins, and keeps it. ``last_error`` is what is wrong with the
    file as it is now, or ``None``.
    """

    def __init__(self, policy: Policy) -> None:
        self.current = policy
        self.last_error: PolicyError | None = None

    def swap(self, policy: Policy) -> None:
        """Put ``policy`` in force and forget the last error."""
        self.current = policy
        self.last_error = None
