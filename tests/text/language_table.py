"""Short sentences by language, written for these tests: names, numbers, lists, code and both registers among them."""

SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "The fee is 40 euros.", "Paris hosts the Louvre.", "Opening hours vary by season.", "Run `npm install` first.",
        "Anna Keller joined Siemens in 2014.", "It depends.", "Refunds take five working days.", "Yes, 12 of them.",
        "Boil water, add salt, stir twice.", "Set DEBUG=1 and restart nginx.", "The bridge was built in 1950 by two brothers from Ulm.",
        "No evidence of damage was found.", "Customers may cancel within 30 days of delivery without giving any reason.",
        "Mozart wrote Die Zauberflöte in Vienna.", "Use a Philips screwdriver to open the case, then remove four screws.",
        "Version 3.2 supports Kubernetes 1.29 and later.",
    ),
    "de": (
        "Die Gebühr beträgt 40 Euro.", "Berlin hat 3,7 Millionen Einwohner.", "Das Paket kommt am Montag.", "Kostenlos für alle Kunden.",
        "Anna Keller leitet die Abteilung seit 2014.", "Wir liefern nur innerhalb Deutschlands.", "Der Vertrag endet nach zwei Jahren.",
        "Bitte starten Sie nginx neu.", "Öffnungszeiten: Montag bis Freitag von 9 bis 18 Uhr.", "Ja, das ist möglich.",
        "Die Brücke wurde 1950 von zwei Brüdern aus Ulm gebaut.", "Siemens stellt Züge her.", "Man braucht 200 g Mehl und drei Eier.",
        "Führen Sie `npm install` aus und warten Sie, bis der Vorgang beendet ist.", "Rückgabe innerhalb von 30 Tagen ohne Angabe von Gründen.",
        "Er starb 1832 in Weimar.",
    ),
    "fr": (
        "Les frais sont de 40 euros.", "Paris compte deux millions d'habitants.", "Le colis arrive lundi.", "C'est gratuit pour tous les clients.",
        "Anna Keller dirige le service depuis 2014.", "Nous livrons uniquement en France.", "Le contrat prend fin après deux ans.",
        "Redémarrez nginx.", "Il est mort à Weimar en 1832.", "Oui, c'est possible.", "Le pont a été construit en 1950 par deux frères de Lyon.",
        "Il faut 200 g de farine et trois œufs.", "Exécutez `npm install` avant de lancer le serveur.", "Retour gratuit sous 30 jours.",
        "La garantie couvre les pièces et la main-d'œuvre.", "Ouvert du lundi au vendredi.",
    ),
    "es": (
        "La tarifa es de 40 euros.", "Madrid tiene tres millones de habitantes.", "El paquete llega el lunes.", "Es gratis para todos los clientes.",
        "Anna Keller dirige el departamento desde 2014.", "Solo enviamos dentro de España.", "El contrato termina después de dos años.",
        "Reinicie nginx.", "Murió en Weimar en 1832.", "Sí, es posible.", "El puente fue construido en 1950 por dos hermanos.",
        "Se necesitan 200 g de harina y tres huevos.", "Ejecute `npm install` antes de iniciar el servidor.", "Devolución gratuita en 30 días.",
        "La garantía cubre piezas y mano de obra.", "Abierto de lunes a viernes.",
    ),
    "it": (
        "La tariffa è di 40 euro.", "Roma ha quasi tre milioni di abitanti.", "Il pacco arriva lunedì.", "È gratis per tutti i clienti.",
        "Anna Keller guida il reparto dal 2014.", "Spediamo solo in Italia.", "Il contratto scade dopo due anni.", "Riavviate nginx.",
        "Morì a Weimar nel 1832.", "Sì, è possibile.", "Il ponte fu costruito nel 1950 da due fratelli.", "Servono 200 g di farina e tre uova.",
        "Eseguite `npm install` prima di avviare il server.", "Reso gratuito entro 30 giorni.", "La garanzia copre i pezzi e la manodopera.",
        "Aperto dal lunedì al venerdì.",
    ),
    "pt": (
        "A taxa é de 40 euros.", "Lisboa tem meio milhão de habitantes.", "A encomenda chega na segunda-feira.", "É grátis para todos os clientes.",
        "Anna Keller dirige o departamento desde 2014.", "Só enviamos para Portugal.", "O contrato termina depois de dois anos.",
        "Reinicie o nginx.", "Morreu em Weimar em 1832.", "Sim, é possível.", "A ponte foi construída em 1950 por dois irmãos.",
        "São precisos 200 g de farinha e três ovos.", "Execute `npm install` antes de iniciar o servidor.", "Devolução gratuita em 30 dias.",
        "A garantia cobre peças e mão de obra.", "Aberto de segunda a sexta.",
    ),
    "nl": (
        "De kosten bedragen 40 euro.", "Amsterdam heeft bijna een miljoen inwoners.", "Het pakket komt maandag.", "Gratis voor alle klanten.",
        "Anna Keller leidt de afdeling sinds 2014.", "Wij leveren alleen in Nederland.", "Het contract eindigt na twee jaar.", "Start nginx opnieuw op.",
        "Hij stierf in 1832 in Weimar.", "Ja, dat is mogelijk.", "De brug werd in 1950 gebouwd door twee broers.", "Je hebt 200 g bloem en drie eieren nodig.",
        "Voer `npm install` uit voordat je de server start.", "Gratis retour binnen 30 dagen.", "De garantie dekt onderdelen en arbeid.",
        "Open van maandag tot vrijdag.",
    ),
    "pl": (
        "Opłata wynosi 40 euro.", "Warszawa ma prawie dwa miliony mieszkańców.", "Paczka dotrze w poniedziałek.", "Umowa kończy się po dwóch latach.",
        "Most zbudowano w 1950 roku.", "Zwrot jest bezpłatny w ciągu 30 dni.", "Tak, to możliwe.",
    ),
    "sv": (
        "Avgiften är 40 euro.", "Stockholm har en miljon invånare.", "Paketet kommer på måndag.", "Avtalet upphör efter två år.",
        "Bron byggdes 1950 av två bröder.", "Gratis retur inom 30 dagar.", "Ja, det är möjligt.",
    ),
    "tr": (
        "Ücret 40 avrodur.", "İstanbul'un nüfusu on beş milyondur.", "Paket pazartesi günü geliyor.", "Sözleşme iki yıl sonra sona erer.",
        "Köprü 1950 yılında yapıldı.", "30 gün içinde ücretsiz iade.", "Evet, bu mümkün.",
    ),
    "vi": (
        "Phí là 40 euro.", "Hà Nội có tám triệu dân.", "Gói hàng sẽ đến vào thứ Hai.", "Hợp đồng kết thúc sau hai năm.", "Cây cầu được xây năm 1950.",
    ),
    "id": (
        "Biayanya 40 euro.", "Jakarta memiliki sepuluh juta penduduk.", "Paket tiba pada hari Senin.", "Kontrak berakhir setelah dua tahun.",
        "Jembatan itu dibangun pada tahun 1950.",
    ),
    "cs": (
        "Poplatek je 40 eur.", "Praha má přes milion obyvatel.", "Balík dorazí v pondělí.", "Smlouva končí po dvou letech.", "Most byl postaven v roce 1950.",
    ),
    "ru": (
        "Плата составляет 40 евро.", "В Москве живёт тринадцать миллионов человек.", "Посылка придёт в понедельник.", "Бесплатно для всех клиентов.",
        "Анна Келлер руководит отделом с 2014 года.", "Договор заканчивается через два года.", "Перезапустите nginx.", "Он умер в Веймаре в 1832 году.",
        "Да, это возможно.", "Мост построили в 1950 году два брата.", "Нужно 200 г муки и три яйца.", "Возврат в течение 30 дней.",
    ),
    "ar": (
        "الرسوم أربعون يورو.", "يبلغ عدد سكان القاهرة عشرة ملايين.", "يصل الطرد يوم الاثنين.", "مجاني لجميع العملاء.", "ينتهي العقد بعد عامين.",
        "بني الجسر عام 1950.", "نعم، هذا ممكن.", "الإرجاع خلال 30 يوما.",
    ),
    "zh": (
        "费用为四十欧元。", "北京有两千多万人口。", "包裹星期一到。", "对所有客户免费。", "合同两年后到期。", "请重启 nginx。", "这座桥建于1950年。",
        "可以，没问题。", "需要200克面粉和三个鸡蛋。", "三十天内可以退货。", "安娜自2014年起领导该部门。", "营业时间为周一至周五。",
    ),
    "ja": (
        "料金は四十ユーロです。", "東京の人口は千四百万人です。", "荷物は月曜日に届きます。", "すべてのお客様に無料です。", "契約は二年後に終わります。",
        "nginx を再起動してください。", "この橋は1950年に建てられました。", "はい、可能です。", "小麦粉200グラムと卵三つが必要です。", "30日以内なら返品できます。",
    ),
    "ko": (
        "요금은 40유로입니다.", "서울에는 천만 명이 산다.", "소포는 월요일에 도착합니다.", "모든 고객에게 무료입니다.", "계약은 2년 후에 끝납니다.",
        "nginx를 다시 시작하세요.", "이 다리는 1950년에 지어졌습니다.", "네, 가능합니다.", "밀가루 200g과 달걀 세 개가 필요합니다.", "30일 안에 반품할 수 있습니다.",
    ),
}  # fmt: skip
