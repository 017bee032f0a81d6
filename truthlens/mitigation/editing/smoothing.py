"""Smooth the two seams of one edit inside a line, so that the sentences around it read on.

Pure.

Sees only what is left and right of the edit; lists and paragraphs are the business of ``text_layout``.
"""

from __future__ import annotations

import re

from truthlens.text.claims.claims import MARKER
from truthlens.text.scripts import CJK, CJK_MARKS

_TERMINAL = ".!?…。！？"
_COMMAS = (",", ";", "，", "；")
_CLOSERS = "*_\"'”’)]）」』】"
_CJK = re.compile(f"[{CJK}{CJK_MARKS}]")
_OPENERS = re.compile(r"[*_\"'“‘(（「『\[]*")
_GLUE_WORDS = (
    "and|but|or|yet|so|while|whereas|however|therefore|moreover|furthermore|in addition|also|instead|thus"
)
_GLUE_WORDS_ZH = "但是|但|不过|然而|同时|另外|此外|而且|并且|而"
_GLUE_AFTER = re.compile(
    rf"[ \t]*[,;，；][ \t]*(?:(?:{_GLUE_WORDS})\b,?|(?:{_GLUE_WORDS_ZH})[，,]?)?[ \t]*"
    rf"|[ \t]+(?:{_GLUE_WORDS})\b,?[ \t]+",
    re.IGNORECASE,
)
_GLUE_WORD_BEFORE = re.compile(rf"(?:(?P<latin>{_GLUE_WORDS}),?|(?:{_GLUE_WORDS_ZH})[，,]?)$", re.IGNORECASE)
_GLUE_WORD_CHARS = 16  # more than the longest of them has
# They set a sentence against the one before it, or draw on it: without that one they mislead.
_LEANING = re.compile(
    r"(?:however|nevertheless|nonetheless|conversely|(?:in|by) contrast|on the (?:other hand|contrary)|instead"
    r"|otherwise|therefore|thus|hence|consequently|as a (?:result|consequence)|for this reason|because of this"
    r"|for (?:example|instance)|that said|still|yet|similarly|likewise|in other words|specifically|in particular"
    r"|indeed|in fact|accordingly),[ \t]*"
    r"|(?:然而|但是|不过|因此|所以|于是|例如|比如|相反|换句话说|也就是说|具体来说|由此可见|尽管如此)[，,]?",
    re.IGNORECASE,
)
# They only add, and read well whatever precedes them.
_ADDING = re.compile(
    r"(?:in addition|additionally|also|moreover|furthermore|besides|further|what is more),[ \t]*"
    r"|(?:此外|另外|同时|而且|并且|再者)[，,]?",
    re.IGNORECASE,
)


def smoothed(left: str, original: str, replacement: str, right: str, *, ends_line: bool) -> tuple[str, str]:
    """Return the text to write up to the edit's end, and the text to write after it.

    Args:
        left: the new text so far.
        original: what was in the edit's place; ``""`` for an insertion.
        replacement: what is to replace it; ``""`` removes.
        right: the old text from the edit's end up to the next edit.
        ends_line: whether the edit reached to the end of its line.
    """
    if wording := replacement.strip():
        return _put(left, original, wording, right, ends_line=ends_line)
    return _cut(left, original, right, ends_line=ends_line)


def without_connective(sentence: str, *, first: bool) -> str:
    """Return ``sentence`` without its leading connective, if that refers to the removed sentence before it.

    One that only adds ("In addition,") goes too where the sentence is the ``first`` of its paragraph.
    """
    opened = _OPENERS.match(sentence)
    start = opened.end() if opened else 0
    found = _LEANING.match(sentence, start) or (_ADDING.match(sentence, start) if first else None)
    if found is None or found.end() == len(sentence.rstrip()):
        return sentence
    return sentence[:start] + capitalised(sentence[found.end() :])


def ends_line(rest: str) -> bool:
    """Return whether only closing marks remain in the line."""
    return rest.lstrip(" \t").lstrip(_CLOSERS).lstrip(" \t")[:1] in {"", "\n"}


def is_finished(text: str) -> bool:
    """Return whether a sentence ends, or a line begins, at the end of ``text``."""
    if _starts_line(text):
        return True
    bare = text.rstrip().rstrip(_CLOSERS).rstrip()
    return bare[-1:] in tuple(_TERMINAL + ":：；|")


def capitalised(text: str) -> str:
    """Return ``text`` with a capital at its start, unless its first word is special (address, trade name)."""
    match = re.match(r"[*_\"'“‘(]*", text)
    start = match.end() if match else 0
    word = re.match(r"[^\s,;:]+", text[start:])
    if (
        word is None
        or not re.fullmatch(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[.!?]?", word[0])
        or word[0] != word[0].lower()
    ):
        return text
    return text[:start] + text[start].upper() + text[start + 1 :]


def _cut(left: str, original: str, right: str, *, ends_line: bool) -> tuple[str, str]:
    finished = is_finished(left)
    ends = ends_line or is_finished(original)
    if finished and ends:
        return _joined(left, without_connective(right.lstrip(" \t"), first=_starts_line(left)))
    if finished:
        joint = _GLUE_AFTER.match(right)
        if joint is None:
            return _joined(left, right.lstrip(" \t"))
        return _joined(left, capitalised(right[joint.end() :]))
    glue = _glue_before(left)
    if ends:
        if glue is None:
            return _joined(left, right.lstrip(" \t"))
        end = "" if right.lstrip()[:1] in tuple(_TERMINAL) else _terminal_of(original)
        return _joined(left[:glue] + end, right.lstrip(" \t"))
    if glue is not None and _GLUE_AFTER.match(right):
        return left[:glue], right
    return _joined(
        left, right.lstrip(" \t") if right[:1] in {" ", "\t"} else right, force=left[-1:] in {" ", "\t"}
    )


def _put(left: str, original: str, wording: str, right: str, *, ends_line: bool) -> tuple[str, str]:
    glue = None if is_finished(left) else _glue_before(left)
    if not is_finished(left) and glue is None and original:
        # Words within a sentence: nothing to smooth but what is doubled.
        return left + wording, right
    end = "。" if _CJK.search(wording[-2:]) else "."
    if glue is not None:
        left = left[:glue] + ("。" if _CJK.search(left[:glue][-1:]) else ".")
    if not original and not is_finished(left):
        left = left.rstrip(" \t") + end
    wording = without_connective(wording, first=True)
    if glue is not None or not original or _first_letter(original).isupper():
        wording = capitalised(wording)
    joint = _GLUE_AFTER.match(right)
    if right.lstrip(" \t")[:1] and right.lstrip(" \t")[0] in _TERMINAL:
        wording = wording.rstrip().rstrip(".。")
    elif ends_line and original and not is_finished(original):
        wording = wording.removesuffix(".").removesuffix("。")
    elif not is_finished(wording):
        wording += end
    written, wording = _joined(left, wording)
    if joint is not None and is_finished(wording):
        return _joined(written + wording, capitalised(right[joint.end() :]))
    return written + wording, right


def _glue_before(left: str) -> int | None:
    """Return where the comma or connective begins that joins the end of ``left`` to what followed."""
    bare = left.rstrip(" \t")
    tail = bare[-_GLUE_WORD_CHARS:]
    if word := _GLUE_WORD_BEFORE.search(tail):
        before = bare[: len(bare) - len(tail) + word.start()]
        clause = before.rstrip(" \t")
        if clause.endswith(_COMMAS):
            return len(clause[:-1].rstrip(" \t"))
        if word["latin"] and len(clause) < len(before):
            return len(clause)
    return len(bare[:-1].rstrip(" \t")) if bare.endswith(_COMMAS) else None


def _joined(left: str, right: str, *, force: bool = False) -> tuple[str, str]:
    """Return both texts with exactly the white space between them that the seam needs."""
    if _starts_line(left):
        return left, right
    left = left.rstrip(" \t")
    if not right or right[0] == "\n" or (not force and right[0] in ".,;:!?。，；：！？)]}）】」』”*_"):
        return left, right
    if _CJK.match(right[0]) or _CJK.search(left[-1:]):
        return left, right
    return left + " ", right


def _starts_line(left: str) -> bool:
    """Return whether only markers and opening marks precede in the same line."""
    line = left[left.rfind("\n") + 1 :]
    start = 0
    while marker := MARKER.match(line, start):
        start = marker.end()
    return _OPENERS.fullmatch(line[start:].lstrip(" \t")) is not None


def _terminal_of(text: str) -> str:
    bare = text.rstrip().rstrip(_CLOSERS)
    return bare[-1] if bare[-1:] in tuple(_TERMINAL) else ""


def _first_letter(text: str) -> str:
    return next((character for character in text if character.isalpha()), "A")
