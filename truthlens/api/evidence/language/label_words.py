"""The words with which prompts label their parts, in nine languages, and what a label says of the part behind it.

A label is a short phrase: a heading, the name of a tag, the words before a colon. Its head decides: what stands before
the first preposition ("Information from knowledge bases" is information).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from truthlens.api.evidence.language.word_table import word_set


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


# In the order in which they decide: "Chat history" is history, "Example question" an example.
_WORDS: tuple[tuple[Part, frozenset[str]], ...] = (
    (
        Part.HISTORY,
        word_set(
            "history histories conversation conversations dialogue dialog chat verlauf gesprächsverlauf chatverlauf historique "
            "conversación historial diálogo история переписка диалог storico conversazione histórico conversa"
        ),
    ),
    (
        Part.EXAMPLE,
        word_set(
            "example examples demonstration demonstrations demo demos fewshot shot shots sample samples beispiel beispiele exemple exemples "
            "ejemplo ejemplos пример примеры esempio esempi exemplo exemplos"
        ),
    ),
    (
        Part.INSTRUCTION,
        word_set(
            "instruction instructions rule rules guideline guidelines guidance requirement requirements format role goal objective objectives "
            "persona personality tone style constraint constraints restriction restrictions steps task tasks tool tools function functions "
            "schema identity behavior behaviour boundaries limitations reminder remember attention citation citations mission principles "
            "anweisung anweisungen regeln hinweise vorgaben aufgabe rolle ziel stil antwortformat ausgabeformat "
            "consigne consignes règle règles instructions rôle tâche objectif ton contraintes "
            "instrucciones instrucción reglas rol tarea objetivo tono formato pautas restricciones "
            "инструкция инструкции правила роль задача задание цель стиль формат требования ограничения "
            "istruzioni regole ruolo compito obiettivo instruções regras papel tarefa thought action"
        ),
    ),
    (
        Part.QUESTION,
        word_set(
            "question questions query queries q ask request follow followup frage fragen benutzerfrage nutzerfrage anfrage kundenfrage pregunta preguntas consulta "
            "вопрос вопросы запрос domanda domande pergunta perguntas requête demande"
        ),
    ),
    (
        Part.EVIDENCE,
        word_set(
            "context contexts document documents doc docs passage passages source sources reference references evidence knowledge article articles "
            "excerpt excerpts snippet snippets chunk chunks fact facts information info infos text texts data transcript transcripts material "
            "materials news background content contents result results memory memories record records file files page pages email emails "
            "thread manual handbook brochure leaflet contract lease agreement minutes statute law invoice order receipt recipe letter post review tariff schedule timetable menu chapter book story log ticket table tables profile report reports paper paragraph paragraphs observation observations observation attachment attachments extract extracts "
            "contextitem hit hits match matches listing listings finding findings kb wiki fiche fiches dossier fundstelle fundstellen treffer blatt merkblatt blätter регламент регламента выдержек выписка памятка scheda schede ficha fichas known qa faqs cite cites quote quotes pairs documentation database retrieved citeable notes details catalog catalogue faq wiki "
            "kontext dokument dokumente dokumenten quelle quellen auszug auszüge auszügen kontextinformationen informationen unterlagen text texte "
            "textauszug textauszüge suchergebnisse hintergrund wissen wissensbasis wissensdatenbank artikel fakten daten inhalt material protokoll vertrag mietvertrag rechnung brief tarif preisliste anleitung handbuch bericht satzung "
            "contexte documents source extrait extraits informations renseignements texte textes données connaissances passage résultats référence "
            "références contenu article contrat facture lettre rapport tarif notice "
            "contexto documento documentos fuente fuentes fragmento fragmentos información texto textos datos conocimiento resultados referencia "
            "referencias artículo artículos contenido extracto extractos contrato factura carta acta informe tarifa manual "
            "контекст документ документы источник источники фрагмент фрагменты информация текст тексты данные знания справка материал материалы "
            "сведения результаты статья отрывок отрывки выдержка выдержки договор счет письмо протокол отчет отчёт тариф руководство "
            "contesto documenti fonte fonti informazioni testo dati estratto estratti conoscenza risultati fontes informações dados trecho trechos "
            "conhecimento referência referências"
        ),
    ),
    (Part.INPUT, word_set("input eingabe entrada entrée ввод")),
    (
        Part.ANSWER,
        word_set(
            "answer a response output reply assistant ai bot completion antwort réponse respuesta ответ risposta resposta ausgabe sortie salida "
            "reasoning overview summary"
        ),
    ),
    (
        Part.METADATA,
        word_set(
            "title id name filename url uri link author date score index updated created page type mimetype metadata similarity distance rank "
            "titel título titre заголовок"
        ),
    ),
)
_SAYS = word_set(
    "asks asked says said writes wrote fragt schreibt demande écrit pregunta escribe спрашивает пишет chiede scrive pergunta escreve"
)
_METADATA = word_set(
    "date cutoff url link title filename name author score id index type score similarity distance mimetype"
)
_USER = word_set(
    "user human customer client guest visitor caller buyer student reader tenant colleague kunde kundin gast mieter nutzer benutzer kunde utilisateur usuario cliente пользователь utente"
)
# Chinese and Japanese write no spaces: a label is one word, and its end decides.
_CJK: tuple[tuple[Part, re.Pattern[str]], ...] = (
    (
        Part.HISTORY,
        re.compile(r"(?:历史|歷史|对话记录|對話紀錄|聊天记录|历史对话|会話履歴|履歴|对话历史|上下文对话)$"),
    ),
    (Part.EXAMPLE, re.compile(r"^(?:示例|例子|样例|范例|範例|例|回答例|サンプル)\d*$")),
    (
        Part.INSTRUCTION,
        re.compile(
            r"(?:要求|指令|规则|規則|角色|任务|任務|目标|格式|约束|限制|注意事项|注意|须知|步骤|技能|风格|指示|ルール|役割|制約|条件|"
            r"注意事項|形式|手順|スタイル|设定|原则)$"
        ),
    ),
    (
        Part.QUESTION,
        re.compile(
            r"^(?:.{0,8}(?:问题|問題|提问|提問|查询|查詢|质问|質問|問い|请求)(?:是|如下|内容)?|问|問|請問|请问|问句|.{0,6}(?:问|問|说|說)(?:道)?|.{0,8}(?:問い合わせ|お尋ね|ご質問|クエリ|質問))$"
        ),
    ),
    (Part.ANSWER, re.compile(r"^(?:.{0,4}(?:答案|回答|回复|输出|輸出|答复|出力|応答)|答)$")),
    (
        Part.EVIDENCE,
        re.compile(
            r"(?:上下文|上下文信息|资料|資料|文档|文檔|文件|文章|背景|背景信息|信息|資訊|情報|材料|内容|內容|知识|知識|知识库|知識庫|检索结果|"
            r"檢索結果|搜索结果|结果|证据|原文|文本|片段|段落|来源|來源|参考|參考|语料|数据|記事|文書|ドキュメント|コンテキスト|文脈|本文|テキスト|検索結果|ヒット|参照文|参照|規程|規約|制度|条文|手册|手冊|摘录|摘要|片断|"
            r"データ|出典|抜粋|マニュアル)(?:\d{0,3}|[一二三四五六七八九十]|如下|是|一覧)$"
        ),
    ),
)
_CJK_ANY = re.compile(r"[぀-ヿ㐀-鿿]")
_HEAD_END = re.compile(
    r"\s(?:from|for|of|about|to|that|which|who|where|below|above|in|on|with|by|you|we|is|are|were|von|aus|für|zu|über|de|du|des|del|da|do|sur|"
    r"pour|sobre|para|из|для|о|об|от|к|по|que|retrieved|provided|given)\b.*$|\s?[(（].*$"
)
_TOKEN = re.compile(r"[^\W\d_]+", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PLAIN_STARTS = re.compile(
    r"^(?:the|this|here|my|your|our|their|these|those|all|some|any|relevant|der|die|das|le|la|les|el|los|las)\s+",
    re.IGNORECASE,
)
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
        plain = re.sub(r"[\s\d【】\[\]（(].*$|[：:]$", "", label) or label
        return next((part for part, pattern in _CJK if pattern.search(plain)), None)
    phrase = _PLAIN_STARTS.sub("", _CAMEL.sub(" ", label).replace("_", " ").replace("-", " ").lower())
    head = _HEAD_END.sub("", phrase) or phrase
    words = [word.removesuffix("s") if word == "users" else word for word in _TOKEN.findall(head)]
    if not words or len(words) > _MAX_WORDS:
        return None
    if words[-1:] == ["s"]:
        # "the user's" with what is asked cut away.
        words.pop()
    if not words:
        return None
    if words[-1] in _SAYS and len(words) <= 4:
        return Part.QUESTION
    if "sql" in words and "query" in words:
        # What a step of the application made of the question.
        return Part.INSTRUCTION
    if words[-1] in _METADATA:
        return Part.METADATA
    for part, known in _WORDS:
        found = [word for word in words if word in known]
        if found and (part is not Part.ANSWER or words[-1] in known):
            return Part.QUESTION if part is Part.INPUT and _USER & set(words) else part
    if words and _USER & set(words):
        return Part.QUESTION if words[-1] in _USER or "message" in words or "prompt" in words else None
    return None
