"""A sequence classifier of a hub, or of a folder, becomes a reader in the models folder, or leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.hub_server import COMMIT, FakeHub, serving
from tests.fakes.sequence_checkpoints import write_sequence_checkpoint
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.model import Reader
from truthlens.lab.export.reader_checkpoint import ReaderWishes
from truthlens.lab.fetch import pull_reader as module
from truthlens.lab.fetch.hf_client import Hub
from truthlens.lab.fetch.pull_reader import PulledReader, pull_reader

NAME = "someone/nli-tiny"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = write_sequence_checkpoint(tmp_path_factory.mktemp("hub") / "nli", "deberta-v2")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def pulled(files: dict[str, bytes], shelf: Path, name: str = NAME, **settings: object) -> PulledReader:
    with serving(FakeHub(NAME, files, large={"model.safetensors"})) as hub:
        found = pull_reader(Hub(hub.endpoint), name, shelf, ReaderWishes(), **settings)  # type: ignore[arg-type]
        asked = " ".join(hub.requests)
        assert "pytorch_model.bin" not in asked
        assert "modeling_evil" not in asked
        return found


def test_a_repository_becomes_a_reader(files: dict[str, bytes], tmp_path: Path) -> None:
    """What is kept is the reader, with the commit that it came from; the checkpoint itself is not."""
    made = pulled(files, tmp_path, revision="v1")
    assert made.conversion is not None
    assert (made.manifest.base, made.manifest.commit) == (NAME, COMMIT)
    assert [path.name for path in tmp_path.iterdir()] == ["nli-tiny"]
    assert {path.name for path in made.folder.iterdir()} == {"manifest.json", "model.onnx", "tokenizer.json"}
    assert Reader.load(made.folder).manifest == made.manifest
    again = pulled(files, tmp_path)
    assert (again.conversion, again.manifest) == (None, made.manifest)
    place = made.folder / "manifest.json"
    place.write_text(place.read_text().replace(COMMIT, "f" * 40))
    with pytest.raises(ModelError, match="remove it, or name another folder with --folder"):
        pulled(files, tmp_path)


def test_a_folder_becomes_a_reader(files: dict[str, bytes], tmp_path: Path) -> None:
    """Without a hub; the name of the folder is the source."""
    source = tmp_path / "mine"
    source.mkdir()
    for name, content in files.items():
        (source / name).write_bytes(content)
    made = pull_reader(Hub("http://127.0.0.1:9"), str(source), tmp_path / "shelf", ReaderWishes())
    assert (made.manifest.base, made.manifest.commit) == ("mine", "")
    with pytest.raises(ModelError, match="is there already"):
        pull_reader(Hub("http://127.0.0.1:9"), str(source), tmp_path / "shelf", ReaderWishes())


@pytest.mark.parametrize(
    ("gone", "added", "said"),
    [
        ("model.safetensors", None, "pickled weights are not fetched"),
        ("config.json", None, "config.json is missing"),
        ("tokenizer.json", None, "there is no file of a tokenizer"),
        (None, ("model.safetensors.index.json", b'{"weight_map": {"a": "../x"}}'), "no weights file of the folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_reader_leaves_nothing(
    gone: str | None,
    added: tuple[str, bytes] | None,
    said: str,
    files: dict[str, bytes],
    tmp_path: Path,
) -> None:
    held = {name: content for name, content in files.items() if name != gone} | dict([added] if added else [])
    with pytest.raises(ModelError, match=said):
        pulled(held, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_is_not_fetched(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is known before its first byte."""
    monkeypatch.setattr(module, "LARGEST_FILE", 1_000)
    with serving(FakeHub(NAME, files, large={"model.safetensors"})) as hub:
        with pytest.raises(ModelError, match="too large: its weights take"):
            pull_reader(Hub(hub.endpoint), NAME, tmp_path, ReaderWishes())
        assert not [request for request in hub.requests if "safetensors" in request]


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/b", "..", "", ".hidden"])
def test_no_folder_is_made_elsewhere(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no name for a folder"):
        pulled(files, tmp_path / "shelf", folder_name=name)
    assert list(tmp_path.iterdir()) == []
