"""The source `folder` as a policy builds it: it searches, follows the folder, and fails as agreed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pydantic
import pytest
from structlog.testing import capture_logs

from tests.retrieval.folder.made_files import folder_of, pdf, update
from truthlens.core.deadline import Deadline
from truthlens.core.errors import StartError
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, source_types
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.folder import formats, source, updating
from truthlens.retrieval.sources.folder.index import writing
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.source import FolderSource

Make = Callable[..., FolderSource]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Builds a source of ``docs/`` that looks for changes all the time."""
    made: list[FolderSource] = []
    folder_of(
        tmp_path / "docs", {"acme/tea.md": "# Tea\n\nTea is free.", "other/tea.md": "Tea costs two euros."}
    )

    def build(**options: object) -> FolderSource:
        given = {"path": "docs", "index": "state/index.db", **options}
        made.append(
            FolderSource("wiki", FolderOptions.model_validate(given), base=tmp_path, look_again_s=0.02)
        )
        return made[-1]

    yield build
    for each in made:
        await each.aclose()


async def search(
    made: FolderSource, text: str = "tea", seconds: float = 30, **fields: str
) -> list[FoundPassage]:
    """Search as soon as there is an index."""
    deadline = Deadline.after(seconds)
    while True:
        try:
            return list(await made.search(Search(text, filter=fields), k=5, deadline=deadline))
        except SourceError as error:
            if error.result is not SearchResult.UNAVAILABLE or deadline.passed:
                raise
        await asyncio.sleep(0.01)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def test_it_is_found_by_its_name_and_builds_from_a_policy(tmp_path: Path) -> None:
    """With the default place of the index, which the environment of the tests gives."""
    folder_of(tmp_path / "docs", {"tea.md": "Tea is free."})
    declared = source_types()["folder"]

    async def embed(_: object) -> None:
        raise AssertionError

    options = declared.options.model_validate(
        {"path": "docs", "index": "i.db", "filter": {"folder": "x-tenant"}}
    )
    made = declared.build(SourceContext("wiki", options, tmp_path, {}, embed))
    try:
        assert [each.text for each in await search(made)] == ["Tea is free."]
        assert (tmp_path / "i.db").exists()
    finally:
        await made.aclose()


async def test_the_index_is_made_at_the_start_and_follows_the_folder(make: Make, tmp_path: Path) -> None:
    """Its revision changes with the files, and no sooner."""
    made = make()
    assert {each.id for each in await search(made)} == {"acme/tea.md#1", "other/tea.md#1"}
    assert [each.id for each in await search(made, folder="acme")] == ["acme/tea.md#1"]
    assert await search(made, folder="../docs") == []
    await until(lambda: made.revision != "")
    before = made.revision
    folder_of(tmp_path / "docs", {"new.md": "A new tea."})
    await until(lambda: made.revision != before)
    assert "new.md#1" in {each.id for each in await search(made)}
    assert make().revision == made.revision


async def test_a_search_before_there_is_an_index_is_unavailable(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is no empty result."""
    begun, go_on = threading.Event(), threading.Event()
    real = updating.update_index

    def waiting(*arguments: object, **more: object) -> object:
        begun.set()
        go_on.wait(30)
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "update_index", waiting)
    made = make()
    await asyncio.to_thread(begun.wait, 30)
    try:
        with pytest.raises(SourceError, match="the index is being made") as caught:
            await made.search(Search("tea"), k=5, deadline=Deadline.after(30))
    finally:
        go_on.set()
    assert caught.value.result is SearchResult.UNAVAILABLE
    assert await search(made)


async def test_many_files_wait_for_the_command(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that `truthlens index` made meanwhile is taken."""
    monkeypatch.setattr(source, "_MOST_FILES_AT_START", 1)
    made = make()
    with pytest.raises(SourceError, match="make the index with: truthlens index"):
        await made.search(Search("tea"), k=5, deadline=Deadline.after(30))
    update(tmp_path / "docs", tmp_path / "state" / "index.db")
    assert await search(made)
    await until(lambda: made.revision != "")


async def test_deadlines_filters_and_cancelled_searches(make: Make) -> None:
    """What is not searched says so."""
    made = make()
    await search(made)
    for text, fields, seconds, result in (
        ("tea", {"tenant": "acme"}, 30, SearchResult.REFUSED),
        ("tea", {"folder": "acme", "path": "x"}, 30, SearchResult.REFUSED),
        ("tea", {}, 0, SearchResult.TIMEOUT),
    ):
        with pytest.raises(SourceError) as caught:
            await made.search(Search(text, filter=fields), k=5, deadline=Deadline.after(seconds))
        assert caught.value.result is result
    waiting = asyncio.create_task(made.search(Search("tea"), k=5, deadline=Deadline.after(30)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await search(made)


async def test_problems_are_logged_once_and_the_old_index_is_searched(make: Make, tmp_path: Path) -> None:
    """Skipped files by reason, without names or texts; another process may be writing."""
    folder_of(tmp_path / "docs", {"secret-name.pdf": b"secret text", "other-name.pdf": b"more"})
    with capture_logs() as logs:
        made = make()
        await search(made)
        await until(lambda: made.revision != "")
        with writing(tmp_path / "state" / "index.db", wait_s=30):
            folder_of(tmp_path / "docs", {"new.md": "A new tea."})
            await until(lambda: any(each["event"] == "folder_not_indexed" for each in logs))
            assert len(await search(made)) == 2
        await until(lambda: len([each for each in logs if each["event"] == "folder_indexed"]) >= 2)
        await asyncio.sleep(0.2)
    first = next(each for each in logs if each["event"] == "folder_indexed")
    assert (first["files"], first["skipped"]) == (2, {"it is broken, or not what its name says": 2})
    assert len([each for each in logs if each["event"] == "folder_not_indexed"]) == 1
    assert "secret" not in str(logs)
    assert "tea" not in str(logs)


async def test_what_a_policy_may_not_say(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not there, a field that no file has, a missing library: told as it is built."""
    with pytest.raises(StartError, match="nowhere cannot be read"):
        make(path="nowhere")
    for wrong, told in (
        ({"filter": {"tenant": "x"}}, "no field 'tenant'"),
        ({"auth": "passthrough"}, "none"),
    ):
        with pytest.raises(pydantic.ValidationError, match=told):
            make(**wrong)
    folder_of(tmp_path / "docs", {"plan.pdf": pdf("The launch.")})
    monkeypatch.setattr(formats, "find_spec", lambda name: None if name == "pypdf" else name)
    with pytest.raises(
        StartError, match=r"pypdf is missing; install it with: pip install 'truthlens\[documents\]'"
    ):
        make()
    assert await search(make(patterns=["*.md"]))


async def test_a_source_that_nobody_holds_ends_its_thread(make: Make, tmp_path: Path) -> None:
    """A policy that is replaced drops its sources."""
    made = FolderSource("dropped", FolderOptions(path="docs", index="i.db"), base=tmp_path, look_again_s=0.02)
    await search(made)
    del made
    gc.collect()
    await until(lambda: not any(each.name == "truthlens-index-dropped" for each in threading.enumerate()))
