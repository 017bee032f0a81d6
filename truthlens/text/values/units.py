"""Currencies, units and the words that name numbered things. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from truthlens.text.word_forms import word_set


@dataclass(frozen=True, slots=True)
class UnitOfMeasure:
    """What is measured, and how much of its base unit one is."""

    sort: str
    factor: Decimal


def _units() -> Mapping[str, UnitOfMeasure]:
    rows = """
    time 1: second seconds sec secs sekunde sekunden seconde secondes segundo segundos 秒 秒钟
    time 0.001: ms
    time 60: minute minutes min mins minuten minuto minutos 分钟 分鐘 分間
    time 3600: hour hours hr hrs h stunde stunden heure heures hora horas 小时 小時 个小时 時間
    time 86400: day days night nights tag tage tagen nacht nächte jour jours nuit nuits día días dia dias noche noches 天 日間 工作日
    time 604800: week weeks woche wochen semaine semaines semana semanas 周 週間 星期
    time 1209600: fortnight fortnights
    months 1: month months monat monate monaten mois mes meses 个月 個月 か月 ヶ月 カ月
    months 3: quarter-year
    months 12: year years yr yrs jahr jahre jahren an ans année années año años 年间 年間 年
    months 120: decade decades jahrzehnt jahrzehnte décennie décennies década décadas
    months 1200: century centuries jahrhundert jahrhunderte jahrhunderten jahrhunderts jh jhd jhdt siècle siècles siglo siglos 世纪 世紀
    mass 1: g gram grams gramm gramme grammes gramo gramos 克
    mass 0.001: mg milligramm
    mass 0.000001: µg μg mcg
    mass 1000: kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos 公斤 千克
    mass 1000000: tonne tonnes tonnen tonelada toneladas t ton tons 吨
    mass 453.59237: lb lbs pound-weight
    mass 28.349523125: oz ounce ounces
    volume 1: ml millilitre millilitres milliliter milliliters 毫升
    volume 10: cl centilitre centilitres
    volume 1000: l litre litres liter liters litro litros 升
    volume 3785.411784: gallon gallons
    volume 1: cm3 cm³ cc cubic-centimetr cubic-centimet
    volume 1000: dm3 dm³
    volume 1000000: m3 m³ cbm cubic-metr cubic-meter cubic-met kubikmeter 立方米
    volume 28316.846592: ft3 ft³ cubic-foot cubic-feet
    pint 1: pint pints
    length 1: m metre metres meter meters mètre mètres metro metros 米
    length 0.01: cm centimetre centimetres centimeter centimeters centimètre centimètres centímetro centímetros zentimeter 厘米
    length 0.001: mm millimetre millimetres millimeter millimeters 毫米
    length 1000: km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros 公里 千米
    length 0.0254: inch inches in-inch
    length 0.3048: foot feet ft
    length 0.9144: yard yards yd yds
    length 1609.344: mile miles meilen
    length 1852: nautical-mil
    area 0.000001: mm2 mm²
    area 0.0001: cm2 cm² square-centimetr square-centimet
    area 1: m2 m² sqm square-metr square-meter square-met quadratmeter 平方米
    area 0.09290304: square-foot square-feet ft2 ft²
    area 0.83612736: square-yard
    area 2589988.110336: square-mil
    area 10000: hectare hectares hektar ha hectárea hectáreas 公顷
    area 4046.8564224: acre acres
    area 1000000: km2 km² square-kilometr square-kilomet quadratkilometer
    speed 1: km/h kmh kph
    speed 3.6: m/s
    speed 1.609344: mph
    speed 1.852: knot knots kn
    rotation 1: rpm
    power 1: w watt watts
    power 1000: kw kilowatt kilowatts 千瓦
    power 1000000: mw megawatt megawatts
    power 1000000000: gw gigawatt gigawatts
    power 735.5: hp horsepower ps
    energy 0.001: wh
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
    data 0.125: bit bits
    voltage 1: v volt volts
    current 1: amp amps ampere amperes
    charge 1: amp-hour
    pressure 1: bar bars
    pressure 0.001: mbar
    pressure 0.06894757293168: psi
    pressure 0.00001: pascal pascals
    force 1: newton newtons
    resistance 1: ohm ohms
    substance 1: mol
    degree 1: ° degree degrees grad celsius 度 °c degré degrés grado grados
    fahrenheit 1: fahrenheit °f
    """
    found: dict[str, UnitOfMeasure] = {}
    for row in rows.strip().splitlines():
        head, _, names = row.partition(": ")
        sort, factor = head.split()
        found |= dict.fromkeys(names.split(), UnitOfMeasure(sort, Decimal(factor)))
    found |= dict.fromkeys(("joule", "joules"), UnitOfMeasure("energy", 1 / Decimal(3_600_000)))
    # What is eaten is told in large calories.
    large = UnitOfMeasure("energy", Decimal(4184) / 3_600_000)
    found |= dict.fromkeys(("kcal", "calorie", "calories", "kilocalorie", "kilocalories"), large)
    for base in _PREFIXED_NAMES:
        for name, (_, power) in _PREFIXES.items():
            known = found[base]
            found.setdefault(name + base, UnitOfMeasure(known.sort, known.factor.scaleb(power)))
    return MappingProxyType(found)


_PREFIXES = MappingProxyType({
    "nano": ("n", -9), "micro": ("µ", -6), "milli": ("m", -3), "centi": ("c", -2), "deci": ("d", -1),
    "hecto": ("h", 2), "kilo": ("k", 3), "mega": ("M", 6), "giga": ("G", 9), "tera": ("T", 12),
})  # fmt: skip
"""The prefixes of SI: the sign of each, and its power of ten. Source: SI brochure, section 3."""
_PREFIXED_NAMES = word_set(
    "second seconds gram grams litre litres liter liters metre metres meter meters watt watts byte bytes"
    " bit bits hertz volt volts amp amps ampere amperes joule joules pascal pascals newton newtons ohm ohms"
)
# Of each sign its unit, and the prefixes that it takes: "MA" and "Mm" stand for other things in texts.
_SIGNS = (
    ("s", "second", "n µ m"), ("g", "gram", "n µ m k"), ("l", "litre", "µ m c d h"),
    ("L", "litre", "µ m c d"), ("m", "metre", "n µ m c d k"), ("W", "watt", "µ m k M G T"),
    ("Wh", "wh", "m k M G T"), ("J", "joule", "m k M G T"), ("A", "amp", "n µ m k"),
    ("Ah", "amp-hour", "m k"), ("V", "volt", "µ m k M"), ("Hz", "hertz", "m k M G T"),
    ("Pa", "pascal", "h k M G"), ("N", "newton", "k"), ("Ω", "ohm", "m k M"), ("\u2126", "ohm", "m k M"),
    ("mol", "mol", "n µ m k"), ("B", "byte", "k M G T"), ("bit", "bit", "k M G T"),
)  # fmt: skip


def _symbols() -> Mapping[str, UnitOfMeasure]:
    powers = dict(_PREFIXES.values())
    found: dict[str, UnitOfMeasure] = {}
    for sign, name, prefixes in _SIGNS:
        known = UNITS[name]
        found[sign] = known
        found |= {
            prefix + sign: UnitOfMeasure(known.sort, known.factor.scaleb(powers[prefix]))
            for prefix in prefixes.split()
        }
    del found["B"]  # "5 B" are billions, or of a list
    # The sign of a degree is left out by many, and micro has two characters.
    found |= {"C": UNITS["celsius"], "F": UNITS["fahrenheit"]}
    return MappingProxyType(found | {name.replace("µ", "μ"): unit for name, unit in found.items()})


UNITS = _units()
"""Names of units in six languages, in lower case."""
SYMBOLS = _symbols()
"""Signs of units with the prefixes of SI, as they are written: "mW" is no "MW"."""
BITS_A_SECOND = MappingProxyType(
    {"kbps": "kilobit", "mbps": "megabit", "gbps": "gigabit", "tbps": "terabit"}
    | {"kb": "kilobit", "mb": "megabit", "gb": "gigabit"}
)  # fmt: skip
"""Units of rates of data: "Mbps", and "Mb" of "Mb/s"."""
SHORT_KEYS = word_set("h t l m g v w in an ha min mw second seconds")
"""Units that as a part of a key or a heading may be something else ("price_min")."""

CURRENCY_SIGNS = MappingProxyType(
    {
        "$": "dollar",
        "€": "euro",
        "£": "pound",
        "¥": "yen or yuan",
        "￥": "yen or yuan",
        "₹": "rupee",
        "₩": "won",
    }
)
CURRENCY_CODES = MappingProxyType({
    "usd": "dollar", "eur": "euro", "gbp": "pound", "cny": "yuan", "rmb": "yuan", "jpy": "yen", "chf": "franc", "sek": "crown",
    "nok": "crown", "dkk": "crown", "inr": "rupee", "krw": "won", "cad": "dollar", "aud": "dollar", "hkd": "dollar",
})  # fmt: skip
CURRENCY_NAMES = MappingProxyType({
    "dollar": "dollar", "dollars": "dollar", "bucks": "dollar", "euro": "euro", "euros": "euro", "pound": "pound", "pounds": "pound",
    "quid": "pound", "yen": "yen", "yuan": "yuan", "renminbi": "yuan",
    "franc": "franc", "francs": "franc", "franken": "franc", "crown": "crown",
    "crowns": "crown", "kronor": "crown", "kroner": "crown", "krona": "crown", "krone": "crown", "kronen": "crown", "rupee": "rupee",
    "rupees": "rupee", "dólar": "dollar", "dólares": "dollar", "libras": "pound", "won": "won", "peso": "peso", "pesos": "peso",
    "kr": "crown",
    "元": "yuan", "美元": "dollar", "欧元": "euro", "英镑": "pound", "日元": "yen", "円": "yen", "ドル": "dollar", "ユーロ": "euro",
    "人民币": "yuan", "块": "yuan",
})  # fmt: skip
CURRENCIES = MappingProxyType(CURRENCY_NAMES | CURRENCY_CODES | CURRENCY_SIGNS)
"""Names of currencies by their names, codes and signs."""
_ANY_CURRENCY, _ONE_SIGN = "money", "yen or yuan"
HUNDREDTHS = MappingProxyType({"cents": "", "pence": "pound", "centimes": "", "céntimos": "", "centavos": ""})
POINTS = MappingProxyType(
    {
        "bps": Decimal("0.01"), "bp": Decimal("0.01"), "pp": Decimal(1), "pps": Decimal(1),
        **dict.fromkeys(("prozentpunkt", "prozentpunkte", "prozentpunkten"), Decimal(1)),
    }
)  # fmt: skip
"""Names of points of a percentage in one word: how many points each is."""
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


def same_currency(one: str, other: str) -> bool:
    """Return whether two names of currencies may be one: hundredths are of any, yen and yuan share a sign."""
    if one == other or _ANY_CURRENCY in (one, other):
        return True
    return _ONE_SIGN in (one, other) and {one, other} <= {"yen", "yuan", _ONE_SIGN}
