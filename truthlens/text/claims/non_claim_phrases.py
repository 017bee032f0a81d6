"""The closed list of phrases that claim nothing: thanks, offers of further help, and declines.

Each is the whole of a sentence, or of what stands between two of its commas, matched without case and with straight
quotes. None has a place for words of its own: what varies is itself a closed list. What can answer a question is left
out: "yes", "of course" and "not available", whatever only repeats the question, and headings.
"""

from __future__ import annotations

_THIS = r"(?:this|that|it|this one|(?:the|your|this|that) (?:question|query|request))"
EVIDENCE = (
    r"(?:(?:the|these|this|any of the|your|my) )?(?:(?:given|provided|above|supplied|retrieved|available|two|three|four) )?"
    r"(?:passages?|context|documents?|documentation|sources?|texts?|information|evidence|articles?|materials?|excerpts?)"
    r"(?: (?:(?:that (?:was|were) )?(?:provided|given)|(?:that )?you (?:gave|provided|shared)|above))?"
)
_FROM = rf"(?:based (?:only |solely )?(?:up)?on|according to|from|given|in|with|using) {EVIDENCE}"
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|(?:am|was|'m) (?:not able|unable) to|do not|don't|will not|won't)"
_TELL = (
    r"(?:answer|tell|say|know|find|determine|confirm|verify|find out"
    r"|(?:provide|give|find) (?:you )?(?:with )?(?:an|the|any) answer(?: to)?)"
)
_HELP = (
    r"(?:help|assist|comply|continue|answer|provide (?:help|assistance)|(?:help|assist) (?:you )?(?:with|in)|do|discuss|process"
    r"|fulfil+|complete|respond to|support|engage with|help you)"
)
_KIND = r"(?:this|that|it|(?:this|that|your|the) (?:(?:kind|sort|type) of )?(?:request|question|topic|matter|task))"
_ANY = r"(?:(?:any|enough|sufficient|the|that|this|relevant|more|further|specific|necessary|required|an) )*"
_KNOWLEDGE = r"(?:information|details?|answers?|context|data)"
_TO_ANSWER = rf"(?:(?:about|on|regarding) (?:this|that|it)|(?:needed |required )?to (?:answer|tell|say|determine)(?: {_THIS})?)"
_MORE = r"(?:(?:any|some|other|more|further|additional|follow-up) )*"
_NEEDS = rf"(?:questions?|help|information|details?|assistance|examples?|clarification|anything else|something else|more|(?:help with|questions about) (?:this|that|it|anything else)|{_KNOWLEDGE})"
_DEAR = r"(?:please |sure |yes )?"

DECLINES = (
    rf"(?:i|we) ?{_CANNOT} {_TELL}(?: (?:for sure|for certain))?(?: {_THIS})?(?: {_FROM})?",
    rf"(?:unable|not able|impossible) to {_TELL}(?: {_THIS})?(?: {_FROM})?",
    rf"(?:it's|it is) (?:impossible|not possible) to {_TELL}(?: {_THIS})?(?: {_FROM})?",
    rf"(?:i|we) (?:do not|don't) have {_ANY}{_KNOWLEDGE}(?: {_TO_ANSWER})?(?: {_FROM})?",
    rf"(?:i|we) have no {_KNOWLEDGE}(?: {_TO_ANSWER})?(?: {_FROM})?",
    r"(?:i|we) have no idea",
    r"(?:i'm|i am) not sure",
    r"(?:i|we) (?:do not|don't|would rather not|prefer not to)(?: (?:want|wish) to)? (?:guess|speculate)",
    rf"(?:there is|there's) (?:no|not enough|insufficient) (?:relevant )?{_KNOWLEDGE}(?: {_TO_ANSWER})?(?: {_FROM})?(?: {_TO_ANSWER})?",
    rf"(?:not enough|insufficient|no relevant) {_KNOWLEDGE}(?: (?:is|was) (?:available|given|provided|found))?(?: {_TO_ANSWER})?(?: {_FROM})?",
    rf"{_THIS} (?:cannot|can't|can not|could not|couldn't) be (?:answered|determined)(?: {_FROM})?",
    rf"{EVIDENCE} (?:do|does|did)(?: not|n't) (?:say|tell|specify|mention|state|indicate|explain|cover|answer|address)(?: {_THIS})?",
    rf"{EVIDENCE} (?:do|does|did)(?: not|n't) (?:contain|provide|include|have|give|offer) {_ANY}{_KNOWLEDGE}(?: {_TO_ANSWER})?",
    rf"{EVIDENCE} (?:is|are) (?:insufficient|not (?:sufficient|enough)) to answer(?: {_THIS})?",
    rf"(?:the|an) answer (?:is not|isn't|was not|wasn't|cannot be found|could not be found) (?:given |stated |contained )?(?:{_FROM})",
    r"unanswerable(?: question)?",
    rf"(?:i|we) ?(?:cannot|can't|can not|will not|won't|(?:am|are|'m|'re) (?:not able|unable) to|(?:must |have to )decline(?: to)?)(?: {_HELP}(?: {_KIND})?)?",
    r"(?:das weiß ich nicht|ich weiß es nicht|dazu habe ich keine informationen|das kann ich nicht beantworten)",
    r"(?:je ne sais pas|je ne peux pas répondre à cette question|no lo sé|no puedo responder a esa pregunta|non lo so)",
    (
        r"我?(?:目前|暂时)?(?:不知道|不清楚|不确定|(?:无法|不能)(?:回答|确定|判断|提供帮助|协助|处理))"
        r"(?:答案|(?:这个|该|此|您的|你的)?(?:问题|请求))?"
    ),
    r"(?:资料|文档|上下文|文中|证据)(?:中|里)?(?:并)?(?:没有|未)(?:说明|提到|提及|提供)?(?:相关|有关|足够)?的?(?:信息|内容)?",
    r"(?:没有|缺乏)足够的(?:信息|资料)(?:来)?(?:回答|判断)(?:这个|该)?(?:问题)?|(?:资料|证据)不足以回答(?:这个|该)?问题",
    r"(?:わかりません|分かりません|お答えできません)",
)
"""Only says that it does not answer: it speaks of the answer or of the evidence, and not of the world."""

COURTESIES = (
    r"hello|hi(?: there)?",
    r"thanks|thank you(?: (?:very|so) much)?|you're welcome|you are welcome|my pleasure",
    (
        r"(?:thank you|thanks) for (?:your (?:question|patience|message|query|interest|understanding)|asking|reaching out"
        r"|contacting us|waiting)"
    ),
    r"(?:that's|that is|what) a (?:great|good|excellent) question|(?:great|good|excellent) question",
    r"(?:i'm|i am|we're|we are) (?:very |so |really )?sorry|sorry|(?:i|we) apologi[sz]e|(?:my )?apologies|unfortunately",
    r"(?:sorry|(?:i|we) apologi[sz]e|(?:my )?apologies) for (?:the|any) (?:inconvenience|confusion|trouble)",
    (
        r"(?:i )?hope (?:this|that|it|the (?:information|answer)(?: above)?) "
        r"(?:helps|helped|is helpful|was helpful|answers your question|clarifies things)(?: you)?"
    ),
    (
        r"(?:(?:i'd|i would|i'll|i will|i'm|i am)(?: be)? )?(?:happy|glad|pleased) to (?:help|assist)"
        r"(?: you)?(?: with (?:this|that|your question|anything else|something else))?(?: further)?"
    ),
    # Here "sure" takes on a task. By itself it may affirm.
    r"(?:sure|certainly|of course|absolutely|okay|ok)[,!] (?:i'd|i would|i'll|i will|i'm|i am)(?: be)? (?:happy|glad) to help(?: you)?",
    (
        rf"{_DEAR}(?:let me know|feel free to (?:ask|reach out|contact (?:me|us)|let me know)"
        r"|(?:don't|do not) hesitate to (?:ask|reach out|contact (?:me|us)))"
        rf"(?: (?:if|should) (?:you|there)(?:'d| would)?(?: (?:have|need|want|like|is))? {_MORE}{_NEEDS}| if anything is unclear)?"
    ),
    rf"if you (?:have|need|want|would like) {_MORE}{_NEEDS}",
    r"(?:just )?ask|please ask",
    (
        r"is there anything else (?:i can (?:help|assist)(?: you)?(?: with)?|i can do for you|you (?:need|want)"
        r"|you(?:'d| would) like (?:to know|help with))(?: today)?"
    ),
    (
        r"(?:would you like|do you (?:want|need|have)|may i offer you) (?:to know more|"
        rf"{_MORE}{_NEEDS}|me to (?:explain|elaborate|clarify|continue|go into (?:more|further) detail|explain (?:this|that|it|anything else))"
        r"(?: further| (?:in|with) more detail)?)"
    ),
    r"(?:what else|how(?: else)?) (?:can|may|could) i (?:help|assist|do for)(?: you)?(?: with)?(?: today| further)?",
    r"(?:can|may|could|shall) i help(?: you)?(?: with (?:anything|something) else)?|what else would you like to know",
    rf"(?:could|can|would) you (?:please )?(?:provide|share|give)(?: me| us)? {_MORE}(?:context|details?|information)",
    r"(?:could|can|would) you (?:please )?(?:rephrase|clarify|repeat|reword)(?: your question| that| this)?",
    (
        r"here(?:'s| is| are) (?:(?:the|a|an|some|my|your|short|brief|quick|main|key|corrected|revised|updated) )*(?:answer|summary|overview|response|steps"
        rf"|list|details|information|points|explanation|example)(?:s)?(?: (?:to|for) (?:you|{_THIS}))?(?: {_FROM})?"
    ),
    rf"{_FROM}|(?:根据|依据|基于|从)(?:(?:以上|上述|所?提供的?|给定的?|现有的?|检索到的?)*)(?:参考)?(?:资料|文档|上下文|信息|材料)(?:中|来看)?",
    r"您好|你好|谢谢|不客气|感谢(?:您|你)的(?:提问|咨询|耐心)|(?:非常|很)?抱歉|对不起|不好意思",
    r"希望(?:这|以上(?:信息|内容|回答))?(?:能|能够|可以)?对?(?:您|你)?(?:有所|有)?帮助",
    r"(?:如果|如)(?:您|你)?(?:还)?有(?:任何|其他|其它|更多|别的)*(?:问题|疑问|需要)|(?:请|欢迎)?随时(?:告诉我|提问|联系(?:我|我们)|咨询)",
    r"(?:(?:您|你)?还有(?:什么|其他|别的)?(?:问题|可以帮(?:您|你)的))吗?|以下是(?:相关)?(?:信息|回答|答案|步骤|要点|总结)",
)
"""Thanks, apologises, offers further help or announces an answer."""

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
_ITS_WORK_ZH = r"(?:这个?|该|上述|以上|全部|所有|您的|你的|原)?(?:回答|答案|内容|错误|文本|资料|证据|文档)"
_HOW = rf"(?:\s+(?:against|with|from|according to|using) {EVIDENCE}|\s+(?:accordingly|now|again|already|carefully))?"
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
"""Only takes note of a request or reports work. It is scored, for it may affirm; a correction that says no more is none."""
