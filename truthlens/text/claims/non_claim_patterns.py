"""Patterns of sentences that claim nothing, English and Chinese; ``non_claims`` decides what they are applied to.

They are matched without case against a whole sentence (or its beginning, for lead-ins) with straight quotes. What
is left out matters as much: "we cannot offer refunds", "there is no evidence of an interaction" and "the leaflet
does not mention alcohol" are claims, and may be wrong ones.

A pattern says what a sentence is like; its capturing groups are open, and what stands in them must be *bare*
(``bare``): otherwise a claim could stand there. All other groups are non-capturing.
"""

from __future__ import annotations

from truthlens.text.words import words


def _words(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words(text))


_EVIDENCE = (
    r"(?:(?:the|these|this|any of the|your) )?"
    r"(?:(?:given|provided|above|supplied|retrieved|available|following|two|three|four|five) )?"
    r"(?:passages?|context|documents?|documentation|sources?|texts?|information|evidence|articles?|materials?|excerpts?|data)"
    r"(?: (?:provided|given|above|supplied|that you (?:gave|provided)|you (?:gave|provided)))?"
)
FROM_EVIDENCE = (
    rf"(?:based (?:only |solely |strictly )?(?:up)?on|according to|from|given|per|in|using) {_EVIDENCE}"
)
_SORRY = r"(?:(?:i'm|i am|we're|we are) (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately|apologies)"
# Behind a comma, a colon or a bracket an abstention may go on to a claim; ``claims`` looks at the words.
_TOPIC = r"([^,;:()—–]{0,160})"
_ABOUT = rf"(?: (?:about|on|regarding|concerning|for|to|of|that|needed|necessary|required|in)\b{_TOPIC})?"
_WORD = r"[a-z]+"
_UNABLE = r"(?:unable to|not able to|cannot|can't|can not|could not|couldn't|do not|don't|was unable to|were unable to)"
_AN_ANSWER = (
    r"(?:you )?(?:with )?(?:(?:an?|the|any|that|this|your|more|specific|definitive|accurate|detailed|further) )*"
    r"(?:answers?|information|details?|response|guidance|instructions|question)"
)
_ANSWERING = (
    rf"(?:(?:answer|determine|tell|say|find|locate|see|(?:confirm|verify)(?: that)?|respond){_TOPIC}"
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
    rf"(?:there is|there's) no ({_WORD} )?information(?: (?:available|given|provided))?{_ABOUT}",
    rf"no ({_WORD} )?information (?:is|was) (?:available|given|provided){_ABOUT}",
    (
        r"(?:there is |there's )?(?:not enough|insufficient) (?:information|evidence|data|context|details?)"
        rf"(?: {FROM_EVIDENCE})? to {_ANSWERING}"
    ),
    (
        rf"{_EVIDENCE} (?:do|does|did)(?: not|n't) (?:contain|provide|include|have|give|offer) "
        rf"{_SOME}(?:information|details?|answers?|context|instructions|guidance){_ABOUT}"
    ),
    (
        rf"{_EVIDENCE} (?:do|does|did)(?: not|n't) (?:say|tell|state|specify|mention|indicate|explain|describe|clarify"
        rf"|address|discuss)(?: anything| any)?{_TOPIC}"
    ),
    rf"{_TOPIC} (?:is|are)(?: not|n't) (?:mentioned|specified|stated|explained|discussed)(?: {FROM_EVIDENCE})?",
    rf"{_TOPIC} (?:is|are)(?: not|n't) (?:given|provided|clear|known|evident) {FROM_EVIDENCE}",
    rf"{_TOPIC} (?:cannot|can't|can not|could not) be (?:answered|determined|confirmed|verified) {FROM_EVIDENCE}",
    (
        rf"{_EVIDENCE} (?:is|are) (?:insufficient|not (?:sufficient|enough)) "
        rf"(?:to {_ANSWERING}|for {_AN_ANSWER}{_ABOUT})"
    ),
    rf"{_EVIDENCE} (?:lacks? {_SOME}(?:information|details?|answers?|instructions|guidance)|makes? no mention){_ABOUT}",
    (
        rf"{_EVIDENCE} fails? to (?:say|tell|state|specify|mention|indicate|explain|describe|clarify|address|discuss)"
        rf"(?! that\b){_TOPIC}"
    ),
    rf"(?:i (?:have )?(?:found|find|see)|there is|there's) no (?:mention|answer|information){_ABOUT}",
    rf"(?:it is |it's )(?:not possible|impossible)(?: {FROM_EVIDENCE})? to {_ANSWERING}",
    rf"(?:it is |it's )unclear(?: {FROM_EVIDENCE})?(?: to {_ANSWERING}|{_TOPIC})",
    rf"(?:it|this|that) (?:cannot|can't|can not|could not) be (?:answered|determined|confirmed|said|told){_TOPIC}",
    r"(?:not enough|insufficient|no(?: relevant| specific)?) (?:information|evidence|context|data|details)",
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
        rf"(?:(?:the|a|an|some|a few|my|your|several|main|key|brief|short|quick|possible|corrected|revised|updated) )*{_SHOWN}"
        rf"(?: (?:to|for) (?:your question|you|the question|your query|follow))?(?:,? {FROM_EVIDENCE})?"
    ),
    r"here's (?:how|what i found|the answer)",
    rf"here(?:'s| is) what {_EVIDENCE} (?:say|says|tell|tells|state|states)(?: (?:about|on){_TOPIC})?",
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
    (
        r"(?:thank you|thanks) for (?:your (?:question|patience|message|query|interest)|asking|reaching out"
        r"|contacting us|waiting)"
    ),
    rf"{_SORRY}(?: for (?:the|any) (?:inconvenience|confusion|trouble))?",
    (
        r"(?:sure, )?(?:(?:i'd|i would|i'll|i will|i'm|i am|i can) (?:be )?)?(?:(?:happy |glad |pleased )to |to )?"
        r"help(?: you)?(?: with (?:that|this|your question))?"
    ),
    (
        r"(?:i )?hope (?:this|that|it|the (?:information|answer)(?: above)?) "
        r"(?:helps|is helpful|was helpful|answers your question|helped)(?: you)?"
    ),
    (
        r"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact (?:me|us)|let me know)"
        r"|don't hesitate to (?:ask|reach out|contact (?:me|us)))"
        r"(?: (?:if|should) (?:you|there|anything|something)"
        r"((?:'d| would)?(?: (?:have|need|want|like|is|are))?\b[^,;:.()0-9]{0,80}))?"
    ),
    (
        r"if you (?:have|need) (?:any )?(?:other |more |further |additional )?"
        r"(?:questions|help|information|assistance|details)([^,;:.()0-9]{0,40}), "
        r"(?:please )?(?:feel free to|don't hesitate to|let me know|just|ask)([^,;:.()0-9]{0,40})"
    ),
)
OFFERS = (
    (
        r"(?:would you like|do you want|do you need|would you prefer|shall i|should i|may i|can i help|could i help"
        r"|how (?:can|may) i help|is there anything|what else|do you have any (?:other|more|further) questions)"
        r"\b([^?]{0,200})\?"
    ),
    # A question to the user. "Did you know" and "are you aware" tell what follows them.
    (
        r"(?:(?:could|can|would|will) you|do you(?! know)|what(?:'s| is| are) your|how old are you"
        r"|(?:which|what)([^?]{1,60}) (?:do|did|are|would) you)\b([^?]{0,160})\?"
    ),
)

ASKS = (
    (
        r"(?:have|did) you (?:(?:already|ever|also) )?"
        r"(?:(?:had|have|taken|take) a (?:close |closer )?look at|look(?:ed)? (?:at|for|into)|check(?:ed)?|read|seen?"
        r"|find|found|noticed?|try|tried|opene?d?|test(?:ed)?|measured?) (?:(?:the|your|an?|any|this|that) )?"
        r"([a-z][a-z' -]{0,40}?)(?: (?:yet|already|before|again|today|recently))?\?"
    ),
)
"""Whether the user looked at a thing: in the open place stands what query or evidence call so, and nothing else."""

_EVIDENCE_ZH = (
    r"(?:(?:所|您|你)?(?:提供|给出|给定|给|上述|以上|现有|已有|检索到)的?)?(?:这些|该|上述|以上)?"
    r"(?:参考资料|资料|上下文|文档|信息|段落|内容|材料|文章|背景|证据|文本)(?:中|里|内)?"
)
_TOPIC_ZH = r"([^，。；：、,;:（）()]{0,60})"

ABSTENTIONS_ZH = (
    (
        rf"(?:我|目前|暂时|暂)?(?:无法|不能|没法|没有办法|难以)(?:(?:根据|从){_EVIDENCE_ZH})?"
        rf"(?:(?:回答|确定|判断|得知){_TOPIC_ZH}"
        r"|(?:提供|给出|得出)(?:相关|具体|准确|确切)?的?(?:答案|信息|回答|结论))"
    ),
    (
        rf"{_EVIDENCE_ZH}(?:并)?(?:没有|未|不)(?:包含|提供|含有|给出|有)?(?:任何|足够的?|充分的?)?"
        rf"(?:相关|有关|关于{_TOPIC_ZH})?的?(?:信息|内容|资料|答案|说明)(?:来?回答{_TOPIC_ZH})?"
    ),
    rf"{_EVIDENCE_ZH}(?:并)?(?:没有|未|并未)(?:说明|提到|提及|指出|给出|提供){_TOPIC_ZH}",
    rf"我?(?:并)?不(?:知道|清楚|了解|确定){_TOPIC_ZH}",
    r"(?:没有|缺乏)(?:足够|相关|充分)的?(?:信息|资料)",
    rf"(?:没有|缺乏)(?:足够|相关|充分)的?(?:信息|资料|证据)来?(?:回答|确定|判断){_TOPIC_ZH}",
    rf"{_EVIDENCE_ZH}(?:并)?(?:不足|不够|不充分)(?:以|[，,]?(?:因此|所以)?(?:无法|不能))(?:回答|确定|判断){_TOPIC_ZH}",
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
    r"(?:您|你)?(?:是否)?(?:还)?(?:需要|想要|希望|想|要不要)(?:我|了解)([^？?]{0,60})[？?]",
    r"(?:请问)?(?:您|你)(?:是否|还|能|可以|的|有没有)(?!知道)([^？?]{0,60})[？?]",
    r"还有(?:什么|其他|别的)([^？?]{0,30})[？?]",
)
ASKS_ZH = (
    r"(?:请问)?(?:您|你)(?:已经)?(?:看|查看|检查|试|阅读|打开)(?:过|了|一下)*([\u4e00-\u9fff]{1,12}?)了?吗[？?]",
)

_TEXT = (
    r"(?:answer|text|response|reply|version|evidence|context|documents?|passages?|sources?|claims?|statements?|figures?"
    r"|numbers?|facts?|errors?|mistakes?|corrections?|changes?|spans?|information|everything)"
)
_DONE = (
    r"(?:checked|double-checked|corrected|reviewed|verified|fixed|updated|revised|removed|rewritten|changed|edited"
    r"|amended|adjusted|addressed|done|completed|finished|confirmed|compared|read|understood|made|mended|processed)"
)
_ITS_WORK = (
    r"(?:it|this|that|them|everything|(?:(?:the|my|your|this|these|those|all|any|of|flagged|marked|given|provided"
    rf"|corrected|required|requested|necessary)\s+){{0,4}}{_TEXT})"
)
_HOW = (
    r"(?:\s+(?:against|with|for|in|from|as|according to|using|based on|accordingly|now|again|already|carefully)\b"
    r"([^,;:]{0,60}))?"
)
_ITS_WORK_ZH = r"(?:这个?|该|上述|以上|全部|所有|您的|你的|原)?(?:回答|答案|内容|错误|文本|资料|证据|文档)"
ACKNOWLEDGEMENTS = (
    (
        r"(?:(?:well|so|and|yes|ok|okay|sure),?\s+)?(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright"
        r"|all right|right|done|all done|fine|great|good|perfect|noted|understood|got it|will do|no problem"
        r"|you're welcome|thank you|thanks|hello|hi|here you go|here it is|here is (?:it|the answer)|sorry|my apologies"
        r"|i apologi[sz]e|i see|i understand|i agree|agreed|fixed|corrected|updated|checked|verified|confirmed|finished"
        r"|completed?|answer|response|n/?a|tbd|todo|lorem ipsum|ready|as requested|see above"
        r"|erledigt|fertig|in ordnung|gut|danke|verstanden|alles klar|natürlich|klar|fait|c'est fait|d'accord|voilà"
        r"|bien sûr|compris|merci|hecho|listo|de acuerdo|claro|entendido|gracias|vale|fatto|va bene|certo|capito"
        r"|grazie|feito|pronto|gedaan|klaar|begrepen)"
    ),
    (
        r"(?:i|we)(?:'ve|'ll| have| had| will| am|'m)?(?:\s+(?:now|just|already|carefully|also|both))*"
        rf"\s+{_DONE}(?:\s+and\s+{_DONE})?\s+{_ITS_WORK}{_HOW}"
    ),
    r"(?:i|we)(?:'m|'ve| am| have| are)\s+(?:all\s+)?(?:done|finished|ready)",
    (
        rf"(?:{_ITS_WORK}|all)\s+(?:has|have|is|was|were|are|looks?|seems?)(?:\s+(?:been|now|all|already|to be))*"
        rf"\s+(?:{_DONE}|correct|fine|good|ok|okay|complete|accurate|in order|supported|right){_HOW}"
    ),
    (
        rf"(?:there (?:is|are|were) )?(?:no|nothing)\s+(?:more\s+|further\s+)?(?:{_TEXT}"
        r"|to\s+(?:correct|change|add|fix|say|mend|report))"
        r"(?:\s+(?:is|are|was|were))?(?:\s+(?:needed|necessary|required|made|found|to be made))?"
    ),
    r"ich habe (?:es|alles|das|die antwort|den text) (?:(?:über|nach)?ge?(?:prüft|schaut|lesen|ändert)|korrigiert)",
    r"j'ai (?:tout )?(?:vérifié|corrigé)(?: (?:tout|la réponse|le texte))?",
    r"(?:lo )?he (?:verificado|corregido|revisado)(?: (?:todo|la respuesta|el texto))?",
)
"""What only takes note of a request or reports work on an answer: it says nothing, but it does affirm."""
ACKNOWLEDGEMENTS_ZH = (
    (
        r"(?:好的?|好了|当然(?:可以)?|没问题|明白了?|收到|了解了?|知道了|完成了?|谢谢|不客气|你好|您好|抱歉|对不起|如上|略"
        r"|答案?|回答|无误|以上)"
    ),
    (
        rf"(?:我|我们)?(?:已经?|均已|都已)?(?:对?(?:{_ITS_WORK_ZH})?(?:进行了?)?)?(?:已经?|均已|都已)?"
        r"(?:检查|核对|核实|修改|更正|修正|纠正|完成|确认|更新|处理|阅读)(?:过|了|完毕|完成|好)*"
        rf"(?:{_ITS_WORK_ZH})?了?"
    ),
    r"(?:没有|无需|不需要)(?:任何)?(?:修改|更正|问题|错误)(?:之处|的地方|的内容)?",
)
_APOLOGY = (
    r"(?:(?:i'?m|i am)\s+(?:very\s+|really\s+|so\s+)?sorry\b[^.!?\n]{0,60}|sorry\b[^.!?\n]{0,20}"
    r"|i apologi[sz]e\b[^.!?\n]{0,60}|unfortunately,?\s*|as an? (?:ai|artificial)\b[^.!?\n]{0,60})"
)
REFUSALS = (
    (
        rf"{_APOLOGY}?[,.;:!—-]?\s*(?:but\s+|and\s+|however,?\s+)?\bi(?:'?m| am)?\s*(?:can(?:no|')?t|can not|could not"
        r"|couldn'?t|will not|won'?t|(?:not|un)\s?able to|must decline|have to decline|decline)(?:\s+to)?"
        r"\s+(?:\w+\s+){0,2}?(?:help|assist|answer|provide|comply|fulfil+|do|discuss|respond|continue|complete|create"
        r"|generate|rewrite|correct)\b"
    ),
    r"(?:非常|很|十分)?(?:抱歉|对不起|不好意思)[，,。]?\s*(?:但)?(?:作为[^，。]{0,20}[，,])?我?(?:无法|不能|没有办法|不便)",
    (
        r"(?:作为(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大模型)[^。]{0,30})?我(?:无法|不能)"
        r"(?:回答|提供|协助|帮助|完成|继续|处理)"
    ),
)
"""How a text begins that refuses to answer; it speaks of the model, where an abstention speaks of the evidence."""

GENERIC_WORDS = _words(
    "a an the this these those it its you your yours you'd you're you've i i'd i'm me my we us our they them their there"
    " here is are was were be been do does did can could may might would will shall should have has had to of in on at by"
    " for from with about regarding concerning into within if whether what which who whom whose when where how much many"
    " or and else some anything something other another more further additional please just also too again today now above"
    " information info detail answer question query request example step instruction guidance explanation summary overview"
    " list point topic subject matter issue context document passage source text evidence material article excerpt data"
    " reference help assist assistance explain show tell give provide share find look up search check clarify elaborate"
    " describe summarize list compare discuss go over through know learn hear read see ask need want like prefer"
    " wonder mean understand continue rephrase repeat specify confirm contact say answer use specific particular relevant"
    " detailed short brief definitive accurate unclear confusing helpful happy glad sure certain asked given provided"
    " available mentioned contained order number name address email phone account location country city date age weight"
    " allergy symptom preference budget code out deeper back base time d s gave been"
)
"""Stems that may stand in an open place of a pattern beside those of the query: none of them tells anything."""
NEVER_BARE = _words(
    "because since as although though but so while yet however except unless therefore thus than why not no never none"
    " nothing nobody without cannot neither nor hardly only always every all both dozen half double twice triple thrice"
    " thousand million billion first second third once"
) | {"n't", "isn't", "aren't", "don't", "doesn't", "didn't", "can't", "won't", "wasn't", "weren't"}
"""Stems that turn, count, quantify or go on to a clause: with one of these an open place is not bare, asked for or not."""
RELATIVES = _words("that which who whom whose")
"""Behind a word of the query, or a comma, these go on to say something of it."""
GENERIC_ZH = (
    r"(?:相关|有关|关于|具体|详细|更多|其他|其它|别的|任何|这个|该|这些|那些|什么|哪些|多少|如何|怎样|怎么|是否|有没有|能否|可否|谁|哪里|何时|几"
    r"|信息|内容|资料|答案|问题|疑问|说明|解释|细节|步骤|方法|示例|例子|建议|帮助|帮忙|帮|服务|需要|想要|希望|想|要|了解|知道|告诉|提供|查询|查找|介绍|总结"
    r"|回答|确定|判断|订单号|订单|编号|姓名|地址|邮箱|电话|账号|年龄|体重|过敏史|您|你|我|们|的|地|得|了|吗|呢|吧|在|中|里|和|与|或|及|以|为|对|给|请"
    r"|问|是|有|能|会|可以|到|从|由|来|去|还|也|就|一下|一些|进一步|继续|哪)+"
)
"""Chinese words that may stand in an open place beside pieces of the query."""
NEVER_BARE_ZH = (
    r"不|没|未|无(?!法)|非|勿|但|却|因|由于|为什么|为何|所以|虽|如果|只|最|都|全|超过"
    r"|[0-9０-９]|[零一二两三四五六七八九十百千万亿半](?=[片粒次天日月年元块个小分度岁人公毫倍份张点号成%]|$)"
)
"""What makes an open place of a Chinese pattern tell something, asked for or not."""

HEADING_WORDS = _words(
    "a an and the of to in for on or with your my some key main short final brief answer summary overview conclusion"
    " introduction step note source reference passage point detail background ingredient instruction example"
    " response question list way tip result finding information"
)
"""Stems that a heading may have beside those of the query."""
ANNOUNCING_WORDS = HEADING_WORDS | _words(
    "here here's is are how what you can follow following based these below"
)
"""Stems of a line such as "Here's how you can ...:", beside those of the query."""
VERBS = _words("is are was were be do does did can could will would should must may has have had not no")
"""With one of these a line is a sentence, and may be a claim, whatever it is made of."""
QUESTION_WORDS = _words(
    "a an and the of to in for on or by with from at is are was were do does did can could will would should be been"
    " what which this these those it its there"
)
"""Stems that a restated question may have beside those of the query; "why" and "when" tell that something is so."""
