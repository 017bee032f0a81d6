"""Whether two texts are in one language."""

import pytest

from truthlens.text.same_language import same_language

_ENGLISH = (
    "The pump runs at 600 rpm and it is made of cast iron, so that the housing can take what is asked of it."
)
_GERMAN = "Die Pumpe läuft mit 600 Umdrehungen und ist aus Gusseisen, es wird von der Firma nicht für das Haus gebaut."
_FRENCH = "La pompe est une machine que les clients ont dans la maison et qui est faite pour des liquides avec le sel."
_RUSSIAN = "Насос работает со скоростью шестьсот оборотов в минуту и сделан из чугуна."
_CHINESE = "水泵的转速是每分钟六百转，外壳由铸铁制成，可以在室外使用。"
_JAPANESE = "このポンプは毎分六百回転で動き、ケースは鋳鉄でできています。"
_KOREAN = "이 펌프는 분당 육백 회전으로 작동하며 하우징은 주철로 만들어졌습니다."
_SPANISH = "El motor es de la casa y no se usa para el agua que es del mar, el motor es mi motor. "
_ITALIAN = "Il motore non è della casa e non si usa per la acqua che è di mare come una pompa di vapore. "
_ALL = (_ENGLISH, _GERMAN, _FRENCH, _RUSSIAN, _CHINESE, _JAPANESE, _KOREAN)


@pytest.mark.parametrize("one", _ALL)
@pytest.mark.parametrize("other", _ALL)
def test_clear_texts_are_told_apart(one: str, other: str) -> None:
    """Two clear texts are in one language exactly where they are the same."""
    assert same_language(one, other) is (one is other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_ENGLISH, "600."),
        (_ENGLISH, "Die Pumpe."),
        ("600 rpm", "六百转"),
        (_ENGLISH, "Pumpe DN 50, PN 16, Gusseisen, 600 U/min, Ulm"),
        (_CHINESE, "水泵 Grundfos CR 的转速是 600 rpm，外壳材料是 cast iron。"),
        (_ENGLISH, f"{_ENGLISH}\n```\n{_RUSSIAN * 3}\n```"),
        (_ENGLISH, "The pump runs fast, 水泵的转速很快，外壳由铸铁制成 and so on, housing."),
        (_SPANISH * 2 + _ITALIAN, _SPANISH + _ITALIAN * 2),
        ("", ""),
    ],
)
def test_doubtful_texts_count_as_the_same(one: str, other: str) -> None:
    """Short texts, names, mixed scripts, long quotations and code are no sign of another language."""
    assert same_language(one, other)
    assert same_language(other, one)


_ENGLISH_CASES = (
    ("How much is a domestic wire transfer?", "A domestic wire transfer costs 15 dollars."),
    ("Is there a fee for transfers between accounts?", "Yes, 5 dollars."),
    ("When was the bridge built?", "In 1950."),
    ("Who wrote the book?", "The book was written by Jane Austen in 1820."),
)
_GERMAN_CASE = ("Wie viel kostet eine Überweisung im Inland?", "Eine Überweisung im Inland kostet 15 Dollar.")
_FRENCH_CASE = ("Combien coûte un virement ?", "Un virement coûte 15 dollars pour les clients de la banque.")
_CHINESE_CASE = ("国内电汇收费多少？", "国内电汇收费15美元。")
_RUSSIAN_CASE = ("Сколько стоит перевод?", "Перевод стоит 15 долларов.")
_JAPANESE_CASE = ("国内送金の手数料はいくらですか。", "国内送金の手数料は15ドルです。")

_IN_ENGLISH = (
    "The fee is 12 dollars for a domestic transfer.",
    "A transfer between two accounts of the same bank is free.",
)
_IN_GERMAN = (
    "Eine Überweisung im Inland kostet zwölf Dollar und ist sofort da.",
    "Die Brücke wurde 1900 gebaut. Sie ist aus Stahl.",
    "Das Buch ist von Jane Austen und nicht von Emily Brontë.",
    "Für Kunden der Bank ist die Überweisung kostenlos.",
)
_IN_FRENCH = (
    "Le virement coûte douze dollars et il est gratuit entre les comptes.",
    "Le pont a été construit en 1900.",
    "Les virements entre comptes sont gratuits pour les clients.",
)
_IN_SPANISH = ("La transferencia cuesta doce dólares y es gratis para los clientes del banco.",)
_IN_CHINESE = ("国内电汇收费十二美元。", "转账免费。", "免费。这座桥建于1900年。")
_IN_RUSSIAN = ("Перевод стоит 12 долларов.", "Бесплатно.")
_IN_JAPANESE = ("国内送金の手数料は12ドルです。", "口座間の送金は無料です。")


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        *((case, _IN_GERMAN + _IN_FRENCH + _IN_SPANISH) for case in _ENGLISH_CASES),
        *((case, _IN_CHINESE + _IN_RUSSIAN + _IN_JAPANESE) for case in _ENGLISH_CASES),
        (_GERMAN_CASE, _IN_ENGLISH + _IN_FRENCH + _IN_CHINESE + _IN_RUSSIAN),
        (_FRENCH_CASE, _IN_ENGLISH + _IN_GERMAN + _IN_CHINESE),
        (_CHINESE_CASE, _IN_ENGLISH + _IN_GERMAN + _IN_RUSSIAN + _IN_JAPANESE),
        (_RUSSIAN_CASE, _IN_ENGLISH + _IN_GERMAN + _IN_CHINESE),
        (_JAPANESE_CASE, _IN_ENGLISH + _IN_GERMAN + _IN_RUSSIAN),
    ],
)
def test_a_sentence_in_another_language_is_told(case: tuple[str, str], texts: tuple[str, ...]) -> None:
    """One sentence is enough where its words or letters are clear and the question's language is."""
    query, first = case
    assert [text for text in texts if same_language(first, text, query)] == []


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        *((case, _IN_ENGLISH) for case in _ENGLISH_CASES),
        (_GERMAN_CASE, _IN_GERMAN),
        (_FRENCH_CASE, _IN_FRENCH),
        (_CHINESE_CASE, _IN_CHINESE),
        (_RUSSIAN_CASE, _IN_RUSSIAN),
        (_JAPANESE_CASE, _IN_JAPANESE),
    ],
)
def test_a_sentence_in_the_same_language_is_not_doubted(
    case: tuple[str, str], texts: tuple[str, ...]
) -> None:
    """The mended sentence of the same language is always taken."""
    query, first = case
    assert [text for text in texts if not same_language(first, text, query)] == []


_CODE = "for a in range(10):\n    if a is not None and a in the_list:\n        print(a)"
_SQL = "```sql\nSELECT name FROM users WHERE is_on = 1 AND id IN (1, 2)\n```"


@pytest.mark.parametrize(
    ("query", "first", "texts"),
    [
        (
            *_ENGLISH_CASES[2],
            (
                "1900.",
                "12 dollars",
                "Yes, it is free.",
                "No.",
                "Paris.",
                "Rio de la Plata",
                "Universidad de la República",
                "Charles de Gaulle",
                "Vincent van der Meer",
                "Der Spiegel",
                "La La Land",
                "Die Hard",
                "It was built by the Compagnie des Ponts et Chaussées de la Seine.",
                "It is called “Die Brücke ist nicht von hier” in German books.",
                "The word is Überweisung.",
                "| Name | von | bis |\n| --- | --- | --- |\n| A | 1 | 2 |",
                "- Pont Neuf: 1607\n- Pont des Arts: 1804",
                "The bridge in 北京 was built in 1900.",
                "Москва (Moscow) is where it was built.",
                "α = 0.05, β = 0.2",
                _CODE,
                _SQL,
                "",
            ),
        ),
        (
            *_GERMAN_CASE,
            (
                "12 Dollar.",
                "Ja.",
                "Kostenlos.",
                "Harry Potter and the Chamber of Secrets",
                "The Rolling Stones",
                "Der Tarif heißt „All you can eat“ und kostet 12 Dollar.",
                "Update, Meeting und Team",
                _CODE,
                _SQL,
            ),
        ),
        (
            *_CHINESE_CASE,
            (
                "12美元。",
                "iPhone 15 Pro",
                "Harry Potter and the Chamber of Secrets",
                "Linux",
                "Grundfos CR 32",
                "USD 12",
                "歌名是さくら。",
                "水泵 Grundfos CR 的转速是 600 rpm，外壳材料是 cast iron。",
                "《The Lord of the Rings》",
                _CODE,
                _SQL,
            ),
        ),
        (*_JAPANESE_CASE, ("12ドル", "無料", "東京", "Amazon Prime", "PayPal です。")),
        (*_RUSSIAN_CASE, ("12 долларов", "Visa", "PayPal", "Western Union")),
        ("How do you write Beijing in Chinese?", "背京", ("北京", "北京。")),
        ("What is Moscow called in Russian?", "Moskwa", ("Москва", "Москва.")),
        ("Translate to German: The transfer is free.", "Frei.", ("Die Überweisung ist kostenlos.",)),
        ("请把这句话翻译成英文：转账免费。", "Free.", ("The transfer is free of charge for you.",)),
        ("What is the German term?", "Die Gebühr", ("Die Gebühr für eine Überweisung",)),
        ("", "600 rpm", ("六百转", "Die Drehzahl ist 600.")),
        ("How fast?", '{"name": "x"}', ('{"name": "y", "the": "a", "is": "b"}',)),
    ],
)
def test_what_is_short_or_foreign_by_name_is_not_doubted(
    query: str, first: str, texts: tuple[str, ...]
) -> None:
    """Short answers, names, titles, quotations, code, tables and mixed texts are in no other language."""
    assert [text for text in texts if not same_language(first, text, query)] == []
