"""Labels follow words by provenance."""

from __future__ import annotations

from bench.mitigation.data import Given
from bench.mitigation.labels import Loss, Sources, Tally

FIRST = "The bridge was opened in 1931. It is painted blue every spring. Two lanes carry trams."
OTHER = "Trams run on two of its lanes. The bridge was opened in 1931 by the mayor of the town."
EVIDENCE = "The crossing opened in 1931. Trams use two lanes. Cyclists have a path on the northern side."


def marked(model: str, text: str, *parts: str) -> Given:
    return Given(model, text, tuple((text.index(part), text.index(part) + len(part)) for part in parts))


def sources() -> Sources:
    return Sources(
        marked("a", FIRST, "painted blue every spring"),
        [marked("b", OTHER, "by the mayor of the town")],
        [EVIDENCE],
    )


def letters(text: str) -> int:
    return sum(character.isalnum() for character in text)


def test_the_first_answer_has_what_people_marked() -> None:
    """Of an unchanged answer exactly the marked words are unsupported, and nothing is lost."""
    found = sources()
    assert found.tally(FIRST) == Tally(letters(FIRST), letters("paintedblueeveryspring"), 0, 0, wrong=True)
    assert found.loss(FIRST) == Loss(0, letters(FIRST) - letters("paintedblueeveryspring"), 0, 2, 0, 7)


def test_a_removed_sentence_takes_its_marks_along() -> None:
    """Without the marked sentence nothing is unsupported; the supported words of that sentence are lost."""
    text = "The bridge was opened in 1931. Two lanes carry trams."
    assert sources().tally(text) == Tally(letters(text), 0, 0, 0, wrong=False)
    loss = sources().loss(text)
    assert (loss.characters, loss.sentences) == (letters("It is"), 0)


def test_a_supported_sentence_that_is_gone_is_lost() -> None:
    """A wholly supported sentence that no longer stands in the text counts as lost, in all three measures."""
    loss = sources().loss("The bridge was opened in 1931.")
    assert (loss.sentences, loss.of_sentences) == (1, 2)
    assert loss.characters == letters("It is Two lanes carry trams")
    assert (loss.content, loss.of_content) == (4, 7)


def test_words_of_another_answer_have_its_marks() -> None:
    """A longer run from another answer is labelled as people labelled that answer."""
    text = "The bridge was opened in 1931 by the mayor of the town."
    tally = sources().tally(text)
    assert tally.unsupported == letters("by the mayor of the town")
    assert tally.wrong


def test_evidence_is_supported_and_inventions_are_not() -> None:
    """Sentences of the evidence count as supported, invented ones as unsupported even where they use its words."""
    found = sources()
    invention = "Cyclists have a path on the northern side since 1977."
    found.invent(invention)
    assert found.tally("Cyclists have a path on the northern side.").unsupported == 0
    tally = found.tally(f"Trams use two lanes. {invention}")
    assert (tally.unsupported, tally.invented) == (letters(invention), letters(invention))


def test_what_no_source_holds_is_unknown() -> None:
    """Words of no source are counted by themselves."""
    tally = sources().tally("Nobody knows when otters arrived. Two lanes carry trams.")
    assert (tally.unknown, tally.unsupported) == (letters("Nobody knows when otters arrived"), 0)


def test_a_leftover_article_is_no_unsupported_answer() -> None:
    """Only a word with content of its own makes an answer wrong."""
    found = Sources(marked("a", "We sell tea in the shop by the sea.", "the shop by the sea"), [], [])
    assert not found.tally("We sell tea in the").wrong
    assert found.tally("We sell tea in the shop").wrong


def test_list_marks_do_not_count() -> None:
    """Renumbered items are the same words."""
    first = marked("a", "1. Wash the pan.\n2. Dry the pan with a cloth.", "Wash the pan")
    found = Sources(first, [], [])
    assert found.tally("1. Dry the pan with a cloth.") == Tally(19, 0, 0, 0, wrong=False)
    assert found.loss("1. Dry the pan with a cloth.").sentences == 0
