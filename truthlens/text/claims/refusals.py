"""Whether a text declines to answer, by the words with which models do that; English and Chinese.

Two kinds: a refusal speaks of the model ("I can't help with that"), an abstention of the evidence ("the documents do
not say"). The second is an honest answer where nothing else was supported, the first never corrects anything. Texts in
other languages are never taken for either.
"""

from __future__ import annotations

import re

from truthlens.text.claims.telling import tells
from truthlens.text.sentences import sentences

_START_CHARS = 160
_MOST_ABSTAINING_SENTENCES = 3
_MOST_ABSTAINING_CHARS = 1500

_REFUSES = re.compile(
    r"^\W*(?:(?:i'?m|i am)\s+(?:very\s+|really\s+|so\s+)?sorry\b[^.!?\n]{0,60}|sorry\b[^.!?\n]{0,20}|i apologi[sz]e\b[^.!?\n]{0,60}"
    r"|unfortunately,?\s*|as an? (?:ai|artificial)\b[^.!?\n]{0,60})?[,.;:!—-]?\s*(?:but\s+|and\s+|however,?\s+)?"
    r"\bi(?:'?m| am)?\s*(?:can(?:no|')?t|can not|could not|couldn'?t|will not|won'?t|(?:not|un)\s?able to|must decline|have to decline"
    r"|decline)(?:\s+to)?\s+(?:\w+\s+){0,2}?(?:help|assist|answer|provide|comply|fulfil+|do|discuss|respond|continue|complete|create|generate|rewrite|correct)\b"
    r"|^\W*(?:非常|很|十分)?(?:抱歉|对不起|不好意思)[，,。]?\s*(?:但)?(?:作为[^，。]{0,20}[，,])?我?(?:无法|不能|没有办法|不便)"
    r"|^\W*(?:作为(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大模型)[^。]{0,30})?我(?:无法|不能)(?:回答|提供|协助|帮助|完成|继续|处理)",
    re.IGNORECASE,
)
_ABSTAINS = re.compile(
    r"\b(?:evidence|context|documents?|passages?|sources?|information|text|materials?|references?)\b[^.!?\n]{0,40}"
    r"\b(?:do(?:es)?\s*(?:not|n['’]t)|did\s*(?:not|n['’]t)|cannot|can['’]t|is\s+(?:not|in)\s*sufficient|(?:is|are)\s+(?:not|n['’]t)\s+(?:enough|available|provided|given)"
    r"|insufficient|lacks?|fails?\s+to)\b"
    r"|\b(?:cannot|can['’]t|could\s*n[o'’]?t|unable\s+to|not\s+possible\s+to)\s+(?:be\s+)?(?:\w+\s+)?(?:answer\w*|confirm\w*|determin\w*|verif\w*|find|found|say|said|establish\w*)\b"
    r"|\b(?:not|no)\s+(?:enough|sufficient)\s+(?:information|evidence|context|data)\b"
    r"|\b(?:there\s+is|i\s+have|i\s+found)\s+no\s+(?:information|evidence|mention|record)\b"
    r"|\bi\s+(?:do\s*n[o'’]?t|don['’]t)\s+know\b|\bunable\s+to\s+answer\b|\b(?:is|are)\s+not\s+(?:known|confirmed|stated|specified|mentioned)\b"
    r"|(?:证据|上下文|资料|文档|材料|段落|信息|文本)[^。！？\n]{0,20}(?:没有|未|不足|不够|缺乏|并未|无法|不能)"
    r"|(?:无法|不能)(?:确定|回答|证实|判断|得知|确认|核实)|(?:尚不清楚|不得而知|我不知道|没有(?:相关|足够)(?:的)?(?:信息|证据|资料))",
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Whether ``text`` opens with a refusal."""
    return _REFUSES.search(text[:_START_CHARS].replace("’", "'")) is not None


def abstains(text: str) -> bool:
    """Return whether ``text`` says nothing but that the evidence does not tell: a few sentences, each of that kind.

    One that holds a number or a further clause says something.
    """
    if len(text) > _MOST_ABSTAINING_CHARS:
        return False
    found = [text[start:end] for start, end in sentences(text)]
    return 0 < len(found) <= _MOST_ABSTAINING_SENTENCES and all(
        _ABSTAINS.search(each) and not tells(each) for each in found
    )
