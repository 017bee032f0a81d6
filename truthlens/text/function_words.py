"""Function words of the languages that are told apart by them. Data, and nothing that reads text: everything may import it."""

from __future__ import annotations

_WORDS_OF = {
    "en": "the a an of to in is are was and what how do does can i my it for on with that this be you",
    "de": "der die das und ist ein eine nicht ich wie was zu den mit von für auf sind kann wird es im",
    "fr": "le la les des est un une et que quel quelle comment je du dans pour sur avec pas ce sont mon",
    "es": "el los las es una y qué cómo de la en por para con que mi se del son puedo cuál un",
    "it": "il gli che è una di come per con non sono del della cosa posso mi le un e qual quale",
    "pt": "o os as é uma e que como de da do em para com não meu minha são posso qual um",
    "nl": "de het een en is van wat hoe ik niet voor met op zijn kan mijn te dat deze er",
}
FUNCTION_WORDS = {code: frozenset(words.split()) for code, words in _WORDS_OF.items()}
# Besides those of ``FUNCTION_WORDS``. A word of two languages stands in both: it tells them not apart.
_MORE_WORDS = {
    "en": "at by from as or not no if has have had were will would should must they their its it's he she we our your "
    "there these those which who when where why than then also only per each any all about into been because so am an "
    "but may more per could just does did was",
    "de": "ein einem einen einer eines dem des bei an am in im um aus nach über unter vor ohne nur auch aber oder als "
    "wenn dass sie er wir ihr haben hat hatte werden wurde wurden kein keine keinen noch so bis pro durch seit man muss "
    "will war waren diese dieser dieses sich vom zum zur beim je mehr etwa sehr",
    "fr": "au aux de d l c qu n il elle ils elles nous vous on ou où à ce cette ces sa son ses leur par plus sans sous "
    "ne se si a ont été être était peut doit fait mais en y très chaque entre qui aucun aucune lors",
    "es": "lo al a o u no si su sus se ha han fue fueron era más pero sin sobre entre hasta desde cuando donde esta este "
    "esto estos estas cada muy ni le les nos hay está están una uno unos unas tiene puede",
    "it": "lo i la l gli al alla ai alle dal dalla dei delle degli nel nella nei sul sulla a o ma se si ha hanno è sia "
    "più anche senza su tra fra questo questa questi queste suo sua ogni molto quando dove era ci ne da in un uno",
    "pt": "a ao à aos no na nos nas dos das pelo pela ou mas se sem sob sobre entre até desde quando onde este esta isso "
    "esse essa seu sua há foi foram era mais muito cada ele ela eles elas também uns umas tem pode",
    "nl": "een of maar als dan om door bij uit naar over onder zonder nog ook wel geen hij zij ze we wij jullie hun haar "
    "was waren wordt worden werd heeft hebben had kunnen moet deze dit dat die in aan per elke meer zeer",
}
WORDS_OF = {code: words | frozenset(_MORE_WORDS[code].split()) for code, words in FUNCTION_WORDS.items()}
"""Function words by language, more than ``FUNCTION_WORDS`` has."""
COMMON_WORDS = frozenset().union(*WORDS_OF.values())
"""Function words of all languages that have any here."""
