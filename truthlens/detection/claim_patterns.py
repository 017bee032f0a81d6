"""Patterns of sentences that claim nothing, English and Chinese; ``claims`` decides what they are applied to.

They are matched without case against a whole sentence (or its beginning, for lead-ins) with straight quotes. What
is left out matters as much: "we cannot offer refunds", "there is no evidence of an interaction" and "the leaflet
does not mention alcohol" are claims, and may be wrong ones.
"""

from __future__ import annotations

from truthlens.detection.words import words


def _words(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words(text))


_EVIDENCE = (
    r"(?:(?:the|these|this|any of the|your) )?"
    r"(?:(?:given|provided|above|supplied|retrieved|available|following) )?"
    r"(?:passages?|context|documents?|sources?|texts?|information|evidence|articles?|materials?|excerpts?|data)"
    r"(?: (?:provided|given|above|supplied|that you (?:gave|provided)|you (?:gave|provided)))?"
)
FROM_EVIDENCE = (
    rf"(?:based (?:only |solely |strictly )?(?:up)?on|according to|from|given|per|in|using) {_EVIDENCE}"
)
_SORRY = r"(?:(?:i'm|i am|we're|we are) (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately|apologies)"
# No comma, colon or conjunction: behind those an abstention may go on to a claim.
_TOPIC = (
    r"(?:(?!\b(?:but|however|although|though|because|since|which|who|whose|as|so|yet|except|while|and)\b)"
    r"[^,;:()—–]){0,160}"
)
_ABOUT = rf"(?: (?:about|on|regarding|concerning|for|to|of|that|needed|necessary|required|in)\b{_TOPIC})?"
_UNABLE = r"(?:unable to|not able to|cannot|can't|can not|could not|couldn't|do not|don't|was unable to|were unable to)"
_AN_ANSWER = (
    r"(?:you )?(?:with )?(?:(?:an?|the|any|that|this|your|more|specific|definitive|accurate|detailed|further) )*"
    r"(?:answers?|information|details?|response|guidance|instructions|question)"
)
_ANSWERING = (
    rf"(?:(?:answer|determine|tell|say|confirm|verify|respond){_TOPIC}"
    rf"|(?:provide|give|offer|find|locate) {_AN_ANSWER}{_ABOUT})"
)
_SOME = r"(?:any |enough |sufficient |the |that |this |specific |relevant |detailed |necessary )*"

ABSTENTIONS = (
    rf"(?:i'm |i am |we are |it is )?(?:unable|not able|impossible) to {_ANSWERING}",
    rf"(?:i|we)(?:'m| am|'re| are)? {_UNABLE} {_ANSWERING}",
    rf"i (?:do not|don't) know{_TOPIC}",
    rf"i (?:do not|don't) have {_SOME}(?:information|details|context|knowledge|access){_ABOUT}",
    rf"i have no (?:information|details|idea|knowledge){_ABOUT}",
    rf"i(?:'m| am) not sure{_TOPIC}",
    rf"(?:there is|there's) no (?:\w+ )?information{_ABOUT}",
    rf"no (?:\w+ )?information (?:is|was) (?:available|given|provided){_ABOUT}",
    (
        r"(?:there is |there's )?(?:not enough|insufficient) (?:information|evidence|data|context|details?)"
        rf"(?: {FROM_EVIDENCE})? to {_ANSWERING}"
    ),
    (
        rf"{_EVIDENCE} (?:do|does|did)(?: not|n't) (?:contain|provide|include|have|give|offer) "
        rf"{_SOME}(?:information|details?|answers?|context|instructions|guidance){_ABOUT}"
    ),
    rf"(?:this|the|your) (?:question|query|request) (?:cannot|can't|can not|could not) be answered{_TOPIC}",
    r"(?:the )?answer (?:is )?(?:unknown|not available)(?: here)?",
    r"unknown|not (?:given|stated|specified|available)|n/a",
    r"unanswerable(?: question)?",
)
LEAD_INS = (
    rf"{FROM_EVIDENCE},",
    r"(?:sure|certainly|of course|absolutely|okay|ok|yes, of course)[,!:]",
    rf"{_SORRY},(?: but)?",
    r"(?:therefore|thus|so|hence|in short|in summary|to summari[sz]e|overall|in conclusion),",
    r"(?:short |final )?answer:",
)
_SHOWN = (
    r"(?:answers?|steps?|instructions?|list|summary|summaries|details?|information|(?:key |main )?points?|ways?"
    r"|tips|facts|options|explanations?|overview|response|examples?|results?|findings)"
)
META = (
    (
        r"(?:here(?:'s| is| are)|these are|below (?:is|are)|the following (?:is|are)) "
        rf"(?:(?:the|a|an|some|a few|my|your|several|main|key|brief|short|quick|possible) )*{_SHOWN}"
        rf"(?: (?:to|for) (?:your question|you|the question|your query|follow))?(?:,? {FROM_EVIDENCE})?"
    ),
    r"here's (?:how|what i found|the answer)",
    FROM_EVIDENCE,
    r"(?:the |this )?(?:answer|information|response|list|summary)(?: above)? (?:is|was) (?:taken |drawn |based )*"
    + FROM_EVIDENCE,
)
POLITE = (
    (
        r"(?:sure|certainly|of course|absolutely|okay|ok|thanks|thank you(?: (?:very|so) much)?|you're welcome"
        r"|my pleasure|enjoy|good luck|hello|hi(?: there)?)"
    ),
    r"(?:that's a |that is a )?(?:great|good|excellent|interesting) question",
    r"thank you for (?:your (?:question|patience|message|query|interest)|asking|reaching out|contacting us)",
    rf"{_SORRY}(?: for (?:the|any) (?:inconvenience|confusion|trouble))?",
    (
        r"(?:sure, )?(?:i'd|i would|i'll|i will|i'm|i am|i can) (?:be )?(?:happy |glad |pleased )?(?:to )?help(?: you)?"
        r"(?: with (?:that|this|your question))?"
    ),
    (
        r"i hope (?:this|that|it|the (?:information|answer)(?: above)?) "
        r"(?:helps|is helpful|was helpful|answers your question|helped)(?: you)?"
    ),
    (
        r"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact (?:me|us)|let me know)"
        r"|don't hesitate to (?:ask|reach out|contact (?:me|us)))"
        r"(?: (?:if|should) (?:you|there) (?:(?:have|need|want|would like|is|are|'d like) )?[^,;:.()0-9]{0,80})?"
    ),
    (
        r"if you (?:have|need) (?:any )?(?:other |more |further |additional )?"
        r"(?:questions|help|information|assistance|details)[^,;:.()0-9]{0,40}, "
        r"(?:please )?(?:feel free to|don't hesitate to|let me know|just|ask)[^,;:.()0-9]{0,40}"
    ),
)
OFFERS = (
    (
        r"(?:would you like|do you want|would you prefer|shall i|should i|may i|can i help|could i help"
        r"|how (?:can|may) i help|is there anything|what else|do you have any (?:other|more|further) questions)"
        r"[^?]{0,200}\?"
    ),
    # A question to the user, unless it tells something: "did you know that ..."
    (
        r"(?![^?]{0,200}\b(?:know|aware|reali[sz]e|remember|heard|believe|imagine)\b)"
        r"(?:(?:could|can|would|will) you|do you|did you|are you|have you|what(?:'s| is| are) your"
        r"|which [^?]{1,60} (?:do|did|are|would) you)\b[^?]{0,160}\?"
    ),
)

_EVIDENCE_ZH = (
    r"(?:(?:所|您|你)?(?:提供|给出|给定|给|上述|以上|现有|已有|检索到)的?)?(?:这些|该|上述|以上)?"
    r"(?:参考资料|资料|上下文|文档|信息|段落|内容|材料|文章|背景)(?:中|里|内)?"
)
_TOPIC_ZH = r"[^，。；：、,;:（）()但却因]{0,60}"

ABSTENTIONS_ZH = (
    (
        rf"(?:我|目前|暂时|暂)?(?:无法|不能|没法|没有办法|难以)(?:根据{_EVIDENCE_ZH})?"
        rf"(?:(?:回答|确定|判断|得知){_TOPIC_ZH}"
        r"|(?:提供|给出|得出)(?:相关|具体|准确|确切)?的?(?:答案|信息|回答|结论))"
    ),
    (
        rf"{_EVIDENCE_ZH}(?:并)?(?:没有|未|不)(?:包含|提供|含有|给出|有)?(?:任何|足够的?|充分的?)?"
        rf"(?:相关|有关|关于{_TOPIC_ZH})?的?(?:信息|内容|资料|答案|说明)(?:来?回答{_TOPIC_ZH})?"
    ),
    r"我?(?:并)?不(?:知道|清楚|了解|确定)(?:答案|这个问题的答案)?",
    r"(?:没有|缺乏)(?:足够|相关|充分)的?(?:信息|资料)(?:来?回答(?:这个|该|您的)?问题)?",
)
LEAD_INS_ZH = (
    rf"(?:根据|依据|按照|基于|从){_EVIDENCE_ZH}(?:来看|可知|可以看出)?[，,：:]",
    r"(?:抱歉|对不起|很抱歉|非常抱歉|不好意思|很遗憾|好的|当然可以|当然|没问题)[，,！!：:]",
    r"(?:因此|所以|总之|综上所述|综上)[，,]",
    r"(?:答案|回答|答)[：:]",
)
META_ZH = (
    (
        rf"(?:(?:根据|依据|基于){_EVIDENCE_ZH}[，,]?)?(?:以下|下面|如下)(?:是|为)?"
        r"(?:具体|主要|相关|详细|简要|一些)?的?(?:步骤|回答|答案|说明|信息|要点|总结|建议|方法|内容)"
    ),
)
POLITE_ZH = (
    r"(?:好的|当然|当然可以|没问题|谢谢|感谢(?:您|你)的(?:提问|咨询|耐心)|不客气|您好|你好|抱歉|对不起|很抱歉)",
    r"希望(?:这|以上(?:信息|内容|回答))?(?:能|能够|可以)?对?(?:您|你)?(?:有所|有)?帮助(?:到(?:您|你))?",
    (
        r"(?:如果|如|若)(?:您|你)?(?:还)?有(?:任何|其他|其它|更多|别的)*(?:问题|疑问|需要)[，,]?"
        r"(?:请|欢迎|可以)?(?:随时|继续)?(?:告诉我|联系(?:我|我们)|提问|咨询|问我)"
    ),
)
OFFERS_ZH = (
    r"(?:您|你)?(?:是否)?(?:还)?(?:需要|想要|希望|想|要不要)(?:我|了解)[^？?]{0,60}[？?]",
    r"(?:请问)?(?:您|你)(?:是否|还|能|可以|的|有没有)(?!知道)[^？?]{0,60}[？?]",
    r"还有(?:什么|其他|别的)[^？?]{0,30}[？?]",
)

HEADING_WORDS = _words(
    "a an and the of to in for on or with your my some key main short final brief answer summary overview conclusion"
    " introduction step note source reference passage point detail background ingredient instruction example"
    " response question list way tip result finding"
)
"""Stems that a heading may have beside those of the query."""
ANNOUNCING_WORDS = HEADING_WORDS | _words(
    "here here's is are how what you can follow following based these below"
)
"""Stems of a line such as "Here's how you can ...:", beside those of the query."""
VERBS = _words("is are was were be do does did can could will would should must may has have had not no")
"""With one of these a line is a sentence, and may be a claim, whatever it is made of."""
QUESTION_WORDS = _words(
    "a an and the of to in for on or by with from at as is are was were do does did can could will would should be been"
    " what which who whom whose when where why how much many that this these those it its there"
)
"""Stems that a restated question may have beside those of the query."""
