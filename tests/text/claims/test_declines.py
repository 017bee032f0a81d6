"""A sentence that only declines claims nothing, in seven languages; one that goes on to tell something does."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from truthlens.text.claims.non_claims import Query, claimless_ranges, is_abstention, is_claimless

DECLINES = [
    "Sorry, I've no clue.",
    "I honestly have no answer for you.",
    "That is beyond what my sources cover.",
    "I searched the manual and came up empty.",
    "The sources don't go into that.",
    "None of the retrieved pages addresses your question.",
    "I can't find any reference to that in the files.",
    "Nothing in the context answers this.",
    "The provided excerpts make no mention of a discount.",
    "I'm sorry, but your question goes beyond the documents that I have access to.",
    "As far as I can see, the handbook is silent on this point.",
    "It's not clear from the text.",
    "I wasn't given enough context to tell. Could you share the contract?",
    "Good question! Unfortunately I don't have that information. Please get in touch with our support team.",
    "I do not wish to speculate.",
    "This can't be determined from the given passages, so I'd rather not guess.",
    "Leider kann ich das nicht sagen.",
    "In den vorliegenden Texten steht dazu nichts.",
    "Diese Frage kann ich anhand der Quellen nicht beantworten. Möchten Sie eine andere Frage stellen?",
    "Der Kontext erwähnt das nicht.",
    "Je n'en ai aucune idée.",
    "Désolé, cette information ne figure pas dans les documents.",
    "Le contexte ne contient pas la réponse. N'hésitez pas à poser une autre question.",
    "Je ne peux pas répondre à cette question à partir des extraits.",
    "No tengo esa información.",
    "Los documentos no contienen la respuesta.",
    "Lo siento, no puedo responder a esa pregunta. ¿Puedo ayudarle en algo más?",
    "El texto no lo dice.",
    "Non ho trovato informazioni al riguardo nei documenti.",
    "Non saprei dirlo.",
    "Il contesto non contiene la risposta alla domanda.",
    "Mi spiace, questo dato non è indicato. Vuole che cerchi altro?",
    "我不清楚。",
    "根据现有文档无法确定。",
    "对不起，资料中没有相关内容。请问还有什么可以帮您？",
    "提供的上下文没有给出答案。",
    "すみません、存じません。",
    "資料からはお答えできません。",
    "該当する情報は見つかりませんでした。",
    "その点についてはコンテキストに書かれていません。他にご質問はありますか？",
    "I'm sorry, I can't find that in the provided context.",
    "The answer isn't in the documents.",
    "I don't see anything about parking in the files you shared.",
    "My sources are silent on this.",
    "There isn't enough information in the passages to answer this.",
    "That's not covered in the material I have access to.",
    "I am not aware of that.",
    "Sorry, that's outside what I can answer from these documents.",
    "The article gives no details on this.",
    "I have no data to answer that, I'm afraid.",
    "The text does not provide an answer.",
    "We have no information about this.",
    "Das steht nicht im Text.",
    "Ich habe dazu keine Informationen.",
    "Die Frage bleibt im Dokument offen.",
    "Je ne trouve pas cette information dans le texte.",
    "Le document ne le dit pas.",
    "No lo sé.",
    "Eso no aparece en el texto.",
    "Non lo so, mi dispiace.",
    "Le fonti non ne parlano.",
    "上下文中没有相关信息。",
    "这个我不知道。",
    "資料に記載がないため、お答えできません。",
    "分かりません。",
]
CLAIMS = [
    "I've no clue why they stopped, though sales had doubled by then.",
    "The sources don't go into that, yet the founder was a baker.",
    "None of the pages says so outright: the owner is the city.",
    "Not clear from the text. My best guess is Zurich.",
    "I searched the manual and came up empty; normally the fuse is rated at 10 amperes.",
    "I don't have that information, but Ms Hale does, she signed it.",
    "Nothing in the context answers this, although chapter two names Lisbon.",
    "I can't find any reference to a discount because members pay nothing.",
    "I wasn't given enough context. Still, 1912 seems right.",
    "The handbook is silent on this point since the rule was dropped in May.",
    "Sorry, I don't know the exact figure, roughly half of them left.",
    "I do not wish to speculate. The minister lied.",
    "This product is not available in the north.",
    "It is not possible to return opened goods.",
    "The documents contain nothing that supports him, he made it up.",
    "We couldn't find the box; it was sent to Graz.",
    "Leider kann ich das nicht sagen, vermutlich war es 1950.",
    "Dazu steht nichts im Text, aber es war der Bürgermeister.",
    "Das ist leider nicht erlaubt.",
    "Der Kontext erwähnt das nicht. Der Turm ist 40 Meter hoch.",
    "Je n'en ai aucune idée, peut-être Lyon.",
    "Désolé, le magasin est fermé le dimanche.",
    "Le contexte ne contient pas la réponse, mais c'est Paul qui a gagné.",
    "Cette information ne figure pas dans les documents ; le prix est de 30 euros.",
    "No tengo esa información; cuesta ocho euros.",
    "El texto no lo dice, aunque fue Marta.",
    "No es posible devolver el producto.",
    "Lo siento, la tienda cierra a las ocho.",
    "Non saprei dirlo, forse Torino.",
    "Il contesto non lo dice. Fu costruito da Bruni.",
    "Purtroppo il treno non passa di domenica.",
    "I documenti non lo indicano, ma il costo è di dieci euro.",
    "我不清楚，好像是上海。",
    "资料没有提到，但是他是医生。",
    "很抱歉，本店周日不营业。",
    "文档中没有说明。费用是五十元。",
    "すみません、店は日曜日に休みです。",
    "資料には書かれていませんが、社長は田中さんです。",
    "わかりません。たぶん京都です。",
    "返品はできません。",
    "It is not covered.",
    "There is nothing on the bridge.",
    "No hay nada.",
    "Non c'è nulla.",
    "There is no refund.",
    "I have no doubt.",
    "The guide does not include lunch.",
    "There is no record of a fire.",
    "The data do not support this.",
    "No one knows.",
    "It's not available.",
    "The shop has no information desk.",
    "That is not in the region.",
    "He does not know.",
    "You cannot find it there.",
    "They did not find anything.",
    "The manual was not written by Hale.",
    "Das ist nicht erlaubt.",
    "Er weiß es nicht.",
    "Das Dokument ist nicht gültig.",
    "Il ne le sait pas.",
    "Le document n'est pas valable.",
    "Él no lo sabe.",
    "El documento no es válido.",
    "Il documento non è valido.",
    "他不知道。",
    "文件没有签名。",
    "資料はありません。",
    "彼はわかりません。",
    "无法退款。",
    "I can't recommend it.",
    "I don't know anyone kinder than Ada.",
    "The records contain nothing.",
    "The context was written by Hume.",
    "No details were lost.",
    "Please contact the office in Leeds.",
    "Perhaps a colleague took it.",
    "I was not given the prize.",
    "The pages are missing.",
]


@pytest.mark.parametrize("text", DECLINES)
def test_an_answer_that_only_declines_is_an_abstention(text: str) -> None:
    """Whatever it names stands in the question."""
    assert is_claimless(text, Query(text))
    assert is_abstention(text, Query(text))


@pytest.mark.parametrize("text", CLAIMS)
def test_an_answer_that_tells_something_is_none(text: str) -> None:
    """Even where every word of it stands in the question."""
    assert not is_claimless(text, Query(text))
    assert claimless_ranges(text, Query(text)) != [(0, len(text))]


def _listed(kind: str) -> list[str]:
    path = Path(__file__).parents[2] / "api" / "evidence" / "cases" / "declines.yaml"
    listed: list[str] = yaml.safe_load(path.read_text("utf-8"))[kind]
    return listed


def test_the_listed_declines_are_told_from_the_claims() -> None:
    """All but one in twenty declines, and none of the claims, whatever the question holds."""
    declines = _listed("declines")
    assert sum(is_claimless(text, Query(text)) for text in declines) >= 0.95 * len(declines)
    assert [text for text in _listed("claims") if is_claimless(text, Query(text))] == []


def test_what_it_declines_to_tell_stands_in_the_question() -> None:
    """A thing that nobody asked about may be a claim."""
    text = "Nothing in the notes tells who the owner is."
    assert is_abstention(text, Query("Who is the owner?"))
    assert not is_abstention(text, Query("When does it open?"))


def test_beside_a_claim_a_decline_is_scored() -> None:
    """The whole answer is suspicious where it goes on to guess."""
    text = "Hmm, I can't tell. Probably Helsinki."
    assert claimless_ranges(text, Query("Where?")) == []
    assert claimless_ranges("Hmm, I can't tell.", Query("Where?")) == [(0, 18)]


@pytest.mark.parametrize(
    "text",
    [
        "I don't know eight tablets.",
        "Nothing in the notes tells tablets that cure.",
        "The handbook is silent on tablets, which are safe.",
        "There's no mention of Novartis tablets.",
        "Ich habe keine Angaben zu acht Tabletten.",
        "Je n'ai trouvé aucune information sur 8 comprimés.",
        "No tengo información sobre pastillas que curan.",
        "Non ho informazioni su 8 pastiglie.",
    ],
)
def test_no_decline_hides_a_number_a_name_or_a_clause(text: str) -> None:
    """Its open place holds nothing but words that tell nothing, or that the user asked about."""
    assert (
        claimless_ranges(text, Query("What are tablets? Tabletten, comprimés, pastillas, pastiglie?")) == []
    )


@pytest.mark.parametrize(
    "piece", ["the ", "I don't know ", "la información ", "le la ", "nicht ", "der die das ", "資料に", "相关信息", "sorry, ", "and i ", "are provided "]
)  # fmt: skip
def test_long_monotonous_texts_come_to_an_end(piece: str) -> None:
    """No pattern runs away on a text that keeps almost matching."""
    for length in (390, 50_000):
        assert isinstance(claimless_ranges((piece * length)[:length], Query(piece)), list)
