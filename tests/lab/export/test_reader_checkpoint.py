"""Sequence classifiers of every layout become readers: exported, rounded, compared, and refused where they cannot be told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.sequence_checkpoints import LAYOUTS, write_sequence_checkpoint
from truthlens.core.cancellation import never
from truthlens.core.errors import ModelError
from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.reader.detector import ReaderDetector
from truthlens.detection.detectors.reader.inputs import ReaderEvidence
from truthlens.detection.detectors.reader.model import Reader
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.lab.export import reader_checkpoint, reader_source
from truthlens.lab.export.reader_checkpoint import Conversion, ReaderWishes, convert_reader

EVIDENCE = "The observatory opened in 1881. A day ticket costs 7 euros. Dogs are welcome in the yard."
CLAIM = "The observatory opened in 1990 and a day ticket costs 7 euros."


def converted(folder: Path, output: Path, **wishes: object) -> Conversion:
    return convert_reader(folder, output, ReaderWishes(**wishes), base="someone/nli", commit="a" * 40)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sequence classifier of BERT layout."""
    return write_sequence_checkpoint(tmp_path_factory.mktemp("bert") / "nli")


@pytest.fixture
def copy(checkpoint: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return Path(shutil.copytree(checkpoint, tmp_path / "nli"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_what_the_library_gives(layout: str, tmp_path: Path) -> None:
    """The folder's probabilities are those of transformers' own tokenizer and model, whatever else is in the batch."""
    folder = write_sequence_checkpoint(tmp_path / "nli", layout)
    made = converted(folder, tmp_path / "reader")
    assert (made.rounded, made.pairs) == (True, 140)
    assert (made.export <= 1e-4, made.rounding_p99 <= 0.02) == (True, True)
    reader = Reader.load(tmp_path / "reader")
    evidence = ReaderEvidence(reader.tokenizer, reader.manifest.input, [EVIDENCE])
    inputs = [evidence.input_for(claim) for claim in (CLAIM, "Dogs are welcome.", "Cats are not.")]
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    given = tokenizer(
        EVIDENCE, CLAIM, padding=False, truncation=False, return_tensors="pt", return_token_type_ids=True
    )
    assert inputs[0].ids.tolist() == given["input_ids"][0].tolist()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    taken = {name: given[name] for name in ("input_ids", "attention_mask")}
    if layout == "bert":
        assert inputs[0].segments is not None
        assert inputs[0].segments.tolist() == given["token_type_ids"][0].tolist()
        taken["token_type_ids"] = given["token_type_ids"]
    with torch.inference_mode():
        (wanted,) = torch.softmax(model(**taken).logits, dim=-1).numpy()
    found = reader.read(inputs)
    # The classes are entailment, neutral, contradiction; the reader's columns supported, contradicted, not stated.
    assert np.allclose(found[0], wanted[[0, 2, 1]], atol=0.03)
    alone = np.concatenate([reader.read([each]) for each in inputs])
    assert np.allclose(found, alone, atol=1e-3)


def test_the_manifest_says_what_the_reader_is(checkpoint: Path, tmp_path: Path) -> None:
    """Kind, source, licence, languages, classes, template, and a digest of every file."""
    converted(checkpoint, tmp_path / "reader")
    manifest = json.loads((tmp_path / "reader" / "manifest.json").read_text())
    assert {key: manifest[key] for key in ("kind", "name", "base", "commit", "licence", "languages", "labels")} == {
        "kind": "reader",
        "name": "reader",
        "base": "someone/nli",
        "commit": "a" * 40,
        "licence": "mit",
        "languages": ["en", "de"],
        "labels": ["supported", "not_stated", "contradicted"],
    }  # fmt: skip
    assert manifest["input"]["template"] == "{evidence}{pair}{claim}"
    assert (manifest["input"]["max_tokens"], manifest["figures"]["weights"]) == (258, "int8")
    assert set(manifest["files"]) == {"model.onnx", "tokenizer.json"}
    assert {file.name for file in tmp_path.glob("*/*")} == {"model.onnx", "tokenizer.json", "manifest.json"}


def test_a_head_of_two_classes_never_says_contradicted(tmp_path: Path) -> None:
    """Its claims are supported or not stated; batches, cache and growing answers are those of any reader."""
    folder = write_sequence_checkpoint(
        tmp_path / "nli", labels=("entailment", "not_entailment"), initializer_range=0.6
    )
    converted(folder, tmp_path / "reader")
    reader = Reader.load(tmp_path / "reader")
    exchange = Exchange(Endpoint.CHAT, "m", "", (Passage(EVIDENCE, Provenance.DOCUMENTS),))
    text = "The observatory opened in 1880. Cats pay 9 euros. Dogs are welcome in the archive, and so on it goes."
    detector = ReaderDetector(reader)
    (whole,) = detector.detect_all(exchange, [Answer(0, AnswerKind.TEXT, text)], aggregation=None, stop=never)
    assert len(whole.findings) >= 3
    told = {finding.outcome for finding in whole.findings}
    assert told <= {ClaimOutcome.SUPPORTED, ClaimOutcome.NOT_STATED}
    read: list[int] = []
    original = reader.read
    reader.read = lambda inputs, **given: (read.append(len(inputs)), original(inputs, **given))[1]  # type: ignore[method-assign]
    follower = detector.follow(exchange)
    for end in (31, 49, len(text)):
        part = Answer(0, AnswerKind.TEXT, text[:end])
        follower.detect_ranges([part], [[(0, end)]], aggregation=None, stop=never)
    (grown,) = follower.detect_all([Answer(0, AnswerKind.TEXT, text)], [()], aggregation=None, stop=never)
    assert sum(read) == len(whole.findings)
    assert [(each.start, each.end) for each in grown.findings] == [
        (each.start, each.end) for each in whole.findings
    ]
    assert np.allclose(
        [each.risk for each in grown.findings], [each.risk for each in whole.findings], atol=1e-3
    )


def test_a_template_is_read_as_it_stands(tmp_path: Path) -> None:
    """One text, or the claim first; special tokens of the template count, and those within the texts do not."""
    checkpoint = write_sequence_checkpoint(tmp_path / "nli", "modernbert")
    converted(checkpoint, tmp_path / "one", template='{evidence}[SEP] Does "{claim}" follow?')
    reader = Reader.load(tmp_path / "one")
    evidence = ReaderEvidence(reader.tokenizer, reader.manifest.input, ["Tea {claim} [SEP] is free."])
    made = evidence.input_for("Tea is [CLS] {evidence} free.")
    text = reader.tokenizer.decode(made.ids.tolist(), skip_special_tokens=False)
    assert text.count("[SEP]") == 2  # the template's and the end
    assert text.count("[CLS]") == 1
    assert "Tea {claim} [ SEP] is free.[SEP]" in text
    assert 'Does "Tea is [ CLS] {evidence} free." follow?' in text
    converted(checkpoint, tmp_path / "claim-first", template="{claim}{pair}{evidence}")
    reader = Reader.load(tmp_path / "claim-first")
    made = ReaderEvidence(reader.tokenizer, reader.manifest.input, [EVIDENCE]).input_for("Dogs are welcome.")
    text = reader.tokenizer.decode(made.ids.tolist(), skip_special_tokens=False)
    assert text.startswith("[CLS]Dogs are welcome.[SEP]")
    assert text.endswith("Dogs are welcome in the yard.[SEP]")


def test_inputs_fit_the_checkpoint_whatever_comes(checkpoint: Path, tmp_path: Path) -> None:
    """Long claims, questions and words of many tokens stay within its positions, up to the most evidence that it has room for."""
    with pytest.raises(ModelError, match=r"has room for \d+") as refused:
        converted(checkpoint, tmp_path / "no", evidence_tokens=10_000)
    room = int(str(refused.value).split("has room for ")[1].split(":")[0])
    converted(checkpoint, tmp_path / "reader", evidence_tokens=room)
    reader = Reader.load(tmp_path / "reader")
    passages = ["日本語 " * 300, "Zürich№☃ " * 200, EVIDENCE * 20]
    evidence = ReaderEvidence(reader.tokenizer, reader.manifest.input, passages)
    inputs = [
        evidence.input_for("☃" * 900),
        evidence.input_for("Zürich №", query="☃?" * 500),
        evidence.input_for(CLAIM * 30),
    ]
    assert max(len(each.ids) for each in inputs) <= reader.manifest.input.max_tokens
    assert np.isfinite(reader.read(inputs)).all()


def test_what_rounding_changes_too_much_stays_float(tmp_path: Path) -> None:
    """Large random weights do not survive int8: the graph in float32 is kept, and the manifest says so."""
    folder = write_sequence_checkpoint(tmp_path / "nli", initializer_range=0.5)
    made = converted(folder, tmp_path / "reader")
    assert (made.rounded, made.rounding_p99 > 0.02) == (False, True)
    reader = Reader.load(tmp_path / "reader")
    assert reader.manifest.figures["weights"] == "float32"


def test_a_slow_tokenizer_is_converted(copy: Path, tmp_path: Path) -> None:
    """A vocabulary of word pieces is enough; the special tokens come out as the layout has them."""
    (copy / "tokenizer.json").unlink()
    size = json.loads((copy / "config.json").read_text())["vocab_size"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dogs", "are", "welcome", "."]
    vocabulary += [f"word{number}" for number in range(size - len(vocabulary))]
    (copy / "vocab.txt").write_text("\n".join(vocabulary))
    converted(copy, tmp_path / "reader")
    reader = Reader.load(tmp_path / "reader")
    made = ReaderEvidence(reader.tokenizer, reader.manifest.input, ["The dogs."]).input_for(
        "Dogs are welcome."
    )
    assert [reader.tokenizer.id_to_token(number) for number in made.ids.tolist()] == (
        ["[CLS]", "the", "dogs", ".", "[SEP]", "dogs", "are", "welcome", ".", "[SEP]"]
    )


def test_a_slow_tokenizer_of_bytes_is_converted_to_the_same(tmp_path: Path) -> None:
    """RoBERTa's vocabulary and merges give the tokens of the fast file that they belong to."""
    folder = write_sequence_checkpoint(tmp_path / "nli", "roberta")
    fast = load_tokenizer(folder)
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *(" ".join(m) for m in model["merges"])]))
    converted(folder, tmp_path / "reader")
    made = Reader.load(tmp_path / "reader").tokenizer
    assert made.encode(EVIDENCE, CLAIM).ids == fast.encode(EVIDENCE, CLAIM).ids


def test_pieces_that_cannot_be_converted_are_refused(tmp_path: Path) -> None:
    """DeBERTa's own file, damaged or without what reads it: the message says how a fast one is made."""
    folder = write_sequence_checkpoint(tmp_path / "nli", "deberta-v2")
    (folder / "tokenizer.json").unlink()
    (folder / "spm.model").write_bytes(b"no model of pieces")
    with pytest.raises(ModelError, match=r"could not convert it.*Save a fast one"):
        converted(folder, tmp_path / "reader")


def edited(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return change


def index(content: object) -> Callable[[Path], None]:
    return lambda folder: (folder / "model.safetensors.index.json").write_text(json.dumps(content)) and None


def without_separators(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))


def only_slow(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "spm.model").write_bytes(b"no model of pieces")


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no-config": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "no-json": (lambda f: (f / "config.json").write_text("[" * 100_000), "holds no JSON object"),
    "large-json": (lambda f: (f / "config.json").write_text(" " * (5 << 20) + "{}"), "holds no JSON object"),
    "a-list": (lambda f: (f / "config.json").write_text("[1]"), "holds no JSON object"),
    "own-code": (
        edited(auto_map={"AutoModelForSequenceClassification": "evil.Evil"}),
        "needs code of its own",
    ),
    "encoder": (edited(architectures=["BertModel"]), "no sequence classifier but BertModel"),
    "no-architecture": (edited(architectures=7), "no sequence classifier"),
    "token-classifier": (edited(architectures=["BertForTokenClassification"]), "leave --as reader out"),
    "t5": (edited(model_type="t5", architectures=["T5ForSequenceClassification"]), "has the layout 't5'"),
    "values": (edited(hidden_size="many", num_attention_heads=[]), "no configuration of its layout"),
    "labels": (edited(id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}), "--labels entailment"),
    "one-output": (edited(id2label={"0": "score"}, label2id={"score": 0}), "one output"),
    "no-weights": (lambda f: (f / "model.safetensors").unlink(), "no \\*.safetensors"),
    "pickle": (pickled, "pickled weights are never read"),
    "cut-weights": (lambda f: (f / "model.safetensors").write_bytes(b"\x08"), "not a loadable sequence"),
    "traversal": (
        index({"weight_map": {"a": "../../secret.safetensors"}}),
        "'../../secret.safetensors', which is no weights file of the folder",
    ),
    "absolute": (index({"weight_map": {"a": "/etc/x.safetensors"}}), "no weights file of the folder"),
    "odd-index": (index({"weight_map": 3}), "no weights file of the folder"),
    "no-tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "there is no file of a tokenizer"),
    "damaged-tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"), "not a tokenizer file"),
    "slow-tokenizer": (only_slow, "do not belong together.*fast tokenizer"),
    "one-text": (without_separators, "puts no separators"),
    "short": (edited(max_position_embeddings=64), "are needed; take a shorter --template"),
    "small-vocabulary": (edited(vocab_size=9), "do not belong together"),
    "heads": (edited(num_hidden_layers=3), "weights are missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_folder_that_is_no_reader_says_why(name: str, copy: Path, tmp_path: Path) -> None:
    """The message names what to change, nothing is written, and nothing outside of the folder is read."""
    spoil, said = HOSTILE[name]
    spoil(copy)
    with pytest.raises(ModelError, match=said):
        converted(copy, tmp_path / "reader")
    assert [path.name for path in tmp_path.iterdir()] == ["nli"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("Is it so?", r"\{evidence\} 0 times"),
        ("{evidence} {claim} {claim}", r"\{claim\} 2 times"),
        ("{evidence}{pair}{claim}{pair}", r"\{pair\} 2 times"),
        ("{evidence}{claim}{pair}", "one text of the pair is empty"),
        ("{evidence}{claim}" + "x" * 5_000, "at most 4000"),
        ("{evidence}{claim}" + "word " * 400, "take a shorter --template"),
    ],
)
def test_a_template_that_cannot_be_one_is_refused(
    template: str, said: str, checkpoint: Path, tmp_path: Path
) -> None:
    """The operator's mistake is named, with the option."""
    with pytest.raises(ModelError, match=f"(?s)--template.*{said}|{said}"):
        converted(checkpoint, tmp_path / "reader", template=template)


def test_what_is_too_large_is_refused(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its files where those are, and by its parameters where they are packed in half precision."""
    monkeypatch.setattr(reader_source, "LARGEST_FILE", 1_000)
    with pytest.raises(ModelError, match="too large"):
        converted(checkpoint, tmp_path / "reader")
    monkeypatch.undo()
    monkeypatch.setattr(reader_checkpoint, "LARGEST_FILE", 1_000)
    with pytest.raises(ModelError, match="GB in float32"):
        converted(checkpoint, tmp_path / "reader")


def test_a_graph_that_differs_is_not_written(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parity is a gate and no note."""
    monkeypatch.setattr(reader_checkpoint, "_TOLERANCE", -1.0)
    with pytest.raises(ModelError, match="nothing was written"):
        converted(checkpoint, tmp_path / "reader")
    assert not (tmp_path / "reader").exists()


def test_a_token_classifier_is_no_reader(tmp_path: Path) -> None:
    """A real one, as the other way of pulling takes it."""
    folder = write_checkpoint(tmp_path / "lettuce", num_hidden_layers=1)
    with pytest.raises(ModelError, match="leave --as reader out"):
        converted(folder, tmp_path / "reader")
