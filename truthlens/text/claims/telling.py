"""What makes an offer, a question or an abstention tell something after all: numbers and further clauses.

Closed lists of words, English and Chinese. A sentence in a harmless frame is harmless only where nothing in it could be
false: "I don't know why eight tablets are safe" is no abstention.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|double|twice"
    r"|percent)\b|[零二两三四五六七八九十百千万亿半](?=[片粒次天日月年元块个小分度岁人公毫倍份张点号成%]|$)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(?:because|since|although|though|but|however|whereas|which|whose|without|unless|so that|why|as (?:the|it|they|you|he|she|this"
    r"|we|there|a|an|in)\b|(?:know|aware|sure|say(?:ing)?|says|told|means?|remember|true|clear|fact) that)\b"
    r"|(?:and|or|so|,) (?:you|it|they|he|she|we|the \w+) (?:is|are|was|were|can|may|must|should|will|need|has|have)\b"
    r"|因为|由于|为什么|为何|但是|但|不过|虽然|所以|其实",
    re.IGNORECASE,
)
_ORDINARY = re.compile(r"\b(?:passage|step|source|document|question)s? \d{1,3}\b", re.IGNORECASE)


def tells(text: str) -> bool:
    """Return whether ``text`` holds a number, in figures or words, or a clause that states something."""
    bare = _ORDINARY.sub(" ", text)
    return (
        any(character.isnumeric() and character < "\u3400" for character in bare)
        or _NUMBER.search(bare) is not None
        or _CLAUSE.search(bare) is not None
    )
