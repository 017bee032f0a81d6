"""Sentences that only decline ("I don't know, the documents leave that open"), and those that take leave behind them.

A sentence is cut into clauses, and each of them has to be one that declines, beside courtesies; one that goes on to
tell something ("…, but it opened in 1931") is none. English, German, French, Spanish, Italian, Chinese, Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from truthlens.text.claims import decline_patterns as patterns

_MAX_CHARS = 400
_EDGES = " \t\r\n\"'*_#>.!?。！？…،¿¡~-–—•"


def _compiled(*tables: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for table in tables for pattern in table)


# Where a clause may begin: behind a comma or the like, or a conjunction that a clause of its own follows.
_JOINT = re.compile(
    r"\s*[,;:，、；：—–]\s*|\s+-\s+"
    r"|\s+and\s+(?=(?:came|found)\b)"
    r"|\s+(?=(?:and|but|so|as|since|because|therefore|und|aber|also|denn|da|car|et|donc|mais|y|pero|porque|e|ma|perché)\s+"
    r"(?:i|i'm|i'd|i've|there|there's|nothing|none|neither|no|it|the|these|this|that|ich|der|die|das|dazu|je|le|les|il|no|los|las|el|non|nel|nei|i|gli)\b)",
    re.IGNORECASE,
)
# A Japanese topic is set off by a comma.
_JOINT_CJK = re.compile(r"[，,；;：:]|(?<![はもでめ])、|(?<=[はもで])(?<!ので)、(?=.*、)")
_CONJUNCTION = re.compile(
    r"^(?:and|but|so|as|since|because|therefore|hence|thus|however|yet|or|und|aber|also|denn|da|daher|deshalb|car|et|donc|mais|y|pero|porque|así que|e|ma|perché|quindi"
    r"|因此|所以|但|但是|不过|而且|并且)(?:\s+|(?<=[\u4e00-\u9fff]))",
    re.IGNORECASE,
)
# Contracted words and "we" are read as the patterns have them.
_WRITTEN_OUT = (
    (re.compile(r"\b(that|it|there|this)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(is|are|was)n't\b", re.IGNORECASE), r"\1 not"),
    (re.compile(r"^we(?: are|'re)\b", re.IGNORECASE), "i am"),
    (re.compile(r"^we\b", re.IGNORECASE), "i"),
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FILLERS = re.compile(
    f"{patterns.FILLERS_EN}|{patterns.FILLERS_DE}|{patterns.FILLERS_FR}|{patterns.FILLERS_ES}|{patterns.FILLERS_IT}",
    re.IGNORECASE,
)
_FILLERS_CJK = re.compile(f"(?:{patterns.FILLERS_ZH}|{patterns.FILLERS_JA})[，,、。]?")
_CLAUSES = _compiled(patterns.EN, patterns.DE, patterns.FR, patterns.ES, patterns.IT)
_CLAUSES_CJK = _compiled(patterns.ZH, patterns.JA)
_CLOSINGS = _compiled(
    patterns.CLOSINGS_EN,
    patterns.CLOSINGS_DE,
    patterns.CLOSINGS_FR,
    patterns.CLOSINGS_ES,
    patterns.CLOSINGS_IT,
)
_CLOSINGS_CJK = _compiled(patterns.CLOSINGS_ZH, patterns.CLOSINGS_JA)
# A topic with one of these goes on to a clause of its own, or says how many; English is ``non_claims``' business.
_TELLS = re.compile(
    r"\b(?:weil|denn|aber|doch|sondern|obwohl|dass|wurde|ist|war|sind|hat|parce|car|mais|que|qui|est|était|sont|porque|pero|aunque|es|era|son|perché|però|che|è|sono|fu)\b",
    re.IGNORECASE,
)
_ARTICLES = re.compile(
    r"\b(?:der|die|das|den|dem|des|ein|eine[nmrs]?|und|oder|von|vom|zu[mr]?|im|in|le|la|les|du|des|de|un|une|et|el|los|las|una|y|del|al|il|lo|gli|i|della|dei|e|di|o)\b|\b[ld]'",
    re.IGNORECASE,
)


def declines(sentence: str, is_bare: Callable[[str], bool]) -> bool:
    """Return whether every clause of ``sentence`` declines or is a courtesy, and at least one declines.

    Args:
        sentence: with straight apostrophes.
        is_bare: whether words of an open place tell nothing, or only what the user asked about.
    """
    if len(sentence) > _MAX_CHARS:
        return False
    cjk = _CJK.search(sentence) is not None
    told = list(_clauses(_without_fillers(sentence, cjk=cjk), cjk=cjk))
    kinds = _CLAUSES_CJK if cjk else _CLAUSES
    declining = [any(_fits(kind, clause, is_bare) for kind in kinds) for clause in told]
    return any(declining) and all(
        found or not clause or closes(clause) for found, clause in zip(declining, told, strict=True)
    )


def closes(sentence: str) -> bool:
    """Return whether ``sentence`` only offers other help, or sends the user to somebody; it has no open place."""
    if len(sentence) > _MAX_CHARS:
        return False
    plain = " ".join(sentence.strip(_EDGES).split())
    kinds = _CLOSINGS_CJK if _CJK.search(plain) else _CLOSINGS
    return bool(plain) and (
        any(kind.fullmatch(plain) for kind in kinds)
        or not _without_fillers(plain, cjk=_CJK.search(plain) is not None)
    )


def _clauses(sentence: str, *, cjk: bool) -> Iterable[str]:
    plain = sentence.strip(_EDGES)
    for piece in _JOINT_CJK.split(plain) if cjk else _JOINT.split(plain):
        clause = _CONJUNCTION.sub("", piece.strip(_EDGES))
        for pattern, written in _WRITTEN_OUT:
            clause = pattern.sub(written, clause)
        yield clause


def _without_fillers(clause: str, *, cjk: bool) -> str:
    plain = (_FILLERS_CJK if cjk else _FILLERS).sub(" ", clause)
    return "".join(plain.replace("、", "").split()) if cjk else " ".join(plain.strip(_EDGES).split())


def _fits(pattern: re.Pattern[str], clause: str, is_bare: Callable[[str], bool]) -> bool:
    match = pattern.fullmatch(clause)
    return match is not None and all(
        _TELLS.search(place) is None and is_bare(_ARTICLES.sub(" ", place))
        for place in match.groups()
        if place
    )
