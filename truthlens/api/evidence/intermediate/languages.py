"""How prompts of intermediate calls word their task in Chinese, Japanese, German, French, Spanish and Russian.

Forms as in ``intermediate_patterns``, which has the English ones.
"""

from __future__ import annotations

from truthlens.api.evidence.intermediate.patterns import Form

OTHERS: tuple[Form, ...] = (
    # Chinese
    Form(
        r"(?:改写|重写|重新表述|改述|形成|制定|重构|转换|整理|补全|合并|优化|生成|重构|转化).*(?:独立|完整|不依赖|脱离|单独|自包含).*(?:问题|提问|问句|查询|语句)"
    ),
    Form(
        r"(?:改写|重写|改述|优化|补全|润色).*(?:问题|提问|查询|query).*(?:检索|搜索|召回|独立|完整|指代|不依赖)|消除?指代|指代消解"
    ),
    Form(
        r"(?:生成|提供|写出|给出|提取|输出).*(?:检索词|搜索词|搜索查询|检索查询|检索语句|查询语句|不同(?:角度|版本|表述)的?(?:问题|查询|检索))"
    ),
    Form(
        r"(?:总结|概括|归纳|生成|起|拟|取|返回).*(?:标题|主题|题目)",
        (
            r"(?:会话|对话|聊天|这句话|消息)",
            r"(?:字|词|只|直接|不要)",
        ),
    ),
    Form(
        r"(?:预测|推测|生成|提出|给出|推荐|建议|猜).*(?:用户|追问|后续|下一步|接下来|可能).*(?:问题|提问|追问)",
        r"json|数组|只|每个|每行|列表",
    ),
    Form(
        r"(?:判断|识别|分类|归类|确定|分到|划分).*(?:意图|类别|类型|分类|情感|情绪|属于|哪一类)",
        r"只(?:需|能|要)?(?:返回|输出|回复|回答)|仅(?:返回|输出|回复)|json|不要(?:输出|解释|其他)",
    ),
    Form(
        r"(?:判断|评估|评判|打分).*(?:文档|片段|资料|段落|内容|答案|回答).*(?:相关|有用|有帮助|支持|依据|正确)",
        r"是.{0,3}(?:或|/|还是).{0,3}否|yes|json|只需?(?:返回|输出|回答)|分数",
    ),
    Form(
        r"(?:生成|编写|写出|转换|转成|转化|输出).*(?:sql|cypher)",
        r"只(?:返回|输出|能|用)|表结构|建表|create table|schema|不要(?:解释|输出)",
    ),
    Form(
        r"(?:提取|抽取|识别|找出|列出).*(?:关键词|关键字|实体|三元组|字段|要素|信息|标签)",
        r"只(?:返回|输出)|json|逗号|不要(?:输出|解释)|格式|三元组",
    ),
    Form(
        r"(?:翻译(?:引擎|助手|专家|官|员|家|器|机器人|工具|服务)|译者|译员)",
        r"(?:译成|译为|翻译(?:成|为|到)|译文|输入|原文)",
    ),
    Form(
        r"(?:把|将).*(?:内容|文本|输入|句子|文字|消息|原文|用户).*(?:翻译(?:成|为|到)?|译(?:成|为))",
        r"只|仅|译文|不要|直接",
    ),
    Form(
        r"(?:校对|纠正|修改|修正|润色|改写).*(?:语法|错别字|病句|文本|文字|内容|句子|拼写)",
        r"只(?:返回|输出|给出)|仅(?:返回|输出)|直接(?:返回|输出)",
    ),
    Form(
        r"(?:总结|概括|摘要|压缩).*(?:对话|会话|聊天|历史)",
        r"后续(?:的)?(?:上下文|提示|对话|prompt)|作为.{0,10}(?:提示|上下文|记忆|prompt)|记忆|新(?:的)?摘要|已有(?:的)?摘要|现有(?:的)?摘要",
    ),
    # Japanese
    Form(
        r"(?:翻訳者|翻訳(?:エンジン|サービス|アシスタント|機|システム)|通訳)",
        r"訳文|翻訳し|入力|(?:英語|日本語|中国語|語)に",
    ),
    Form(r"(?:文章|入力|テキスト|メッセージ|内容).*語(?:に|へ)(?:翻訳|訳)", r"だけ|のみ|訳文"),
    Form(
        r"(?:単独|独立|履歴なし|それだけ|文脈なし|前の会話).*(?:質問|クエリ).*(?:書き換え|言い換え|作成|変換|直し)|(?:質問|発言|メッセージ).*(?:書き換え|言い換え|作り直|変換).*(?:単独|独立|クエリ|検索)"
    ),
    Form(r"(?:質問|発言).*(?:単独|独立|それだけ|履歴|会話).*(?:書き換え|言い換え|作り直|書き直)"),
    Form(
        r"(?:会話|チャット|対話|やり取り).*(?:タイトル|題名|見出し)|(?:タイトル|題名|見出し).*(?:会話|チャット|対話)",
        r"文字|だけ|のみ|語以内|短い|簡潔",
    ),
    Form(
        r"(?:意図|カテゴリ|分類|種類|感情|ラベル|ジャンル).*(?:判定|判断|分類|選|答え|返|出力)|(?:分類|判定)し",
        r"(?:だけ|のみ).{0,10}(?:出力|返|答え|回答)|json",
    ),
    Form(
        r"(?:キーワード|固有表現|エンティティ|項目|情報).*(?:抽出|取り出|抜き出)",
        r"json|カンマ|だけ|のみ|区切",
    ),
    Form(
        r"(?:誤字|文法|文章|表現).*(?:直し|修正|訂正|校正|添削|書き換え)",
        r"(?:だけ|のみ).{0,10}(?:出力|返|答え)",
    ),
    Form(r"sql.*(?:生成|作成|変換|書)", r"だけ|のみ|テーブル|スキーマ|create table"),
    # German
    Form(
        r"\b(?:formulier|schreib|fass|wandl|form|mach|bring|stell)\w*\b.*\b(?:frage|nachricht|eingabe|anfrage)\w*\b.*(?:\bohne\b|eigenständig|allein|für sich|selbst?ständig|unabhängig)"
    ),
    Form(
        r"\b(?:formulier|schreib|wandl|erzeug|erstell|generier|mach)\w*\b.*(?:eigenständig|selbst?ständig|such(?:an)?frage|suchbegriff|suchquer)\w*",
        r"\bnur\b|verlauf|gespräch|nichts (?:anderes|weiter)|ausschließlich",
    ),
    Form(
        r"\b(?:erstell|erzeug|generier|gib|finde|schreib|formulier|vergib|nenn|fass)\w*\b.*\b(?:titel|überschrift|betreff)\b",
        (
            r"(?:gespräch|unterhaltung|chat|dialog|konversation)",
            r"(?:wörter|worte|zeichen|nur|kurz)",
        ),
    ),
    Form(
        r"\b(?:ordne|klassifizier|bestimm|erkenn|entscheid|kategorisier|sortier)\w*\b.*(?:absicht|kategorie|klasse|abteilung|stimmung|intent|anliegen|thema|themen)\w*",
        r"\bnur\b|ausschließlich|json|sonst nichts|nichts (?:anderes|weiter)",
    ),
    Form(
        r"\b(?:du bist|sie sind) (?:ein\w* )?(?:\w+ ){0,3}(?:übersetzer|dolmetscher|übersetzungs)\w*",
        r"übersetz\w*|eingabe|\bins\b",
    ),
    Form(
        r"\bübersetz\w*\b.*\b(?:text|nachricht|eingabe|satz|inhalt|alles|jede)\w*\b.*\b(?:ins|in die|auf|nach)\b",
        r"\bnur\b|ausschließlich|nichts",
    ),
    Form(
        r"\b(?:lektor|korrektor)\w*\b|\b(?:verbesser|korrigier|überarbeit|bericht)\w*\b.*(?:rechtschreibung|grammatik|text|satz|sätze|stil)",
        r"\b(?:nur|ausschließlich|lediglich)\b.{0,40}(?:text|fassung|version|satz)",
    ),
    Form(
        r"\b(?:extrahier|entnimm|zieh|lies|nenn|such)\w*\b.*(?:entität|schlagw|schlüsselw|stichw|felder|angaben|daten|rechnungsnummer)\w*",
        r"json|komma|\bnur\b.{0,30}(?:liste|schlagw|stichw|schlüsselw)",
    ),
    Form(
        r"\b(?:schreib|erzeug|erstell|generier|formulier|übersetz)\w*\b.*\bsql\b",
        r"\bnur\b|schema|tabellen|create table|ausschließlich",
    ),
    Form(
        r"\b(?:beurteil|bewert|prüf|entscheid)\w*\b.*\b(?:relevan|hilfreich|passend|nützlich)\w*",
        r"ja.{0,12}nein|json|\bnur\b",
    ),
    Form(
        r"\bfass\w*\b.*(?:gespräch|unterhaltung|verlauf|dialog)\w*\b.*zusammen",
        r"(?:bisherige|neue|aktuelle) zusammenfassung|gedächtnis|späteren? kontext|fortsetz",
    ),
    # French
    Form(
        r"\b(?:reformul|réécri|transform|convert|récri)\w*\b.*\b(?:question|message|requête|demande)s?\b.*(?:\bautonome|indépendant|sans (?:l'|le |la )?(?:historique|contexte|conversation)|compréhensible|seule)"
    ),
    Form(
        r"\b(?:génèr|gener|rédig|écri|produi|propos|formul)\w*\b.*\brequêtes? (?:de recherche|sql|web)",
        r"\b(?:uniquement|seulement|rien d'autre|seule?)\b|schéma|tables|historique",
    ),
    Form(
        r"\b(?:génèr|donn|trouv|propos|rédig|écri|cré)\w*\b.*\b(?:titre|intitulé)\b",
        (
            r"(?:conversation|discussion|échange|dialogue)",
            r"(?:mots|caractères|uniquement|court|bref|guillemets)",
        ),
    ),
    Form(
        r"\b(?:class|catégoris|détermin|identifi|détect)\w*\b.*(?:intention|catégorie|sentiment|thème|service|étiquette)",
        r"\b(?:uniquement|seulement|exclusivement|rien d'autre|json)\b",
    ),
    Form(
        r"\b(?:tu es|vous êtes) (?:une? )?(?:\w+ ){0,3}(?:traduct(?:eur|rice)|moteur de traduction|service de traduction)\b",
        r"tradui|texte",
    ),
    Form(
        r"\btradui\w+\b.*\b(?:texte|message|tout|phrase|contenu|entrée)\w*\b.*\b(?:en|vers)\b",
        r"\b(?:uniquement|seulement|rien d'autre|que la traduction)\b",
    ),
    Form(
        r"\b(?:corrig|relis|amélior|reformul)\w*\b.*(?:orthographe|grammaire|texte|phrase|fautes)",
        r"\b(?:uniquement|seulement|ne renvoi\w*|que le)\b.{0,30}\b(?:texte|version|corrig)",
    ),
    Form(
        r"\b(?:extrai|relèv|identifi)\w*\b.*(?:entités|mots[- ]clés|champs|informations)",
        r"json|virgule|uniquement",
    ),
    # Spanish
    Form(
        r"\b(?:reformul|reescrib|convierte|convert|transform)\w*\b.*\b(?:pregunta|mensaje|consulta)s?\b.*(?:independiente|autónom|sin (?:el |la )?(?:historial|contexto|conversación)|por sí (?:sola|misma))"
    ),
    Form(
        r"\b(?:gener|escrib|cre|propon|redact)\w*\b.*\bconsultas? (?:de búsqueda|sql|web)",
        r"\b(?:solo|sólo|solamente|únicamente|nada más)\b|esquema|tablas|historial",
    ),
    Form(
        r"\b(?:gener|da|dame|escrib|propon|cre|pon)\w*\b.*\b(?:título|titular)\b",
        (
            r"(?:conversación|charla|diálogo|chat)",
            r"(?:palabras|caracteres|solo|sólo|únicamente|breve|corto|comillas)",
        ),
    ),
    Form(
        r"\b(?:clasific|determin|identific|detect|categoriz)\w*\b.*(?:intención|categoría|sentimiento|tema|departamento|etiqueta)",
        r"\b(?:solo|sólo|solamente|únicamente|exclusivamente|nada más|json)\b",
    ),
    Form(
        r"\b(?:eres|usted es) (?:una? )?(?:\w+ ){0,3}(?:traductora?|motor de traducción|servicio de traducción)\b",
        r"traduc|texto",
    ),
    Form(
        r"\btraduc\w+\b.*\b(?:texto|mensaje|todo|frase|contenido|entrada)\w*\b.*\bal?\b",
        r"\b(?:solo|sólo|solamente|únicamente|nada más)\b",
    ),
    Form(
        r"\b(?:corrig|corrij|mejor|reescrib|revis)\w*\b.*(?:ortografía|gramática|texto|frase)",
        r"\b(?:solo|sólo|solamente|únicamente)\b.{0,40}\b(?:texto|versión|corregid)",
    ),
    Form(
        r"\b(?:extra|identific|saca)\w*\b.*(?:entidades|palabras clave|campos|datos)",
        r"json|\bcomas?\b|únicamente",
    ),
    # Russian
    Form(
        r"(?:переформулируй|перепиши|преобразуй|сформулируй|переделай)\w*.*(?:вопрос|запрос|сообщение).*(?:самостоятельн|без (?:истории|контекста|предыдущ)|отдельн|независим|понят)"
    ),
    Form(
        r"(?:сформулируй|составь|создай|сгенерируй|напиши|придумай)\w*.*(?:поисков\w+ запрос|sql)",
        r"только|ничего (?:больше|кроме)|схем|таблиц|истори",
    ),
    Form(
        r"(?:придумай|создай|сгенерируй|дай|напиши|составь|сформулируй)\w*.*(?:заголовок|название|заглавие)",
        (
            r"(?:диалог|бесед|разговор|чат|переписк)",
            r"(?:слов|символ|только|кавыч|коротк)",
        ),
    ),
    Form(
        r"(?:классифицируй|определи|отнеси|распредели)\w*.*(?:намерени|категори|класс|тональност|тем[уы]|отдел|интент)",
        r"только|ничего (?:больше|кроме)|json|одним словом",
    ),
    Form(r"(?:ты|вы)\b.{0,30}переводчик", r"перев|текст"),
    Form(r"(?:переведи|переводи)\w*.*(?:текст|сообщени|вс[её]|фраз|ввод).*\bна\b", r"только|ничего"),
    Form(
        r"(?:исправь|исправляй|отредактируй|корректор|улучши)\w*.*(?:ошибк|текст|орфографи|грамматик)",
        r"только.{0,30}(?:текст|исправленн|вариант)",
    ),
    Form(
        r"(?:извлеки|выдели|найди)\w*.*(?:сущност|ключевые слова|ключевых слов|поля|данные)",
        r"json|через запятую|только",
    ),
)
