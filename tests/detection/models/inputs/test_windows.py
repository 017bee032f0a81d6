"""Tests of ``truthlens.detection.models.inputs.windows`` and of ``evidence_tokens`` and ``assignment``, which it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE, WordLevel

from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.assignment import chunks_of
from truthlens.detection.models.inputs.evidence_tokens import LONGEST_UNIT, encode_evidence
from truthlens.detection.models.inputs.lexical import FEATURE_COUNT, FEATURE_NAMES, LEXICAL_COUNT
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.prompts import build_prompt
from truthlens.detection.models.inputs.windows import Window, build_windows, load_tokenizer

VOCABULARY = [
    "zorblax",
    "river",
    "bridge",
    "harbour",
    "fee",
    "nine",
    "opens",
    "closes",
    "library",
    "maps",
    "euros",
    "week",
    "boats",
    "ice",
    "snow",
    "lamp",
    "green",
    "red",
    *(f"w{number}" for number in range(400)),
]
TOKENIZER = word_tokenizer(dict.fromkeys(VOCABULARY, 0.0))
SMALL = InputFormat(max_tokens=64, segment_ids=True, answer_tokens=24, answer_overlap=6)
CLS, SEP = TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]")


def _ids(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False).ids)


def _words(window: Window) -> list[str]:
    return [TOKENIZER.id_to_token(int(token)) for token in window.input_ids]


def _covered(windows: Sequence[Window]) -> set[int]:
    return {w.first + i for w in windows for i in range(w.answer.stop - w.answer.start)}


def test_layout_is_query_evidence_answer_with_segments() -> None:
    """[CLS] query [SEP] evidence [SEP] answer [SEP]; the second segment begins with the answer."""
    built = build_windows(
        TOKENIZER, SMALL, query="river", passages=["library opens", "nine boats"], answer="red lamp"
    )
    (window,) = built.windows
    assert _words(window) == (
        ["[CLS]", "river", "[SEP]", "library", "opens", "nine", "boats", "[SEP]", "red", "lamp", "[SEP]"]
    )
    assert window.type_ids.tolist() == [0] * 8 + [1] * 3
    assert window.answer == slice(8, 10)
    assert window.features is None


def test_without_a_query_its_part_is_left_out() -> None:
    """A blank query leaves no separator behind."""
    built = build_windows(TOKENIZER, SMALL, query="  ", passages=["library"], answer="lamp")
    assert _words(built.windows[0]) == ["[CLS]", "library", "[SEP]", "lamp", "[SEP]"]


def test_models_without_segments_get_zeros() -> None:
    """Where the format has no segments, type ids are all zero."""
    fmt = SMALL.model_copy(update={"segment_ids": False})
    built = build_windows(TOKENIZER, fmt, query="", passages=["library"], answer="lamp")
    assert not built.windows[0].type_ids.any()


def test_offsets_point_to_the_answer_tokens() -> None:
    """Each token's offsets cut its own text out of the answer, also after astral characters."""
    answer = "😀 red  lamp, green"
    built = build_windows(TOKENIZER, SMALL, query="", passages=["library"], answer=answer)
    assert [answer[start:end] for start, end in built.offsets] == ["😀", "red", "lamp", ",", "green"]


@settings(max_examples=60, deadline=None)
@given(
    answer=st.lists(st.sampled_from([*VOCABULARY, ".", "\n"]), max_size=300).map(" ".join),
    passages=st.lists(
        st.lists(st.sampled_from(["red", "red", "w7", "."]), max_size=90).map(" ".join), max_size=6
    ),
    query=st.lists(st.sampled_from(VOCABULARY), max_size=40).map(" ".join),
    mode=st.sampled_from(["select", "windows"]),
    chunk=st.integers(4, 40),
    overlap=st.integers(0, 3),
)
def test_every_answer_token_stands_in_a_window(  # noqa: PLR0917  # Hypothesis fills them by name
    answer: str, passages: list[str], query: str, mode: str, chunk: int, overlap: int
) -> None:
    """No token of the answer is dropped and no window is too long, whatever the sizes; coverage is complete."""
    fmt = InputFormat.model_validate(
        {"max_tokens": 64, "answer_tokens": chunk, "answer_overlap": overlap, "evidence": mode}
    )
    built = build_windows(TOKENIZER, fmt, query=query, passages=passages, answer=answer, max_windows=10_000)
    expected = _ids(answer)
    assert _covered(built.windows) == set(range(len(expected)))
    assert len(built.offsets) == len(expected)
    for window in built.windows:
        length = window.answer.stop - window.answer.start
        assert window.input_ids[window.answer].tolist() == expected[window.first : window.first + length]
        assert len(window.input_ids) <= fmt.max_tokens
        assert window.input_ids[0] == CLS
        assert window.input_ids[-1] == SEP
    assert built.coverage.complete
    assert built.coverage.windows == len(built.windows)
    if mode == "windows" and built.windows:
        assert built.coverage.evidence_tokens_read == built.coverage.evidence_tokens


def test_claim_at_the_end_of_a_long_answer_stands_in_a_window() -> None:
    """The last words of a 6,000-token answer are scored, beside the evidence that concerns them."""
    answer = " ".join(f"w{number % 400}" for number in range(5_990)) + ". zorblax bridge closes ."
    passages = [
        " ".join(f"w{number}" for number in range(300)) + ".",
        "The harbour opens. zorblax fee . Ice.",
    ]
    fmt = InputFormat(max_tokens=512, answer_tokens=224, answer_overlap=48, features="lexical-v1")
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer=answer)
    assert len(built.offsets) > 5_990
    last = built.windows[-1]
    assert "zorblax" in _words(last)[last.answer]
    assert "zorblax" in _words(last)[: last.answer.start]
    assert built.coverage.complete
    assert built.coverage.answer_tokens_scored == len(built.offsets)


def test_matching_sentence_of_the_last_of_forty_passages_is_selected() -> None:
    """The sentence that shares the claim's words is read, wherever it stands."""
    filler = [" ".join(f"w{(40 * p + n) % 400}" for n in range(40)) + " . green boats ." for p in range(39)]
    passages = [*filler, "Red lamp . The zorblax fee is nine euros . Snow ."]
    built = build_windows(TOKENIZER, SMALL, query="", passages=passages, answer="zorblax fee : w3 euros")
    read = _words(built.windows[0])[: built.windows[0].answer.start]
    place = read.index("zorblax")
    assert read[place : place + 5] == ["zorblax", "fee", "[UNK]", "nine", "euros"]
    assert built.coverage.complete
    assert built.coverage.evidence_tokens_read < built.coverage.evidence_tokens


def test_selected_sentences_keep_document_order() -> None:
    """What is selected stands in the order of the document, not of its worth."""
    passages = ["nine euros . " + "w1 " * 40 + ". red lamp . " + "w2 " * 40 + ". zorblax fee ."]
    built = build_windows(TOKENIZER, SMALL, query="", passages=passages, answer="zorblax fee . red lamp")
    read = _words(built.windows[0])
    assert read.index("lamp") < read.index("zorblax") < built.windows[0].answer.start


def test_windows_mode_shows_every_chunk_all_of_the_evidence() -> None:
    """Each chunk meets each group of passages; together the groups are all evidence, in order."""
    fmt = SMALL.model_copy(update={"evidence": "windows"})
    passages = [" ".join(f"w{n}" for n in range(100)) + "."]
    answer = " ".join(f"w{n}" for n in range(200, 250))
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer=answer)
    by_chunk: dict[int, list[int]] = {}
    for window in built.windows:
        by_chunk.setdefault(window.first, []).extend(window.input_ids[1 : window.answer.start - 1].tolist())
    assert len(by_chunk) > 1
    assert all(evidence == _ids(passages[0]) for evidence in by_chunk.values())


def test_further_windows_hold_the_next_best_sentences() -> None:
    """With three windows a chunk, each sentence of the evidence stands in at most one of them, matches first."""
    fmt = SMALL.model_copy(update={"evidence_windows": 3})
    passages = [f"zorblax fee w{n} " + "green " * 10 + "." for n in range(12)]
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee")
    assert [window.first for window in built.windows] == [0, 0, 0]
    read = [_words(window)[1 : window.answer.start - 1] for window in built.windows]
    assert all("zorblax" in words for words in read)
    distinct = [word for words in read for word in words if word.startswith("w")]
    assert len(distinct) == len(set(distinct)) >= 3
    assert built.coverage.windows == 3


def test_no_further_window_without_a_match() -> None:
    """A second window that could only hold unrelated sentences is not made."""
    fmt = SMALL.model_copy(update={"evidence_windows": 3})
    passages = ["zorblax fee ."] + [f"green w{n} " * 15 + "." for n in range(6)]
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee")
    assert len(built.windows) == 1


def test_only_the_nearest_groups_are_read() -> None:
    """With ``windows`` and a bound, the groups that hold the answer's words are read; all evidence was compared."""
    fmt = SMALL.model_copy(update={"evidence": "windows", "evidence_windows": 2})
    passages = [f"{word} " * 47 + "." for word in ("green", "zorblax", "red", "fee")]
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee")
    read = [set(_words(window)[1 : window.answer.start - 1]) for window in built.windows]
    assert len(read) == 2
    assert "zorblax" in read[0]
    assert "fee" in read[1]
    assert built.coverage.complete
    assert built.coverage.evidence_tokens_read < built.coverage.evidence_tokens


def test_a_bound_of_windows_holds_with_several_a_chunk() -> None:
    """``max_windows`` counts all windows; what is left out are whole chunks at the end."""
    fmt = SMALL.model_copy(update={"evidence_windows": 2})
    answer = " ".join(f"w{n}" for n in range(100))
    passages = [" ".join(f"w{n}" for n in range(100)) + "."]
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer=answer, max_windows=4)
    assert len(built.windows) <= 4
    assert 0 < built.coverage.answer_tokens_scored < built.coverage.answer_tokens


def test_context_ranking_prefers_the_passage_that_speaks_of_the_matter() -> None:
    """Of two sentences that share the same word with the answer, the one among related sentences is read."""
    filler = "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 ."
    unrelated = f"{filler} boats zorblax ice snow lamp w30 w31 w32 w33 w34 w35 w36 . {filler}"
    related = f"{filler} green zorblax red fee lamp w40 w41 w42 w43 w44 w45 w46 . river bridge harbour ."
    for ranking, expected in (("overlap", "w30"), ("context", "w40")):
        fmt = SMALL.model_copy(update={"ranking": ranking, "max_tokens": 44})
        built = build_windows(
            TOKENIZER, fmt, query="bridge", passages=[unrelated, related], answer="river zorblax ."
        )
        assert expected in _words(built.windows[0])


def test_relevance_is_the_share_of_a_sentence_that_a_window_holds() -> None:
    """Each token carries how much of its own sentence stands in the window; formats that do not ask have none."""
    passages = ["zorblax fee " + "green " * 50 + ".", "red lamp " + "boats " * 50 + "."]
    fmt = SMALL.model_copy(update={"evidence": "windows", "merge": "nearest"})
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee . red w1 .")
    shares = np.stack([window.relevance for window in built.windows if window.relevance is not None])
    assert shares.shape == (len(built.windows), 6)
    np.testing.assert_allclose(shares[:, :3].max(axis=0), 1.0)
    assert (shares[:, :3].argmax(axis=0) < shares[:, 3:].argmax(axis=0)).all()
    assert 0.0 < shares[:, 3:].max() < 1.0
    plain = build_windows(TOKENIZER, SMALL, query="", passages=passages, answer="zorblax")
    assert all(window.relevance is None for window in plain.windows)


def test_features_over_what_was_read_do_not_see_the_rest() -> None:
    """A word that only an unread sentence holds counts as absent, where the format says so."""
    # Stop words are features, but nothing is selected for their sake.
    passages = ["zorblax fee . " * 30 + "green lamp stands under green boats ."]
    present = FEATURE_NAMES.index("present")
    found = {}
    for scope in ("all", "read"):
        fmt = InputFormat.model_validate(
            {"max_tokens": 32, "answer_tokens": 8, "answer_overlap": 0, "features": "lexical-v1"}
            | {"features_over": scope, "evidence_windows": 1}
        )
        built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee under")
        (window,) = built.windows
        assert window.features is not None
        assert "green" not in _words(window)
        found[scope] = window.features[window.answer, present].tolist()
        assert built.coverage.complete
    assert found == {"all": [1.0, 1.0, 1.0], "read": [1.0, 1.0, 0.0]}


def test_neighbouring_chunks_overlap() -> None:
    """Chunks of full size share the tokens that the format asks for; the last one ends with the answer."""
    answer = " ".join(f"w{n}" for n in range(100))
    built = build_windows(TOKENIZER, SMALL, query="", passages=["red " * 50], answer=answer)
    assert {window.end - window.first for window in built.windows} == {SMALL.answer_tokens}
    shared = [left.end - right.first for left, right in pairwise(built.windows)]
    assert shared[:-1] == [SMALL.answer_overlap] * (len(shared) - 1)
    assert shared[-1] >= SMALL.answer_overlap
    assert built.windows[-1].end == len(built.offsets) == 100


@given(size=st.integers(2, 40), data=st.data())
def test_more_tokens_leave_all_chunks_but_the_last_where_they_are(size: int, data: st.DataObject) -> None:
    """Chunks cover every token, keep their size, and stay when the answer grows."""
    overlap = data.draw(st.integers(0, size - 1))
    fewer, more = sorted(data.draw(st.tuples(st.integers(0, 200), st.integers(0, 200))))
    before, after = (chunks_of(tokens, size=size, overlap=overlap) for tokens in (fewer, more))
    assert before[:-1] == after[: max(len(before) - 1, 0)]
    assert {token for start, end in after for token in range(start, end)} == set(range(more))
    assert {end - start for start, end in after} <= {min(size, more)}
    assert all(left[1] - right[0] >= overlap for left, right in pairwise(after))


def test_a_long_answer_stays_whole_where_the_evidence_leaves_room() -> None:
    """Short evidence: the chunk grows to what fits, rather than being cut at its usual size."""
    answer = " ".join(f"w{n}" for n in range(50))
    built = build_windows(TOKENIZER, SMALL, query="", passages=["red lamp"], answer=answer)
    assert len(built.windows) == 1


def test_bounded_windows_show_in_coverage() -> None:
    """Beyond ``max_windows`` tokens stay unscored, and coverage says how many."""
    answer = " ".join(f"w{n}" for n in range(200))
    built = build_windows(TOKENIZER, SMALL, query="", passages=["red " * 60], answer=answer, max_windows=2)
    assert len(built.windows) == 2
    assert built.coverage.answer_tokens_scored == len(_covered(built.windows)) < built.coverage.answer_tokens
    assert not built.coverage.complete


def test_bounded_windows_in_windows_mode_show_in_coverage() -> None:
    """Where even one chunk cannot meet all evidence, the evidence is what coverage shows as unseen."""
    fmt = SMALL.model_copy(update={"evidence": "windows"})
    built = build_windows(
        TOKENIZER, fmt, query="", passages=["red lamp . " * 100], answer="green", max_windows=3
    )
    assert len(built.windows) == 3
    assert 0 < built.coverage.evidence_tokens_seen < built.coverage.evidence_tokens
    assert not built.coverage.complete


@pytest.mark.parametrize(
    "passages", [["red lamp . " * 100], ["red lamp ."] * 100, ["red " * 50, "lamp " * 250]]
)
def test_bounded_evidence_shows_in_coverage(passages: list[str]) -> None:
    """Beyond ``max_evidence_tokens`` evidence is not looked at, and coverage says so."""
    built = build_windows(
        TOKENIZER, SMALL, query="", passages=passages, answer="green", max_evidence_tokens=60
    )
    assert built.coverage.evidence_tokens_seen == 60
    assert built.coverage.evidence_tokens == pytest.approx(300, rel=0.2)
    assert not built.coverage.complete


def test_huge_passage_is_counted_without_being_tokenised() -> None:
    """A passage of megabytes costs no more than the bound, and still counts."""
    evidence = encode_evidence(TOKENIZER, ["red lamp . " * 200_000], max_tokens=1_000)
    assert evidence.kept == 1_000
    assert evidence.total == pytest.approx(600_000, rel=0.05)


def test_units_cover_all_tokens_once() -> None:
    """Units are sentences, or pieces of long ones, and together all of the evidence."""
    evidence = encode_evidence(TOKENIZER, ["red lamp. green boats.\nIce", "w1 " * 250, ""], max_tokens=10_000)
    assert evidence.sizes.sum() == evidence.kept == evidence.total
    assert evidence.sizes.max() <= LONGEST_UNIT
    assert evidence.units[:3].tolist() == [[0, 0, 3], [0, 3, 6], [0, 6, 7]]
    assert [word.stem for word in evidence.words[1]] == ["green", "boat"]


def test_chinese_evidence_is_cut_and_selected_by_sentence() -> None:
    """Han text has no spaces: sentences end at its own marks and match by character pairs."""
    passages = ["图书馆九点开门。" * 30 + "停车费是每天三欧元。" + "港口很大。" * 30]
    tokens = {
        character: number + 4 for number, character in enumerate(sorted(set("".join(passages) + "停车费五")))
    }
    tokenizer = Tokenizer(
        WordLevel({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, **tokens}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    built = build_windows(tokenizer, SMALL, query="", passages=passages, answer="停车费五欧元")
    read = "".join(
        tokenizer.id_to_token(int(i)) for i in built.windows[0].input_ids[: built.windows[0].answer.start]
    )
    assert "停车费是每天三欧元" in read
    assert built.coverage.complete


@pytest.mark.parametrize(
    ("features", "columns"), [("lexical-v1", LEXICAL_COUNT), ("lexical-v2", FEATURE_COUNT)]
)
def test_features_lie_on_the_answer_alone(features: str, columns: int) -> None:
    """Features stand where the answer stands, zeros elsewhere; every window has its own slice of them."""
    fmt = SMALL.model_copy(update={"features": features})
    answer = " ".join(f"w{n}" for n in range(60))
    built = build_windows(TOKENIZER, fmt, query="", passages=["w0 w59 " * 30], answer=answer)
    assert len(built.windows) > 1
    for window in built.windows:
        assert window.features is not None
        assert window.features.shape == (len(window.input_ids), columns)
        assert window.features[window.answer, 0].all()
        outside = np.delete(window.features, np.arange(window.answer.start, window.answer.stop), axis=0)
        assert not outside.any()


@pytest.mark.parametrize(
    ("answer", "passages"), [("", ["red lamp"]), ("  \n", ["red"]), ("green", []), ("green", [""])]
)
def test_empty_parts_are_no_error(answer: str, passages: list[str]) -> None:
    """Blank answers give no windows, absent evidence gives windows without it."""
    fmt = SMALL.model_copy(update={"features": "lexical-v1"})
    built = build_windows(TOKENIZER, fmt, query="", passages=passages, answer=answer)
    assert len(built.windows) == (1 if answer.strip() else 0)
    assert built.coverage.complete


def test_long_query_leaves_room_for_evidence() -> None:
    """Of a long query only the beginning is read; it never crowds the evidence out."""
    built = build_windows(TOKENIZER, SMALL, query="river " * 500, passages=["red lamp " * 40], answer="green")
    read = _words(built.windows[0])
    assert read.count("river") == SMALL.max_tokens // 8
    assert read.count("lamp") > 10


def _byte_tokenizer() -> Tokenizer:
    """Byte-level BPE without merges, with ModernBERT's pair layout."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["[PAD]", "[CLS]", "[SEP]", *alphabet])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


def test_template_input_is_the_prompt_byte_for_byte() -> None:
    """Where all fits, segment A is exactly the training prompt."""
    tokenizer = _byte_tokenizer()
    fmt = InputFormat(max_tokens=2048, template="lettucedetect-qa", answer_tokens=64, answer_overlap=8)
    passages = ["The lamp is red.", '"Boats" leave at nine.']
    built = build_windows(tokenizer, fmt, query="when do boats leave", passages=passages, answer="At nine.")
    (window,) = built.windows
    prompt = build_prompt("lettucedetect-qa", query="when do boats leave", passages=passages)
    read = tokenizer.decode(window.input_ids[1 : window.answer.start - 1].tolist(), skip_special_tokens=False)
    assert read == prompt.text(passages)
    assert built.coverage.evidence_tokens_read == built.coverage.evidence_tokens


def test_template_keeps_labels_and_frame_when_evidence_is_selected() -> None:
    """Where not all fits, the frame stays whole and chosen sentences stand under their passage's label."""
    tokenizer = _byte_tokenizer()
    fmt = InputFormat(max_tokens=640, template="lettucedetect-qa", answer_tokens=64, answer_overlap=8)
    passages = ["Snow fell all day. " * 30, "Boats leave at nine. " + "Ice is cold. " * 30]
    built = build_windows(tokenizer, fmt, query="when", passages=passages, answer="Boats leave at ten.")
    (window,) = built.windows
    assert len(window.input_ids) <= 640
    read = tokenizer.decode(window.input_ids[1 : window.answer.start - 1].tolist(), skip_special_tokens=False)
    prompt = build_prompt("lettucedetect-qa", query="when", passages=passages)
    assert read.startswith(prompt.head)
    assert read.endswith(prompt.tail)
    assert "passage 2:Boats leave at nine." in read


def test_a_prompt_that_leaves_no_room_is_refused() -> None:
    """A template longer than the window is a mistake in the manifest, not a longer window."""
    fmt = InputFormat(max_tokens=64, template="lettucedetect-qa", answer_tokens=16, answer_overlap=4)
    with pytest.raises(ModelError, match="max_tokens 64"):
        build_windows(_byte_tokenizer(), fmt, query="when", passages=["Ice."] * 9, answer="At nine.")


def test_a_tokenizer_that_truncates_is_refused() -> None:
    """Truncation would drop tokens silently, so it is an error."""
    tokenizer = word_tokenizer()
    tokenizer.enable_truncation(8)
    with pytest.raises(ModelError, match="truncates"):
        build_windows(tokenizer, SMALL, query="", passages=["a"], answer="b")


def test_a_tokenizer_without_separators_is_refused() -> None:
    """Without separator tokens no pair can be built."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    with pytest.raises(ModelError, match="separator"):
        build_windows(tokenizer, SMALL, query="", passages=["a"], answer="b")


def test_load_tokenizer_switches_truncation_and_padding_off(tmp_path: Path) -> None:
    """A file that truncates and pads loads without either."""
    tokenizer = word_tokenizer()
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path)
    assert loaded.truncation is None
    assert loaded.padding is None


@pytest.mark.parametrize("content", [None, "{}"])
def test_load_tokenizer_says_what_is_wrong(tmp_path: Path, content: str | None) -> None:
    """A missing or damaged file is a ModelError that names it."""
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_selection_beside_a_short_answer_can_be_bounded() -> None:
    """So many evidence tokens and one more for each of the chunk's, while evidence that fits whole stays whole."""
    fmt = InputFormat(
        max_tokens=128, segment_ids=True, answer_tokens=48, answer_overlap=6, selected_tokens=20
    )
    passages = [f"zorblax fee w{number} w{number + 1} ." for number in range(60)]
    (window,) = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee w3").windows
    evidence = window.answer.start - 2  # less [CLS] and the [SEP] before the answer
    assert 15 <= evidence <= 23
    longer = build_windows(TOKENIZER, fmt, query="", passages=passages, answer="zorblax fee w3 " * 10)
    assert longer.windows[0].answer.start - 2 > evidence
    (whole,) = build_windows(TOKENIZER, fmt, query="", passages=passages[:10], answer="zorblax").windows
    assert whole.answer.start - 2 == 50


@pytest.mark.parametrize(
    "fmt",
    [
        {},
        {"evidence_windows": 2, "merge": "nearest"},
        {"evidence": "windows"},
        {"evidence": "windows", "evidence_windows": 2},
        {"max_tokens": 512},
    ],
)
def test_windows_of_chunks_that_are_known_can_be_left_out(fmt: dict[str, object]) -> None:
    """The others are those of the whole answer, whatever is left out, and the bound still counts all of them."""
    passages = [f"w{number} fee w{number + 1} . " * 3 for number in range(12)]
    answer = " ".join(f"w{number} fee ." for number in range(60))
    chosen = SMALL.model_copy(update=fmt)
    for most in (4, 256):
        whole = build_windows(
            TOKENIZER, chosen, query="", passages=passages, answer=answer, max_windows=most
        ).windows
        for after in (0, 30, 60, 96, 10_000):
            rest = build_windows(
                TOKENIZER,
                chosen,
                query="",
                passages=passages,
                answer=answer,
                max_windows=most,
                after=after,
            ).windows
            assert [window.input_ids.tolist() for window in rest] == [
                window.input_ids.tolist() for window in whole if window.end > after
            ]
