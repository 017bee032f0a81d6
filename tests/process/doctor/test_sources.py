"""Sources of evidence: servers, programs and folders are looked at, and nothing is searched for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.http_sources import answering, silent, source_server
from tests.fakes.ports import free_port
from tests.fakes.setups import setup_of, wrong
from truthlens.policy import load_policy
from truthlens.process.doctor.findings import CheckLevel, CheckResult
from truthlens.process.doctor.sources import look_at_sources
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import update_index


async def found(folder: Path, environ: dict[str, str] | None = None, **source: Any) -> dict[str, CheckResult]:
    """What is wrong with one source of these options."""
    policy = (
        f"sources: [{json.dumps({'name': 'pages', **source})}]\nhallucination: {{detectors: [encoder]}}\n"
    )
    setup = setup_of(folder, policy, environ=environ or {}, timeout_s=1.0)
    return wrong(await look_at_sources(setup, load_policy(setup.settings.config)))


async def test_a_server_that_answers_anything_is_right(tmp_path: Path) -> None:
    """It is asked for its address alone, without the key."""
    async with source_server(answering({}, status="404 Not Found")) as server:
        told = await found(
            tmp_path, {"PAGES": "key"}, type="searxng", base_url=server.url, api_key_env="PAGES"
        )
    assert told == {}
    (asked,) = server.asked
    assert asked.target == "GET / HTTP/1.1"
    assert "authorization" not in asked.headers


async def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """So is one that says nothing, and a key that is not set."""
    gone = await found(
        tmp_path, type="searxng", base_url=f"http://127.0.0.1:{free_port()}", api_key_env="PAGES"
    )
    assert "connection refused" in gone["sources.reachable"].what
    assert "'PAGES'" in gone["sources.key"].what
    async with source_server(silent) as server:
        slow = await found(tmp_path, type="searxng", base_url=server.url)
    assert "no answer within 1 s" in slow["sources.reachable"].what


async def test_a_server_that_is_ill_is_a_warning(tmp_path: Path) -> None:
    """It may be so at its root alone."""
    async with source_server(answering({}, status="503 Service Unavailable")) as server:
        told = await found(tmp_path, type="searxng", base_url=server.url)
    assert told["sources.reachable"].severity is CheckLevel.WARNING


async def test_a_source_without_an_address_is_not_called_right(tmp_path: Path) -> None:
    """What was not looked at is not known."""
    told = await found(tmp_path, type="ddgs")
    assert told["sources.type"].severity is CheckLevel.UNKNOWN


async def test_a_program_of_an_mcp_source_must_be_there(tmp_path: Path) -> None:
    """It is looked for, and not started."""
    assert await found(tmp_path, type="mcp", command=["sh", "-c", "exit 1"], tool="search") == {}
    told = await found(tmp_path, type="mcp", command=["no-such-program"], tool="search")
    assert "'no-such-program'" in told["sources.program"].what


async def test_a_database_of_passages_must_answer(tmp_path: Path) -> None:
    """Without a URL, and with one of nobody; its password stays untold."""
    options = {"type": "pgvector", "url_env": "FACTS", "table": "facts"}
    assert "holds no URL" in (await found(tmp_path, **options))["sources.database"].what
    url = f"postgresql://ann:secret-pw@127.0.0.1:{free_port()}/facts"
    told = await found(tmp_path, {"FACTS": url}, **options)
    assert told["sources.database"].severity is CheckLevel.ERROR
    assert "secret-pw" not in str(told)


async def test_an_index_is_compared_with_its_folder(tmp_path: Path) -> None:
    """It may be missing, fresh, behind its files, of other options, or no index at all; nothing of it is changed."""
    pages, index = tmp_path / "pages", tmp_path / "pages.db"
    options = {"type": "folder", "path": str(pages), "index": str(index)}
    assert "there is no folder" in (await found(tmp_path, **options))["sources.folder"].what
    pages.mkdir()
    (pages / "one.md").write_text("# Tea\n\nTea is free.\n")
    (pages / "two.md").write_text("# Milk\n\nMilk is not.\n")
    assert "no index yet" in (await found(tmp_path, **options))["sources.index"].what
    assert not index.exists()
    update_index(pages, index, FolderOptions(path=str(pages)))
    assert await found(tmp_path, **options) == {}
    (pages / "one.md").write_text("# Tea\n\nTea costs nine euros now.\n")
    (pages / "two.md").unlink()
    (pages / "three.md").write_text("# Three\n")
    assert "3 files differ" in (await found(tmp_path, **options))["sources.index"].what
    other = await found(tmp_path, **options, piece_chars=400)
    assert "other options" in other["sources.index"].what
    index.write_text("no database " * 100)
    assert (await found(tmp_path, **options))["sources.index"].severity is CheckLevel.ERROR


async def test_a_policy_without_sources_has_nothing_to_look_at(tmp_path: Path) -> None:
    """Nor has one that cannot be used."""
    setup = setup_of(tmp_path)
    assert await look_at_sources(setup, load_policy(setup.settings.config)) == []
    assert await look_at_sources(setup, None) == []
