"""Hold the prompts of the ``lettucedetect`` package, by language, for its checkpoints.

They are an interface, not our own text: a checkpoint gets the same bytes here as in its own package. Trailing
spaces and line breaks belong to them.

Source: ``lettucedetect`` 0.2.3 (MIT), files ``prompts/qa_prompt_*.txt`` and ``prompts/summary_prompt_*.txt``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """One language: the question prompt is ``ask``, query, ``bind``, count, ``count_end``, passages, tail.

    A passage is introduced by ``passage`` and its number. The summary prompt is ``summary``, passages,
    ``summary_tail``.
    """

    passage: str
    ask: str
    bind: str
    count_end: str
    tail: str
    summary: str
    summary_tail: str


BY_LANGUAGE: dict[str, Wording] = {
    "en": Wording(
        passage="passage",
        ask="Briefly answer the following question:\n",
        bind="\nBear in mind that your response should be strictly based on the following ",
        count_end=" passages:\n",
        tail="In case the passages do not contain the necessary information to answer the question, please reply "
        'with: "Unable to answer based on given passages."\noutput:',
        summary="Summarize the following text:\n",
        summary_tail="output:",
    ),
    "de": Wording(
        passage="Passage",
        ask="Beantworte die folgende Frage kurz:\n",
        bind="\nBeachte, dass deine Antwort nur auf den folgenden ",
        count_end=" Passagen basieren soll:\n",
        tail="Falls die Passagen nicht die notwendigen Informationen zur Beantwortung der Frage enthalten, antworte "
        'bitte mit: "Kann aufgrund der gegebenen Passagen nicht beantwortet werden."\nAusgabe:',
        summary="Fasse den folgenden Text zusammen:\n",
        summary_tail="Ausgabe:\n",
    ),
    "fr": Wording(
        passage="passage",
        ask="Réponds brièvement à la question suivante :\n",
        bind="\nNote que ta réponse doit être basée uniquement sur les ",
        count_end=" passages suivants :\n",
        tail="Si les passages ne contiennent pas les informations nécessaires pour répondre à la question, réponds "
        's\'il te plaît par : "Impossible de répondre sur la base des passages fournis."\nSortie : ',
        summary="Résume le texte suivant :\n",
        summary_tail="Sortie : ",
    ),
    "es": Wording(
        passage="pasaje",
        ask="Responde a la siguiente pregunta brevemente:\n",
        bind="\nTen en cuenta que tu respuesta debe basarse únicamente en los siguientes ",
        count_end=" pasajes:\n",
        tail="Si los pasajes no contienen la información necesaria para responder a la pregunta, por favor responde "
        'con: "No se puede responder con base en los pasajes proporcionados."\nSalida: ',
        summary="Resume el siguiente texto:\n",
        summary_tail="Salida: ",
    ),
    "it": Wording(
        passage="brano",
        ask="Rispondi alla seguente domanda in modo breve:\n",
        bind="\nTieni presente che la tua risposta deve basarsi solo sui seguenti ",
        count_end=" passaggi:\n",
        tail="Se i passaggi non contengono le informazioni necessarie per rispondere alla domanda, per favore "
        'rispondi con: "Non può essere risposto in base ai passaggi forniti."\nRisposta:\n',
        summary="Riassumi il seguente testo:\n",
        summary_tail="Risposta: ",
    ),
    "pl": Wording(
        passage="fragment",
        ask="Zwięźle odpowiedz na następujące pytanie:\n",
        bind="\nPamiętaj, że Twoja odpowiedź powinna opierać się wyłącznie na następujących ",
        count_end=" fragmentach:\n",
        tail="Jeśli fragmenty nie zawierają informacji niezbędnych do udzielenia odpowiedzi na pytanie, odpowiedz: "
        '"Nie można odpowiedzieć na podstawie podanych fragmentów."\noutput: ',
        summary="Streść następujący tekst:\n",
        summary_tail="Wynik: ",
    ),
    "cn": Wording(
        passage="段落",
        ask="请简短回答以下问题：\n",
        bind="\n请注意，您的回答应严格基于以下",
        count_end="段落：\n",
        tail='如果段落中不包含回答问题所需的信息，请回复："基于给定段落无法回答。"\n输出：\n',
        summary="请总结以下文本：\n",
        summary_tail="输出：\n",
    ),
    "hu": Wording(
        passage="szövegrészlet",
        ask="Röviden válaszolj az alábbi kérdésre:\n",
        bind="\nVedd figyelembe, hogy a válaszod kizárólag az alábbi ",
        count_end=" szövegrészletre támaszkodjon:\n",
        tail="Ha a szövegrészletek nem tartalmazzák a kérdés megválaszolásához szükséges információt, válaszolj így: "
        '"Nem tudok válaszolni a megadott szövegrészletek alapján."\noutput:',
        summary="Foglalja össze az alábbi szöveget:\n",
        summary_tail="output:\n\n\n",
    ),
}
