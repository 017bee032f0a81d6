"""The wordings by which prompts mark evidence, questions and instructions, in English and Chinese.

Every expression is anchored to a line or bounded, so that matching is linear in the text.
"""

from __future__ import annotations

import re

_QUESTION = (
    "question|query|user (?:question|query|input)|(?:my|the|actual|new|final) question|q|task|"
    "问题|問題|问题是|问题如下|用户问题|用戶問題|我的问题|提问|提問|查询|查詢|请问|請問|问|問"
)
_OPENING = r"[ \t]{0,20}(?:#{1,6}[ \t]{0,4}|\*\*|【|[-=]{2,20}[ \t]{0,4})?"
_COLON = r"[ \t]{0,4}(?:\*\*|】)?[ \t]{0,4}[:：](?:\*\*)?"

# A line that opens the question; ``rest`` is what follows the label.
QUESTION_LINE = re.compile(rf"^{_OPENING}(?:{_QUESTION}){_COLON}(?P<rest>.*)$", re.IGNORECASE | re.MULTILINE)
# The line before the question, which is then on the next one.
QUESTION_LEAD = re.compile(
    r"^.{0,200}\b(?:following|below)(?: (?:user|user's|customer))? (?:questions?|query|request)\b[^:：\n]{0,120}"
    r"[:：](?P<rest>.*)$|^.{0,60}(?:以下|下面|下列|如下)(?:的)?(?:问题|問題|提问)[^:：\n]{0,30}[:：](?P<rest_zh>.*)$",
    re.IGNORECASE,
)
ANSWER_LINE = re.compile(
    rf"^{_OPENING}(?:(?:helpful |final |your |short |the )?answer|output|response|assistant|overview|summary|a|"
    rf"答案|回答|答|输出|輸出|回复){_COLON}(?P<rest>.*)$",
    re.IGNORECASE,
)

_QUALITY = (
    "retrieved|relevant|provided|given|additional|supporting|the|structured|reference|source|background"
)
_HEADERS = (
    "contexts?|context information|documents?|docs|passages?|sources?|references?|background|evidence|"
    "search results?|knowledge|knowledge base|articles?|excerpts?|snippets?|facts|information|text|data|transcript|"
    "material|materials|news"
)
_HEADERS_ZH = (
    "上下文|上下文信息|资料|資料|参考资料|參考資料|文档|文檔|文件|参考文档|參考文件|背景|背景资料|背景資料|背景信息|背景知识|"
    "已知信息|已知資訊|材料|参考内容|參考內容|知识|检索结果|檢索結果|搜索结果|证据|相关资料|相關資料|相关信息|原文|文章|内容"
)
# A line that opens a section of evidence; ``rest`` may already be evidence.
HEADER_LINE = re.compile(
    rf"^{_OPENING}(?:(?:(?:{_QUALITY}) ){{0,2}}(?:{_HEADERS})|{_HEADERS_ZH}){_COLON}(?P<rest>.*)$",
    re.IGNORECASE,
)

_NOUN = (
    "contexts?|passages?|documents?|sources?|texts?|articles?|news|paragraphs?|information|excerpts?|reports?|"
    "e-?mails?|transcripts?|data|facts|snippets|conversation|material|pieces|references|notes"
)
_NOUN_ZH = "资料|資料|文档|文檔|文章|内容|內容|段落|信息|資訊|材料|上下文|文本|新闻|新聞|背景|知识|文件"
# Without one of these words no line is a ``LEAD_LINE``; this costs a tenth of matching that.
LEAD_WORD = re.compile(r"following|below|[以如]下|下[面列]", re.IGNORECASE)
# A sentence that announces evidence on the lines after it.
LEAD_LINE = re.compile(
    rf"\b(?:following|below)\b(?:\W{{1,3}}(?!questions?\b|query\b)\w{{1,20}}){{0,4}}?\W{{1,3}}(?:{_NOUN})\b"
    rf"|\b(?:{_NOUN})\b[^.:\n]{{0,60}}\bbelow\b[.:]"
    rf"|(?:以下|下面|下列|如下)[^，。？\n]{{0,12}}(?:{_NOUN_ZH})",
    re.IGNORECASE,
)
TRANSLATION = re.compile(r"\btranslat|翻译|翻譯|译成|譯成", re.IGNORECASE)

_ITEM_NAME = (
    "passage|document|doc|source|context|reference|snippet|chunk|excerpt|search result|result|article|evidence|"
    "段落|文档|文檔|文件|资料|資料|来源|來源|片段|参考"
)
# ``[S0] …``, ``[doc_7]: …``, ``【1】…``; not a Markdown link, and not a link's definition.
BRACKET_ITEM = re.compile(
    r"^[ \t]{0,20}(?:[-*][ \t]+)?(?:\[(?P<id>[A-Za-z]{0,16}[_\- ]?\d{1,5}|[A-Za-z][\w.:-]{0,40})\]|【(?P<id_zh>\d{1,4})】)"
    r"(?!\(|:[ \t]*https?:)[ \t]*[:：.)-]?[ \t]*(?P<rest>.*)$"
)
NAMED_ITEM = re.compile(
    rf"^{_OPENING}(?:[-*][ \t]+)?(?:{_ITEM_NAME})[ \t]{{0,2}}[#№\[]?[ \t]{{0,2}}(?P<id>\d{{1,4}}|[A-Z])\]?[ \t]{{0,2}}(?:\*\*)?"
    r"[ \t]{0,2}(?:[:：.)|]|[-=—]{1,20}(?:[ \t]|$))(?:\*\*)?[ \t]*(?P<rest>.*)$",
    re.IGNORECASE,
)

# A line that only says how to answer; it is not what the user asked.
BOILERPLATE = re.compile(
    rf"^[ \t]{{0,20}}(?:(?:bear in mind|in case|if (?:the|none|no|you)\b|do not (?:use|make)|don't (?:use|make)|"
    rf"given the context information).{{0,200}}\b(?:{_NOUN}|answer|know)\b"
    rf"|(?:use|using|based|given|answer|respond|you (?:are|will)|read|here (?:are|is)|below (?:are|is)|context information)\b"
    rf".{{0,300}}\b(?:{_NOUN})\b.{{0,300}}(?:[:：]|\bbelow\.|\banswer the (?:\w{{1,20}} )?(?:question|query)\b.{{0,120}})$"
    rf"|(?:请|請)?(?:仅|只|僅)?(?:根据|根據|依据|基于|基於)[^？?\n]{{0,40}}(?:{_NOUN_ZH})[^？?\n]{{0,30}}(?:回答|作答)[^？?\n]{{0,20}}[。：:]?$"
    rf"|(?:如果|若)[^？?\n]{{0,40}}(?:{_NOUN_ZH})[^？?\n]{{0,60}}$"
    rf"|(?:以下|下面|下列)(?:是|为|為)[^？?\n]{{0,20}}(?:{_NOUN_ZH})[：:。]?$)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^[ \t]{0,20}(?:what|who|whom|whose|when|where|why|which|how|is|are|was|were|do|does|did|can|could|should|would|"
    r"will|has|have|please|tell|explain|summari[sz]e|describe|list|give|compare|answer|based on|using|according to|"
    r"write|find|name|identify|calculate|state)\b|^[ \t]{0,20}(?:请|請|根据|根據|总结|總結|概括|解释|說明|说明|列出|比较|为什么|如何|怎么|怎樣|谁|哪)",
    re.IGNORECASE,
)
_ASKED_CHARS = 400


def is_asking(paragraph: str) -> bool:
    """Return whether a paragraph at the end of a prompt reads as the user's own question or order."""
    text = paragraph.strip()
    if not text or len(text) > _ASKED_CHARS:
        return False
    return text.endswith(("?", "？", '?"', "？”")) or _ASKING.match(text) is not None
