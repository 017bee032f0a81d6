"""Whether two texts are in one language."""

import pytest

from truthlens.mitigation.tongue import same_language

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
