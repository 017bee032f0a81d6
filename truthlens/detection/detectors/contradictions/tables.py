"""List the English words and phrases that carry the logic of a sentence, and those that turn it round. Made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from truthlens.text.opposites import SHARED_PAIRS
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem


class Mark(StrEnum):
    """What a word or phrase does to what is said."""

    NOT = "not"
    LACKS = "lacks"
    MUST = "must"
    NEED_NOT = "need not"
    MAY = "may"
    MAY_NOT = "may not"
    SHOULD = "should"
    WILL = "will"
    ALL = "all"
    NOT_ALL = "not all"
    MOST = "most"
    SOME = "some"
    ONLY = "only"
    ALWAYS = "always"
    NOT_ALWAYS = "not always"
    USUALLY = "usually"
    SOMETIMES = "sometimes"
    RARELY = "rarely"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    MORE_THAN = "more than"
    LESS_THAN = "less than"
    EXACTLY = "exactly"
    BEFORE = "before"
    AFTER = "after"
    THAN = "than"
    LIMITS = "limits"
    DOUBT = "doubt"
    NOTHING = ""


PHRASES: Mapping[Mark, str] = MappingProxyType(
    {
        Mark.NOT: "not|never|no|none of|nobody|no one|no longer|fail to|fails to|failed to|unable to|at no time|not at all|by no means"
        "|under no circumstances|refuse to|refused to|refuses to|not a single|without",
        Mark.LACKS: "none|nothing|nowhere|neither|nor|not any|non|cease to|ceased to|lack|lacks|lacked|lacking|free of|devoid of|not either|gone"
        "|missing|no use|no place|no good|not until|no limit|without limit|called off|call off|calls off|not a must|no must|ruled out",
        Mark.MUST: "must|has to|have to|had to|is required to|is required|required to|requires|require|is obliged to|is compulsory|compulsory"
        "|is mandatory|mandatory|obligatory|is obligatory|needs to|need to|is needed|is necessary|necessary|be sure to|obligated to|is to be",
        Mark.NEED_NOT: "need not|do not have to|do not need to|do not need|is not required to|is not required|not required|not obliged to"
        "|is optional|optional|voluntary|is voluntary|is not compulsory|is not mandatory|not mandatory|not compulsory|not obligatory"
        "|is not necessary|not necessary|unnecessary|do not require|is not needed|not needed|no need to|no need for|no obligation to"
        "|never have to|never need to|not have to|not need to|not need|need no|needs no|requires no|require no|with or without|no longer required",
        Mark.MAY: "may|can|might|could|is allowed to|is allowed|allowed|allow|allows|permit|permits|is permitted to|is permitted|permitted"
        "|is free to|is able to|able to|is welcome to|is entitled to|permissible",
        Mark.MAY_NOT: "may not|can not|could not|must not|is not allowed to|is not allowed|not allowed|is not permitted to|is not permitted"
        "|not permitted|forbidden|is forbidden|is forbidden to|prohibited|is prohibited|is prohibited from|banned|is banned|is banned from"
        "|forbids|forbid|prohibits|prohibit|bans|do not allow|do not permit|is not free to|is not able to|not able to|not entitled to"
        "|is not to be|never allow|disallowed|disallows|barred from|is barred from|may never|can never|must never|shall not|should not"
        "|no longer allowed|is no longer allowed|can no longer|may no longer",
        Mark.SHOULD: "should|ought to|is recommended|recommended|recommends|recommend|is advised to|advised to|advisable",
        Mark.WILL: "will|shall|would|is going to",
        Mark.ALL: "all|every|each|all of|every one of|each of|everyone|everybody|everything|entire|the whole|any|anyone|anybody|both|both of",
        Mark.NOT_ALL: "not all|not every|not each|not all of|not everyone|not both|not everybody|not everything|not any",
        Mark.MOST: "most|most of|the majority of|a majority of|nearly all|almost all|the bulk of",
        Mark.SOME: "some|some of|a few|several|a number of|a minority of|a handful of|certain",
        Mark.ONLY: "only|solely|exclusively|alone|nothing but|no one but|merely",
        Mark.ALWAYS: "always|invariably|every time|at all times|without exception|in all cases|in every case",
        Mark.NOT_ALWAYS: "not always|not necessarily|not invariably",
        Mark.USUALLY: "usually|generally|typically|normally|mostly|often|frequently|in most cases|as a rule",
        Mark.SOMETIMES: "sometimes|occasionally|at times|now and then|from time to time|in some cases",
        Mark.RARELY: "rarely|seldom|hardly ever|infrequently|scarcely ever",
        Mark.AT_LEAST: "at least|need no fewer than|needs no fewer than|need no less than|needs no less than|requires no less than|requires no fewer than"
        "|no less than|no fewer than|not less than|not fewer than|a minimum of|minimum of|not below|not under",
        Mark.AT_MOST: "at most|need no more than|needs no more than|requires no more than|never more than"
        "|no more than|not more than|up to|a maximum of|maximum of|at the most|not above|not over|not exceed|not exceeding"
        "|no later than|not later than|at the latest",
        Mark.MORE_THAN: "more than|over|exceeding|in excess of|upwards of",
        Mark.LESS_THAN: "less than|fewer than|under|short of",
        Mark.EXACTLY: "exactly|precisely",
        Mark.BEFORE: "before|prior to|ahead of|until|till",
        Mark.AFTER: "after|following|once|as soon as|subsequent to|since",
        Mark.THAN: "than",
        Mark.LIMITS: "if|unless|except|except for|apart from|provided|whether|in case|as long as|otherwise|other than|only if|even if|besides"
        "|where|when|whenever|while",
        Mark.DOUBT: "instead of|rather than|hardly|barely|scarcely|not only|not just|not merely|instead|whether or not|but|however|although"
        "|though|despite|not because|not so much|not as|not that|no matter|not to mention|no doubt|not least|nothing to do|not unlike"
        "|no sooner|nothing less than|none other than|little|few|too|whereas|neither of|either|used to|almost|nearly|yet|refrain from"
        "|might or might not|may or may not|out of|stay out|keep out|away from|stay away|just the|in vain|no more|any more|apart"
        "|stop|deny|denies|denied|doubt|false|not true|wrong|supposed to|so far|claim|avoid|avoids|prevent|prevents|prevented",
        Mark.NOTHING: "at first|first of all|after all|above all|at all|all in all|no. ",
    }
)

_OWN_PAIRS = """
approve/refuse rose/fell raise/cut wider/narrower deeper/shallower heavier/lighter thicker/thinner
quicker/slower simple/complicated cheaper/dearer cheaper/costlier richer/poorer warmer/colder warmer/cooler
hotter/cooler wetter/drier highest/lowest freeze/thaw give/receive louder/quieter loud/quiet taller/shorter
brighter/darker bright/dark brighter/dimmer sweeter/sourer softer/harder nearer/farther nearer/further
closer/farther closer/further steeper/gentler busier/quieter free/paid free/chargeable manual/automatic
manually/automatically exempt/liable reimburse/charge refund/keep deeper/higher smoother/rougher
successful/unsuccessful eligible/ineligible valid/invalid valid/void sufficient/insufficient
adequate/inadequate available/unavailable upstream/downstream uphill/downhill forward/backward keep/discard
on/off praise/criticise praise/criticize encourage/discourage love/hate like/dislike trust/distrust
vertical/horizontal senior/junior precede/follow exceed/undershoot safer/dangerous dearer/cheaper
pricier/cheaper upstairs/downstairs solid/liquid lit/unlit occupied/vacant
"""

CONVERSES = frozenset(
    frozenset((stem(one), stem(other)))
    for one, other in (
        ("buy", "sell"), ("lend", "borrow"), ("give", "receive"), ("send", "receive"), ("teach", "learn"), ("win", "lose"), ("precede", "follow"), ("import", "export"),
    )
)  # fmt: skip
"""Verbs that say the same where their sides change places as well."""

IMPLIED = frozenset(
    map(
        stem,
        word_set(
            "cancelled missing lacking refused rejected declined banned excluded closed ended stopped failed denied gone empty left waived"
            " withdrawn suspended lost against forbidden prohibited omitted void expired dropped absent skip impossible alone rid remove reject"
            " exempt limit limited maximum unlimited free zero nil less fewer least minus except"
        ),
    )
)
"""Stems that may deny what another sentence denies by "not"."""

SAME_WORDS = """
start begin commence|buy purchase|end finish conclude|car vehicle|fee charge|show display|choose select|get obtain receive|kid child
|doctor physician|mend repair fix|film movie|photo photograph picture|pupil student|big large|bigger larger|biggest largest
|smaller littler|close shut|reject refuse decline|reply answer respond|assist help|worker employee|firm company|drop fall decline|hand give
|quick fast|quicker faster|cheap inexpensive|dearer pricier costlier|hour hourly|week weekly|month monthly|year yearly annual|day daily
|replace substitute|request ask|permit licence license|tell inform|child children|person people|lose lost|keep retain|send ship
|invoice bill|boss manager|staff personnel|delete erase remove|cellar basement|autumn fall|garden yard|ill sick
|warranty guarantee|switch change|store shop|road street|post mail|centre center|phone telephone|refundable refund|include comprise
|earlier sooner|noisy loud|noisier louder|signing sign|use utilise utilize|wed marry|occur happen|need require|rent lease
"""

UNITS = """
second/minute/hour/day/week/month/quarter/year/decade/century|millimetre/centimetre/metre/kilometre/mile/inch/foot/feet/yard
|millimeter/centimeter/meter/kilometer|mm/cm/m/km|mg/g/kg|milligram/gram/kilogram/tonne/ton/pound/ounce|ml/cl/l|millilitre/litre/gallon/pint
|milliliter/liter|celsius/fahrenheit/kelvin|kw/mw/gw|kwh/mwh/gwh|kb/mb/gb/tb|thousand/million/billion/trillion
|watt/kilowatt/megawatt|volt/kilovolt|hectare/acre
"""

SYMMETRIC = frozenset(
    map(
        stem,
        word_set(
            "meet met marry married tie play border resemble adjoin face join merge agree differ match equal talk speak work cooperate"
            " collaborate fight connect link adjacent neighbour argue share live combine compete discuss divorce date divide separate touch"
            " include comprise contain consist mean become became remain stay seem appear say said state call name draw drew cost"
            " lie lay stand stood sit mix pair exchange swap trade intersect cross accompany correspond coincide correlate"
            " compare situate locate base host list associate relate win star feature open begin start end"
        ),
    )
)
"""Stems of verbs that say the same with their sides exchanged, or often do."""


def _both_ways(listed: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in listed.split():
        one, _, other = pair.partition("/")
        for first, second in ((one, other), (other, one)):
            found.setdefault(first, set()).add(second)
            if stem(first) != stem(second):
                found.setdefault(stem(first), set()).add(stem(second))
    return MappingProxyType({word: frozenset(others) for word, others in found.items()})


OPPOSITES = _both_ways(SHARED_PAIRS + _OWN_PAIRS)
"""Word or stem to those of opposite meaning."""
CLASS_OF: Mapping[str, str] = MappingProxyType(
    {stem(word): stem(group.split()[0]) for group in SAME_WORDS.split("|") for word in group.split()}
)
"""Stem to the stem that stands for all words of its meaning."""
UNIT_FAMILY: Mapping[str, int] = MappingProxyType(
    {
        form: number
        for number, family in enumerate(UNITS.replace("\n", "").split("|"))
        for word in family.split("/")
        for form in (word, stem(word))
    }
)
"""Unit of measure to the number of what it measures."""
