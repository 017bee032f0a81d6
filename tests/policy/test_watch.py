"""Following a policy file on a real file system."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.policy.test_any_file import TEXTS
from truthlens.core.errors import PolicyError
from truthlens.policy import Policy, PolicyHolder, compile_policy, load_policy
from truthlens.policy.watch import watch

GOOD = "hallucination: {{threshold: {}}}\n"


class Follower:
    """Takes what the watcher says, in order."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[float | str] = asyncio.Queue()

    async def reload(self, policy: Policy) -> None:
        await self.said.put(policy.default.threshold)

    async def failed(self, error: PolicyError) -> None:
        await self.said.put(str(error))

    async def next(self) -> float | str:
        return await asyncio.wait_for(self.said.get(), 30)


@asynccontextmanager
async def following(path: Path, loaded: str | None = None) -> AsyncIterator[Follower]:
    follower = Follower()
    task = asyncio.create_task(watch(path, reload=follower.reload, failed=follower.failed, loaded=loaded))
    await asyncio.sleep(0.1)
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.wait([task])


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def by_removal(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


async def test_edits_are_taken_over(tmp_path: Path) -> None:
    """A file written in place, renamed over, or removed and written anew is loaded each time."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    edits: list[tuple[Callable[[Path, str], None], float]] = [
        (in_place, 0.2),
        (by_rename, 0.3),
        (by_removal, 0.4),
    ]
    async with following(path) as follower:
        for write, threshold in edits:
            write(path, GOOD.format(threshold))
            assert await follower.next() == threshold


async def test_config_map(tmp_path: Path) -> None:
    """A swap of the symbolic link through which Kubernetes shows a ConfigMap is noticed."""
    for name, threshold in (("..1", 0.1), ("..2", 0.2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.yaml").write_text(GOOD.format(threshold))
    (tmp_path / "..data").symlink_to("..1")
    path = tmp_path / "p.yaml"
    path.symlink_to("..data/p.yaml")
    async with following(path) as follower:
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")
        assert await follower.next() == 0.2


async def test_bad_edit_then_good(tmp_path: Path) -> None:
    """A bad edit is told once with its mistake, and going back to the old text is a reload."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        path.write_text("hallucination: {treshold: 0.2}\n")
        assert "did you mean 'threshold'?" in str(await follower.next())
        path.write_text(GOOD.format(0.1))
        assert await follower.next() == 0.1
    assert follower.said.empty()


@pytest.mark.parametrize(
    "name", ["empty int", "word as bool", "nested groups", "aliases of aliases", "no character"]
)
async def test_whatever_a_file_holds_the_next_edit_is_taken_over(tmp_path: Path, name: str) -> None:
    """A file that the YAML library itself fails on is a failed reload like any other."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        path.write_text(TEXTS[name][0])
        assert TEXTS[name][1] in str(await follower.next())
        path.write_text(GOOD.format(0.2))
        assert await follower.next() == 0.2


async def test_what_is_put_in_the_place_of_the_file(tmp_path: Path) -> None:
    """A folder, a pipe and a record that cannot be read are failed reloads, and the watcher goes on."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        path.unlink()
        os.mkfifo(path)
        assert "no regular file" in str(await follower.next())
        path.unlink()
        path.write_text(GOOD.format(0.2))
        assert await follower.next() == 0.2
        path.unlink()
        path.mkdir()
        assert "no regular file" in str(await follower.next())
        path.rmdir()
        path.write_text(GOOD.format(0.3))
        assert await follower.next() == 0.3


async def test_a_policy_that_cannot_be_put_in_force_is_a_failure(tmp_path: Path) -> None:
    """Whatever goes wrong while a new policy is taken over, the watcher says so and goes on."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    follower = Follower()

    async def reload(policy: Policy) -> None:
        if policy.default.threshold == 0.2:
            raise ZeroDivisionError("secret")
        await follower.reload(policy)

    task = asyncio.create_task(watch(path, reload=reload, failed=follower.failed))
    await asyncio.sleep(0.1)
    try:
        path.write_text(GOOD.format(0.2))
        said = str(await follower.next())
        assert "ZeroDivisionError" in said
        assert "secret" not in said
        path.write_text(GOOD.format(0.3))
        assert await follower.next() == 0.3
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_folder_that_comes_and_goes(tmp_path: Path) -> None:
    """Where the folder cannot be watched, it is looked at now and then."""
    path = tmp_path / "folder" / "p.yaml"
    path.parent.mkdir()
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        shutil.rmtree(path.parent)
        assert "cannot be read" in str(await follower.next())
        path.parent.write_text("no folder")
        path.parent.unlink()
        path.parent.mkdir()
        path.write_text(GOOD.format(0.2))
        assert await follower.next() == 0.2


async def test_removed_file_is_a_failure(tmp_path: Path) -> None:
    """A file that stays away is a failed reload, and its return is a reload."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        path.unlink()
        assert "cannot be read" in str(await follower.next())
        path.write_text(GOOD.format(0.1))
        assert await follower.next() == 0.1


async def test_emptied_file_is_a_failure(tmp_path: Path) -> None:
    """A file that is cut to nothing does not quietly become the built-in policy."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        path.write_text("")
        assert "the file is empty" in str(await follower.next())


async def test_a_file_that_is_about_to_be_written_is_waited_for(tmp_path: Path) -> None:
    """Who writes in place empties the file first; where the text follows a moment later, nothing has failed."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        with path.open("w") as stream:
            # Shorter than the watcher waits, by timers of one event loop: their order is certain on any machine.
            await asyncio.sleep(0.25)
            stream.write(GOOD.format(0.2))
        assert await follower.next() == 0.2
    assert follower.said.empty()


async def test_touching_does_nothing(tmp_path: Path) -> None:
    """The same contents written again, and other files in the folder, are no reload."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    async with following(path) as follower:
        by_rename(path, GOOD.format(0.1))
        (tmp_path / "other.yaml").write_text("x")
        path.write_text(GOOD.format(0.7))
        assert await follower.next() == 0.7
    assert follower.said.empty()


async def test_edit_before_watching(tmp_path: Path) -> None:
    """An edit between loading and watching is found by the version of the policy in force."""
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.format(0.1))
    version = load_policy(path).version
    path.write_text(GOOD.format(0.2))
    async with following(path, loaded=version) as follower:
        assert await follower.next() == 0.2


def test_holder() -> None:
    """A swap puts the new policy in force and clears the last error, and an exchange keeps what it took."""
    first, second = (compile_policy(GOOD.format(t), file="f") for t in (0.1, 0.2))
    holder = PolicyHolder(first)
    taken = holder.current
    holder.last_error = PolicyError("x")
    holder.swap(second)
    assert (taken, holder.current, holder.last_error) == (first, second, None)
