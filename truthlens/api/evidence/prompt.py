"""Decide which units of a prompt are evidence, which the question, and which talk to the model.

Evidence begins at something that says so: an element or label whose name is a word for it, a sentence that announces
it, the first of several numbered sources. It ends where the rest of the prompt reads as template again. As a document may hold
every mark that a template has, no single mark ends it: of all places where it could end, the one is taken that leaves
the most reference text before it and the most talk to the model behind it (``Unit.mood``), the last of about equal ones.
Without any mark, text counts only where the prompt announces it, or where it reads as reference text and the question is about it.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from truthlens.api.evidence.elements import find_elements
from truthlens.api.evidence.label_words import Part
from truthlens.api.evidence.mood import is_asking, sentence_kind
from truthlens.api.evidence.relation import is_about
from truthlens.api.evidence.units import REWORDING, Kind, Unit, announces_text, cut
from truthlens.core.cancellation import checkpoint
from truthlens.text.sentences import sentences

# A place to end is as good as the best one if it loses no more than this; less than one sentence to the model.
_SLACK = 0.9
# So many units from the first and from the last are looked at; what is between them in a longer prompt is its documents.
_EDGE = 80
_MIN_PASTED_CHARS = 120
_ASKED_CHARS = 600
# Labels that templates put before retrieved text; what others ("Background", "Notes") open may as well be about the company.
_STRONG_LABELS = re.compile(
    r"contexts?\b|documents?\b|\bdocs\b|passages?\b|sources?\b|references?\b|evidence\b|knowledge\b|articles?\b|excerpts?\b|snippets?\b|chunks?\b|search|retriev|"
    r"\bhits?\b|\bmatch|results?\b|fundstelle|treffer|\bfiches?\b|выдерж|выписк|摘录|摘錄|ヒット|参照|kontext|dokument|quelle|auszüge|suchergebnis|wissen|contexte|extrait|contexto|fuente|fragmento|контекст|документ|источник|фрагмент|contesto|fonti|trecho|"
    r"上下文|资料|資料|文档|文檔|知识|知識|检索|检索结果|已知|参考|參考|コンテキスト|文脈|文書|検索|ドキュメント",
    re.IGNORECASE,
)
_SOURCES = (
    r"contexts?|documents?|docs|passages?|sources?|excerpts?|snippets?|chunks?|search results?|knowledge(?: base)?|articles?|information|references?|materials?|texts?|data|facts|records|"
    r"kontext\w*|dokumente?n?|quellen?|textauszüge?n?|auszüge?n?|informationen|unterlagen|suchergebnisse?n?|contexte|extraits?|informations|sources|"
    r"contexto|documentos?|fuentes?|fragmentos?|información|контекст\w{0,3}|документ\w{0,3}|источник\w{0,3}|фрагмент\w{0,3}|информаци\w{0,3}|contesto|documenti|fonti|informazioni|informações|trechos"
)
_GIVEN = (
    r"following|below|provided|given|retrieved|supplied|attached|these|this|above|folgende\w*|untenstehende\w*|bereitgestellte\w*|gegebene\w*|suivant\w*|fourni\w*|siguiente\w*|"
    r"proporcionad\w*|следующ\w*|приведённ\w*|приведенн\w*|предоставленн\w*|seguent\w*|fornit\w*|seguinte\w*"
)
# "the following pieces of context", "the documents below", "based on the context".
_ANNOUNCES = re.compile(
    rf"\b(?:{_GIVEN})\W+(?:\w+\W+){{0,4}}?(?:{_SOURCES})\b|\b(?:{_SOURCES})\b\W+(?:\w+\W+){{0,3}}?(?:{_GIVEN}|follows?|unten|ci-dessous|a continuación|ниже|abaixo)\b"
    rf"|\b(?:based|only|solely|using|from|anhand|aus|à partir|a partir|на основе)\W+(?:\w+\W+){{0,3}}?(?:{_SOURCES})\b"
    r"|(?:以下|下面|下列|上述|给定|提供|根据|基于).{0,10}(?:上下文|资料|資料|文档|内容|信息|知识|材料|参考)|(?:以下|次|上記|与えられた).{0,8}(?:情報|文書|資料|文脈|コンテキスト|テキスト)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\bsummar|\btl;?dr|zusammen|résum|resum|总结|總結|概括|摘要|要約|кратк|riassum", re.IGNORECASE
)
_POINTS = re.compile(
    r"\b(?:this|that|these|above|below|following|attached|pasted|here|it say|according to|article|e-?mail|letter|text|passage|document|contract|transcript|"
    r"dies\w*|oben|folgend\w*|text|artikel|ce|cet|cette|texte|este|esta|texto|этот|этом|текст\w*)\b|这|這|上面|下面|以下|以上|文章|本文|この",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"\bformat|schema|structure|template|example|as follows|like this|格式|形式|exempel|beispiel|exemple|ejemplo|пример",
    re.IGNORECASE,
)
_TALK = (Part.INSTRUCTION, Part.HISTORY, Part.EXAMPLE)
_CODE_LINE = re.compile(
    r"[;{}]\s*$|^\s*(?:def|class|import|from|return|if|for|while|var|let|const|function|public|private|SELECT|CREATE|INSERT|#include)\b.*[:({;,]?\s*$|=>|==|\)\s*:$|^\s*(?://|#!|</?\w+)|^\s*\w+\s*=\s*\S"
)
_LED_QUESTION = re.compile(
    r"^(?:[^\n:：?？]{0,80}\b(?:query|question|request|frage|pregunta|вопрос)\b[^\n:：?？]{0,30}|[^\n:：?？]{0,20}(?:问题|質問)[^\n:：?？]{0,6}|follow[- ]?up(?: \w+)?)[:：][ \t]*(?=\S)",
    re.IGNORECASE,
)
# A colleague wants to know: …?
_LED = re.compile(r"^[^\n:：?？]{2,60}[:：][ \t]*(?=[^\n]{3,400}[?？]\s*$)")
# "… this query: 'And at night?' with this context".
_QUOTED_QUESTION = re.compile(r"^(['\"“])([^'\"”\n]{3,400}[?？.!])(['\"”])(?=\s+\w)")
_ANSWERED = re.compile(r"[?？]\s{1,4}(?:Answer|Antwort|Réponse|Respuesta|A|答|回答|Ответ)\s?[:：]\s?\S")
_CLOSING = re.compile(
    r"^(?:the |these )?above\b.{0,100}$|^以上(?:是|为|就是).{0,40}$", re.IGNORECASE | re.MULTILINE
)
_NAMES = ("source", "sources", "file", "document", "title", "url", "link", "id")
_OBSERVATION = ("observation", "observations")
_STEP = ("action", "action input", "thought", "final answer", *_OBSERVATION)


@dataclass(frozen=True, slots=True)
class Block:
    """Characters ``start`` to ``end`` of a prompt: evidence, the question, or what is left.

    ``rule`` is the code of what decided.
    """

    start: int
    end: int
    part: Part | None
    rule: str
    weak: bool = False


@dataclass(slots=True)
class Prompt:
    """A prompt that was read: its blocks in order."""

    text: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def evidence(self) -> list[Block]:
        """The blocks of evidence."""
        return [block for block in self.blocks if block.part is Part.EVIDENCE]

    @property
    def question(self) -> str:
        """What the prompt asks, without the template around it; ``""`` where it asks nothing."""
        if self.blocks and all(block.rule in ("message", "rule") for block in self.blocks):
            return self.text.strip()
        asked = [self.text[block.start : block.end] for block in self.blocks if block.part is Part.QUESTION]
        return "\n".join(
            line.strip() for part in asked for line in _bare_question(part).split("\n") if line.strip()
        )


def read_prompt(
    text: str,
    *,
    system: bool,
    asked: str = "",
    topics: str = "",
    unmarked: bool = True,
    min_chars: int = _MIN_PASTED_CHARS,
    marks: frozenset[str] = frozenset(),
) -> Prompt:
    """Read one message.

    Args:
        text: Of the message.
        system: Whether it is the operator's and holds no question, as another message does.
        asked: The question, where it is known from another message.
        topics: All that the user asked in the conversation.
        unmarked: Whether text without a mark may be evidence.
        min_chars: Characters that text needs which nothing announces.
        marks: Labels and names of tags that mean evidence besides the built-in ones, in lower case.
    """
    return _Reader(
        text,
        system=system,
        asked=asked,
        topics=topics or asked,
        unmarked=unmarked,
        min_chars=min_chars,
        marks=marks,
    ).read()


class _Reader:
    def __init__(
        self,
        text: str,
        *,
        system: bool,
        asked: str,
        topics: str,
        unmarked: bool,
        min_chars: int,
        marks: frozenset[str],
    ) -> None:
        self.text = text
        self.topics = topics
        self.system = system
        self.unmarked = unmarked
        self.min_chars = min_chars
        self.asked = asked
        self.units = cut(text, marks)
        self.owner: list[tuple[Part | None, str]] = [(None, "")] * len(self.units)
        self.spans: list[tuple[int, int] | None] = [None] * len(self.units)
        self.weak: set[int] = set()
        self.question_at: int | None = None
        # Thought, action, observation: an agent's steps in one prompt.
        self.steps = any(unit.label == "action input" for unit in self.units)
        self.opens = [self._opening(place) for place in range(len(self.units))]
        self.heads = self._headings()
        # Headings with talk to the model below them; a document has headings such as "Rules" too.
        self.guiding = {
            head.start
            for unit, head in zip(self.units, self.heads, strict=True)
            if head is not None and unit is not head and unit.kind is Kind.TEXT and unit.mood.guides
        }
        self.score: list[float] = []
        self.sources: list[int] | None = None

    # --- facts of units -----------------------------------------------------------------------------------

    def _opening(self, place: int) -> str:
        """Return by which rule a unit opens evidence, ``""`` where it does not."""
        unit = self.units[place]
        if unit.kind is Kind.ELEMENT:
            return "tag" if unit.part is Part.EVIDENCE else ""
        if unit.kind is Kind.LABEL and unit.label in _OBSERVATION:
            return ""
        if unit.kind is Kind.LABEL and unit.style.endswith("end"):
            return ""
        if unit.kind is Kind.LABEL and unit.part is Part.EVIDENCE:
            return "numbered" if unit.style == "[]#" else "label"
        if unit.kind is Kind.TEXT and (self._is_lead(place) or self._heads_rule(place)):
            return "announced"
        return ""

    def _heads_rule(self, place: int) -> bool:
        """Return whether a unit is a short label of any words, "Roofing quote:", with text between rules or fences below it."""
        unit = self.units[place]
        said = self.text[unit.start : unit.end].strip()
        follows = self.units[place + 1] if place + 1 < len(self.units) else None
        if follows is None or len(said) > 60 or "\n" in said:
            return False
        data = follows.kind is Kind.TEXT and self.text[follows.start : follows.end].lstrip().startswith(
            ("{", "[{", "|")
        )
        if follows.kind not in (Kind.RULE, Kind.FENCED) and not data:
            return False
        return said.endswith((":", "：")) and unit.mood.guides == 0 and len(said.split()) <= 5

    def _is_lead(self, place: int) -> bool:
        unit = self.units[place]
        last = self.text[max(unit.start, unit.end - 500) : unit.end].rstrip()
        line = last[last.rfind("\n") + 1 :]
        follows = self.units[place + 1] if place + 1 < len(self.units) else None
        opens = follows is not None and (
            follows.kind in (Kind.RULE, Kind.FENCED)
            or (follows.kind is Kind.ELEMENT and follows.part is not Part.QUESTION)
        )
        colon = line.rstrip("*_ ").endswith((":", "："))
        if colon and follows is not None and self._is_data(place + 1) and not _FORMAT.search(line):
            return True
        return announces_text(line, opens=opens)

    def _is_data(self, place: int) -> bool:
        """Return whether a unit is JSON, a table or lines of values between commas."""
        unit = self.units[place]
        if unit.kind not in (Kind.TEXT, Kind.FENCED):
            return False
        said = self.text[unit.body if unit.kind is Kind.FENCED else unit.start : unit.end][:2000].strip()
        lines = [line for line in said.split("\n")[:6] if line.strip()]
        commas = {line.count(",") for line in lines}
        return said.startswith(("{", "[{", "|")) or (
            len(lines) > 2 and len(commas) == 1 and commas.pop() >= 2
        )

    def _headings(self) -> list[Unit | None]:
        """Return for each unit the heading of talk to the model under which it stands."""
        found: list[Unit | None] = []
        current: Unit | None = None
        for unit in self.units:
            if unit.kind is Kind.LABEL and unit.style != "[]#":
                heads = (
                    unit.style[:1] in "#*-["
                    or unit.style.endswith("C")
                    or unit.part in (Part.HISTORY, Part.EXAMPLE)
                )
                if unit.part in (Part.INSTRUCTION, Part.EXAMPLE, Part.HISTORY) and heads:
                    keeps = current is not None and _is_under(unit, current)
                    current = current if keeps else unit
                elif current is not None and not _is_under(unit, current):
                    current = None
            elif unit.kind is Kind.ELEMENT and unit.part is Part.EVIDENCE and current is not None:
                current = current if current.part is Part.EXAMPLE else None
            found.append(current)
        return found

    def _scores(self) -> list[float]:
        return [self._score(place) for place in range(len(self.units))]

    def _score(self, place: int) -> float:
        unit = self.units[place]
        head = self.heads[place]
        if _EDGE <= place < len(self.units) - _EDGE:
            return 0.5
        match unit.kind:
            case Kind.RULE:
                return 0.0
            case Kind.ELEMENT:
                if unit.part is Part.QUESTION:
                    return -4.0
                if unit.part in (Part.INSTRUCTION, Part.EXAMPLE, Part.HISTORY):
                    return -3.0
                value = 3.0 if unit.part is Part.EVIDENCE else unit.mood.reference_score
            case Kind.FENCED:
                value = 1.0 + 0.3 * unit.mood.reference_score
            case Kind.LABEL:
                value = self._label_score(place, unit)
            case _:
                value = unit.mood.reference_score - (1.4 * unit.mood.addresses if self.system else 0.0)
        if head is not None and head is not unit:
            if head.part in (Part.EXAMPLE, Part.HISTORY):
                value = min(value, 0.0) - 1.0
            elif head.start in self.guiding:
                value = min(value, 0.0) - 0.5
            else:
                value -= 0.7
        return value

    def _label_score(self, place: int, unit: Unit) -> float:
        said = unit.mood.reference_score if unit.rest.strip() else 0.0
        if place == self.question_at:
            return -4.0
        match unit.part:
            case Part.QUESTION:
                # In a document: a list of questions and answers.
                return 0.1
            case Part.ANSWER:
                return -3.0 if not unit.rest.strip() and self._is_last(place) else 0.3
            case Part.HISTORY:
                return -3.0
            case Part.EXAMPLE:
                return -2.0
            case Part.INSTRUCTION:
                return said - (1.0 if unit.style[:1] in "#*-[" or unit.style.endswith("C") else 0.3)
            case None:
                return 0.0
        return 0.3 + max(said, 0.0) if unit.part is Part.EVIDENCE else said

    def _part_of_head(self, place: int) -> Part | None:
        head = self.heads[place]
        return head.part if head is not None else None

    def _is_last(self, place: int) -> bool:
        return (
            all(
                unit.kind is Kind.RULE or (unit.kind is Kind.LABEL and unit.part is Part.ANSWER)
                for unit in self.units[place + 1 :][:5]
            )
            and place >= len(self.units) - 6
        )

    # --- reading ------------------------------------------------------------------------------------------

    def read(self) -> Prompt:
        prompt = Prompt(self.text)
        if not self.units:
            return prompt
        self._mark_examples()
        self._find_question()
        self.score = self._scores()
        announced = self._announced_first() if self.unmarked else False
        if not announced:
            self._walk()
        steps = [self._take_sections, self._take_unmarked]
        if not self.system and self._announcing() is not None:
            # What the prompt announces is taken as a whole, headings of a document included.
            steps.reverse()
        for take in steps:
            if self.unmarked and not any(part is Part.EVIDENCE for part, _ in self.owner):
                take()
        if not self.system and not any(part is Part.QUESTION for part, _ in self.owner):
            self._fall_back()
        for place, unit in enumerate(self.units):
            part, rule = self.owner[place]
            start, end = self.spans[place] or (unit.start, unit.end)
            if part is None:
                rule = rule or self._left_rule(place)
            if unit.start < start and self.text[unit.start : start].strip():
                prompt.blocks.append(Block(unit.start, start, None, "label"))
            if start < end:
                prompt.blocks.append(Block(start, end, part, rule, place in self.weak))
        return prompt

    def _own(self, place: int, part: Part | None, rule: str, span: tuple[int, int] | None = None) -> None:
        self.owner[place] = (part, rule)
        self.spans[place] = span

    def _mark_examples(self) -> None:
        """Take worked examples out: a labelled round that ends in an answer, before the same labels begin again."""
        first: dict[tuple[str, str, str], int] = {}
        answered: int | None = None
        begin = cut_at = None
        for place, unit in enumerate(self.units):
            checkpoint()
            if unit.kind is not Kind.LABEL or unit.part is None:
                continue
            if unit.part is Part.ANSWER and (unit.rest.strip() or self._text_follows(place)):
                answered = place
                continue
            key = (unit.style, unit.label, unit.number)
            known = first.setdefault(key, place)
            if (
                known == place
                or answered is None
                or answered < known
                or not self._asks_again(known, answered, place)
            ):
                continue
            if unit.part in (Part.EVIDENCE, Part.INPUT) or (
                unit.part is Part.QUESTION and self._evidence_follows(place, known, answered)
            ):
                begin, cut_at = min(known, begin if begin is not None else known), place
                first = {key: place}
                answered = None
        if begin is None or cut_at is None:
            return
        if self.system and answered is not None and answered > cut_at:
            # No question of the template stands in a system message: its last round is an example as well.
            cut_at = answered + (1 if self.units[answered].rest.strip() else 2)
            for place in range(begin, min(cut_at, len(self.units))):
                self._own(place, None, "example")
            return
        # The last round may begin with its question.
        for place in range(begin, cut_at):
            self._own(place, None, "example")
        keys = {(self.units[place].style, self.units[place].label) for place in range(begin, cut_at)}
        back = cut_at - 1
        while back > begin and (
            self.units[back].kind is not Kind.LABEL or self.units[back].part is not Part.ANSWER
        ):
            if (self.units[back].style, self.units[back].label) in keys and self.units[
                back
            ].part is Part.QUESTION:
                for place in range(back, cut_at):
                    self._own(place, None, "")
                break
            back -= 1

    def _asks_again(self, known: int, answered: int, place: int) -> bool:
        """Return whether the labels of a round that was answered come again: its question's, or its answer's without an answer.

        Questions and answers within one document do not.
        """
        answer = (self.units[answered].style, self.units[answered].label)
        asked = {
            (unit.style, unit.label)
            for unit in self.units[max(known - 2, answered - _EDGE, 0) : answered]
            if unit.part is Part.QUESTION and unit.kind is Kind.LABEL
        }
        for unit in self.units[max(place, len(self.units) - _EDGE) :]:
            if unit.kind is not Kind.LABEL:
                continue
            key = (unit.style, unit.label)
            if key == answer and not unit.rest.strip():
                return True
            if self.system and key == answer:
                return True
            if (
                key in asked
                and unit.part is Part.QUESTION
                and len(key[1]) > 1
                and unit.start > self.units[place].start
            ):
                return True
        return False

    def _text_follows(self, place: int) -> bool:
        follows = self.units[place + 1] if place + 1 < len(self.units) else None
        return follows is not None and follows.kind is Kind.TEXT

    def _evidence_follows(self, place: int, known: int, answered: int) -> bool:
        """Return whether each of two rounds that begin with a question has evidence of its own under the same label."""
        sources = (
            [at for at, unit in enumerate(self.units) if unit.part is Part.EVIDENCE]
            if self.sources is None
            else self.sources
        )
        self.sources = sources
        first = sources[bisect_left(sources, known) : bisect_left(sources, answered)]
        labels = {(self.units[at].style, self.units[at].label) for at in first[:_EDGE]}
        later = sources[bisect_left(sources, place) :][:_EDGE] if labels else []
        return any((self.units[at].style, self.units[at].label) in labels for at in later)

    def _is_example(self, place: int) -> bool:
        return self.owner[place][1] == "example"

    def _first_opening(self) -> int | None:
        for place, rule in enumerate(self.opens):
            if not rule or self._is_example(place):
                continue
            head = self.heads[place]
            if head is not None and head.part in (Part.EXAMPLE, Part.HISTORY):
                continue
            if self.units[place].part is Part.INPUT:
                continue
            return place
        return None

    def _find_question(self) -> None:
        """Find the template's own question: an element, or the one label that is not in a document."""
        asked = [
            place
            for place, unit in enumerate(self.units)
            if unit.part is Part.QUESTION
            and not self._is_example(place)
            and not _ANSWERED.search(unit.rest[-_ASKED_CHARS:])
        ]
        if not asked:
            inputs = [
                at
                for at, unit in enumerate(self.units)
                if unit.kind is Kind.ELEMENT and unit.part is Part.INPUT
            ]
            if inputs and not self.system and is_asking(self._asked_text(inputs[-1])):
                self.question_at = inputs[-1]
            return
        if self.steps and not self.system:
            self.question_at = asked[-1]
            return
        opened = self._first_opening()
        elements = [place for place in asked if self.units[place].kind is Kind.ELEMENT]
        if elements and not self.system:
            self.question_at = elements[-1]
            return
        if self.system:
            wanted = _squeezed(self.asked)
            for place in reversed(asked):
                said = _squeezed(self._asked_text(place))
                if wanted and (said == wanted or (len(said) > 12 and said in wanted)):
                    self.question_at = place
                    return
            return
        before = [place for place in asked if opened is None or place < opened]
        if opened is not None and before:
            self.question_at = before[-1]
            return
        if opened is not None and any(self._asks(at) and not self.opens[at] for at in range(opened)):
            # Asked without a label in front: the labels are those of a document.
            return
        for place in reversed(asked[-41:]):
            if self._tail_is_clean(place):
                self.question_at = place
                return

    def _asked_text(self, place: int) -> str:
        unit = self.units[place]
        if unit.kind is Kind.ELEMENT:
            return self.text[unit.body : unit.body_end]
        if unit.rest.strip():
            return unit.rest
        follows = self.units[place + 1] if place + 1 < len(self.units) else None
        return (
            self.text[follows.start : follows.end]
            if follows is not None and follows.kind is Kind.TEXT
            else ""
        )

    def _tail_is_clean(self, place: int) -> bool:
        """Return whether no document goes on behind the question at ``place``."""
        if len(self.units) - place > 41:
            return False
        unit = self.units[place]
        tail = self.units[place + 1 :]
        if len(self._asked_text(place)) > 4000:
            return False
        skip = 0 if unit.rest.strip() or unit.kind is Kind.ELEMENT else 1
        total = 0.0
        for at, each in enumerate(tail):
            if each.part is Part.ANSWER and each.kind is Kind.LABEL and each.rest.strip() and at <= skip + 1:
                # Answered at once: an entry of a list of questions and answers, in a document.
                return False
            if at < skip:
                continue
            head = self.heads[place + 1 + at]
            value = each.mood.reference_score if each.kind in (Kind.TEXT, Kind.FENCED) else 0.0
            if each.kind is Kind.ELEMENT and each.part is Part.EVIDENCE:
                return False
            total += min(value, 0.0) if head is not None else value
        return total <= 2.5

    def _walk(self) -> None:
        place = 0
        while place < len(self.units):
            checkpoint()
            unit = self.units[place]
            if self._is_example(place):
                place += 1
            elif place == self.question_at:
                place = self._take_question(place)
            elif (self.opens[place] and not self._stands_in_example(place)) or (
                unit.part is Part.INPUT and unit.kind is Kind.LABEL and self._is_input_evidence(place)
            ):
                place = self._take_evidence(place)
            elif (
                unit.label in _OBSERVATION
                and self.steps
                and self.question_at is not None
                and place > self.question_at
            ):
                place = self._take_observation(place)
            else:
                place += 1

    def _take_observation(self, place: int) -> int:
        """Take what a tool of an agent said, up to the next step of the agent."""
        end = place + 1
        while end < len(self.units) and not (
            self.units[end].kind is Kind.LABEL and self.units[end].label in _STEP
        ):
            end += 1
        if self.units[place].rest.strip():
            self._own(place, Part.EVIDENCE, "observation", (self.units[place].body, self.units[place].end))
        for at in range(place + 1, end):
            self._own(at, Part.EVIDENCE, "observation")
        return end

    def _stands_in_example(self, place: int) -> bool:
        head = self.heads[place]
        if head is None or head is self.units[place]:
            return False
        return head.part in (Part.EXAMPLE, Part.HISTORY)

    def _is_input_evidence(self, place: int) -> bool:
        end = self._open_end(place + 1)
        begun = self.units[place].mood.reference_score if self.units[place].rest.strip() else 0.0
        return begun + sum(self.score[place + 1 : end]) >= 1.5 and any(
            unit.part in (Part.INSTRUCTION, Part.QUESTION)
            or is_asking(self.text[unit.start : unit.end][:_ASKED_CHARS])
            for unit in self.units[:place]
        )

    def _take_question(self, place: int) -> int:
        unit = self.units[place]
        if unit.kind is Kind.ELEMENT:
            self._own(place, Part.QUESTION, "tag", (unit.body, unit.body_end))
            return place + 1
        at = place + 1
        if unit.rest.strip():
            self._own(place, Part.QUESTION, "label", (unit.body, unit.end))
            # A question of several lines.
            while at < len(self.units) and self._continues_question(at):
                self._own(at, Part.QUESTION, "label")
                at += 1
            return at
        self._own(place, None, "label")
        taken = 0
        while at < len(self.units) and taken < 6:
            each = self.units[at]
            if each.kind is Kind.RULE and (taken == 0 or each.style[:1] in "\"'"):
                at += 1
                continue
            if each.kind is Kind.FENCED or (
                each.kind is Kind.TEXT and (taken == 0 or self._continues_question(at))
            ):
                span = (each.body, each.body_end) if each.kind is Kind.FENCED else None
                self._own(at, Part.QUESTION, "label", span)
                taken += 1
                at += 1
                continue
            break
        return at

    def _continues_question(self, place: int) -> bool:
        """Return whether a paragraph behind a question still is what the user says: not talk about answering, no evidence."""
        unit = self.units[place]
        if unit.kind is not Kind.TEXT or self.opens[place] or unit.mood.guides:
            return False
        later = range(place + 1, min(len(self.units), place + 40))
        return not any(self.opens[at] for at in later) and unit.end - unit.start <= 2000

    def _take_evidence(self, place: int) -> int:  # noqa: PLR0912 - one case a form of mark
        """Take the evidence that opens at ``place``; return the unit behind it."""
        unit, rule = self.units[place], self.opens[place] or "label"
        if unit.kind is Kind.ELEMENT:
            if self._is_talk(unit):
                self._own(place, None, "instruction")
                return place + 1
            self._own(place, Part.EVIDENCE, "tag", (unit.start, unit.end))
            return place + 1
        own_text = unit.kind is Kind.LABEL and bool(unit.rest.strip())
        start = place + 1
        delimited = None if own_text else self._delimited_end(start)
        if delimited is not None:
            delimited = self._carried_on(delimited)
        marked_end = self._end_mark(place)
        body = (
            marked_end
            if marked_end is not None
            else delimited
            if delimited is not None
            else self._open_end(start, begun=max(0.0, unit.mood.reference_score) + 0.5 if own_text else 0.0)
        )
        content = list(range(start, body))
        if own_text:
            asks = unit.rest.rstrip().endswith(("?", "？")) and not any(self.score[at] > 0 for at in content)
            if asks or (unit.mood.reference_score < 0 and not self._is_strong(unit)):
                return place + 1
        elif not self._holds_evidence(unit, content, delimited=delimited is not None):
            return place + 1
        prose = all(self.units[at].kind in (Kind.TEXT, Kind.LABEL, Kind.RULE) for at in content)
        if self.system and prose and rule == "label" and not _STRONG_LABELS.search(unit.label):
            self.weak.update((place, *content))
        if own_text:
            # The name of a source stays with its text, for the passage to take it as title.
            numbered = unit.number or unit.style == "[]#" or unit.label in _NAMES
            self._own(place, Part.EVIDENCE, rule, None if numbered else (unit.body, unit.end))
        elif rule != "announced":
            self._own(place, Part.EVIDENCE if unit.number else None, rule if unit.number else "label")
        for at in content:
            if self._is_bare_label(at):
                self._own(at, None, "label")
            else:
                tagged = self.units[at].kind is Kind.ELEMENT and self.units[at].part is Part.EVIDENCE
                self._own(at, Part.EVIDENCE, "tag" if tagged else rule)
        while content and self.units[content[-1]].kind is Kind.RULE:
            self._own(content.pop(), None, "rule")
        if content and self.units[content[0]].kind is Kind.RULE:
            self._own(content[0], None, "rule")
        return body

    def _holds_evidence(self, unit: Unit, content: Sequence[int], *, delimited: bool) -> bool:
        """Return whether what an opening is followed by can be evidence, and is not the prompt's talk going on."""
        if not any(self.units[at].kind is not Kind.RULE for at in content):
            return False
        gained = sum(self.score[at] for at in content)
        strong = delimited or self._is_strong(unit)
        return (strong and gained > 1.5) or (self._first_is_data(content) and (strong or gained > 0.3))

    def _is_bare_label(self, place: int) -> bool:
        """Return whether a unit inside evidence only is a mark of the template: an end mark, a label before a fenced block."""
        unit = self.units[place]
        follows = self.units[place + 1] if place + 1 < len(self.units) else None
        if unit.kind is Kind.TEXT and self.opens[place] and "\n" not in unit.text:
            return follows is not None and follows.kind is Kind.FENCED
        if unit.kind is not Kind.LABEL or unit.rest.strip() or unit.number:
            return False
        fenced = follows is not None and follows.kind in (Kind.FENCED, Kind.ELEMENT, Kind.RULE)
        return unit.style.endswith("end") or (fenced and unit.part is Part.EVIDENCE)

    def _is_talk(self, unit: Unit) -> bool:
        """Return whether an element with a name for evidence holds talk to the model, as ``<context>`` does in personas."""
        inside = self.text[unit.body : unit.body_end]
        found = unit.mood
        return self.system and len(inside) < 2500 and found.guides > 0.5 * max(1, found.total)

    def _is_strong(self, unit: Unit) -> bool:
        return unit.kind is Kind.LABEL and (not self.system or _STRONG_LABELS.search(unit.label) is not None)

    def _first_is_data(self, content: Sequence[int]) -> bool:
        """Return whether what a label opens is neither talk to the model nor the end of the prompt."""
        first = next(
            (
                self.units[at]
                for at in content
                if self.units[at].kind is not Kind.RULE
                and not (_is_heading(self.units[at]) and self.units[at].part is None)
            ),
            None,
        )
        if first is None or (
            first.kind is Kind.LABEL
            and (first.part in _TALK or not first.rest.strip())
            and first.part is not Part.EVIDENCE
        ):
            return False
        return first.kind is Kind.ELEMENT or first.mood.guides * 2 < max(1, first.mood.total)

    def _delimited_end(self, start: int) -> int | None:  # noqa: PLR0912 - one case a form of mark
        """Return where evidence between marks of its own ends: elements side by side, or two rules; ``None`` without them."""
        if start >= len(self.units):
            return start
        first = self.units[start]
        if first.kind is Kind.ELEMENT and first.part in (Part.EVIDENCE, None, Part.METADATA):
            at = start
            while at < len(self.units) and self.units[at].kind is Kind.ELEMENT and self.units[at].part in (
                Part.EVIDENCE, None, Part.METADATA,
            ):  # fmt: skip
                at += 1
            return at
        if first.kind is not Kind.RULE:
            return None
        closes = [
            at
            for at in range(start + 1, len(self.units))
            if self.units[at].kind is Kind.RULE and self.units[at].style == first.style
        ]
        if not closes:
            return None
        for at in closes:
            after = self.units[at + 1 : at + 3]
            if (
                len(after) == 2
                and after[0].kind is Kind.LABEL
                and after[1].kind is Kind.RULE
                and after[1].style == first.style
            ):
                # Behind it another labelled part begins between the same rules.
                return at + 1
        stop = (
            self.question_at if self.question_at is not None and self.question_at > start else len(self.units)
        )
        sums, total = {}, 0.0
        wanted = set(closes)
        best = None
        for at in range(start + 1, min(len(self.units), stop + 1)):
            if at in wanted:
                sums[at] = total
                best = total if best is None else max(best, total)
            if at < len(self.units):
                total += self.score[at]
        if best is None:
            return None
        for at in sorted(sums, reverse=True):
            if (
                sum(max(0.0, self.score[each]) for each in range(at + 1, stop)) <= 1.0
                and sums[at] >= best - 6.0
            ):
                # Behind it nothing but talk, whatever the document says before it.
                return at
        return max(at for at, value in sums.items() if value >= best - 1.5)

    def _open_end(self, start: int, begun: float = 0.0) -> int:
        """Return the unit before which evidence without an end mark ends.

        Where the prompt ends in reference text, the evidence goes on to its end. Else it ends where the sum of scores is greatest, at the
        last of about equal places.
        """
        limit = start
        while limit < len(self.units) and not self._ends_all(limit):
            limit += 1
        limit = self._without_question(start, limit)
        while limit > start and self._is_cue(limit - 1):
            limit -= 1
        total = best = begun
        sums = [(start, total)]
        stopped = False
        for at in range(start, limit):
            if at > start and self._begins_anew(start, at):
                stopped = True
                break
            if (self.opens[at] and total < best - 3.0) or total < best - 12.0 or total < -4.0:
                # So much talk to the model: the evidence ended before it, whatever comes behind.
                stopped = True
                break
            total += self.score[at]
            best = max(best, total)
            sums.append((at + 1, total))
        end = self._without_orders(start, max(at for at, value in sums if value >= best - _SLACK))
        limit = min(limit, self._without_orders(start, limit)) if self.system else limit
        if end < limit and not (stopped and self.system) and self._goes_on(end, limit):
            return limit
        return end

    def _end_mark(self, place: int) -> int | None:
        """Return the last mark that ends what the label at ``place`` opens: "[END SOURCES]" for "[BEGIN SOURCES]"."""
        unit = self.units[place]
        if unit.kind is not Kind.LABEL or unit.rest.strip():
            return None
        words = set(unit.label.split()) - {"begin", "start", "of", "the"}
        if unit.number:
            words.add(unit.number)
        for at in range(min(len(self.units), self.question_at or len(self.units)) - 1, place, -1):
            other = self.units[at]
            if other.kind is Kind.LABEL and other.style.endswith("end") and words <= set(other.label.split()):
                return at
        return None

    def _carried_on(self, end: int) -> int:
        """Return the end of evidence whose closing mark may be the document's own: further where reference text goes on behind it."""
        limit = end
        while limit < len(self.units) and not self._ends_all(limit):
            limit += 1
        limit = self._without_question(end, limit) if limit > end else limit
        while limit > end and self._is_cue(limit - 1):
            limit -= 1
        behind = self.units[end:limit]
        if not behind or any(unit.mood.guides for unit in behind) or not self._goes_on(end, limit):
            return end
        return limit if sum(self.score[end:limit]) > 0.8 else end

    def _without_orders(self, start: int, end: int) -> int:
        """Give back paragraphs of orders at the end of a text that orders nothing else: they are the prompt's."""
        moods = [self.units[at].mood for at in range(max(start, end - _EDGE), end)]
        if sum(each.orders for each in moods) * 3 > sum(each.total for each in moods):
            return end
        while end > start + 1:
            found = self.units[end - 1].mood
            if (
                self.units[end - 1].kind is not Kind.TEXT
                or found.states > 0
                or not found.orders + found.guides
            ):
                break
            end -= 1
        return end

    def _begins_anew(self, start: int, place: int) -> bool:
        """Return whether a bare heading for evidence stands at ``place``, with talk to the model under a heading before it."""
        unit = self.units[place]
        heading = (
            unit.kind is Kind.LABEL and unit.style[:1] in "#-*" and not unit.rest.strip() and not unit.number
        )
        return (
            heading
            and self.opens[place] == "label"
            and any(
                each.kind is Kind.LABEL and each.part is Part.INSTRUCTION
                for each in self.units[max(start, place - _EDGE) : place]
            )
        )

    def _ends_all(self, place: int) -> bool:
        """Return whether no evidence goes beyond a unit: the question of the template, an example, an element of talk."""
        unit = self.units[place]
        talk = unit.kind is Kind.ELEMENT and unit.part in (Part.QUESTION, Part.INSTRUCTION, Part.HISTORY)
        return place == self.question_at or self._is_example(place) or talk

    def _is_cue(self, place: int) -> bool:
        """Return whether a unit only asks for the answer: "Answer:" at the end."""
        unit = self.units[place]
        return unit.kind is Kind.RULE or (
            unit.kind is Kind.LABEL and unit.part is Part.ANSWER and not unit.rest.strip()
        )

    def _goes_on(self, start: int, end: int) -> bool:
        """Return whether a document goes on from ``start`` to ``end``: its last unit is no talk, and no label of talk stands between."""
        last = self.units[end - 1]
        head = self.heads[end - 1]
        if last.mood.guides * 2 >= max(1, last.mood.total) or (
            head is not None and (head.start in self.guiding or head.part is not Part.INSTRUCTION)
        ):
            return False
        if last.kind is Kind.LABEL and last.part in (Part.INSTRUCTION, Part.HISTORY, Part.EXAMPLE):
            return False
        return not any(
            unit.kind is Kind.LABEL
            and not unit.rest.strip()
            and (
                unit.part in (Part.HISTORY, Part.EXAMPLE)
                or (unit.part is Part.INSTRUCTION and unit.start in self.guiding)
            )
            for unit in self.units[start:end]
        ) and not any(
            _CLOSING.match(unit.text.strip()[:200])
            for unit in self.units[start:end]
            if unit.kind is Kind.TEXT
        )

    def _without_question(self, start: int, end: int) -> int:
        """Give the last paragraph of open evidence back where it is the question, which stands nowhere else."""
        if self.system or self.question_at is not None or self._asked_before(start):
            return end
        talk = end
        while (
            talk > start
            and self.units[talk - 1].kind is Kind.TEXT
            and self.units[talk - 1].mood.guides * 2 > self.units[talk - 1].mood.total
        ):
            talk -= 1
        if talk < end and talk > start and self._asks(talk - 1):
            return talk - 1
        tail = [at for at in range(start, end) if self.units[at].kind is not Kind.RULE]
        if not tail or (end < len(self.units) and any(self._asks(at) for at in range(end, len(self.units)))):
            return end
        last = tail[-1]
        one_line = (
            self.units[last].kind is not Kind.TEXT
            or "\n" not in self.text[self.units[last].start : self.units[last].end]
        )
        if last == tail[0] and one_line and not (start > 0 and self.units[start - 1].rest.strip()):
            return end
        return last if self._asks(last) else self._split_last_line(last, end)

    def _asks(self, place: int) -> bool:
        unit = self.units[place]
        said = self.text[unit.start : unit.end]
        return (
            unit.kind is Kind.TEXT and len(said) <= _ASKED_CHARS and unit.mood.guides == 0 and is_asking(said)
        )

    def _split_last_line(self, place: int, end: int) -> int:
        """Part the last line from its paragraph where it alone asks: "Context: …" and the question on the next line."""
        unit = self.units[place]
        if unit.kind is not Kind.TEXT:
            return end
        said = self.text[unit.start : unit.end]
        line = said[said.rfind("\n") + 1 :]
        if line == said or not line.rstrip().endswith(("?", "？")) or not is_asking(line):
            return end
        at = unit.end - len(line)
        later = Unit(at, unit.end, Kind.TEXT, None, at, unit.end, text=line)
        unit.end = unit.body_end = at
        unit.text = unit.text[: len(said) - len(line)]
        self._insert(place + 1, later)
        return place + 1

    def _insert(self, place: int, unit: Unit) -> None:
        self.units.insert(place, unit)
        self.owner.insert(place, (None, ""))
        self.spans.insert(place, None)
        self.opens.insert(place, "")
        self.heads.insert(place, None)
        self.score.insert(place, -0.3)
        if self.question_at is not None and self.question_at >= place:
            self.question_at += 1

    def _asked_before(self, start: int) -> bool:
        opening = self.units[start - 1] if start else None
        return any(
            unit is not opening and self._asks(at) and not self.opens[at]
            for at, unit in enumerate(self.units[:start])
        )

    def _announced_first(self) -> bool:
        """Take the text behind an announcement where it begins before any mark: marks in it are then a document's own."""
        if not self.system:
            return False
        announcing = self._announcing()
        if announcing is None:
            return False
        start, end, total = self._after(announcing, set())
        framed = total >= 0.8 or self._is_framed(start, end)
        if start >= end or not framed or self.units[start].part is Part.EVIDENCE or self.opens[start]:
            return False
        marked = any(
            self.opens[at] in ("announced", "tag")
            or (
                self.opens[at] == "label"
                and self._is_strong(self.units[at])
                and not self.units[at].rest.strip()
            )
            for at in range(start, len(self.units))
        )
        stretch = self.text[self.units[start].start : self.units[end - 1].end]
        if marked or not self._is_reference(self.asked, stretch, start, end, announced=True):
            return False
        for place in range(start, end):
            self._own(place, Part.EVIDENCE, "announced-text")
        return True

    def _sections(self) -> list[tuple[int, int]]:
        """Return the parts of the prompt under headings and in elements of any name, as units (first, behind the last)."""
        found: list[tuple[int, int]] = []
        place = 0
        while place < len(self.units):
            unit = self.units[place]
            if unit.kind is Kind.ELEMENT and unit.part is None:
                found.append((place, place + 1))
            elif unit.kind is Kind.RULE:
                end = self._last_rule(place)
                if end is not None:
                    found.append((place + 1, end))
                    place = end
            elif unit.kind is Kind.FENCED:
                found.append((place, place + 1))
            elif _is_heading(unit) and unit.part is None:
                end = place + 1
                while end < len(self.units) and not (
                    (_is_heading(self.units[end]) and not _is_below(self.units[end], unit))
                    or self.units[end].part in (Part.QUESTION, Part.INSTRUCTION, Part.HISTORY, Part.EXAMPLE)
                ):
                    end += 1
                found.append((place + 1, end))
                place = end - 1
            place += 1
        return found

    def _last_rule(self, place: int) -> int | None:
        """Return where the text ends that begins behind a rule: at the last one like it, or with the prompt where text goes on behind that."""
        style = self.units[place].style
        rules = [
            at
            for at in range(place + 1, len(self.units))
            if self.units[at].kind is Kind.RULE and self.units[at].style == style
        ]
        if not rules:
            return None
        behind = range(rules[-1] + 1, len(self.units))
        goes_on = not any(self._asks(at) or self.units[at].mood.guides for at in behind) and any(
            self.score[at] > 0 for at in behind
        )
        return len(self.units) if goes_on else rules[-1]

    def _take_sections(self) -> None:
        """Take sections under marks of any name that read as reference text, beside talk or a question that stands elsewhere."""
        chosen = []
        for start, end in self._sections():
            units = self.units[start:end]
            moods = [unit.mood for unit in units if unit.kind is not Kind.RULE]
            talk = sum(each.guides + (each.addresses if self.system else 0) for each in moods)
            free = all(
                self.owner[at] in ((None, ""), (None, "unsure")) and at != self.question_at
                for at in range(start, end)
            )
            asks = len(units) == 1 and self._asks(start)
            if (
                free
                and not asks
                and sum(self.score[start:end]) >= 0.9
                and talk * 3 <= max(1, sum(each.total for each in moods))
            ):
                chosen.append((start, end))
        if not chosen or self.steps:
            return
        said = [
            "".join(self.text[u.start : u.end] + "\n" for u in self.units[start:end]) for start, end in chosen
        ]
        if self.system:
            if not is_about(self.topics, "\n".join(said), least=2):
                return
            about = [is_about(self.topics, each, least=1) for each in said]
            styles = {self._mark_of(start) for (start, _), fits in zip(chosen, about, strict=True) if fits}
            chosen = [each for each in chosen if self._mark_of(each[0]) in styles]
        elif not self._asks_outside(chosen) or _is_code("\n".join(said)):
            return
        for start, end in chosen:
            for at in range(start, end):
                tagged = self.units[at].kind is Kind.ELEMENT
                self._own(
                    at,
                    None if self.units[at].kind is Kind.RULE else Part.EVIDENCE,
                    "tag" if tagged else "section",
                )

    def _mark_of(self, start: int) -> str:
        """Return the mark of a section, to tell which belong together: the name of an element, the style of a heading."""
        unit = self.units[start]
        if unit.kind is Kind.ELEMENT:
            return unit.label
        return self.units[start - 1].style if start else ""

    def _asks_outside(self, chosen: Sequence[tuple[int, int]]) -> bool:
        inside = {at for start, end in chosen for at in range(start, end)}
        return self.question_at is not None or any(
            self._asks(at) for at in range(len(self.units)) if at not in inside
        )

    # --- without marks ------------------------------------------------------------------------------------

    def _announcing(self) -> int | None:
        """Return the last unit of talk that speaks of evidence which the prompt holds: "use the following context"."""
        found = None
        for place, unit in enumerate(self.units[:_EDGE]):
            if unit.kind is Kind.TEXT and unit.mood.guides and _ANNOUNCES.search(unit.text):
                found = place
        return found

    def _take_unmarked(self) -> None:
        """Take text without a mark, where the prompt announces it or where it reads as reference text; the question has to be about it."""
        free = [place for place in range(len(self.units)) if self.owner[place] == (None, "")]
        if not free or self.steps:
            return
        ends = self._asking_units(free) if not self.system else set()
        announcing = self._announcing()
        self.announced = announcing is not None
        if announcing is not None:
            start, end, total = self._after(announcing, ends)
            if total < 0.8 and not self._is_framed(start, end):
                start, end, total = self._best_stretch(ends)
            enough = total >= 0.8 or self._is_framed(start, end)
        else:
            start, end, total = self._best_stretch(ends) if self.system or not ends else self._between(ends)
            enough = total >= 2.0
        stretch = self.text[self.units[start].start : self.units[end - 1].end] if end > start else ""
        if not enough or (
            announcing is None
            and (len(stretch) < self.min_chars or (not self.system and end - start == len(self.units)))
        ):
            return
        question = self.topics or self._rest_text(start, end)
        if self._is_reference(question, stretch, start, end, announced=announcing is not None):
            rule = (
                "announced-text"
                if announcing is not None
                else "reference-text"
                if self.system
                else "pasted-text"
            )
        else:
            rule = ""
        for place in range(start, end):
            if self.units[place].kind is Kind.RULE and place in (start, end - 1):
                self._own(place, None, "rule")
            elif rule:
                self._own(place, Part.EVIDENCE, rule)
            else:
                self._own(place, None, "unsure")

    def _asking_units(self, free: Sequence[int]) -> set[int]:
        """Return the units with which the user asks: at the ends of his message, else a single one within."""
        ends = {place for place in (free[0], free[-1]) if self._asks(place)}
        if ends or len(free) > _EDGE:
            return ends
        asked = [
            at
            for at in free
            if self._asks(at) and self.text[: self.units[at].end].rstrip().endswith(("?", "？"))
        ]
        return set(asked) if len(asked) == 1 else set()

    def _is_reference(self, question: str, stretch: str, start: int, end: int, *, announced: bool) -> bool:
        if not self.system:
            if REWORDING.search(question) or (not announced and _is_code(stretch)):
                return False
            data = stretch.lstrip().startswith(("{", "[{"))
            return announced or data or _points_at(question) or is_about(question, stretch)
        units = self.units[start:end]
        if announced and (is_about(self.topics, stretch, least=1) or self._tells(units)):
            return True
        if announced:
            return False
        sentences_ = max(1, sum(unit.mood.total for unit in units))
        talk = sum(unit.mood.guides + unit.mood.addresses for unit in units)
        return talk / sentences_ < 0.25 and is_about(question, stretch, least=2)

    def _tells(self, units: Sequence[Unit]) -> bool:
        """Return whether text states facts throughout: it may answer a question in other words than it is asked in."""
        moods = [unit.mood for unit in units if unit.kind is not Kind.RULE]
        talk = sum(each.guides + each.addresses for each in moods)
        states, specifics = sum(each.states for each in moods), sum(each.specifics for each in moods)
        return talk == 0 and states >= 2 and specifics > 0

    def _after(self, announcing: int, ends: set[int]) -> tuple[int, int, float]:
        """Return the text behind the announcement and the talk that follows it at once."""
        start = announcing + 1
        while start < len(self.units) and (
            self.units[start].kind is Kind.RULE
            or start in ends
            or self._talks(start)
            or self.score[start] < -1.0
            or self.owner[start] != (None, "")
        ):
            start += 1
        end = self._open_end(start) if start < len(self.units) else start
        limit = next((at for at in range(start, len(self.units)) if self._ends_all(at)), len(self.units))
        if start < end < limit and self.score[start] > 0 and not ends and self._goes_on(end, limit):
            end = limit
        while end > start and (
            end - 1 in ends or self.units[end - 1].kind is Kind.RULE or self._talks(end - 1)
        ):
            end -= 1
        return start, end, sum(self.score[start:end])

    def _is_framed(self, start: int, end: int) -> bool:
        """Return whether a stretch begins and ends with reference text, whatever stands between."""
        return end - start > 1 and self.score[start] > 0 and self.score[end - 1] > 0

    def _talks(self, place: int) -> bool:
        unit = self.units[place]
        talk = unit.mood.guides + (unit.mood.addresses if self.system else 0)
        return talk * 2 > max(1, unit.mood.total) or (
            unit.kind is Kind.LABEL and unit.part in (Part.INSTRUCTION, Part.EXAMPLE, Part.HISTORY)
        )

    def _between(self, ends: set[int]) -> tuple[int, int, float]:
        """Return the run of units beside a question with the greatest sum, without rules and talk to the model at its ends."""

        def outer(place: int) -> bool:
            unit = self.units[place]
            talks = unit.mood.guides * 2 > unit.mood.total
            talks = talks or unit.mood.addresses * 2 > unit.mood.total
            return unit.kind is Kind.RULE or talks or self.owner[place] != (None, "")

        best = (0, 0, 0.0)
        bounds = [-1, *sorted(ends), len(self.units)]
        for before, behind in itertools.pairwise(bounds):
            start, end = before + 1, behind
            while start < end and outer(start):
                start += 1
            while end > start and outer(end - 1):
                end -= 1
            total = sum(self.score[start:end])
            if total > best[2]:
                best = (start, end, total)
        return best

    def _best_stretch(self, ends: set[int]) -> tuple[int, int, float]:
        """Return the units between which the sum of scores is greatest, as (first, behind the last, sum)."""
        best = (0, 0, 0.0)
        begin, total = 0, 0.0
        for place in range(len(self.units)):
            unit = self.units[place]
            value = self.score[place]
            if (
                place in ends
                or place == self.question_at
                or self.owner[place][0] is not None
                or self.owner[place][1]
            ):
                value = -50.0
            if (
                unit.kind is Kind.TEXT
                and len(unit.text) < 80
                and unit.mood.total <= 1
                and unit.mood.guides == 0
            ):
                # A heading or a short line joins what is around it.
                value = max(value, 0.0) if place not in ends and value > -10 else value
            if unit.kind is Kind.LABEL and unit.part is Part.ANSWER:
                value = min(value, -1.0)
            if total + value <= 0 or total <= 0:
                begin, total = place, max(0.0, value)
                if value <= 0:
                    begin, total = place + 1, 0.0
            else:
                total += value
            if total >= best[2] and total > 0:
                best = (begin, place + 1, total)
        return best

    def _rest_text(self, start: int, end: int) -> str:
        return "\n".join(
            self.text[unit.start : unit.end]
            for unit in (*self.units[:start], *self.units[end:])
            if unit.kind is not Kind.RULE
        )[-2000:]

    # --- the question without a label ---------------------------------------------------------------------

    def _fall_back(self) -> None:  # noqa: PLR0912 - one case a form of mark
        """Find the question where nothing marks it: what asks outside of the evidence, and else what is left."""
        evidence = any(part is Part.EVIDENCE for part, _ in self.owner)
        free = [
            place
            for place, unit in enumerate(self.units)
            if self.owner[place][0] is None
            and unit.kind is not Kind.RULE
            and not self._is_example(place)
            and not (unit.kind is Kind.LABEL and unit.part in (Part.ANSWER, Part.HISTORY))
            and self._part_of_head(place) not in (Part.EXAMPLE, Part.HISTORY)
            and not (
                unit.kind is Kind.ELEMENT and unit.part in (Part.INSTRUCTION, Part.EXAMPLE, Part.HISTORY)
            )
        ]
        if evidence and self._take_nested_question():
            return
        if not evidence:
            for place in range(len(self.units)):
                if self.owner[place][0] is None:
                    self._own(
                        place, Part.QUESTION, "message" if self.owner[place][1] != "unsure" else "unsure"
                    )
            return
        asks = [
            at for at in free if self.units[at].kind is Kind.TEXT and self._asks(at) and not self.opens[at]
        ]
        plain = [
            at
            for at in free
            if self.units[at].kind is Kind.TEXT and not self.opens[at] and not self.units[at].mood.guides
        ]
        named = [
            at
            for at in free
            if self.units[at].kind is Kind.LABEL
            and self.units[at].part is Part.INSTRUCTION
            and self.units[at].rest.strip()
            and is_asking(self.units[at].rest)
        ]
        for chosen in (asks, plain, named):
            if chosen:
                for at in chosen:
                    unit = self.units[at]
                    self._own(
                        at, Part.QUESTION, "asks", (unit.body, unit.end) if unit.kind is Kind.LABEL else None
                    )
                return
        for at, unit in enumerate(self.units):
            if (
                unit.kind is Kind.LABEL
                and unit.part is Part.EVIDENCE
                and is_asking(self.text[unit.start : unit.body])
            ):
                # "Summarize the following text:" is the order itself.
                order = Unit(
                    unit.start,
                    unit.body,
                    Kind.TEXT,
                    None,
                    unit.start,
                    unit.body,
                    text=self.text[unit.start : unit.body],
                )
                unit.start = unit.body
                self._insert(at, order)
                self._own(at, Part.QUESTION, "order")
                return
        # Else what asks among the talk to the model.
        texts = [at for at in free if self.units[at].kind is Kind.TEXT]
        for at in reversed(texts):
            span = self._asking_sentence(self.units[at])
            if span is not None:
                self._own(at, Part.QUESTION, "order", span)
                return
        for at in reversed(texts):
            if is_asking(self.text[self.units[at].start : self.units[at].end]):
                self._own(at, Part.QUESTION, "order")
                return

    def _take_nested_question(self) -> bool:
        """Take a question that stands between tags inside of an element of evidence, as one of its parts."""
        for place, unit in enumerate(self.units):
            if unit.kind is not Kind.ELEMENT or unit.part is not Part.EVIDENCE:
                continue
            parts = find_elements(self.text, unit.body, unit.body_end)
            asked = [each for each in parts if each.part is Part.QUESTION]
            if asked and any(each.part is Part.EVIDENCE for each in parts):
                self._insert(place + 1, Unit(asked[-1].content_start, asked[-1].content_end, Kind.TEXT))
                self._own(place + 1, Part.QUESTION, "tag")
                return True
        return False

    def _asking_sentence(self, unit: Unit) -> tuple[int, int] | None:
        """Return the last sentence of a paragraph to the model that asks for something itself."""
        said = self.text[unit.start : unit.end][:6000]
        found = [
            (unit.start + start, unit.start + end)
            for start, end in sentences(said)
            if _is_asked(said[start:end])
        ]
        asked = [span for span in found if self.text[span[0] : span[1]].rstrip().endswith(("?", "？"))]
        return asked[-1] if asked else found[0] if found else None

    def _left_rule(self, place: int) -> str:
        unit, head = self.units[place], self.heads[place]
        if unit.kind is Kind.RULE:
            return "rule"
        part = unit.part if unit.part is not None else head.part if head is not None else None
        if part in (Part.EXAMPLE, Part.HISTORY, Part.INSTRUCTION):
            return part.value
        if unit.kind is Kind.LABEL and part in (Part.ANSWER, Part.EVIDENCE, Part.QUESTION):
            return "label"
        if _EDGE <= place < len(self.units) - _EDGE:
            return "unmarked"
        if unit.mood.guides or sentence_kind(unit.text[:400].strip()) == "orders":
            return "instruction"
        return "unmarked"


def _is_heading(unit: Unit) -> bool:
    """Return whether a unit is a heading: a label on a line of its own, written as one."""
    return unit.kind is Kind.LABEL and unit.style[:1] in "#-" and not unit.rest.strip()


def _is_below(unit: Unit, head: Unit) -> bool:
    return (
        unit.style.startswith("#")
        and head.style.startswith("#")
        and len(unit.style.rstrip("C")) > len(head.style.rstrip("C"))
    )


def _is_asked(sentence: str) -> bool:
    plain = sentence.strip()
    if plain.rstrip("\"'”).").endswith(("?", "？")):
        return True
    return is_asking(plain) and sentence_kind(plain) != "guides"


def _is_under(unit: Unit, head: Unit) -> bool:
    """Return whether a label stands below a heading: a heading of a lower level, or another kind of label."""
    if head.style.startswith("#"):
        return (
            not unit.style.startswith("#")
            and unit.part is not Part.EVIDENCE
            and unit.part is not Part.QUESTION
        ) or (
            unit.style.startswith("#")
            and len(unit.style.rstrip("C")) > len(head.style.rstrip("C"))
            and unit.part not in (Part.EVIDENCE, Part.QUESTION)
        )
    if head.part is Part.HISTORY:
        return unit.part is Part.ANSWER or unit.label in (
            "user",
            "human",
            "assistant",
            "ai",
            "bot",
            "customer",
        )
    return unit.style != head.style and unit.part in (
        Part.ANSWER,
        Part.INSTRUCTION,
        Part.EXAMPLE,
        Part.METADATA,
    )


def _is_code(text: str) -> bool:
    """Return whether most lines of a text are code, which an answer changes and does not report."""
    lines = [line for line in text.split("\n")[:200] if line.strip()]
    return sum(_CODE_LINE.search(line) is not None for line in lines) * 2 > len(lines)


def _points_at(question: str) -> bool:
    return (
        _POINTS.search(question[:_ASKED_CHARS]) is not None
        or _SUMMARY.search(question[:_ASKED_CHARS]) is not None
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split()).strip("\"'“” ").lower()


def _bare_question(text: str) -> str:
    """Return what is asked without the words that introduce it, and without talk about answering behind it."""
    plain = _unquoted(text)
    led = _LED_QUESTION.match(plain) or _LED.match(plain)
    if led is not None:
        plain = _unquoted(plain[led.end() :])
    quoted = _QUOTED_QUESTION.match(plain)
    if quoted is not None:
        return quoted[2].strip()
    if "?" not in plain and "？" not in plain:
        return plain
    kept = len(plain)
    for start, end in reversed(sentences(plain[:_ASKED_CHARS])):
        said = plain[start:end].strip()
        if said.endswith(("?", "？")) or sentence_kind(said) != "guides":
            break
        kept = start
    return plain[:kept].strip() or plain


def _unquoted(text: str) -> str:
    plain = text.strip()
    for mark in ('"""', "'''", "```", '"', "“", "«", "「"):
        if plain.startswith(mark) and len(plain) > 2 * len(mark):
            close = {"“": "”", "«": "»", "「": "」"}.get(mark, mark)
            if plain.endswith(close) and close not in plain[len(mark) : -len(close)]:
                return plain[len(mark) : -len(close)].strip()
    return plain
