"""The words with which prompts label their parts, in nine languages, and what a label says of the part behind it.

A label is a short phrase: a heading, the name of a tag, the words before a colon. Its head decides: what stands before
the first preposition ("Information from knowledge bases" is information).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from truthlens.evidence.language.evidence_words import (
    POINTERS_CJK,
    is_evidence_word,
    points,
    points_at_noun,
    with_joined_words,
)
from truthlens.evidence.language.word_table import word_set


class Part(StrEnum):
    """What a part of a prompt is."""

    EVIDENCE = "evidence"
    QUESTION = "question"
    ANSWER = "answer"
    INSTRUCTION = "instruction"
    EXAMPLE = "example"
    HISTORY = "history"
    INPUT = "input"
    METADATA = "metadata"


# What an agent says to itself.
THOUGHTS = ("thought", "thoughts", "action input")

# In the order in which they decide: "Chat history" is history, "Example question" an example.
_WORDS = {
    part: word_set(words)
    for part, words in {
        Part.HISTORY: """
            history histories conversation conversations dialogue dialog chat verlauf gesprächsverlauf chatverlauf historique
            conversación historial diálogo история переписка диалог storico conversazione histórico conversa
        """,
        Part.EXAMPLE: """
            example examples demonstration demonstrations demo demos fewshot shot shots sample samples beispiel beispiele exemple exemples
            ejemplo ejemplos пример примеры esempio esempi exemplo exemplos
        """,
        Part.INSTRUCTION: """
            instruction instructions rule rules guideline guidelines guidance requirement requirements format role goal objective objectives
            persona personality tone style constraint constraints restriction restrictions steps task tasks tool tools function functions
            schema identity behavior behaviour boundaries limitations reminder remember attention citation citations mission principles
            anweisung anweisungen regeln hinweise vorgaben aufgabe rolle ziel stil antwortformat ausgabeformat
            consigne consignes règle règles instructions rôle tâche objectif ton contraintes
            instrucciones instrucción reglas rol tarea objetivo tono formato pautas restricciones
            инструкция инструкции правила роль задача задание цель стиль формат требования ограничения
            istruzioni regole ruolo compito obiettivo instruções regras papel tarefa thought action
        """,
        Part.QUESTION: """
            question questions query queries q ask request follow followup frage fragen benutzerfrage nutzerfrage anfrage kundenfrage pregunta preguntas consulta
            вопрос вопросы запрос domanda domande pergunta perguntas requête demande
        """,
        Part.EVIDENCE: """
            context contexts document documents doc docs passage passages source sources reference references evidence knowledge article articles
            excerpt excerpts snippet snippets chunk chunks fact facts information info infos text texts data transcript transcripts material
            materials news background content contents result results memory memories record records file files page pages email emails
            thread manual handbook brochure leaflet contract lease agreement minutes statute law invoice order receipt recipe letter post review tariff schedule timetable menu chapter book story log ticket table tables profile report reports paper paragraph paragraphs observation observations observation attachment attachments extract extracts
            contextitem hit hits match matches listing listings finding findings kb wiki fiche fiches dossier fundstelle fundstellen treffer blatt merkblatt blätter регламент регламента выдержек выписка памятка scheda schede ficha fichas known qa faqs cite cites quote quotes pairs documentation database retrieved citeable notes details catalog catalogue faq wiki
            kontext dokument dokumente dokumenten quelle quellen auszug auszüge auszügen kontextinformationen informationen unterlagen text texte
            textauszug textauszüge suchergebnisse hintergrund wissen wissensbasis wissensdatenbank artikel fakten daten inhalt material protokoll vertrag mietvertrag rechnung brief tarif preisliste anleitung handbuch bericht satzung
            contexte documents source extrait extraits informations renseignements texte textes données connaissances passage résultats référence
            références contenu article contrat facture lettre rapport tarif notice
            contexto documento documentos fuente fuentes fragmento fragmentos información texto textos datos conocimiento resultados referencia
            referencias artículo artículos contenido extracto extractos contrato factura carta acta informe tarifa manual
            контекст документ документы источник источники фрагмент фрагменты информация текст тексты данные знания справка материал материалы
            сведения результаты статья отрывок отрывки выдержка выдержки договор счет письмо протокол отчет отчёт тариф руководство
            contesto documenti fonte fonti informazioni testo dati estratto estratti conoscenza risultati fontes informações dados trecho trechos
            conhecimento referência referências
        """,
        Part.INPUT: "input eingabe entrada entrée ввод",
        Part.ANSWER: """
            answer a response output reply assistant ai bot completion antwort réponse respuesta ответ risposta resposta ausgabe sortie salida
            reasoning overview summary draft scratchpad
        """,
        Part.METADATA: """
            title id name filename url uri link author date score index updated created page type mimetype metadata similarity distance rank
            titel título titre заголовок
        """,
    }.items()
}
_EVIDENCE_WORDS = _WORDS[Part.EVIDENCE]
_ANSWER_WORDS = _WORDS[Part.ANSWER] - {"a"}
_SAYS = word_set(
    "asks asked says said writes wrote fragt schreibt demande écrit pregunta escribe спрашивает пишет chiede scrive pergunta escreve"
)
# Words that decide where they stand last. A "memory" is what an agent remembers of the conversation; "memories" are stored facts.
_LAST = {
    **dict.fromkeys(
        word_set(
            "date cutoff url link title filename name author score id index type score similarity distance mimetype"
        ),
        Part.METADATA,
    ),
    "memory": Part.HISTORY,
}
_USER = word_set(
    "user human customer client guest visitor caller buyer student reader tenant colleague kunde kundin gast mieter nutzer benutzer kunde utilisateur usuario cliente пользователь utente"
)
_NOUNS_CJK = (
    r"上下文|资料|資料|文档|文檔|文件|文章|背景|信息|資訊|情報|材料|内容|內容|知识|知識|知识库|知識庫|檢索結果|结果|证据|原文|文本|片段|段落|"
    r"来源|來源|参考|參考|语料|数据|記事|文書|ドキュメント|コンテキスト|文脈|本文|テキスト|検索結果|ヒット|参照文|参照|規程|規約|制度|条文|手册|手冊|摘录|摘要|片断|データ|出典|抜粋|マニュアル"
)
# Chinese and Japanese write no spaces: a label is one word, and its end decides.
_CJK = {
    part: re.compile(pattern)
    for part, pattern in {
        Part.HISTORY: r"(?:历史|歷史|对话记录|對話紀錄|聊天记录|历史对话|会話履歴|履歴|对话历史|上下文对话)$",
        Part.EXAMPLE: r"^(?:示例|例子|样例|范例|範例|例|回答例|サンプル)\d*$",
        Part.INSTRUCTION: (
            r"(?:要求|指令|规则|規則|角色|任务|任務|目标|格式|约束|限制|注意事项|注意|须知|步骤|技能|风格|指示|ルール|役割|制約|条件|"
            r"注意事項|形式|手順|スタイル|设定|原则)$"
        ),
        Part.QUESTION: r"^(?:.{0,8}(?:问题|問題|提问|提問|查询|查詢|质问|質問|問い|请求)(?:是|如下|内容)?|问|問|請問|请问|问句|.{0,6}(?:问|問|说|說)(?:道)?|.{0,8}(?:問い合わせ|お尋ね|ご質問|クエリ|質問))$",
        Part.ANSWER: r"^(?:.{0,4}(?:答案|回答|回复|输出|輸出|答复|出力|応答)|答)$",
        Part.EVIDENCE: rf"(?:{_NOUNS_CJK})(?:\d{{0,3}}|[一二三四五六七八九十]|如下|是|一覧)$",
    }.items()
}
# A label for evidence has no other words than these: "found", "relevant", "known" and "of" say nothing of whose it is.
# None of them is two others side by side: a row of those would cost exponential time.
_EVIDENCE_CJK = re.compile(
    rf"(?:{_NOUNS_CJK}|{POINTERS_CJK}|已知|检索|檢索|搜索|検索|相关|相關|関連|到|的|の|是|一覧|[一二三四五六七八九十])+"
)
_CJK_ANY = re.compile(r"[぀-ヿ㐀-鿿]")
# What joins the words of a label, and words of no content that it begins with.
_JOINS = (
    "from for of about to that which who where below above in on with by you we is are were von aus für zu über de du des del da do sur "
    "pour sobre para из для о об от к по que retrieved provided given"
)
_STARTS = "the this here these those all some any relevant der die das den dem le la les el los las"
_HEAD_END = re.compile(rf"\s(?:{_JOINS.replace(' ', '|')})\b.*$|\s?[(（].*$")
_ASIDE = re.compile(r"\s?[(（].*$")
_WORD = re.compile(r"(?:[^\W\d]|_)+")
_TOKEN = re.compile(r"[^\W\d_]+", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PLAIN_STARTS = re.compile(rf"^(?:my|your|our|their|{_STARTS.replace(' ', '|')})\s+", re.IGNORECASE)
# What opens or closes a part, and says nothing of it: "BEGIN SOURCES".
_BOUNDS = "begin begins start starts end ends ende fin конец"
_START_WORDS = word_set(_STARTS)
# What says whose words these are: "Notes by the assistant".
_ORIGINS = word_set("from of by von aus de du des del da из от")
_NO_CONTENT = word_set(f"{_JOINS} {_STARTS} {_BOUNDS}")
# Labels and names of tags that frameworks write: a closed list of whole names, in which a word alone would be no word for evidence.
# Source: the default prompts of LightRAG, GraphRAG, LangChain, Letta, LobeChat, LibreChat, CrewAI, Mem0, Semantic Kernel
# and OpenAI's cookbook.
_TEMPLATE_LABELS = (
    "knowledge graph data",
    "reference document list",
    "analyst reports",
    "sql result",
    "memory blocks",
    "knowledge bases",
    "knowledge base qa info",
    "retrieved chunks docstring",
    "knowledge bases docstring",
    "context item",
    "wikipedia article section",
    "text, if any",
    "user memories",
    "this is the context you're working with",
    "information about me, from previous conversations",
)
_TEMPLATE_LABEL = re.compile(rf"\b(?:{'|'.join(_TEMPLATE_LABELS)})\b")
_MAX_WORDS = 7
_LABEL_CHARS = 80


@lru_cache(maxsize=4096)
def part_of_label(label: str, marks: frozenset[str] = frozenset()) -> Part | None:
    """Return what a label says of the part behind it; ``None`` for words that say nothing of the kind.

    Args:
        label: Its words alone: no colon, no heading marks; the name of a tag as it stands.
        marks: Labels that the operator lists as marks of evidence, in lower case.
    """
    label = label.strip()
    if label.lower() in marks:
        return Part.EVIDENCE
    if not label or len(label) > _LABEL_CHARS:
        return None
    if _CJK_ANY.search(label):
        return _part_of_unspaced(label)
    spaced = _CAMEL.sub(" ", label).replace("_", " ").replace("-", " ").lower()
    phrase = _PLAIN_STARTS.sub("", spaced)
    head = _HEAD_END.sub("", phrase) or phrase
    words = [word.removesuffix("s") if word == "users" else word for word in _TOKEN.findall(head)]
    if not words or len(words) > _MAX_WORDS:
        return None
    if words[-1:] == ["s"]:
        # "the user's" with what is asked cut away.
        words.pop()
    if not words:
        return None
    return _part_of_words(words, spaced)


def is_models_label(label: str) -> bool:
    """Return whether a label is for a model's own words: of this answer, of earlier ones, or its thoughts."""
    return label.lower() in THOUGHTS or part_of_label(label) in (Part.ANSWER, Part.HISTORY)


def is_others_label(label: str) -> bool:
    """Return whether a label is for a model's words, or has a word for evidence beside one that may say whose it is."""
    if is_models_label(label):
        return True
    if is_unspaced(label):
        names = _CJK[Part.EVIDENCE].search(label) is not None
    else:
        names = not _EVIDENCE_WORDS.isdisjoint(_TOKEN.findall(label.lower()))
    return names and part_of_label(label) is not Part.EVIDENCE


def is_unspaced(label: str) -> bool:
    """Return whether a label is Chinese or Japanese, which write no spaces between words."""
    return _CJK_ANY.search(label) is not None


def points_at_evidence(phrase: str) -> bool:
    """Return whether words side by side in a phrase point at evidence, and no other says where it is from: "the following documents"."""
    return any(map(points_at_noun, _evidence_runs(phrase)))


def _part_of_words(words: list[str], label: str) -> Part | None:
    """Return what the words of a label's head say; ``label`` is all of it, in lower case, with spaces between its words."""
    said, last = set(words), words[-1]
    if last in _SAYS and len(words) <= 4:
        return Part.QUESTION
    if {"sql", "query"} <= said:
        # What a step of the application made of the question.
        return Part.INSTRUCTION
    if last in _LAST:
        return _LAST[last]
    for part, known in _WORDS.items():
        if known.isdisjoint((last,) if part is Part.ANSWER else said):
            continue
        if part is not Part.EVIDENCE:
            return Part.QUESTION if part is Part.INPUT and _USER & said else part
        told = _part_beside_evidence(label)
        if told is not None:
            return told
    asks = last in _USER or (_USER & said and not said.isdisjoint(("message", "prompt")))
    return Part.QUESTION if asks else None


def _part_beside_evidence(label: str) -> Part | None:
    """Return what a label with a word for evidence says: evidence where all its words do, a model's words where one is for these."""
    if _is_all_evidence(label) or points_at_evidence(label):
        return Part.EVIDENCE
    # "Draft text", "Notes of the assistant".
    return None if _ANSWER_WORDS.isdisjoint(_TOKEN.findall(label)) else Part.ANSWER


def _part_of_unspaced(label: str) -> Part | None:
    plain = re.sub(r"[\s\d【】\[\]（(].*$|[：:]$", "", label) or label
    part = next((part for part, pattern in _CJK.items() if pattern.search(plain)), None)
    return None if part is Part.EVIDENCE and not _EVIDENCE_CJK.fullmatch(plain) else part


def _is_all_evidence(phrase: str) -> bool:
    """Return whether every word of a label is one for evidence, points at it or has no content: one alone says nothing of the rest."""
    rest = _TEMPLATE_LABEL.sub(" ", _ASIDE.sub("", phrase))
    return all(map(_says_nothing_else, _WORD.findall(with_joined_words(rest))))


def _says_nothing_else(word: str) -> bool:
    return word in _EVIDENCE_WORDS or word in _NO_CONTENT or is_evidence_word(word)


def _evidence_runs(phrase: str) -> list[str]:
    """Return the runs of words of a phrase that all are for evidence, point at it or have no content.

    Of "Answer using the following documents" the last four words are one. None goes on behind a word that says whose they are: of
    "Draft text below" and "Information from the assistant" there is none with a word for evidence.
    """
    runs: list[str] = []
    held: list[str] = []
    behind = False
    for word in (*_WORD.findall(with_joined_words(phrase.lower())), ""):
        if word and _says_nothing_else(word):
            if held or not behind or word in _NO_CONTENT or points(word):
                held.append(word)
            continue
        while word and held and held[-1] in _START_WORDS:
            held.pop()
        if held and not (word and held[-1] in _ORIGINS):
            runs.append(" ".join(held).replace("_", " "))
        held, behind = [], True
    return runs
