"""Compare plans by how much they check.

This is what keeps a client from choosing its own policy: what a client sends may lead to a stricter plan,
never to a weaker one. ``plans`` has a line for every field of a plan, ``settings`` compares what declares its own order
(``Stricter``), ``modes`` says what a plan does about flagged answers.
"""

from truthlens.policy.strictness.plans import strictest, weaknesses

__all__ = ["strictest", "weaknesses"]
