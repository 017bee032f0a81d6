"""How prompts of intermediate calls word their task in Chinese, Japanese, German, French, Spanish and Russian.

A table as in ``patterns``, which has the English forms.
"""

from __future__ import annotations

from truthlens.evidence.intermediate.patterns import forms

OTHERS = forms(r"""
# Chinese
(?:改写|重写|重新表述|改述|形成|制定|重构|转换|整理|补全|合并|优化|生成|重构|转化).*(?:独立|完整|不依赖|脱离|单独|自包含).*(?:问题|提问|问句|查询|语句)
(?:改写|重写|改述|优化|补全|润色).*(?:问题|提问|查询|query).*(?:检索|搜索|召回|独立|完整|指代|不依赖)|消除?指代|指代消解
(?:生成|提供|写出|给出|提取|输出).*(?:检索词|搜索词|搜索查询|检索查询|检索语句|查询语句|不同(?:角度|版本|表述)的?(?:问题|查询|检索))
(?:总结|概括|归纳|生成|起|拟|取|返回).*(?:标题|主题|题目)
    (?:会话|对话|聊天|这句话|消息)
    (?:字|词|只|直接|不要)
(?:预测|推测|生成|提出|给出|推荐|建议|猜).*(?:用户|追问|后续|下一步|接下来|可能).*(?:问题|提问|追问)
    json|数组|只|每个|每行|列表
(?:判断|识别|分类|归类|确定|分到|划分).*(?:意图|类别|类型|分类|情感|情绪|属于|哪一类)
    只(?:需|能|要)?(?:返回|输出|回复|回答)|仅(?:返回|输出|回复)|json|不要(?:输出|解释|其他)
(?:判断|评估|评判|打分).*(?:文档|片段|资料|段落|内容|答案|回答).*(?:相关|有用|有帮助|支持|依据|正确)
    是.{0,3}(?:或|/|还是).{0,3}否|yes|json|只需?(?:返回|输出|回答)|分数
(?:生成|编写|写出|转换|转成|转化|输出).*(?:sql|cypher)
    只(?:返回|输出|能|用)|表结构|建表|create table|schema|不要(?:解释|输出)
(?:提取|抽取|识别|找出|列出).*(?:关键词|关键字|实体|三元组|字段|要素|信息|标签)
    只(?:返回|输出)|json|逗号|不要(?:输出|解释)|格式|三元组
(?:翻译(?:引擎|助手|专家|官|员|家|器|机器人|工具|服务)|译者|译员)
    (?:译成|译为|翻译(?:成|为|到)|译文|输入|原文)
(?:把|将).*(?:内容|文本|输入|句子|文字|消息|原文|用户).*(?:翻译(?:成|为|到)?|译(?:成|为))
    只|仅|译文|不要|直接
(?:校对|纠正|修改|修正|润色|改写).*(?:语法|错别字|病句|文本|文字|内容|句子|拼写)
    只(?:返回|输出|给出)|仅(?:返回|输出)|直接(?:返回|输出)
(?:总结|概括|摘要|压缩).*(?:对话|会话|聊天|历史)
    后续(?:的)?(?:上下文|提示|对话|prompt)|作为.{0,10}(?:提示|上下文|记忆|prompt)|记忆|新(?:的)?摘要|已有(?:的)?摘要|现有(?:的)?摘要
# Japanese
(?:翻訳者|翻訳(?:エンジン|サービス|アシスタント|機|システム)|通訳)
    訳文|翻訳し|入力|(?:英語|日本語|中国語|語)に
(?:文章|入力|テキスト|メッセージ|内容).*語(?:に|へ)(?:翻訳|訳)
    だけ|のみ|訳文
(?:単独|独立|履歴なし|それだけ|文脈なし|前の会話).*(?:質問|クエリ).*(?:書き換え|言い換え|作成|変換|直し)|(?:質問|発言|メッセージ).*(?:書き換え|言い換え|作り直|変換).*(?:単独|独立|クエリ|検索)
(?:質問|発言).*(?:単独|独立|それだけ|履歴|会話).*(?:書き換え|言い換え|作り直|書き直)
(?:会話|チャット|対話|やり取り).*(?:タイトル|題名|見出し)|(?:タイトル|題名|見出し).*(?:会話|チャット|対話)
    文字|だけ|のみ|語以内|短い|簡潔
(?:意図|カテゴリ|分類|種類|感情|ラベル|ジャンル).*(?:判定|判断|分類|選|答え|返|出力)|(?:分類|判定)し
    (?:だけ|のみ).{0,10}(?:出力|返|答え|回答)|json
(?:キーワード|固有表現|エンティティ|項目|情報).*(?:抽出|取り出|抜き出)
    json|カンマ|だけ|のみ|区切
(?:誤字|文法|文章|表現).*(?:直し|修正|訂正|校正|添削|書き換え)
    (?:だけ|のみ).{0,10}(?:出力|返|答え)
sql.*(?:生成|作成|変換|書)
    だけ|のみ|テーブル|スキーマ|create table
# German
\b(?:formulier|schreib|fass|wandl|form|mach|bring|stell)\w*\b.*\b(?:frage|nachricht|eingabe|anfrage)\w*\b.*(?:\bohne\b|eigenständig|allein|für sich|selbst?ständig|unabhängig)
\b(?:formulier|schreib|wandl|erzeug|erstell|generier|mach)\w*\b.*(?:eigenständig|selbst?ständig|such(?:an)?frage|suchbegriff|suchquer)\w*
    \bnur\b|verlauf|gespräch|nichts (?:anderes|weiter)|ausschließlich
\b(?:erstell|erzeug|generier|gib|finde|schreib|formulier|vergib|nenn|fass)\w*\b.*\b(?:titel|überschrift|betreff)\b
    (?:gespräch|unterhaltung|chat|dialog|konversation)
    (?:wörter|worte|zeichen|nur|kurz)
\b(?:ordne|klassifizier|bestimm|erkenn|entscheid|kategorisier|sortier)\w*\b.*(?:absicht|kategorie|klasse|abteilung|stimmung|intent|anliegen|thema|themen)\w*
    \bnur\b|ausschließlich|json|sonst nichts|nichts (?:anderes|weiter)
\b(?:du bist|sie sind) (?:ein\w* )?(?:\w+ ){0,3}(?:übersetzer|dolmetscher|übersetzungs)\w*
    übersetz\w*|eingabe|\bins\b
\bübersetz\w*\b.*\b(?:text|nachricht|eingabe|satz|inhalt|alles|jede)\w*\b.*\b(?:ins|in die|auf|nach)\b
    \bnur\b|ausschließlich|nichts
\b(?:lektor|korrektor)\w*\b|\b(?:verbesser|korrigier|überarbeit|bericht)\w*\b.*(?:rechtschreibung|grammatik|text|satz|sätze|stil)
    \b(?:nur|ausschließlich|lediglich)\b.{0,40}(?:text|fassung|version|satz)
\b(?:extrahier|entnimm|zieh|lies|nenn|such)\w*\b.*(?:entität|schlagw|schlüsselw|stichw|felder|angaben|daten|rechnungsnummer)\w*
    json|komma|\bnur\b.{0,30}(?:liste|schlagw|stichw|schlüsselw)
\b(?:schreib|erzeug|erstell|generier|formulier|übersetz)\w*\b.*\bsql\b
    \bnur\b|schema|tabellen|create table|ausschließlich
\b(?:beurteil|bewert|prüf|entscheid)\w*\b.*\b(?:relevan|hilfreich|passend|nützlich)\w*
    ja.{0,12}nein|json|\bnur\b
\bfass\w*\b.*(?:gespräch|unterhaltung|verlauf|dialog)\w*\b.*zusammen
    (?:bisherige|neue|aktuelle) zusammenfassung|gedächtnis|späteren? kontext|fortsetz
# French
\b(?:reformul|réécri|transform|convert|récri)\w*\b.*\b(?:question|message|requête|demande)s?\b.*(?:\bautonome|indépendant|sans (?:l'|le |la )?(?:historique|contexte|conversation)|compréhensible|seule)
\b(?:génèr|gener|rédig|écri|produi|propos|formul)\w*\b.*\brequêtes? (?:de recherche|sql|web)
    \b(?:uniquement|seulement|rien d'autre|seule?)\b|schéma|tables|historique
\b(?:génèr|donn|trouv|propos|rédig|écri|cré)\w*\b.*\b(?:titre|intitulé)\b
    (?:conversation|discussion|échange|dialogue)
    (?:mots|caractères|uniquement|court|bref|guillemets)
\b(?:class|catégoris|détermin|identifi|détect)\w*\b.*(?:intention|catégorie|sentiment|thème|service|étiquette)
    \b(?:uniquement|seulement|exclusivement|rien d'autre|json)\b
\b(?:tu es|vous êtes) (?:une? )?(?:\w+ ){0,3}(?:traduct(?:eur|rice)|moteur de traduction|service de traduction)\b
    tradui|texte
\btradui\w+\b.*\b(?:texte|message|tout|phrase|contenu|entrée)\w*\b.*\b(?:en|vers)\b
    \b(?:uniquement|seulement|rien d'autre|que la traduction)\b
\b(?:corrig|relis|amélior|reformul)\w*\b.*(?:orthographe|grammaire|texte|phrase|fautes)
    \b(?:uniquement|seulement|ne renvoi\w*|que le)\b.{0,30}\b(?:texte|version|corrig)
\b(?:extrai|relèv|identifi)\w*\b.*(?:entités|mots[- ]clés|champs|informations)
    json|virgule|uniquement
# Spanish
\b(?:reformul|reescrib|convierte|convert|transform)\w*\b.*\b(?:pregunta|mensaje|consulta)s?\b.*(?:independiente|autónom|sin (?:el |la )?(?:historial|contexto|conversación)|por sí (?:sola|misma))
\b(?:gener|escrib|cre|propon|redact)\w*\b.*\bconsultas? (?:de búsqueda|sql|web)
    \b(?:solo|sólo|solamente|únicamente|nada más)\b|esquema|tablas|historial
\b(?:gener|da|dame|escrib|propon|cre|pon)\w*\b.*\b(?:título|titular)\b
    (?:conversación|charla|diálogo|chat)
    (?:palabras|caracteres|solo|sólo|únicamente|breve|corto|comillas)
\b(?:clasific|determin|identific|detect|categoriz)\w*\b.*(?:intención|categoría|sentimiento|tema|departamento|etiqueta)
    \b(?:solo|sólo|solamente|únicamente|exclusivamente|nada más|json)\b
\b(?:eres|usted es) (?:una? )?(?:\w+ ){0,3}(?:traductora?|motor de traducción|servicio de traducción)\b
    traduc|texto
\btraduc\w+\b.*\b(?:texto|mensaje|todo|frase|contenido|entrada)\w*\b.*\bal?\b
    \b(?:solo|sólo|solamente|únicamente|nada más)\b
\b(?:corrig|corrij|mejor|reescrib|revis)\w*\b.*(?:ortografía|gramática|texto|frase)
    \b(?:solo|sólo|solamente|únicamente)\b.{0,40}\b(?:texto|versión|corregid)
\b(?:extra|identific|saca)\w*\b.*(?:entidades|palabras clave|campos|datos)
    json|\bcomas?\b|únicamente
# Russian
(?:переформулируй|перепиши|преобразуй|сформулируй|переделай)\w*.*(?:вопрос|запрос|сообщение).*(?:самостоятельн|без (?:истории|контекста|предыдущ)|отдельн|независим|понят)
(?:сформулируй|составь|создай|сгенерируй|напиши|придумай)\w*.*(?:поисков\w+ запрос|sql)
    только|ничего (?:больше|кроме)|схем|таблиц|истори
(?:придумай|создай|сгенерируй|дай|напиши|составь|сформулируй)\w*.*(?:заголовок|название|заглавие)
    (?:диалог|бесед|разговор|чат|переписк)
    (?:слов|символ|только|кавыч|коротк)
(?:классифицируй|определи|отнеси|распредели)\w*.*(?:намерени|категори|класс|тональност|тем[уы]|отдел|интент)
    только|ничего (?:больше|кроме)|json|одним словом
(?:ты|вы)\b.{0,30}переводчик
    перев|текст
(?:переведи|переводи)\w*.*(?:текст|сообщени|вс[её]|фраз|ввод).*\bна\b
    только|ничего
(?:исправь|исправляй|отредактируй|корректор|улучши)\w*.*(?:ошибк|текст|орфографи|грамматик)
    только.{0,30}(?:текст|исправленн|вариант)
(?:извлеки|выдели|найди)\w*.*(?:сущност|ключевые слова|ключевых слов|поля|данные)
    json|через запятую|только
""")
