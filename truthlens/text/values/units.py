"""Currencies, units and the words that name numbered things. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from truthlens.text.word_forms import word_set


@dataclass(frozen=True, slots=True)
class Unit:
    """What is measured, and how much of its base unit one is."""

    sort: str
    factor: Decimal


def _units() -> Mapping[str, Unit]:
    rows = """
    time 1: second seconds sec secs sekunde sekunden seconde secondes segundo segundos 秒 秒钟
    time 0.001: ms millisecond milliseconds
    time 60: minute minutes min mins minuten minuto minutos 分钟 分鐘 分間
    time 3600: hour hours hr hrs h stunde stunden heure heures hora horas 小时 小時 个小时 時間
    time 86400: day days night nights tag tage tagen nacht nächte jour jours nuit nuits día días dia dias noche noches 天 日間 工作日
    time 604800: week weeks woche wochen semaine semaines semana semanas 周 週間 星期
    time 1209600: fortnight fortnights
    months 1: month months monat monate monaten mois mes meses 个月 個月 か月 ヶ月 カ月
    months 3: quarter-year
    months 12: year years yr yrs jahr jahre jahren an ans année années año años 年间 年間
    months 120: decade decades jahrzehnt jahrzehnte décennie décennies década décadas
    months 1200: century centuries
    mass 1: g gram grams gramm gramme grammes gramo gramos 克
    mass 0.001: mg milligram milligrams milligramm
    mass 0.000001: µg μg mcg microgram micrograms
    mass 1000: kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos 公斤 千克
    mass 1000000: tonne tonnes tonnen tonelada toneladas t ton tons 吨
    mass 453.59237: lb lbs pound-weight
    mass 28.349523125: oz ounce ounces
    volume 1: ml millilitre millilitres milliliter milliliters 毫升
    volume 10: cl centilitre centilitres
    volume 1000: l litre litres liter liters litro litros 升
    volume 3785.411784: gallon gallons
    length 1: m metre metres meter meters mètre mètres metro metros 米
    length 0.01: cm centimetre centimetres centimeter centimeters centimètre centimètres centímetro centímetros zentimeter 厘米
    length 0.001: mm millimetre millimetres millimeter millimeters 毫米
    length 1000: km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros 公里 千米
    length 0.0254: inch inches in-inch
    length 0.3048: foot feet ft
    length 0.9144: yard yards
    length 1609.344: mile miles meilen
    area 1: m2 m² sqm square-metr square-meter square-met quadratmeter 平方米
    area 0.09290304: square-foot
    area 2589988.110336: square-mil
    area 10000: hectare hectares hektar ha hectárea hectáreas 公顷
    area 4046.8564224: acre acres
    area 1000000: km2 km² square-kilometr square-kilomet quadratkilometer
    speed 1: km/h kmh kph
    speed 1.609344: mph
    power 1: w watt watts
    power 1000: kw kilowatt kilowatts 千瓦
    power 1000000: mw megawatt megawatts
    power 1000000000: gw gigawatt gigawatts
    power 735.5: hp horsepower ps
    energy 1: kwh
    energy 1000: mwh
    energy 1000000: gwh
    data 1: byte bytes
    data 1000: kb kilobyte kilobytes
    data 1000000: mb megabyte megabytes
    data 1000000000: gb gigabyte gigabytes
    data 1000000000000: tb terabyte terabytes
    frequency 1: hz hertz
    frequency 1000: khz
    frequency 1000000: mhz
    frequency 1000000000: ghz
    voltage 1: v volt volts
    current 1: amp amps ampere amperes
    pressure 1: bar bars
    pressure 0.001: mbar
    degree 1: ° degree degrees grad celsius 度 °c degré degrés grado grados
    fahrenheit 1: fahrenheit °f
    """
    found: dict[str, Unit] = {}
    for row in rows.strip().splitlines():
        head, _, names = row.partition(": ")
        sort, factor = head.split()
        found |= dict.fromkeys(names.split(), Unit(sort, Decimal(factor)))
    return MappingProxyType(found)


UNITS = _units()
"""Names of units in six languages, in lower case."""
SHORT_KEYS = word_set("h t l m g v w in an ha min mw second seconds")
"""Units that as a part of a key or a heading may be something else ("price_min")."""

CURRENCY_SIGNS = MappingProxyType(
    {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "￥": "yen", "₹": "rupee", "₩": "won"}
)
CURRENCY_CODES = MappingProxyType({
    "usd": "dollar", "eur": "euro", "gbp": "pound", "cny": "yen", "rmb": "yen", "jpy": "yen", "chf": "franc", "sek": "crown",
    "nok": "crown", "dkk": "crown", "inr": "rupee", "krw": "won", "cad": "dollar", "aud": "dollar", "hkd": "dollar",
})  # fmt: skip
CURRENCY_NAMES = MappingProxyType({
    "dollar": "dollar", "dollars": "dollar", "bucks": "dollar", "euro": "euro", "euros": "euro", "pound": "pound", "pounds": "pound",
    "quid": "pound", "yen": "yen", "yuan": "yen", "franc": "franc", "francs": "franc", "franken": "franc", "crown": "crown",
    "crowns": "crown", "kronor": "crown", "kroner": "crown", "krona": "crown", "krone": "crown", "kronen": "crown", "rupee": "rupee",
    "rupees": "rupee", "dólar": "dollar", "dólares": "dollar", "libras": "pound", "won": "won", "peso": "peso", "pesos": "peso",
    "kr": "crown",
    "元": "yen", "美元": "dollar", "欧元": "euro", "英镑": "pound", "日元": "yen", "円": "yen", "ドル": "dollar", "ユーロ": "euro",
    "人民币": "yen", "块": "yen",
})  # fmt: skip
"""Yuan and yen have one name: their sign is one, and no text mixes them without saying so."""
HUNDREDTHS = MappingProxyType({"cents": "", "pence": "pound", "centimes": "", "céntimos": "", "centavos": ""})
PERCENT = frozenset(("%", "percent", "percentage", "prozent", "pct", "porcentaje", "‰-no"))
LABELS = word_set(
    "room section chapter clause article rule page figure table version level zone unit flight route line grade type class phase"
    " platform gate track floor form appendix paragraph item building door bus port code raum zimmer abschnitt kapitel artikel seite"
    " salle chambre chapitre page sala habitación sección capítulo artículo página §"
)
"""Words before a number that it names something with: "Room 204"."""
REFERENCES = word_set(
    "passage passages source sources document documents step question example option note quelle fuente"
)
"""Words before a number that points into the prompt or the answer itself."""
