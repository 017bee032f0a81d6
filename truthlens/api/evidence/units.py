"""Cut a prompt into units, once: labels, headings, elements, fenced blocks, rules and paragraphs.

The units are flat and in order; what stands before and behind one decides about it later (``prompt``). Nothing here decides what is evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from truthlens.api.evidence.elements import Element, find_elements
from truthlens.api.evidence.label_words import Part, part_of_label
from truthlens.api.evidence.mood import Mood, mood
from truthlens.core.cancellation import checkpoint


class Kind(StrEnum):
    """The form of a unit."""

    LABEL = "label"
    ELEMENT = "element"
    FENCED = "fenced"
    RULE = "rule"
    TEXT = "text"


@dataclass(slots=True)
class Unit:
    """Characters ``start`` to ``end`` of a prompt, of one form.

    ``body`` is where the text behind a label or an opening mark begins. ``style`` is how a label is written (``#``,
    ``**``, ``:`` …), ``label`` its words in lower case, ``number`` the number in it ("Source 3:").
    """

    start: int
    end: int
    kind: Kind
    part: Part | None = None
    body: int = 0
    body_end: int = 0
    style: str = ""
    label: str = ""
    number: str = ""
    element: Element | None = None
    text: str = field(default="", repr=False)
    read: Mood | None = None

    @property
    def mood(self) -> Mood:
        """How its text reads."""
        if self.read is None:
            self.read = mood(self.text)
        return self.read

    @property
    def rest(self) -> str:
        """The text behind the label, on its line."""
        return self.text if self.kind is Kind.LABEL else ""


_LINE_CHARS = 600
_LABEL = r"(?P<label>[^\n:：<>{}|]{1,170}?)"
_HEADING = re.compile(
    rf"^[ \t]{{0,12}}(?P<mark>#{{1,6}})[ \t]*\**{_LABEL}\**[ \t]*(?:[:：][ \t]*(?P<rest>.*))?$"
)
_BOLD = re.compile(
    rf"^[ \t]{{0,12}}(?:[-*][ \t]+)?(?P<mark>\*\*|__){_LABEL}[:：]?(?P=mark)[ \t]*[:：]?[ \t]*(?P<rest>.*)$"
)
_SIGNS = r"(?:[-=~_+#─━—＝■●◆]{2,30}|\*{3,30})"
_RULED = re.compile(
    rf"^[ \t]{{0,12}}(?P<mark>{_SIGNS})[ \t]*(?P<label>[^\n<>{{}}|]{{1,100}}?)[ \t]*[:：]?[ \t]*{_SIGNS}[ \t]*[:：]?(?P<rest>)$"
)
_BOXED = re.compile(
    rf"^[ \t]{{0,12}}(?P<mark>\[\[|\[|【|<<|\{{\{{|「|『)[ \t]*#*[ \t]*{_LABEL}[ \t]*#*[ \t]*(?:\]\]|\]|】|>>|\}}\}}|」|』)[ \t]*[:：]?[ \t]*(?P<rest>.*)$"
)
_PLAIN = re.compile(rf"^[ \t]{{0,20}}(?P<mark>){_LABEL}[ \t]?[:：](?!//)[ \t]*(?P<rest>.*)$")
_CAPITALS = re.compile(r"^[ \t]{0,12}(?P<mark>)(?P<label>[A-ZÄÖÜА-Я][A-ZÄÖÜА-Я _-]{2,40})(?P<rest>)[ \t]*$")
_RULE = re.compile(
    r"^[ \t]{0,8}(?:-{3,}|[─━—]{2,}|＝{2,}|={3,}|\*{3,}|_{3,}|~{4,}|#{3,}|\+{3,}|\"{3}|'{3})[ \t]*$"
)
_FENCE = re.compile(r"^[ \t]{0,8}(?P<mark>`{3,}|~{3})[ \t]*[\w+-]{0,20}[ \t]*$")
_NUMBER = re.compile(r"[ \t_#№\[(-]{0,3}(\d{1,5}|(?<=[ #])[A-Z])[\])]?$")
_EVIDENCE_NOUN = re.compile(
    r"\b(?:contexts?|documents?|docs|passages?|sources?|references?|information|knowledge|articles?|excerpts?|snippets?|chunks?|facts|texts?|"
    r"transcripts?|materials?|news|data|results?|memor(?:y|ies)|records?|notes|reports?|e-?mails?|paragraphs?|pieces|sections?|pages?|files?|content|conversation|thread|"
    r"kontext|dokumente?n?|quellen?|textauszüge?n?|auszüge?n?|informationen|unterlagen|texte?n?|suchergebnisse?n?|"
    r"contexte|extraits?|informations|textes?|sources|résultats|"
    r"contexto|documentos?|fuentes?|fragmentos?|información|textos?|resultados?|"
    r"контекст\w{0,3}|документ\w{0,3}|источник\w{0,3}|фрагмент\w{0,3}|информаци\w{0,3}|текст\w{0,3}|сведени\w{0,3}|материал\w{0,3}|"
    r"contesto|documenti|fonti|informazioni|testo|estratti|informações|trechos|texto)\b"
    r"|资料|資料|文档|文檔|文章|内容|內容|段落|信息|資訊|材料|上下文|文本|新闻|背景|知识|文件|検索結果|情報|文書|文脈|コンテキスト|記事|本文|マニュアル|参考",
    re.IGNORECASE,
)
_DEICTIC = re.compile(
    r"\b(?:following|below|above|here (?:is|are)|these|provided|given|retrieved|supplied|using|use|based on|from|only|relevant|attached|surrounded|"
    r"folgende\w*|unten\w*|oben\w*|bereitgestellt\w*|gegeben\w*|anhand|hier|nutze\w*|suivant\w*|ci-dessous|ci-dessus|fourni\w*|voici|siguient\w*|a continuación|proporcionad\w*|"
    r"следующ\w*|ниже|выше|приведённ\w*|приведенн\w*|предоставленн\w*|вот|seguent\w*|qui sotto|seguinte\w*|abaixo)\b|[以如]下|下[面列]|上述|给定|提供|根据|基于|次の|以下|上記|与えられた|もとに|基づ",
    re.IGNORECASE,
)
# Orders to give a text back in other words: the text is what is worked on, and no evidence.
REWORDING = re.compile(
    r"\btranslat|翻译|翻譯|译成|譯成|übersetz|tradui|traduc|перевед|翻訳|\bproofread|\brewrite|\brephrase",
    re.IGNORECASE,
)
_LONE_TAG = re.compile(r"^[ \t]{0,12}<(?P<close>/?)(?P<name>[^\W\d][\w.:-]{0,40})(?:\s[^<>]{0,200})?>[ \t]*$")
_BOXED_TITLE = re.compile(
    r"^[ \t]{0,12}[\[【](?P<word>[^\W\d]{2,20})[ \t]?(?P<number>\d{1,4})[ \t]?[:：,–-][^\[\]]{1,150}[\]】][ \t]*$"
)
_NUMBERED_HEAD = re.compile(
    r"^[ \t]{0,12}(?:[-*#]{1,6}[ \t]+)?(?P<word>[^\W\d_]{3,20})[ \t]+(?:n[.º°o]{0,2}[ \t]?|[#№])?(?P<number>\d{1,4})(?![\w.])[^.!?。\n]{0,100}(?:\([^()\n]{0,80}\))?[ \t]*$"
)
_ASIDE = re.compile(r"\s*[(（][^()（）]{0,200}[)）]$")
_QUOTES = re.compile(r"^\s*(\"{3}|'{3}|`{3})\s*(?P<more>.*)$", re.DOTALL)
_END_MARK = re.compile(r"^(?:/|end\b|end of\b|ende\b|fin\b|конец\b)", re.IGNORECASE)
# "Context: … Question: … Answer:" on one line: each label begins a line of its own.
_INLINE = re.compile(
    r"(?:(?<=[.!?:;。！？；）)\"”])|(?<=\s))[ \t]{0,4}(?=(?:Question|User question|Query|Context|Answer|Frage|Antwort|Pregunta|Respuesta|Вопрос|Ответ|问题|問題|用户问题|回答|質問|Question) ?[:：])"
)
_INLINE_LINES = 3


def announces_text(line: str, *, opens: bool = False) -> bool:
    """Return whether a line announces evidence on the lines after it: "Use the following documents:".

    Args:
        line: Any line; of a long one the last sentence counts.
        opens: Whether marks stand around what follows, so that the line need not end in a colon.
    """
    line = line[-500:].rstrip("*_ \t")
    sentence = re.split(r"(?<=[.!?。！？])\s+", line)[-1] if len(line) > 200 else line
    colon = sentence.endswith((":", "："))
    if not (colon or opens) or not _EVIDENCE_NOUN.search(sentence) or REWORDING.search(sentence):
        return False
    if colon:
        return _DEICTIC.search(sentence) is not None or len(sentence) <= 60
    return _DEICTIC.search(line) is not None


def cut(text: str, marks: frozenset[str] = frozenset()) -> list[Unit]:
    """Return the units of ``text``, in order; together they hold every character that is not blank.

    ``marks`` are labels and names of tags, in lower case, that mean evidence besides the built-in ones.
    """
    elements = find_elements(text, marks=marks)
    units: list[Unit] = []
    at = 0
    for element in elements:
        units += _cut_lines(text, at, element.start, marks)
        units.append(
            Unit(
                element.start,
                element.end,
                Kind.ELEMENT,
                element.part,
                element.content_start,
                element.content_end,
                style="<>",
                label=element.name.lower(),
                element=element,
                text=text[element.content_start : min(element.content_end, element.content_start + 4000)],
            )
        )
        at = element.end
    return units + _cut_lines(text, at, len(text), marks)


def _cut_lines(text: str, start: int, end: int, marks: frozenset[str]) -> list[Unit]:
    lines = _lines(text, start, end)
    units: list[Unit] = []
    held: list[tuple[int, int]] = []

    def close() -> None:
        if held:
            units.extend(_paragraph(text, held))
            held.clear()

    place = 0
    while place < len(lines):
        checkpoint()
        first, last = lines[place]
        line = text[first : min(last, first + _LINE_CHARS)]
        if not line.strip():
            close()
        elif (fence := _FENCE.match(line)) is not None and (
            closing := _closing(text, lines, place, fence["mark"])
        ):
            close()
            body, body_end = lines[place][1], lines[closing][0]
            units.append(
                Unit(first, lines[closing][1], Kind.FENCED, None, body, body_end, style=fence["mark"][:3],
                     text=text[body : min(body_end, body + 4000)])
            )  # fmt: skip
            place = closing
        elif _RULE.match(line) or fence is not None:
            close()
            units.append(Unit(first, last, Kind.RULE, style=line.strip()))
        elif (label := _label(line, first, last, marks)) is not None:
            close()
            units += _with_quotes(text, label)
        else:
            held.append((first, last))
        place += 1
    close()
    return units


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        lines.append((at, stop))
        at = stop + 1
    if sum(1 for first, last in lines[:20] if text[first:last].strip()) > _INLINE_LINES:
        return lines
    parted: list[tuple[int, int]] = []
    for first, last in lines:
        at = first
        for match in _INLINE.finditer(text, first, last):
            if match.start() > at:
                parted.append((at, match.start()))
                at = match.end()
        parted.append((at, last))
    return parted


def _label(line: str, start: int, end: int, marks: frozenset[str]) -> Unit | None:  # noqa: PLR0912 - one case a form of mark
    """Return the label unit that a line is, or ``None``: only labels that say something, and items with a number."""
    tag = _LONE_TAG.match(line)
    if tag is not None:
        # A tag without its pair: it opens a part as a label does, or ends one.
        part = part_of_label(tag["name"], marks)
        if part is None:
            return None
        return Unit(
            start,
            end,
            Kind.LABEL,
            None if tag["close"] else part,
            end,
            end,
            "<>end" if tag["close"] else "<>",
            tag["name"].lower(),
        )
    titled = _BOXED_TITLE.match(line)
    if titled is not None and part_of_label(titled["word"]) is Part.EVIDENCE:
        # "[Source 1: Tariff sheet]" alone on its line.
        return Unit(
            start, end, Kind.LABEL, Part.EVIDENCE, end, end, "[]", titled["word"].lower(), titled["number"]
        )
    numbered = _NUMBERED_HEAD.match(line)
    if numbered is not None and part_of_label(numbered["word"], marks) is Part.EVIDENCE:
        # "Result 1 · red-spring-path" alone on its line.
        return Unit(
            start, end, Kind.LABEL, Part.EVIDENCE, end, end, "1", numbered["word"].lower(), numbered["number"]
        )
    for pattern, style in (
        (_RULED, "--"), (_HEADING, "#"), (_BOLD, "**"), (_BOXED, "[]"), (_PLAIN, ":"), (_CAPITALS, "CAPS"),
    ):  # fmt: skip
        match = pattern.match(line)
        if match is None:
            continue
        words = match["label"].strip().strip("*_# ")
        words = _ASIDE.sub("", words)
        if REWORDING.search(words):
            return None
        if style == ":" and any(sign in words for sign in '`"“(（{=<>|'):
            return None
        rest = match["rest"]
        number = _NUMBER.search(words)
        plain = words[: number.start()].strip() if number else words
        part = part_of_label(plain, marks) if plain else None
        if part is None and style == "[]" and rest is not None:
            # "[S0] …", "[doc_7] …", "【1】…": a numbered item without a word that says so.
            bare = words.replace(" ", "")
            if re.fullmatch(r"[A-Za-z]{0,16}[_-]?\d{1,5}", bare) and not rest.startswith("("):
                return Unit(
                    start,
                    end,
                    Kind.LABEL,
                    Part.EVIDENCE,
                    start + match.start("rest"),
                    end,
                    "[]#",
                    "item",
                    bare,
                )
        if part is None:
            if style in ("#", "--") and not rest:
                # A heading of any words parts the prompt all the same.
                return Unit(
                    start,
                    end,
                    Kind.LABEL,
                    None,
                    end,
                    end,
                    (match["mark"] if style == "#" else style),
                    words.lower(),
                )
            continue
        if style == ":" and not _is_plain_label(words, part):
            return None
        if _END_MARK.match(words):
            if rest and rest.strip():
                return None
            return Unit(start, end, Kind.LABEL, None, end, end, style + "end", words.lower())
        body = start + match.start("rest") if rest else end
        mark = match["mark"]
        written = (mark if style == "#" else style) + ("C" if words.isupper() else "")
        return Unit(
            start, end, Kind.LABEL, part, body, end, written, plain.lower(), number[1] if number else ""
        )
    return None


def _with_quotes(text: str, label: Unit) -> list[Unit]:
    """Return the label and, where triple quotes open behind it, those as a rule of their own."""
    rest = text[label.body : label.end]
    quotes = _QUOTES.match(rest)
    if quotes is None or quotes[1] in quotes["more"]:
        label.text = rest
        return [label]
    at = label.body + quotes.end(1)
    rule = Unit(label.body, at, Kind.RULE, style=quotes[1])
    more = (
        [Unit(label.body + quotes.start("more"), label.end, Kind.TEXT, text=quotes["more"])]
        if quotes["more"].strip()
        else []
    )
    for unit in more:
        unit.body, unit.body_end = unit.start, unit.end
    label.end = label.body
    return [label, rule, *more]


def _is_plain_label(words: str, part: Part) -> bool:
    """Return whether words before a colon are a label, and not the beginning of a sentence."""
    count = len(words.split())
    return count <= 6 if part in (Part.EVIDENCE, Part.QUESTION, Part.HISTORY) else count <= 4


def _closing(text: str, lines: list[tuple[int, int]], place: int, mark: str) -> int | None:
    for at in range(place + 1, min(len(lines), place + 2000)):
        line = text[lines[at][0] : min(lines[at][1], lines[at][0] + 100)].strip()
        if line == mark:
            return at
    return None


def _paragraph(text: str, lines: list[tuple[int, int]]) -> list[Unit]:
    """Return the units of consecutive lines: where lines to the model stand before or behind other text, they are parted."""
    if len(lines) == 1 or len(lines) > 60:
        return [_text_unit(text, lines)]
    units: list[Unit] = []
    run: list[tuple[int, int]] = []
    total = Mood()
    guiding: bool | None = None
    for line in lines:
        said = text[line[0] : min(line[1], line[0] + _LINE_CHARS)]
        found = mood(said)
        # An order behind talk to the model belongs to it.
        guides = found.guides * 2 >= max(1, found.total) or (
            guiding is True and 0 < found.orders == found.total
        )
        if guiding is not None and guides != guiding:
            units.append(_text_unit(text, run, total))
            run, total = [], Mood()
        guiding = guides
        total += found
        run.append(line)
        if announces_text(said) or (said.rstrip().endswith((":", "：")) and _begins_data(text, line[1])):
            # What it announces begins on the next line.
            units.append(_text_unit(text, run, total))
            run, total, guiding = [], Mood(), None
    if run:
        units.append(_text_unit(text, run, total))
    return units


def _begins_data(text: str, end: int) -> bool:
    """Return whether the line behind ``end`` begins JSON or a table."""
    return text[end : end + 40].lstrip().startswith(("{", "[{", "|"))


def _text_unit(text: str, lines: list[tuple[int, int]], found: Mood | None = None) -> Unit:
    start, end = lines[0][0], lines[-1][1]
    unit = Unit(start, end, Kind.TEXT, None, start, end, text=text[start : min(end, start + 6000)])
    unit.read = found
    return unit
