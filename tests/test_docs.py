"""Paths that the documents name, and the call that they show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from starlette.testclient import TestClient
from typer.main import get_command

from tests.fakes.review_console import console_of
from truthlens.cli import command_line
from truthlens.cli.plan_target import find_target, offline_settings
from truthlens.core.records.exchange import plain_exchange
from truthlens.delivery import scored_object
from truthlens.detection.explain.explainer import explained
from truthlens.policy.compile import check_text
from truthlens.process.detect_schema import DetectRequest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name / "README.md" for name in ("envoy", "deploy")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# In backticks, with a folder and an ending; what commands write is under these folders.
PATH = re.compile(r"`(?!runs/|bench/results/)((?:[\w.-]+/)+[\w.-]+\.(?:py|md|ya?ml|json|html|j2|proto|sh))`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# The test that shows something, below tests/.
TEST = re.compile(r"`((?:[\w-]+/)*test_\w+\.py)(?:::(\w+))?`")
# A command of ours in a block to paste: the command, and the options behind it.
PASTED = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?truthlens ((?:[a-z][a-z-]* ?)+)((?:\\\n|.)*)", re.MULTILINE)


def of(document: Path) -> str:
    """Name a document by its path: there are several READMEs."""
    return str(document.relative_to(ROOT))


def defines(file: Path, function: str) -> bool:
    """Tell whether the file exists and has the function, where one is named."""
    return file.is_file() and (not function or f"def {function}(" in file.read_text(encoding="utf-8"))


def slugs(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as Git hosts make them."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=of)
def test_every_path_exists(document: Path) -> None:
    """From the root, the document's folder, the package (the codemap) or the tests (what shows an invariant)."""
    text = document.read_text(encoding="utf-8")
    named = [
        path
        for path in PATH.findall(text)
        if not any((at / path).exists() for at in (ROOT, ROOT / "truthlens", ROOT / "tests", document.parent))
    ]
    linked = [path for path in LINK.findall(text) if not (document.parent / path).exists()]
    assert (named, linked) == ([], [])


@pytest.mark.parametrize("document", DOCUMENTS, ids=of)
def test_every_anchor_is_a_heading(document: Path) -> None:
    """Of the page itself, or of the one that is linked."""
    links = ANCHOR.findall(document.read_text(encoding="utf-8"))
    assert [
        (path, anchor)
        for path, anchor in links
        if anchor not in slugs((document.parent / path) if path else document)
    ] == []


@pytest.mark.parametrize(
    "name", ["ARCHITECTURE.md", "docs/failure-modes.md", "docs/acceptance-agentic.md", "docs/threat-model.md"]
)
def test_every_test_that_is_named_exists(name: str) -> None:
    """The file, and the function where one is named; each row of failures and of requirements has one."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = TEST.findall(text)
    missing = [(path, function) for path, function in found if not defines(ROOT / "tests" / path, function)]
    rows = [
        row for row in text.splitlines() if row.startswith("| ") and not row.startswith(("| what", "| ---"))
    ]
    untested = [row for row in rows if name.startswith("docs/") and not TEST.search(row)]
    assert (len(found) > 10, missing, untested) == (True, [], [])


def test_the_attacks_that_the_makefile_names_are_there() -> None:
    """Else the first night would tell that one was renamed."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    named = next(line for line in makefile.splitlines() if line.startswith("ATTACKS :=")).split()[2:]
    places = [each.partition("::") for each in named]
    missing = [
        path for path, _, function in places if path.endswith(".py") and not defines(ROOT / path, function)
    ]
    assert (len(named), missing) == (3, [])
    assert (ROOT / named[0]).is_dir()


def test_every_command_of_the_makefile_does_something() -> None:
    """A command that is declared and has no rule would say "Nothing to be done" and pass."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    declared = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()
    assert sorted(declared) == sorted(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_every_page_is_in_the_index() -> None:
    """Each page of docs/, and each folder of pages whose names say what they hold."""
    index = ROOT / "docs/README.md"
    linked = set(LINK.findall(index.read_text(encoding="utf-8")))
    pages = {page.name for page in (ROOT / "docs").iterdir() if page.suffix == ".md" or page.is_dir()}
    assert pages - {index.name} - linked == set()


def test_decisions_have_their_number_once_and_their_three_parts() -> None:
    """Other files name a decision by its number."""
    files = sorted((ROOT / "docs/decisions").iterdir())
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"# {file.name[:4]}. ")
        assert re.findall(r"^(Context|Decision|Consequence): ", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequence",
        ]


def test_the_map_names_every_part_of_the_package() -> None:
    """Each folder and module at the top of the package, and the whole is short enough to be read."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {path.name + "/" if path.is_dir() else path.name for path in (ROOT / "truthlens").iterdir()}
    parts -= {"__init__.py", "__main__.py", "__pycache__/", "py.typed"}
    assert [part for part in sorted(parts) if f"`{part}`" not in text] == []
    assert len(text.encode()) <= 14 * 1024


@pytest.mark.parametrize("name", ["README.md", "docs/retrieval.md"])
def test_the_policy_of_a_page_loads_without_a_remark(name: str, tmp_path: Path) -> None:
    """Its one YAML block is a whole policy, beside which its folders are."""
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    for source in yaml.safe_load(block).get("sources", ()):
        (tmp_path / source.get("path", ".")).mkdir(exist_ok=True)
    assert check_text(block, file=str(tmp_path / "policy.yaml")) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=of)
def test_commands_to_paste_have_the_options_that_are_written(document: Path) -> None:
    """In blocks of code: the command exists, and so does each of its options."""
    blocks = re.findall(r"```\w*\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    for words, rest in (found for block in blocks for found in PASTED.findall(block)):
        command = get_command(command_line()).commands.get(words.split()[0])  # type: ignore[attr-defined]
        assert command, words
        for word in words.split()[1:]:
            command = getattr(command, "commands", {}).get(word, command)
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        assert set(re.findall(r"(?<!\S)--[a-z][\w-]*", rest)) <= known | {"--help"}, (words, rest)


def test_the_call_of_the_verdicts_page_gives_what_is_shown_there() -> None:
    """The bundled model and policy give these claims, and the reply fits its OpenAPI."""
    text = (ROOT / "docs/verdict.md").read_text(encoding="utf-8")
    section = text.partition("## Without a gateway\n")[2].partition("\n## ")[0]
    asked, shown = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL))
    body = DetectRequest.model_validate(asked)
    exchange, answer = plain_exchange(body.query, list(body.context), body.response)
    target = find_target(offline_settings(None, None, threads=1), "default", model=None, threshold=None)
    with target.scorer(None) as scorer:
        (verdict,) = explained(exchange, (answer,), (scorer.verdict(exchange, answer),))
    given = scored_object(target.plan, verdict, text=answer.text, passages=exchange.passages)
    for claim in (*given["claims"], *shown["claims"]):
        claim["risk"] = round(claim["risk"], 1)
    assert {name: given[name] for name in ("status", "detected", "claims")} == {
        name: shown[name] for name in ("status", "detected", "claims")
    }
    document = TestClient(console_of(None), "http://localhost:8088").get("/api/openapi.json").json()
    described = document["paths"]["/v1/detect"]["post"]["responses"]["200"]["content"]["application/json"]
    jsonschema.validate(given, {**described["schema"], "components": document["components"]})
    claim = document["components"]["schemas"]["DetectClaim"]["properties"]
    told = {key for each in shown["claims"] for key in each}
    assert told >= {"outcome", "risk", "detector", "passage", "sentence", "nearest", "differences"}
    assert told <= claim.keys()
