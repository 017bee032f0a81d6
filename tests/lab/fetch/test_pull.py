"""Tests of ``truthlens.lab.fetch``, against a hub of our own on a local port."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.checkpoints import write_checkpoint
from tests.fakes.hub_server import COMMIT, FakeHub, serving
from truthlens import __version__
from truthlens.core.errors import ModelError
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.detection.detectors.encoder.loading import load_encoder
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.lab.fetch.hf_client import Hub
from truthlens.lab.fetch.known_checkpoints import KNOWN, find
from truthlens.lab.fetch.pull import Pulled, pull

NAME = "lettucedect-base-modernbert-en-v1"
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small checkpoint, beside things that must not be fetched."""
    folder = write_checkpoint(tmp_path_factory.mktemp("checkpoint"), num_hidden_layers=1)
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {
        **files,
        "README.md": b"A model.\n",
        "pytorch_model.bin": b"a pickle",
        "modeling.py": b"print('code')",
        "checkpoint-10/model.safetensors": b"an older state",
    }


@pytest.fixture
def hub(content: dict[str, bytes]) -> Iterator[FakeHub]:
    """A hub that holds the checkpoint under a known name."""
    fake = FakeHub(f"KRLabsOrg/{NAME}", dict(content), large={WEIGHTS, "tokenizer.json"})
    with serving(fake) as running:
        yield running


def fetch(hub: FakeHub, shelf: Path, name: str = NAME, **options: str) -> Pulled:
    """One pull from the fake."""
    return pull(Hub(hub.endpoint), name, shelf, **options)  # type: ignore[arg-type]


def test_a_known_model_becomes_a_folder_that_scores(hub: FakeHub, tmp_path: Path) -> None:
    """Revision resolved to its commit, all files with their digests, the training template: ready to serve."""
    pulled = fetch(hub, tmp_path)
    assert pulled.fetched
    assert pulled.folder == tmp_path / NAME
    manifest = load_manifest(pulled.folder)
    assert (manifest.base, manifest.revision) == (f"KRLabsOrg/{NAME}", COMMIT)
    assert (manifest.input.template, manifest.languages, manifest.licence) == (
        "lettucedetect-v1",
        ("en",),
        "MIT",
    )
    assert manifest.input.max_tokens == 4096
    assert manifest.files[WEIGHTS] == hashlib.sha256(hub.files[WEIGHTS]).hexdigest()
    held = {file.name for file in pulled.folder.iterdir()}
    assert held == {*manifest.files, "manifest.json"}
    assert not held & {"pytorch_model.bin", "modeling.py", "checkpoint-10"}
    exchange = Exchange(
        Endpoint.CHAT, "m", "When?", (Passage("The ferry leaves at nine.", Provenance.DOCUMENTS),)
    )
    assert load_encoder(pulled.folder).detect(exchange, Answer(0, AnswerKind.TEXT, "It leaves at ten.")).score


def test_a_file_changed_after_the_pull_is_not_loaded(hub: FakeHub, tmp_path: Path) -> None:
    """The digests of the pull are checked at every load."""
    folder = fetch(hub, tmp_path).folder
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with pytest.raises(ModelError, match=r"config\.json has SHA-256"):
        load_encoder(folder)


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_that_is_not_what_the_hub_lists_is_refused(hub: FakeHub, tmp_path: Path, name: str) -> None:
    """Both kinds of digest count: SHA-256 for large files, git's for small ones. Nothing is kept."""
    hub.files[name] = hub.files[name][:-1] + b"?"
    hub.listed[name] = "0" * (64 if name in hub.large else 40)
    with pytest.raises(ModelError, match=f"{name} of .* the hub lists"):
        fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_transfer_that_breaks_off_leaves_nothing(hub: FakeHub, tmp_path: Path) -> None:
    """Half a file is an error, and there is no half folder; the next pull succeeds."""
    hub.cut.add(WEIGHTS)
    with pytest.raises(ModelError, match="answered with status 503"):
        fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []
    hub.cut.clear()
    assert fetch(hub, tmp_path).fetched


def test_a_transfer_that_breaks_off_is_resumed(hub: FakeHub, tmp_path: Path) -> None:
    """What came in is kept and the rest asked for; progress counts every byte once.

    The library writes in steps of 10 MB, so a smaller file would begin again.
    """
    hub.files["more.safetensors"] = bytes(range(256)) * 50_000
    hub.torn.add("more.safetensors")
    came: dict[str, int] = {}

    def begin(name: str, size: int) -> Callable[[int], None]:
        came[name] = 0

        def progress(received: int) -> None:
            came[name] += received

        return progress

    pulled = pull(Hub(hub.endpoint), NAME, tmp_path, begin=begin)
    assert (pulled.folder / "more.safetensors").read_bytes() == hub.files["more.safetensors"]
    assert hub.resumed == {"more.safetensors"}
    assert came == {name: len(hub.files[name]) for name in pulled.manifest.files}


def test_nothing_is_told_and_nothing_left_elsewhere(hub: FakeHub, tmp_path: Path) -> None:
    """The hub is told no libraries, and only the folder is written: no notes beside it, no cache at home."""
    home = tmp_path / "home"
    home.mkdir()
    script = (
        "import sys; from pathlib import Path; from truthlens.lab.fetch.hf_client import Hub\n"
        "from truthlens.lab.fetch.pull import pull; pull(Hub(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))"
    )
    place = tmp_path / "models"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))}
    environment = {**plain, "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script, hub.endpoint, NAME, place], env=environment, check=True)
    assert list(home.rglob("*")) == []
    assert {file.name for file in (place / NAME).iterdir()} == {
        *load_manifest(place / NAME).files,
        "manifest.json",
    }
    assert hub.agents
    assert all(agent.startswith(f"truthlens/{__version__};") for agent in hub.agents)
    assert not any("torch" in agent for agent in hub.agents)
    assert {path.split("/")[1] for path in hub.requests} == {"api", "KRLabsOrg"}


def test_files_that_come_from_no_hub_are_refused(hub: FakeHub, tmp_path: Path) -> None:
    """A proxy that answers for files without saying which commit they are of is no hub."""
    hub.commit_header = "X-Other"
    with pytest.raises(ModelError, match="does not answer like a Hugging Face hub"):
        fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_listed_file_that_is_gone_is_named(hub: FakeHub, tmp_path: Path) -> None:
    """What the listing promises and the hub does not hold is an error with the file's name."""
    hub.missing.add("tokenizer.json")
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("without", "says"),
    [
        ("tokenizer.json", r"no tokenizer\.json"),
        ("config.json", r"no config\.json"),
        (WEIGHTS, "pickled weights are not fetched"),
    ],
)
def test_a_repository_that_cannot_serve_is_refused_before_any_download(
    hub: FakeHub, tmp_path: Path, without: str, says: str
) -> None:
    """A fast tokenizer, a configuration and weights that are no pickles have to be there."""
    del hub.files[without]
    with pytest.raises(ModelError, match=says):
        fetch(hub, tmp_path)
    assert not [path for path in hub.requests if "/resolve/" in path]


def test_a_hub_without_digests_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    """A file that nobody can check is not fetched."""
    hub.listed["config.json"] = None
    with pytest.raises(ModelError, match=r"no digest for config\.json"):
        fetch(hub, tmp_path)


def test_an_onnx_export_is_fetched_where_there_are_no_safetensors(hub: FakeHub, tmp_path: Path) -> None:
    """A repository of exports alone is usable: the ONNX file comes in its subfolder."""
    hub.files["onnx/model.onnx"] = b"graph"
    del hub.files[WEIGHTS]
    pulled = fetch(hub, tmp_path)
    assert (pulled.folder / "onnx" / "model.onnx").read_bytes() == b"graph"
    assert "onnx/model.onnx" in pulled.manifest.files


def test_pulled_again_nothing_is_fetched(hub: FakeHub, tmp_path: Path) -> None:
    """The same commit is already there; another model in that folder is an error."""
    fetch(hub, tmp_path)
    hub.requests.clear()
    again = fetch(hub, tmp_path, revision="v1")
    assert not again.fetched
    assert not [path for path in hub.requests if "/resolve/" in path]
    manifest = load_manifest(again.folder)
    (again.folder / "manifest.json").write_text(
        manifest.model_copy(update={"revision": "f" * 40}).model_dump_json()
    )
    with pytest.raises(ModelError, match="is there already and holds"):
        fetch(hub, tmp_path)
    assert fetch(hub, tmp_path, folder_name="second").folder.name == "second"


def test_an_unknown_model_takes_its_template_from_the_caller(hub: FakeHub, tmp_path: Path) -> None:
    """OWNER/NAME of anybody works; without a template the layout decides."""
    hub.repository = "someone/detector"
    plain = fetch(hub, tmp_path, "someone/detector")
    assert plain.manifest.input.template == "lettucedetect-v1"
    assert plain.manifest.input.max_tokens == 2048
    told = fetch(hub, tmp_path, "someone/detector", folder_name="told", template="lettucedetect-v2")
    assert told.manifest.input.template == "lettucedetect-v2"
    with pytest.raises(ModelError, match="there is no template nonsense"):
        fetch(hub, tmp_path, "someone/detector", folder_name="third", template="nonsense")


@pytest.mark.parametrize("name", ["no-such-model", "../etc/passwd", "a/b/c", "KRLabsOrg/", "some--one/model"])
def test_names_that_cannot_be_are_refused(hub: FakeHub, tmp_path: Path, name: str) -> None:
    """A name that is neither known nor OWNER/NAME asks the network nothing."""
    with pytest.raises(ModelError, match="OWNER/NAME"):
        fetch(hub, tmp_path, name)
    assert hub.requests == []


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    """The system's own reason is told, not that of a network."""
    snapshot = Hub(hub.endpoint).snapshot(hub.repository)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(
        ModelError, match=r"config\.json of .* cannot be written: (Not a directory|File exists)"
    ):
        Hub(hub.endpoint).fetch(
            snapshot,
            next(file for file in snapshot.files if file.rfilename == "config.json"),
            tmp_path / "taken",
            progress=lambda _: None,
        )


def test_an_unknown_revision_is_named(hub: FakeHub, tmp_path: Path) -> None:
    """A branch that is not there is an error with its name."""
    with pytest.raises(ModelError, match="at v9; check the name and --revision"):
        fetch(hub, tmp_path, revision="v9")


def test_private_repositories_take_a_token(hub: FakeHub, tmp_path: Path) -> None:
    """Without the token the error says what to set; with it the pull works."""
    hub.token = "secret"
    with pytest.raises(ModelError, match="HF_TOKEN"):
        fetch(hub, tmp_path)
    assert pull(Hub(hub.endpoint, token="secret"), NAME, tmp_path).fetched


@pytest.mark.parametrize("listing", [b"<html>", b"{}", b'{"sha": "main", "siblings": []}', b"[1]"])
def test_an_answer_that_is_no_hub_is_refused(hub: FakeHub, tmp_path: Path, listing: bytes) -> None:
    """A captive portal or another service does not become a model."""
    hub.listing = listing
    with pytest.raises(ModelError, match="does not answer like a Hugging Face hub"):
        fetch(hub, tmp_path)


def test_without_a_network_the_error_names_the_hub(tmp_path: Path) -> None:
    """No route to the hub: one clear message, with the way out."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ModelError, match=rf"{endpoint} cannot be reached.*HF_ENDPOINT"):
        pull(Hub(endpoint), NAME, tmp_path)


def test_a_configuration_that_is_no_classifier_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    """Three labels, or no JSON at all: the folder is not kept."""
    config = json.loads(hub.files["config.json"])
    hub.files["config.json"] = json.dumps({**config, "id2label": {"0": "a", "1": "b", "2": "c"}}).encode()
    with pytest.raises(ModelError, match="3 labels"):
        fetch(hub, tmp_path)
    hub.files["config.json"] = b"{"
    with pytest.raises(ModelError, match="not valid JSON"):
        fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_known_models_are_found_by_either_name() -> None:
    """The short name and OWNER/NAME mean the same; another owner's copy is another model."""
    model = KNOWN[NAME]
    assert find(NAME) == find(f"KRLabsOrg/{NAME}") == model
    assert find(f"someone/{NAME}") is None
    assert len({entry.repository for entry in KNOWN.values()}) == len(KNOWN) == 18
