"""Searches of several sources: one order, bounds of each source, what is kept and shared, and what a failure costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import (
    FoundPassage,
    Retrieved,
    Search,
    SearchRecord,
    SearchResult,
    SourceSpec,
)
from truthlens.core.registry import SourceContext, SourceOptions, SourceType
from truthlens.retrieval import retriever as module
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import MOST_QUERY_CHARS, Asker, Retriever

Giving = Callable[[Search], Awaitable[Any]]


class MemorySource:
    """Gives what its function gives; knows what it was asked, and whether it was closed."""

    def __init__(self, giving: Giving) -> None:
        self.giving, self.revision = giving, "1"
        self.asked: list[Search] = []
        self.closed = 0

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        self.asked.append(search)
        given: Sequence[FoundPassage] = await self.giving(search)
        return given

    async def aclose(self) -> None:
        self.closed += 1


class SearchRig:
    """A retriever over sources in memory, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.observed: list[SearchRecord] = []
        self.giving: dict[str, Giving] = {}
        self.built: list[MemorySource] = []
        self.refused: Exception | None = None
        self.retriever = Retriever(
            embed=_no_vectors, environ={}, observe=self.observed.append, clock=lambda: self.now
        )

    def build(self, context: SourceContext) -> MemorySource:
        if context.name == "refused" and self.refused is not None:
            raise self.refused
        self.built.append(MemorySource(self.giving.get(context.name, self.gives("a"))))
        return self.built[-1]

    def use(self, **options: Mapping[str, Any]) -> list[MemorySource]:
        """Use sources with these options by name, and return those that this built."""
        known = len(self.built)
        specs = {name: SourceSpec(name, "memory", SourceOptions(**given)) for name, given in options.items()}
        self.retriever.use(specs, Path())
        return self.built[known:]

    def one(self, giving: Giving, **options: Any) -> MemorySource:
        """Use one source, named ``one``."""
        self.giving["one"] = giving
        (source,) = self.use(one=options)
        return source

    async def search(
        self,
        *texts: str,
        sources: Sequence[str] = ("one",),
        k: int = 5,
        within_s: float = 20.0,
        scope: Mapping[str, str] | None = None,
        authorization: str | None = None,
    ) -> Retrieved:
        return await self.retriever.search(
            sources,
            texts or ("tea",),
            k=k,
            deadline=Deadline.after(within_s),
            asker=Asker(scope or {}, authorization),
        )

    async def result(self, *texts: str, **options: Any) -> SearchResult:
        """Return how one search ended."""
        (record,) = (await self.search(*texts, **options)).searches
        return record.result

    @staticmethod
    def gives(*texts: str) -> Giving:
        async def give(_search: Search) -> list[FoundPassage]:
            return [FoundPassage(text, id=text) for text in texts]

        return give

    @staticmethod
    def raises(error: BaseException) -> Giving:
        async def fail(_search: Search) -> list[FoundPassage]:
            raise error

        return fail


async def _no_vectors(_texts: Sequence[str]) -> Any:
    raise AssertionError("no source here makes vectors")


async def _never(_search: Search) -> list[FoundPassage]:
    await asyncio.Event().wait()
    raise AssertionError("it waits for ever")


async def _nonsense(_search: Search) -> Any:
    return [{"text": "secret"}]


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SearchRig]:
    """A rig whose sources are of the type ``memory``."""
    made = SearchRig()
    monkeypatch.setattr(
        module,
        "source_types",
        lambda: {"memory": SourceType("memory", made.build, filters=True, passes_authorization=True)},
    )
    yield made
    await made.retriever.aclose()
    assert all(source.closed == 1 for source in made.built), "each source is closed, and once"


def texts_of(found: Retrieved) -> list[str]:
    return [each.passage.text for each in found.passages]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)


# --- order -------------------------------------------------------------------------------------------------


async def test_several_rankings_make_one_order(rig: SearchRig) -> None:
    """What two sources give comes first, each text once, with the source that gave it first; blank passages are dropped."""
    rig.giving = {
        "one": rig.gives("a", "b", "c"),
        "two": rig.gives("  ", "d", "c", "  a\n"),
        "none": rig.gives(),
    }
    rig.use(one={}, two={}, none={})
    found = await rig.search(sources=("one", "two", "none"))
    # a: 1/61 + 1/63; c: 1/63 + 1/62; d: 1/61; b: 1/62
    assert [(each.source, each.passage.text) for each in found.passages] == [
        ("one", "a"),
        ("one", "c"),
        ("two", "d"),
        ("one", "b"),
    ]
    assert [(each.source, each.result.value, each.passages) for each in found.searches] == [
        ("one", "ok", 3),
        ("two", "ok", 3),
        ("none", "empty", 0),
    ]
    assert rig.observed == list(found.searches)
    assert not found.failed


@pytest.mark.parametrize(
    ("texts", "sought"),
    [
        (("question", "claim", "question", "other claim"), "question claim claim"),
        ((" ", "claim"), "claim"),
        (("question",), "question"),
    ],
)
async def test_searches_tell_the_question_from_claims(
    rig: SearchRig, texts: tuple[str, ...], sought: str
) -> None:
    """The first text is the question, also where there is none."""
    rig.use(one={}, two={})
    found = await rig.retriever.search(["one", "two"], texts, k=3, deadline=Deadline.after(20), asker=Asker())
    assert [each.sought.value for each in found.searches] == [
        each for each in sought.split() for _ in range(2)
    ]


async def test_a_text_that_one_source_gives_twice_does_not_outvote_others(rig: SearchRig) -> None:
    """A copy in a corpus is no second opinion."""
    rig.one(rig.gives("best", "copied", "copied ", "copied  "))
    assert texts_of(await rig.search()) == ["best", "copied"]


async def test_each_source_is_asked_each_text_once_and_gives_k_at_most(rig: SearchRig) -> None:
    """Blank texts are not searched for, long ones are cut, and a source that gives more than it was asked for is cut too."""
    source = rig.one(rig.gives("", "a", "b", "c"))
    found = await rig.search("tea", " tea ", " ", "x" * (MOST_QUERY_CHARS + 1), k=2)
    assert [search.text for search in source.asked] == ["tea", "x" * MOST_QUERY_CHARS]
    assert [record.passages for record in found.searches] == [2, 2]
    assert texts_of(found) == ["a", "b"]
    assert await rig.search("", " \n") == Retrieved()


# --- how a search ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("giving", "result"),
    [
        (SearchRig.raises(SourceError(SearchResult.REFUSED, "filter")), SearchResult.REFUSED),
        (SearchRig.raises(SourceError(SearchResult.BAD_RESPONSE)), SearchResult.BAD_RESPONSE),
        (SearchRig.raises(TimeoutError()), SearchResult.TIMEOUT),
        (SearchRig.raises(ValueError("tea, the user's secret")), SearchResult.UNAVAILABLE),
        (SearchRig.raises(ExceptionGroup("secret", [OSError("secret")])), SearchResult.UNAVAILABLE),
        (SearchRig.raises(asyncio.CancelledError()), SearchResult.UNAVAILABLE),
        (_nonsense, SearchResult.UNAVAILABLE),
        (_never, SearchResult.TIMEOUT),
    ],
)
async def test_a_search_that_fails_fails_alone(rig: SearchRig, giving: Giving, result: SearchResult) -> None:
    """Whatever its source raises or gives in place of passages; no text of a search or an exception is logged."""
    rig.giving = {"one": giving, "two": rig.gives("b")}
    rig.use(one={"timeout_s": 0.2}, two={})
    with capture_logs() as logs:
        found = await rig.search(sources=("one", "two"))
    assert [record.result for record in found.searches] == [result, SearchResult.OK]
    assert texts_of(found) == ["b"]
    assert found.failed
    assert "secret" not in str(logs)
    assert [each["source"] for each in logs] == ([] if result is SearchResult.REFUSED else ["one"])


async def test_waiting_for_a_place_is_no_fault_of_the_source(rig: SearchRig) -> None:
    """Who gets no place in time is overloaded; the circuit stays closed, and the next search is made."""
    free = asyncio.Event()

    async def slow(_search: Search) -> list[FoundPassage]:
        await free.wait()
        return [FoundPassage("a", id="a")]

    source = rig.one(slow, max_concurrency=1, timeout_s=20)
    first = asyncio.create_task(rig.result("first"))
    await until(lambda: len(source.asked) == 1)
    ended = await asyncio.gather(*(rig.result(f"tea {n}", within_s=0.5) for n in range(8)))
    assert ended == [SearchResult.OVERLOADED] * 8
    free.set()
    assert await first is SearchResult.OK
    assert await rig.result("later") is SearchResult.OK
    assert [search.text for search in source.asked] == ["first", "later"]


async def test_a_search_without_time_is_not_begun(rig: SearchRig) -> None:
    """It could only time out, and would count against the source; what is kept is given all the same."""
    source = rig.one(rig.gives("a"))
    assert await rig.result("kept") is SearchResult.OK
    for number in range(8):
        assert await rig.result(f"tea {number}", within_s=0.0) is SearchResult.TIMEOUT
    assert await rig.result("kept", within_s=0.0) is SearchResult.CACHED
    assert await rig.result("in time") is SearchResult.OK
    assert [search.text for search in source.asked] == ["kept", "in time"]


async def test_a_source_that_fails_again_and_again_is_left_alone_for_a_while(rig: SearchRig) -> None:
    """Then one probe is made at a time: one that fails keeps the circuit open, one that succeeds closes it."""
    source = rig.one(rig.raises(OSError()))
    for number in range(5):
        assert await rig.result(f"tea {number}") is SearchResult.UNAVAILABLE
    assert await rig.result("now") is SearchResult.CIRCUIT_OPEN
    assert len(source.asked) == 5
    rig.now += 11
    assert await rig.result("probe") is SearchResult.UNAVAILABLE
    assert await rig.result("now") is SearchResult.CIRCUIT_OPEN
    free = asyncio.Event()

    async def well(_search: Search) -> list[FoundPassage]:
        await free.wait()
        return []

    source.giving = well
    rig.now += 21
    probe = asyncio.create_task(rig.result("probe"))
    await until(lambda: len(source.asked) == 7)
    assert await rig.result("beside") is SearchResult.CIRCUIT_OPEN
    free.set()
    assert await probe is SearchResult.EMPTY
    assert await rig.result("now") is SearchResult.EMPTY


async def test_refusals_never_open_the_circuit(rig: SearchRig) -> None:
    """They say nothing about whether the source works."""
    source = rig.one(rig.raises(SourceError(SearchResult.REFUSED)))
    for number in range(10):
        assert await rig.result(f"tea {number}") is SearchResult.REFUSED
    assert len(source.asked) == 10


@pytest.mark.parametrize("scope", [{}, {"x-tenant": ""}, {"tenant": "acme"}])
async def test_a_source_is_not_searched_without_its_filter(rig: SearchRig, scope: dict[str, str]) -> None:
    """What the operator does not say the exchange is about is never searched without a bound."""
    source = rig.one(rig.gives("a"), filter={"tenant": "X-Tenant"})
    found = await rig.search(scope=scope)
    assert [record.result for record in found.searches] == [SearchResult.NO_SCOPE]
    assert (found.passages, found.failed, source.asked) == ((), True, [])
    assert await rig.result(scope={"x-tenant": "acme"}) is SearchResult.OK
    assert dict(source.asked[0].filter) == {"tenant": "acme"}


# --- what is kept ----------------------------------------------------------------------------------------------


async def test_what_a_search_gave_is_used_again_for_a_while(rig: SearchRig) -> None:
    """For the same text, apart from white space, until its time is over or the contents change; an empty result too."""
    source = rig.one(rig.gives("a"), cache_ttl_s=60)
    assert await rig.result("green tea") is SearchResult.OK
    again = await rig.search("green  tea")
    assert [record.result for record in again.searches] == [SearchResult.CACHED]
    assert texts_of(again) == ["a"]
    assert await rig.result("Green tea") is SearchResult.OK
    assert await rig.result("green tea", k=1) is SearchResult.OK
    rig.now += 60
    assert await rig.result("green tea") is SearchResult.OK
    source.revision = "2"
    source.giving = rig.gives()
    assert await rig.result("green tea") is SearchResult.EMPTY
    assert await rig.result("green tea") is SearchResult.EMPTY
    assert len(source.asked) == 5


async def test_nothing_is_kept_of_a_failure_or_where_the_source_says_so(rig: SearchRig) -> None:
    """``cache_ttl_s: 0`` keeps nothing."""
    source = rig.one(rig.raises(OSError()))
    assert await rig.result() is SearchResult.UNAVAILABLE
    source.giving = rig.gives("a")
    assert await rig.result() is SearchResult.OK
    source = rig.one(rig.gives("a"), cache_ttl_s=0)
    assert [await rig.result() for _ in range(2)] == [SearchResult.OK] * 2
    assert len(source.asked) == 2


async def test_nobody_gets_what_was_found_for_another(rig: SearchRig) -> None:
    """Neither of another filter nor of another Authorization, kept or under way, also where values seem to run together."""

    async def own(search: Search) -> list[FoundPassage]:
        await asyncio.sleep(0)
        text = f"{sorted(search.filter.items())} {search.authorization}"
        return [FoundPassage(text, id="a")]

    rig.one(own, auth="passthrough", filter={"a": "a", "b": "b"})
    askers: list[tuple[dict[str, str], str | None]] = [
        ({"a": "x", "b": "y"}, None),
        ({"a": "xb", "b": "y"}, None),
        ({"a": "y", "b": "x"}, None),
        ({"a": "x", "b": "y"}, "Bearer one"),
        ({"a": "x", "b": "y"}, "Bearer two"),
    ]
    for expected in (SearchResult.OK, SearchResult.CACHED):
        found = await asyncio.gather(
            *(rig.search(scope=scope, authorization=given) for scope, given in askers)
        )
        for each, (scope, given) in zip(found, askers, strict=True):
            assert texts_of(each) == [f"{sorted(scope.items())} {given}"]
            assert [record.result for record in each.searches] == [expected]


@pytest.mark.parametrize(("auth", "passed"), [("none", None), ("passthrough", "Bearer one")])
async def test_authorization_goes_only_where_the_source_says_so(
    rig: SearchRig, auth: str, passed: str | None
) -> None:
    """Where it does not, it does not part what is kept either; it is never shown."""
    source = rig.one(rig.gives("a"), auth=auth)
    assert await rig.result(authorization="Bearer one") is SearchResult.OK
    other = await rig.result(authorization="Bearer two")
    assert other is (SearchResult.CACHED if passed is None else SearchResult.OK)
    assert source.asked[0].authorization == passed
    assert "Bearer" not in repr(source.asked)


@pytest.mark.parametrize("bound", ["_MOST_KEPT", "_MOST_KEPT_CHARS"])
async def test_what_is_kept_is_bounded(rig: SearchRig, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """In number and in characters; the oldest goes first, and what went is no longer counted."""
    monkeypatch.setattr(module, bound, {"_MOST_KEPT": 2, "_MOST_KEPT_CHARS": 25}[bound])
    rig.one(rig.gives("ten chars."))
    for _ in range(3):
        for text in ("a", "b", "c"):
            assert await rig.result(text) is SearchResult.OK
    assert await rig.result("b") is SearchResult.CACHED
    assert await rig.result("c") is SearchResult.CACHED


# --- single flight -----------------------------------------------------------------------------------------------


class Gate:
    """Searches that wait for the test; ``ends`` says of each in turn how it ends."""

    def __init__(self, *ends: Giving) -> None:
        self._ends = iter(ends)
        self.open = asyncio.Event()

    async def __call__(self, search: Search) -> Any:
        end = next(self._ends)
        await self.open.wait()
        return await end(search)


async def test_ten_who_ask_the_same_make_one_search(rig: SearchRig) -> None:
    """One call of the source, and all get its passages."""
    gate = Gate(rig.gives("a"))
    source = rig.one(gate)
    asking = [asyncio.create_task(rig.search()) for _ in range(10)]
    await until(lambda: len(source.asked) == 1)
    gate.open.set()
    found = await asyncio.gather(*asking)
    assert [texts_of(each) for each in found] == [["a"]] * 10
    assert len(source.asked) == 1


async def test_others_get_an_answer_where_the_first_one_goes_away(rig: SearchRig) -> None:
    """Its client hung up, so that its search is cancelled: one of the others makes another, for all of them."""
    gate = Gate(rig.gives("never"), rig.gives("a"))
    source = rig.one(gate)
    asking = [asyncio.create_task(rig.search()) for _ in range(10)]
    await until(lambda: len(source.asked) == 1)
    asking[0].cancel()
    await until(lambda: len(source.asked) == 2)
    gate.open.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert [texts_of(each) for each in found[1:] if isinstance(each, Retrieved)] == [["a"]] * 9
    assert len(source.asked) == 2


async def test_one_who_waits_and_goes_away_ends_no_search_of_others(rig: SearchRig) -> None:
    """Only the one who began a search takes it along."""
    gate = Gate(rig.gives("a"))
    source = rig.one(gate)
    asking = [asyncio.create_task(rig.search()) for _ in range(3)]
    await until(lambda: len(source.asked) == 1)
    asking[2].cancel()
    await asyncio.wait({asking[2]})
    gate.open.set()
    assert [texts_of(await each) for each in asking[:2]] == [["a"]] * 2
    assert len(source.asked) == 1


async def test_others_try_for_themselves_where_the_first_one_fails(rig: SearchRig) -> None:
    """Its failure is its own."""
    gate = Gate(rig.raises(OSError()), rig.gives("a"))
    source = rig.one(gate)
    asking = [asyncio.create_task(rig.search()) for _ in range(10)]
    await until(lambda: len(source.asked) == 1)
    gate.open.set()
    found = await asyncio.gather(*asking)
    assert [record.result for record in found[0].searches] == [SearchResult.UNAVAILABLE]
    assert [texts_of(each) for each in found[1:]] == [["a"]] * 9
    assert len(source.asked) == 2


async def test_ten_who_wait_in_vain_count_once_against_the_source(rig: SearchRig) -> None:
    """They run out of time together with the search: none begins another, and the circuit stays closed."""
    source = rig.one(_never, timeout_s=0.5)
    found = await asyncio.gather(*(rig.result() for _ in range(10)))
    assert found == [SearchResult.TIMEOUT] * 10
    assert len(source.asked) == 1
    source.giving = rig.gives("a")
    assert await rig.result() is SearchResult.OK


# --- a change of sources -------------------------------------------------------------------------------------------


async def test_an_unchanged_source_goes_on_and_a_dropped_one_is_closed(rig: SearchRig) -> None:
    """One whose options change is built anew, and what the old one gave is not used for it."""
    same, changed, dropped = rig.use(same={}, changed={}, dropped={})
    names = ("same", "changed", "dropped")
    await rig.search(sources=names)
    (new,) = rig.use(changed={"timeout_s": 3.0}, same={})
    await until(lambda: changed.closed == dropped.closed == 1)
    found = await rig.search(sources=names)
    assert [record.result for record in found.searches] == [
        SearchResult.CACHED,
        SearchResult.OK,
        SearchResult.UNAVAILABLE,
    ], "an exchange of an earlier policy still names the dropped one"
    assert (same.closed, new.closed, len(new.asked)) == (0, 0, 1)


async def test_a_dropped_source_ends_its_searches_first(rig: SearchRig) -> None:
    """A reload costs no exchange its evidence."""
    gate = Gate(rig.gives("a"))
    source = rig.one(gate)
    asking = asyncio.create_task(rig.search())
    await until(lambda: len(source.asked) == 1)
    rig.use()
    for _ in range(10):
        await asyncio.sleep(0)
    assert source.closed == 0
    gate.open.set()
    assert texts_of(await asking) == ["a"]
    await until(lambda: source.closed == 1)


async def test_sources_that_cannot_be_built_change_nothing(rig: SearchRig) -> None:
    """The old ones stay in use, and those that were built before the error are closed."""
    old = rig.one(rig.gives("a"))
    rig.refused = ValueError("refused: no such folder")
    with pytest.raises(ValueError, match="no such folder"):
        rig.use(new={}, one={"timeout_s": 1.0}, refused={})
    await until(lambda: all(source.closed for source in rig.built[1:]))
    assert len(rig.built) == 3
    assert await rig.result() is SearchResult.OK
    assert (len(old.asked), old.closed) == (1, 0)


async def test_a_source_that_fails_to_close_keeps_no_other_open(rig: SearchRig) -> None:
    """It is logged by its type alone."""
    one, two = rig.use(one={}, two={})

    async def broken() -> None:
        one.closed += 1
        raise OSError("secret")

    one.aclose = broken  # type: ignore[method-assign]
    with capture_logs() as logs:
        rig.use()
        await until(lambda: one.closed == two.closed == 1)
        await rig.retriever.aclose()
    assert logs == [
        {"event": "a source failed to close", "source": "one", "error": "OSError", "log_level": "warning"}
    ]
