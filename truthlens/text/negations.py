"""The words that negate, in one place: English, Chinese, and the function words of other languages that do."""

from __future__ import annotations

NEGATION_WORDS = frozenset(
    {"no", "not", "never", "none", "nothing", "neither", "nor", "without", "cannot", "nobody", "nowhere"}
)
"""English; "n't" is no word of its own for all who read these."""

OTHER_NEGATION_WORDS = frozenset({"nicht", "pas", "non", "no", "não", "niet"})
"""Of German, French, Italian, Spanish, Portuguese and Dutch."""

HAN_NEGATIONS = "不没沒未无無非"
"""Chinese characters that negate what follows them, traditional forms too."""
