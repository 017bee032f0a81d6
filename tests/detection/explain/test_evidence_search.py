"""Tests of ``truthlens.detection.explain.evidence_search``."""

from __future__ import annotations

from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.detection.explain.evidence_search import EvidenceSentences
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.text.words import words

PASSAGES = (
    Passage("The library is open on weekdays. Its café closes at six.", Provenance.DOCUMENTS),
    Passage("Members may borrow ten books. Renewals are possible for three weeks.", Provenance.DOCUMENTS),
    Passage("Two euros a week are due.", Provenance.DOCUMENTS, title="Late returns"),
)


def claim(text: str) -> dict[str, float]:
    """The words of content of ``text``, all of one weight."""
    return {keys_of(word)[0]: 1.0 for word in words(text) if not word.stop}


def nearest(
    text: str, *, before: str = "", passages: tuple[Passage, ...] = PASSAGES
) -> tuple[int, str] | None:
    """Passage and text of the sentence nearest to ``text``."""
    match = EvidenceSentences(passages).nearest(claim(text), context=claim(before))
    if match is None:
        return None
    found = match.sentence
    return found.passage, passages[found.passage].text[found.start : found.end]


def test_the_sentence_that_shares_most_is_found_with_its_place() -> None:
    """Offsets point into the passage's own text, whatever stands in front of the sentence."""
    assert nearest("Members can borrow fifty books") == (1, "Members may borrow ten books.")
    assert nearest("renewed for four weeks, if possible") == (
        1,
        "Renewals are possible for three weeks.",
    )
    assert nearest("The café closed at nine") == (0, "Its café closes at six.")


def test_a_title_counts_for_every_sentence_of_its_passage() -> None:
    """What a passage is about may stand in its title alone."""
    assert nearest("Returning late costs money") == (2, "Two euros a week are due.")


def test_nothing_in_common_is_no_match() -> None:
    """No sentence rather than an arbitrary one; so without evidence and without a claim."""
    assert nearest("Bananas ripen quickly") is None
    assert nearest("Bananas ripen quickly", before="The library is open") is None
    assert nearest("of the") is None
    assert nearest("Members", passages=()) is None


def test_the_sentence_before_decides_between_equals() -> None:
    """The context helps to choose and counts for no similarity."""
    twins = (
        Passage("The ferry costs nine euros.", Provenance.TOOL),
        Passage("The castle costs nine euros.", Provenance.TOOL),
    )
    assert nearest("It costs euros", before="See the castle", passages=twins) == (1, twins[1].text)
    evidence = EvidenceSentences(twins)
    with_context = evidence.nearest(claim("costs euros"), context=claim("castle"))
    without = evidence.nearest(claim("costs euros"))
    assert with_context is not None
    assert without is not None
    assert with_context.similarity == without.similarity == 1.0


def test_rare_words_weigh_more_than_common_ones() -> None:
    """A word that stands in every sentence tells nothing of which one is meant."""
    passages = (
        Passage("The harbour museum opens daily. The harbour ferry runs daily.", Provenance.TOOL),
        Passage("The harbour master keeps a logbook.", Provenance.TOOL),
    )
    assert nearest("harbour opens daily logbook keeps", passages=passages) == (
        1,
        "The harbour master keeps a logbook.",
    )


def test_chinese_is_compared_by_its_character_pairs() -> None:
    """Han text has no spaces; its sentences end at their own full stops."""
    passages = (
        Passage("图书馆周一开放。每人可借十本书。", Provenance.TOOL),
        Passage("逾期还书每周收费两欧元。", Provenance.TOOL),
    )
    assert nearest("逾期收费九欧元", passages=passages) == (1, "逾期还书每周收费两欧元。")
    assert nearest("每人可借三本书", passages=passages) == (0, "每人可借十本书。")


def test_a_table_without_full_stops_is_cut_into_pieces() -> None:
    """Neither a sentence of thousands of words nor its whole text is ever "the nearest sentence"."""
    text = " ".join(f"article{number} costs {number} euros" for number in range(400))
    found = nearest("article321 costs money", passages=(Passage(text, Provenance.TOOL),))
    assert found is not None
    assert "article321" in found[1]
    assert len(found[1]) < 600


def test_the_currency_before_the_first_word_belongs_to_the_sentence() -> None:
    """A sentence begins with its first sign, not with its first word."""
    passages = (Passage("It is dear. $45 buys a ticket.", Provenance.TOOL),)
    assert nearest("a ticket", passages=passages) == (0, "$45 buys a ticket.")


def test_what_stands_where_is_known_for_all_of_the_evidence() -> None:
    """Presence of a word, of any reading of a number, and of two words side by side."""
    evidence = EvidenceSentences((Passage("It earned 1.2 million euros in Bern.", Provenance.TOOL),))
    held = {text: evidence.holds(words(text)[0]) for text in ("1,200,000", "1.2", "earning", "lost")}
    assert held == {"1,200,000": True, "1.2": False, "earning": True, "lost": False}
    assert evidence.follows("in", "bern")
    assert not evidence.follows("bern", "in")
    assert "bern" in evidence.names
