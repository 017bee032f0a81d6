"""Texts that answer nothing: what stands in a refusal, or beside a tool call, and makes no claim.

A refusal is recognised as a whole sentence of a closed form, without any word of its own: one that also says
why, or what would be the case, claims something. English and Chinese.
"""

from __future__ import annotations

import re

from truthlens.text.claims.non_claims import claimless_ranges
from truthlens.text.sentences import sentences

_DECLINES = re.compile(
    r"""(?:(?:(?:i'm|i\ am|we're|we\ are)\ )?(?:(?:very|so|really)\ )?(?:sorry|afraid)
      |unfortunately|i\ apologi[sz]e|apologies)?
    [\s,.]*(?:but\ )?
    (?:(?:i|we)\ (?:can't|cannot|can\ not|won't|will\ not|(?:am|are)\ (?:unable|not\ able)\ to
        |(?:must\ |have\ to\ )?decline(?:\ to)?)
      |i'm\ (?:unable|not\ able)\ to)
    (?:\ (?:help|assist|answer|comply|continue|do|provide|fulfill?|discuss|respond|engage|support|process
        |complete))?
    (?:\ you)?(?:\ (?:with|to|in))?(?:\ (?:that|this|it|your|the))?
    (?:\ (?:kind\ of\ |sort\ of\ )?(?:request|question|topic|matter|task))?
    |(?:(?:i'm|i\ am)\ )?sorry
    |(?:很?抱歉|对不起|不好意思)?[，,。\s]*(?:但是?)?(?:我|我们)?(?:无法|不能|没法)(?:为)?(?:您|你)?
     (?:提供|给予)?(?:帮助|协助|回答|满足|处理|完成)?(?:您|你)?的?(?:这个|该|此|这类)?(?:请求|问题|要求)?
    |很?抱歉|对不起""",
    re.IGNORECASE | re.VERBOSE,
)


def claims_nothing(text: str) -> bool:
    """Whether every sentence of ``text`` declines, abstains or is talk without content; blank text too."""
    claimless = claimless_ranges(text)
    return all(
        _declines(text[start:end]) or any(first <= start and end <= last for first, last in claimless)
        for start, end in sentences(text)
    )


def _declines(sentence: str) -> bool:
    plain = sentence.replace("\u2019", "'").strip(" \t\r\n.!。！…\"'*_")
    return not plain or _DECLINES.fullmatch(plain) is not None
