"""Calls whose result a program reads are told from answers to a user; what is doubtful is an answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from truthlens.core.records.exchange import Message
from truthlens.evidence.intermediate.calls import is_intermediate

CASES = Path(__file__).parents[1] / "cases"
_MARKS = re.compile("⟦/?[eqm]⟧")

# Each: what it is, the system's text or "", and the user's last message.
STEPS = [
    ("search phrase", "You stand before the library's catalogue. Make one search phrase of what was said last. Give the phrase only.", "person: is there anything by Ines Maurer?\nbot: Two novels.\nperson: and for children?"),
    ("situating", "", "<document>\nThe mill was sold in 1911.\n</document>\n<chunk>\nIt was sold.\n</chunk>\nWrite a line that situates this chunk in the whole document, for retrieval. Return the line alone."),
    ("hyde", "", "Write two short attempts at an answer to the query. They are used to search our manuals.\n\nQuery: how do I bleed the radiator?"),
    ("classification", "Sort each incoming letter of the tenants into exactly one folder: HEAT, NOISE, KEYS, OTHER. Print its name.", "My neighbour drills at night."),
    ("routing", "Select the model prompt that is best suited for the input. Return JSON with its name.", "Who wrote the ninth symphony?"),
    ("ranking", "", "Documents are listed below, with a question. Return the numbers of the documents to read, with a relevance score.\n\nDocument 1:\nThe pool opens at nine.\n\nQuestion: when can I swim?"),
    ("sql", "You write MySQL for the fleet desk. A single SELECT statement, no comments.\n\nCREATE TABLE truck (id int, plate text);", "How many trucks are there?"),
    ("translation", "Translator for a youth hostel. What comes in goes out in German. Return the translation alone.", "Breakfast is from seven."),
    ("plan", "Break the objective down into at most four steps for a worker with a calculator. Output a JSON array and nothing else.", "Find out which ferry is cheaper."),
    ("memory", "You keep notes. Extract facts and preferences from what is said, as JSON.", "user: I moved to Graz and like chess."),
    ("condense", "", "Chat so far:\nUser: How tall is the Ostrov mast?\nBot: 214 metres.\n\nNew message: and when was it put up?\n\nTurn the new message into a self-contained question that makes sense without the chat. Reply with the question only."),
    ("condense", "You rewrite the user's latest message so that it can be understood without the preceding conversation. Never answer it. If nothing needs to change, return it unchanged.", "and in winter?"),
    ("condense", "Given a chat history and the latest user question which might reference context in the chat history, formulate a standalone question which can be understood without the chat history. Do NOT answer the question, just reformulate it if needed and otherwise return it as is.", "What did he paint later?"),
    ("condense", "", "Given the following conversation and a follow up question, rephrase the follow up question to be a standalone question.\n\nChat History:\nHuman: hello\nAssistant: Hi! Ask me about our bikes.\nFollow Up Input: got any with two seats?\nStandalone question:"),
    ("search query", "Your job is to produce a web search query for the last message of the user. Output nothing except the query.", "I wonder whether the swimming bath in Harl is open on Whit Monday"),
    ("search query", "", "### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in the given language.\n### Guidelines:\n- Respond exclusively with a JSON object.\n### Output:\nStrictly return in JSON format:\n{ \"queries\": [\"query1\", \"query2\"] }\n### Chat History:\n<chat_history>\nUSER: who won the regatta?\n</chat_history>"),
    ("multi-query", "You are a helpful assistant that generates several search queries from a single input query.", "Generate 4 search queries for: tram strike compensation\nOUTPUT (4 queries):"),
    ("multi-query", "", "Come up with five alternative phrasings of the question below to improve recall in our vector store. One per line, no numbering.\n\nQuestion: which fungicides are allowed in vineyards?"),
    ("sub-questions", "", "Break the user's question down into at most four sub-questions that can each be looked up separately. Return a JSON list of strings.\n\nQuestion: Did the Lindau branch earn more than the Bregenz branch in 2022, and why?"),
    ("step back", "You are an expert at world knowledge. Your task is to step back and paraphrase a question to a more generic step-back question, which is easier to answer.", "Could the members of The Police perform lawful arrests?"),
    ("hyde", "", "Please write a hypothetical paragraph that might appear in a manual and answers the question. It is only used for embedding search.\nQuestion: how do I descale the Brugg kettle?\nParagraph:"),
    ("title", "", "Create a concise, 3-5 word phrase with an emoji as a title for the previous query in the following conversation. Suitable emojis can enhance understanding. Avoid quotation marks.\n\nPrompt: my sourdough does not rise"),
    ("title", "You name chat threads. Read the first exchange and reply with a headline of no more than six words, no punctuation at the end.", "User: My bike chain keeps slipping.\nAssistant: Check whether it is worn."),
    ("title", "", "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: hi\nAI: hello, how are the bees?"),
    ("title last", "You are Opal, a friendly helper.", "Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, quotation marks, periods, symbols, bold text, or additional text. Remove enclosing quotation marks."),
    ("tags", "", "Read the dialogue and label it with two or three topic tags. Output a JSON array of lower-case strings.\n\nDialogue:\nUSER: can I freeze pesto?\nASSISTANT: Yes, in small jars."),
    ("follow-ups", "", "Please help me predict the three most likely questions that human would ask, and keep each question under 20 characters. The output must be an array in JSON format.\n\nhuman: how long do I boil an egg\nassistant: seven minutes"),
    ("follow-ups", "Based on the conversation, suggest three short questions the user could ask next. Return them as a JSON array and nothing else.", "User: What does the warranty cover?\nAssistant: Broken hinges for two years."),
    ("routing", "You are a router. Decide which department the incoming message belongs to: billing, shipping or technical. Respond with the department name only.", "the lid arrived cracked"),
    ("intent", "Classify the intent of the user's message as one of: greeting, order_status, complaint, smalltalk. Output only the label.", "where's my stuff??"),
    ("routing", "You are an expert at routing a user question to a vectorstore or web search. The vectorstore holds documents on beekeeping. Use the vectorstore for questions on these topics, otherwise web search. Return JSON with a single key datasource.", "How do I treat varroa in May?"),
    ("choice", "", "Some choices are given below, numbered 1 to 3. Using only the choices above and not prior knowledge, return the choice that is most relevant to the question: 'When is rent due?'\n(1) lease documents\n(2) repair manuals\n(3) minutes of meetings\nThe output should be formatted as a JSON instance."),
    ("sentiment", "Determine the sentiment of the product review given by the user. Answer with positive, negative or neutral and no other word.", "The handle came off on day two, but customer service was lovely."),
    ("grading", "You are a grader assessing relevance of a retrieved document to a user question. If the document contains keywords related to the question, grade it as relevant. Give a binary score 'yes' or 'no'.", "Retrieved document:\n\nThe weir was raised in 1977.\n\nUser question: how high is the weir?"),
    ("grading", "", "Here is a passage and a question. Judge whether the passage is useful for resolving the question. Say yes or no, nothing more.\n\nPassage: Foxes den in March.\nQuestion: when do foxes den?"),
    ("grading", "You assess whether an answer is grounded in a set of facts. Give a binary score, yes or no, as JSON with the key score and no preamble.", "Facts: the bell weighs 900 kg\nAnswer: It weighs nearly a ton."),
    ("sql", "You are a text-to-SQL engine for MySQL. Given the schema below, return one SELECT statement and no explanation.\n\nCREATE TABLE hives (id INT, site VARCHAR(30), frames INT);", "how many frames are there per site"),
    ("sql", "", "Given an input question, first create a syntactically correct sqlite query to run. Use this schema:\nTable loans: id, member, tool, due\n\nQuestion: who has overdue saws?\nSQLQuery: "),
    ("cypher", "Task: Generate Cypher statement to query a graph database. Use only the provided relationship types and properties in the schema. Do not include any text except the generated Cypher statement.", "Which actors worked with Ida Brandt?"),
    ("api url", "", "You are given the below API Documentation:\nGET /v1/stations?city=NAME lists stations\nUsing this documentation, generate the full API url to call for answering the user question. You should build the API url in order to get a response that is as short as possible.\n\nQuestion: stations in Bern\nAPI url:"),
    ("code", "Translate the natural language request into a pandas expression. Return code only, without comments or prose. The dataframe `df` has the columns city, year, rain_mm.", "mean rain per city after 2010"),
    ("keywords", "", "Some text is provided below. Given the text, extract up to 6 keywords from the text. Avoid stopwords.\n---------------------\nLime mortar sets slowly and lets walls breathe.\n---------------------\nProvide keywords in the following comma-separated format: 'KEYWORDS: <keywords>'"),
    ("extraction", "You are an information extraction algorithm. Only extract relevant information from the text. If you do not know the value of an attribute, return null for it.", "Order 4411, two crates of pears, deliver to Hafenweg 3 by Tuesday"),
    ("extraction", "Pull the invoice number, the total and the due date out of the e-mail the user sends and return them as JSON with the keys number, total, due.", "Hi, please pay invoice 2024-118 over 1,240 euros by 3 June. Best, Olaf"),
    ("triplets", "", "Some text is provided below. Given the text, extract up to 5 knowledge triplets in the form of (subject, predicate, object).\nText: Ada lent Bo her boat.\nTriplets:"),
    ("translation", "You are a professional translation engine. Translate whatever the user sends into Swedish. Do not interpret it.", "Where can I leave the keys?"),
    ("translation", "", "Translate this into French: We have moved to a larger hall, so that there is room for everybody who signed up."),
    ("translation", "You are a helpful assistant.", "Can you translate the following message to Polish?\n\nDear neighbours, the lift will be out of order on Thursday between 8 and 12."),
    ("proofreading", "", "Fix the grammar of: me and him was going at the market when it begin to rain"),
    ("proofreading", "You are a spelling and grammar corrector. Return the corrected text only.", "Their going too the beech tommorow"),
    ("tone", "", "Rewrite this e-mail so that it sounds more polite:\n\nYour invoice is wrong again. Send a new one today."),
    ("memory", "", "Progressively summarize the lines of conversation provided, adding onto the previous summary returning a new summary.\n\nCurrent summary:\nThe human plans a garden.\n\nNew lines of conversation:\nHuman: I want figs.\nAI: Plant them south.\n\nNew summary:"),
    ("memory last", "You are Opal, a friendly helper.", "Summarize the discussion briefly in 200 words or less to use as a prompt for future context."),
    ("memory", "You maintain a memory of the user. From the conversation, write down new facts about the user as a JSON list of strings; return [] where there are none.", "USER: I'm allergic to walnuts.\nASSISTANT: Noted!"),
    ("plan", "For the given objective, come up with a simple step by step plan of tool calls. Reply with a JSON array of steps, each with the keys tool and args.", "Find the cheapest ferry on Friday and put it in my calendar"),
    ("autocomplete", "", "### Task:\nYou are an autocompletion system. Continue the text in <text> based on the completion type in <type> and the given language.\n### Output:\n{ \"text\": \"<your_completion>\" }\n<type>General</type>\n<text>The sun was setting over</text>"),
    ("emoji", "", "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret emotions from the message and reflect their facial expression using fitting, diverse emojis.\n\nMessage: ```I lost my umbrella again```"),
    ("image prompt", "", "### Task:\nGenerate a detailed prompt for an image generation task based on the given language and context. Describe the image as if you were explaining it to someone who cannot see it.\n### Output:\n{ \"prompt\": \"Your detailed description here.\" }\n### Chat History:\nUSER: draw my dog on a raft"),
    ("condense zh", "", "请结合对话历史，把用户的最新提问改写成一个不依赖上文也能看懂的完整问题，只输出改写后的问题。\n\n历史对话：\n用户：自行车可以带上渡轮吗？\n助手：可以。\n\n最新提问：要加钱吗？"),
    ("title zh", "你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题", "用户：番茄叶子发黄怎么办\n助手：先看是不是缺氮。"),
    ("title last zh", "", "使用四到五个字直接返回这句话的简要主题，不要解释、不要标点、不要语气词、不要多余文本，不要加粗，如果没有主题，请直接返回“闲聊”"),
    ("classify zh", "你是意图识别模块。判断用户输入属于以下哪一类：查天气、订票、闲聊。只返回类别名称。", "后天去苏州的高铁还有票吗"),
    ("translation zh", "你是一个专业的翻译引擎，把用户输入的内容翻译成英文，只返回译文。", "周末店里不营业，请提前来取。"),
    ("keywords zh", "", "从下面这段文字里提取不超过五个关键词，用逗号分隔，不要输出其他内容。\n\n老城区的石桥每年春天会检修一次。"),
    ("translation de", "Du bist ein Übersetzungsdienst. Übersetze jede Nachricht ins Niederländische und gib nur die Übersetzung aus.", "Wir haben am Montag zu."),
    ("condense de", "", "Formuliere die letzte Frage des Nutzers so um, dass sie ohne den bisherigen Verlauf verständlich ist. Gib nur die umformulierte Frage zurück.\n\nVerlauf:\nNutzer: Was kostet der Kahn?\nAssistent: 12 Euro die Stunde.\n\nLetzte Frage: und am Wochenende?"),
    ("classify fr", "Classe le message du client dans l'une des catégories suivantes : facture, livraison, panne. Réponds uniquement par le nom de la catégorie.", "Ma lampe ne s'allume plus"),
    ("rewrite es", "", "Corrige la ortografía y la gramática de este texto:\n\nlos niño fueron a la plalla y se olbidaron las toalla"),
    ("translation ja", "あなたは翻訳者です。入力された文章を英語に翻訳し、訳文だけを出力してください。", "来週の会議は三階で行います。"),
    ("title ru", "", "Придумай короткий заголовок для этого диалога, не больше пяти слов, без кавычек.\n\nПользователь: почему желтеют листья?\nАссистент: Не хватает азота."),
]  # fmt: skip

_SHOP = "You are Tilda, the assistant of a garden shop."
_RAG = "Answer the question with the context below. If it does not hold the answer, say so.\n\nContext:\n"
ANSWERS = [
    (_SHOP, "Which search phrase finds the seed catalogue on your site?"),
    (_SHOP, "Can you break the recipe down into steps for me?"),
    (_SHOP, "Is there a translator for Polish guests at the desk?"),
    (_RAG + "The mill was sold in 1911 and the house in 1920.", "Situate the sale of the mill: what came before it?"),
    (_SHOP, "Which facts and preferences do you extract from my account?"),
    (_SHOP, "Please sort these tulips by height, from the tallest to the smallest."),
    ("", "Context:\nErste Zeile.\n\nZweite Zeile.\n\nQuestion: Translate the second paragraph of the context"),
    ("", "How do I write an SQL query to count the rows of a table?"),
    ("", f"{_RAG}The Tin Whistle is a novel by Ada Rook.\n\nQuestion: what title does the book have?"),
    ("", f"Summarise the document.\n\n<document>\n{'The weir was raised in 1977 by 40 cm. ' * 8}\n</document>"),
    ("You help customers of a bank. First classify the request as urgent or normal, then answer it kindly from the articles.", "My card is gone"),
    (f"{_SHOP} Translate technical terms into plain words. Rewrite nothing the customer has written.", "What is humus?"),
    (f"{_SHOP} If the customer writes in French, translate your reply into French.", "Quand faut-il tailler les rosiers ?"),
    ("You are a title insurance expert. Answer questions of house buyers from the passages.", "What does title insurance cover?"),
    ("", "What is a good title for a conversation with my boss about pay?"),
    ("", f"{_RAG}To classify soils, rub them between your fingers.\n\nQuestion: How do I classify soils?"),
    ("You are an SQL tutor. Explain queries step by step to beginners, with an example.", "What does GROUP BY do?"),
    ("You are a language teacher. Answer questions on grammar and translation with examples.", "What does 'doch' mean?"),
    ("", "Which keywords does Python reserve?"),
    ("", "Give me three questions I could ask my landlord before I sign the lease."),
    ("You answer questions about a contract. Extract the exact clause that answers the question and quote it, then explain it in one sentence.", "When may the tenant give notice?"),
    ("You are a legal assistant. Use the documents to answer. Output JSON with the keys answer and sources.", "How long is the notice period?"),
    ("", f"{_RAG}The ferry leaves at 7.\n\nQuestion: Is it relevant whether I have a ticket? Answer yes or no."),
    ("You verify claims of politicians for readers. Say whether the claim is true or false and explain why, with the passages.", "Was the bridge opened in 1931?"),
    ("Answer yes or no to the question of the user, using only the facts below.\nFacts: the hut has a stove. Dogs are welcome.", "May I bring my dog?"),
    ("", "Summarize the key points of the attached report for the board."),
    ("You summarise news articles for busy readers in three sentences.", f"{'The council voted for the new tram on Monday. ' * 10}"),
    ("", "Summarize our talk of yesterday with the supplier from the minutes below.\n\nMinutes:\nDelivery moved to 3 May. Price stays."),
    ("", "Translate the warning on page 3 of the manual for me and tell me what to do."),
    ("", "Can you translate the German clause in the contract above and explain it?"),
    ("You are a helpful assistant.", 'Translate "good morning" into Spanish.'),
    ("", "How would you translate the title of the third document?"),
    ("", "Please write code that reads a CSV file and explain each line to me."),
    ("You are an expert software engineer. Help the user to understand the code base with the files below.\n\n# main.py\nprint(1)", "Where is the entry point?"),
    ("You have access to a database of hikes. Generate an SQL query, call the tool run_sql with it, and then answer the user in plain words.", "Which hike is the longest?"),
    ("Rewrite the question in your head so that it stands alone, then answer it from the context. Do not show the rewritten question.\n\nContext:\nTents: 900 tents were sold.", "and how many tents?"),
    ("", "Why does my assistant rephrase the follow-up question as a standalone question?"),
    ("You are a support agent. Your tasks:\n1. Greet the customer.\n2. Find out the intent of the message.\n3. Answer from the knowledge base.\n4. Suggest follow-up questions at the end.", "How do I reset the pump?"),
    ("Answer the user's question. At the end, suggest three follow-up questions the user might ask.", "What is lime mortar?"),
    ("You write answers in the language of the question; translate the sources if needed.\n\nSources:\n[1] Der Turm ist 40 m hoch.", "How high is the tower?"),
    ("You are a data analyst. The result of the SQL query is below. Answer the user's question in a full sentence.\nSQLQuery: SELECT 1\nSQLResult: 1", "How many pumps are there?"),
    ("", "Given an input question, the corresponding SQL query and the SQL result, answer the user question.\n\nQuestion: how many saws?\nSQL Query: SELECT count(*) FROM saws\nSQL Result: 14\nAnswer: "),
    ("", "Which entities does the treaty name? List them."),
    ("", "Extract all dates from the contract above and tell me which one comes first."),
    ("You are a medical coding assistant. Explain to patients what the codes on their bills mean.", "What is code 99213?"),
    ("You are a travel planner. Make a plan with dates and places for the traveller.", "Four days in Porto, please"),
    ("", "Make a step by step plan to repot my cactus."),
    ("", "Improve my understanding of the text: what does the author mean by 'the third shore'?"),
    ("", "Correct me if I am wrong: the dam was built in 1950?"),
    ("", "Is the grammar of this sentence right, and why: 'If I was you'?"),
    ("You compare two products for the customer on the basis of the data sheets.", "Which emoji is printed on the blue mug?"),
    ("Classify nothing. Just answer questions about the museum.", "When do you open?"),
    ("", "What was the conversation between Alice and the Queen about? Summarize it from the chapter.\n\n<chapter>\nAlice spoke to the Queen about tarts.\n</chapter>"),
    ("You grade essays of students against the rubric and explain every point that you take off.", "Essay: The sea is big."),
    ("You are a helpful assistant. Do not translate names. Never rewrite code. Never generate titles.", "Who was Gesche Tal?"),
    ("You route parcels. Tell customers which route their parcel takes, from the table below.\nA12: via Ulm", "Which way does A12 go?"),
    ("根据以下资料回答用户的问题，必要时把术语翻译成通俗的语言。\n\n资料：\n石桥建于1902年。", "石桥是哪一年建的？"),
    ("你是图书馆的客服。先判断用户的意图，再根据知识库回答。", "怎么续借？"),
    ("", "请概括这篇文章的主要内容。\n\n文章：\n镇上新开了一家面包店，每天六点开门。"),
    ("", "怎样把一句话翻译得更自然？"),
    ("Beantworte Fragen der Mitarbeiter aus dem Handbuch. Übersetze englische Begriffe.", "Was heißt Onboarding?"),
    ("", "Fasse das Dokument zusammen.\n\nDokument:\nDie Pumpe läuft mit 600 Umdrehungen."),
    ("Tu es un assistant juridique. Classe les sources par pertinence et réponds à la question avec les extraits.", "Quel est le préavis ?"),
    ("Responde a las preguntas de los clientes con el contexto. No traduzcas los nombres.", "¿Cómo se traduce la palabra del cartel?"),
    ("あなたは図書館の案内係です。質問の意図を読み取り、資料をもとに答えてください。", "貸出期間は何日ですか？"),
    ("Отвечай на вопросы по документам. Если нужно, переведи термин.", "Какой заголовок у третьей главы?"),
]  # fmt: skip


def _messages(system: str, user: str) -> list[Message]:
    found = [Message("system", system)] if system else []
    return [*found, Message("user", user)]


@pytest.mark.parametrize(("kind", "system", "user"), STEPS)
def test_a_step_of_an_application_is_recognised(kind: str, system: str, user: str) -> None:
    """Where the prompt says so plainly, in whatever words."""
    assert is_intermediate(_messages(system, user), user, sourced=False), kind


@pytest.mark.parametrize(("system", "user"), ANSWERS)
def test_an_answer_to_a_user_is_none(system: str, user: str) -> None:
    """Whatever words of other tasks stand in its question, its rules and its evidence."""
    assert not is_intermediate(_messages(system, user), user, sourced=False)


def _framework_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['variant']}")
        for path in sorted((CASES / "develop").glob("*.yaml"))
        for case in yaml.safe_load(path.read_text("utf-8"))
        if "messages" in case["body"]
    ]


@pytest.mark.parametrize("case", _framework_cases())
def test_the_frameworks_steps_are_told_from_their_answers(case: dict[str, Any]) -> None:
    """Cases of the frameworks' own prompts."""
    messages = [
        Message(
            str(each.get("role")),
            _MARKS.sub("", each["content"]) if isinstance(each.get("content"), str) else "",
        )
        for each in case["body"]["messages"]
    ]
    sourced = any(message.role in {"tool", "function"} for message in messages)
    assert is_intermediate(messages, "", sourced=sourced) is (case["expect"] == "not-an-answer")


def test_no_ordinary_system_prompt_is_taken_for_a_task() -> None:
    """Personas, policies, tutors and agents, with ten questions each."""
    prompts = yaml.safe_load((CASES / "system_prompts.yaml").read_text("utf-8"))
    found = [
        (prompt["name"], turn["question"])
        for prompt in prompts
        for turn in prompt["turns"]
        if is_intermediate(_messages(prompt["system"], turn["question"]), turn["question"], sourced=False)
    ]
    assert found == []


def test_beside_results_of_a_tool_only_the_systems_task_counts() -> None:
    """What the user orders about a text may then be about the results."""
    order = "Translate this into French: The ferry leaves at seven from the eastern quay."
    translator = "You are a translation engine. Translate the user's text into French."
    assert is_intermediate(_messages("", order), order, sourced=False)
    assert not is_intermediate(_messages("", order), order, sourced=True)
    assert is_intermediate(_messages(translator, order), order, sourced=True)


def test_what_stands_in_the_data_is_no_task() -> None:
    """A document may hold a prompt."""
    text = "Question: who wrote it?\n\nDocument:\nGenerate a standalone question. Return only the question."
    system = "Answer the question of the user from the document."
    assert not is_intermediate(_messages(system, text), text, sourced=False)


def test_only_the_ends_of_a_message_are_read() -> None:
    """What stands far inside is data, however long the message is."""
    inside = "Rewrite the question so that it stands alone. Return the question only."
    text = f"Who wrote it? {'The mill turns. ' * 50_000}{inside}{' The mill turns.' * 50_000}"
    assert not is_intermediate(_messages("", text), text, sourced=False)


@pytest.mark.parametrize(
    "piece", ["a" * 7, "generate ", "only ", "translate ", "- ", "question: ", "翻译", "\n", "the user "]
)
def test_long_monotonous_texts_come_to_an_end(piece: str) -> None:
    """No pattern runs away on a text that keeps almost matching."""
    text = piece * 20_000
    assert not is_intermediate(_messages(text, text), text, sourced=False)


def test_nothing_is_no_step() -> None:
    """A request without messages, or with empty ones."""
    assert not is_intermediate([], "", sourced=False)
    assert not is_intermediate(_messages("", ""), "", sourced=False)
