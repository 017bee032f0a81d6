"""Tests of ``truthlens.detection.similarity``, with the bundled model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.errors import DetectorError, ModelError
from truthlens.detection.similarity import (
    Similarity,
    copies,
    load_similarity_manifest,
    shared_characters,
    shared_words,
)
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder

FOLDER = models_folder() / "truthlens-similarity-en-v1"

FERRY = [
    "The ferry to Ness Island leaves twice a day, at 9:15 and 14:30.",
    "Dogs travel free of charge.",
    "The crossing takes about forty minutes in calm weather.",
    "Tickets are sold on board only.",
]
FERRY_RETOLD = [
    "It takes roughly 40 minutes to get across when the sea is calm.",
    "There are two departures daily: 9:15 and 14:30.",
    "You can buy tickets only once you are on the boat.",
    "You do not have to pay for dogs.",
    "The harbour has a small café.",
]
RETOLD_AT = [1, 3, 0, 2]


@cache
def loaded() -> Similarity:
    return Similarity.load(FOLDER)


@pytest.fixture
def model() -> Similarity:
    return loaded()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled folder, to be damaged."""
    return shutil.copytree(FOLDER, tmp_path / "model")


def edit(folder: Path, **changes: object) -> None:
    """Change keys of the folder's manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_claim_told_in_other_words_is_the_nearest(model: Similarity) -> None:
    """Each claim of one answer finds its counterpart in the other's."""
    found = model.similar(FERRY, FERRY_RETOLD)
    assert found.shape == (4, 5)
    assert found.dtype == np.float32
    assert found.argmax(axis=1).tolist() == RETOLD_AT


def test_meaning_counts_where_no_word_is_shared(model: Similarity) -> None:
    """That is what the model is there for."""
    (found,) = model.similar(
        ["The physician examined the child."], ["A doctor looked at the kid.", "The bank closed."]
    )
    assert found[0] > found[1] + 0.1


def test_a_changed_number_stays_near(model: Similarity) -> None:
    """Alignment must bring the two together, so that somebody can see that they differ; but they are no copies."""
    (found,) = model.similar(
        ["The warranty lasts 24 months."], ["The warranty lasts 36 months.", "The lid is made of steel."]
    )
    assert 0.5 < found[0] < 1.0
    assert found[0] > found[1] + 0.3


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The fee is 3.5 %.", "the fee is 3.5%"),
        ("- **Cost:** 40 euros", "Cost: 40 euros."),
        ("2) Rinse the wound", "Rinse the wound!"),
        ("“It’s open”, she said", '"It\'s open" she said.'),
        ("该船票价为 40 欧元。", "该船票价为40欧元"),
        ("Ｗｉｄｅ letters", "wide letters"),
    ],
)
def test_copies_are_1_whatever_their_case_punctuation_and_markup(
    model: Similarity, left: str, right: str
) -> None:
    """A model's figure would be near 1 only."""
    assert model.similar([left], [right])[0, 0] == 1.0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("It costs 1.5 euros", "It costs 15 euros"),
        ("It was -5 degrees", "It was 5 degrees"),
        ("a factor of .5", "a factor of 5"),
        ("about 10² cells", "about 102 cells"),
        ("5 % of them", "5 of them"),
        ("x > 5", "x 5"),
        ("It is written in C#", "It is written in C"),
        ("It is open.", "It is open?"),
        ("It is open", "It is not open"),
        ("", ""),
        (" ... ", "…"),
    ],
)
def test_what_changes_a_number_or_a_claim_makes_no_copy(left: str, right: str) -> None:
    """Nor are texts without any content copies of each other."""
    assert not copies([left], [right])[0, 0]


def test_blank_texts_are_near_to_nothing(model: Similarity) -> None:
    """Also to each other, so that they are never aligned."""
    assert model.similar(["", "  \n"], [""]).max() < 0.5
    assert model.similar([""], ["The ferry leaves at nine."])[0, 0] < 0.2


@pytest.mark.parametrize(("left", "right"), [([], []), ([], ["a"]), (["a", "b"], [])])
def test_no_texts_give_an_empty_table(model: Similarity, left: list[str], right: list[str]) -> None:
    """Of the right shape."""
    assert model.similar(left, right).shape == (len(left), len(right))
    assert model.embed([]).shape == (0, 384)


def test_texts_in_other_scripts_are_compared_by_characters_and_numbers(model: Similarity) -> None:
    """The English model's figures for them mean nothing."""
    left = ["渡轮每天上午9点和下午2点各开一班。", "狗可以免费乘船。"]
    right = ["乘船时狗免费。", "该渡轮每天9点和2点开船。", "港口有一家小咖啡馆。"]
    assert not any(map(model.reads, [*left, *right]))
    found = model.similar(left, right)
    assert found.argmax(axis=1).tolist() == [1, 0]
    assert np.array_equal(found, shared_characters(left, right))


def test_a_pair_is_compared_by_meaning_only_where_both_texts_are_read(model: Similarity) -> None:
    """A mixed call changes nothing for the pairs that the model reads."""
    english, chinese = "The ferry leaves at 9:15.", "渡轮于9:15离开。"
    assert model.reads(english)
    assert not model.reads(chinese)
    found = model.similar([english, chinese], [english, chinese])
    assert found[0, 0] == found[1, 1] == 1.0
    assert found[0, 1] == shared_characters([english, chinese], [english, chinese])[0, 1]
    assert 0.0 < found[0, 1] < 0.5


def test_a_vector_does_not_depend_on_what_stands_in_its_batch() -> None:
    """Alone, among longer ones and remembered: the same vector of length 1."""
    model = Similarity.load(FOLDER)
    texts = [*FERRY, "Yes.", " ".join(FERRY), *FERRY_RETOLD]
    together = model.embed(texts)
    again = model.embed(texts[::-1])[::-1]
    alone = np.concatenate([Similarity.load(FOLDER).embed([text]) for text in texts[:6]])
    assert np.array_equal(together, again)
    assert np.abs(together[:6] - alone).max() < 1e-5
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)


def test_long_texts_are_cut_and_do_not_fail(model: Similarity) -> None:
    """What stands behind 256 tokens moves no vector."""
    start = "The ferry leaves at nine. " * 60
    first, second = model.embed([start + "Dogs are free. " * 9000, start + "Cats pay double. " * 5])
    assert np.abs(first - second).max() < 1e-5


def test_odd_characters_do_not_fail(model: Similarity) -> None:
    """Half a surrogate pair, zero bytes, emoji, control characters."""
    found = model.similar(["\ud83d broken", "\x00\x01", "🚢🚢"], ["🚢🚢", "broken"])
    assert np.isfinite(found).all()
    assert found[2, 0] == 1.0


def test_several_threads_get_the_figures_of_one() -> None:
    """One model serves all exchanges."""
    model = Similarity.load(FOLDER)
    expected = Similarity.load(FOLDER).similar(FERRY, FERRY_RETOLD)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.similar(FERRY, FERRY_RETOLD), range(12)):
            assert np.abs(found - expected).max() < 1e-5


def test_vectors_are_remembered_and_forgotten(model: Similarity) -> None:
    """A second comparison runs the model for new texts only, and memory stays bounded."""
    counted = _Counting(FOLDER)
    model = Similarity(counted, model._tokenizer, model.manifest)  # type: ignore[arg-type]
    model.similar(FERRY, FERRY_RETOLD)
    assert counted.rows == 9
    model.similar(FERRY_RETOLD, [*FERRY, "Something new."])
    assert counted.rows == 10
    model.embed([f"number {n}" for n in range(1100)])
    assert len(model._recent._rows) == 1024
    model.embed(FERRY[:1])
    assert counted.rows == 1111


class _Counting:
    """A session that counts the texts it is given."""

    def __init__(self, folder: Path) -> None:
        self.session = ort.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
        self.rows = 0

    def run(self, names: list[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.rows += len(inputs["input_ids"])
        return self.session.run(names, inputs)


def test_a_failing_session_is_a_detector_error_without_text(model: Similarity) -> None:
    """Its message names model and error, nothing of what was compared."""

    class Broken:
        def run(self, *_: object) -> None:
            raise RuntimeError("secret claim")

    broken = Similarity(Broken(), model._tokenizer, model.manifest)  # type: ignore[arg-type]
    with pytest.raises(DetectorError, match=r"failed on a batch \(RuntimeError\)$"):
        broken.similar(["secret claim"], ["another"])


def test_the_bundled_folder_says_what_it_is(model: Similarity) -> None:
    """Small, licensed, every file pinned."""
    manifest = load_similarity_manifest(FOLDER)
    assert manifest.licence == "Apache-2.0"
    assert manifest.languages == ("en",)
    assert manifest.dimension == model.embed(["a"]).shape[1] == 384
    assert set(manifest.files) == {"model.onnx", "tokenizer.json"}
    assert (FOLDER / "model.onnx").stat().st_size <= 23_000_000


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_is_refused(folder: Path, name: str) -> None:
    """The message says which file and what to do."""
    with (folder / name).open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(ModelError, match=rf"{name} has SHA-256 .* fetch the model again"):
        Similarity.load(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    """The message names it."""
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        Similarity.load(folder)


def test_a_file_that_the_manifest_does_not_list_is_refused(folder: Path) -> None:
    """An empty list of digests must not switch the check off."""
    edit(folder, files={})
    with pytest.raises(ModelError, match=r"not listed in manifest\.json"):
        Similarity.load(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "detector"}, "kind"),
        ({"dimension": 0}, "dimension"),
        ({"extra": 1}, "extra"),
        ({"name": None}, "name"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(folder: Path, changes: dict[str, object], said: str) -> None:
    """The message names the key."""
    edit(folder, **changes)
    with pytest.raises(ModelError, match=f"manifest.json: {said}: .*similarity model"):
        Similarity.load(folder)


def test_a_graph_that_does_not_fit_its_manifest_is_refused(folder: Path) -> None:
    """Here: of another width."""
    edit(folder, dimension=100)
    with pytest.raises(ModelError, match="width 100"):
        Similarity.load(folder)


def test_a_detectors_folder_is_refused() -> None:
    """It has a manifest, but one of another kind."""
    with pytest.raises(ModelError, match="similarity model"):
        Similarity.load(models_folder() / BUNDLED_MODEL)


def test_serving_needs_no_torch() -> None:
    """Loading and comparing import neither torch nor transformers."""
    code = (
        "import sys; from pathlib import Path; from truthlens.detection.similarity import Similarity\n"
        f"model = Similarity.load(Path({str(FOLDER)!r})); model.warm_up(); model.similar(['a b'], ['b c'])\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert ran.stdout.strip() == "[]"


WORDS = st.lists(
    st.sampled_from(["ferry", "dog", "9:15", "not", "40 %", "渡轮", "the", "-3", "?"]), max_size=6
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_shares_are_symmetric_within_0_and_1_and_whole_for_equal_texts(
    left: list[str], right: list[str]
) -> None:
    """Words and characters alike."""
    for share in (shared_words, shared_characters):
        found = share(left, right)
        assert found.shape == (len(left), len(right))
        assert ((found >= 0.0) & (found <= 1.0)).all()
        assert np.allclose(found, share(right, left).T, atol=1e-6)
        for row, ours in enumerate(left):
            for column, theirs in enumerate(right):
                if ours == theirs and any(c.isalnum() for c in ours):
                    assert found[row, column] == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(WORDS, min_size=1, max_size=3))
def test_similarity_is_symmetric_and_within_0_and_1(left: list[str], right: list[str]) -> None:
    """Whatever is compared with whatever."""
    model = loaded()
    found = model.similar(left, right)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert np.allclose(found, model.similar(right, left).T, atol=1e-5)
