"""The review pages as browsers without scripts use them: forms, links, and nothing of anybody's text as a part of the page."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.desk.test_pages import EXCHANGE, FULL, NOW
from tests.fakes.review_console import (
    ANSWER,
    TOKEN,
    TOKENS,
    VIEWER_TOKEN,
    console_of,
    content,
    entry,
    queue_in,
    span,
)
from truthlens.review.records import Change, Correction, ReviewStatus
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.recent_exchanges import Recent

FIRST, LAST = entry(0).id, entry(29).id
HOSTILE = "</textarea></script><img src=x onerror=alert(1)>\"'{{7*7}} \u202eRTL\u2066 a\u200bb \x00\x1b[31m \U0001f600"
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://localhost"}


@pytest.fixture
def queue(tmp_path: Path) -> ReviewQueue:
    made = queue_in(tmp_path)
    made.add([entry(number) for number in range(30)])
    return made


@pytest.fixture
async def client(queue: ReviewQueue) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(console_of(queue))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        yield made


class Page(HTMLParser):
    """The tags of a page, and the fields of its forms by their action."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.forms: dict[str, dict[str, str]] = {}
        self._form: dict[str, str] = {}
        self._area = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self.tags.append((tag, own))
        if tag == "form":
            self._form = self.forms.setdefault(own.get("action") or "", {})
        unticked = own.get("type") in ("radio", "checkbox") and "checked" not in own
        if tag == "input" and own.get("name") and not unticked:
            self._form[own["name"] or ""] = own.get("value") or ""
        self._area = own.get("name") or "" if tag == "textarea" else ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self._form[self._area] = data.removeprefix("\n")
            self._area = ""

    @property
    def words(self) -> str:
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    def links(self, start: str) -> list[str]:
        return [
            each["href"] or ""
            for tag, each in self.tags
            if tag == "a" and (each.get("href") or "").startswith(start)
        ]


async def get(client: httpx.AsyncClient, path: str, status: int = 200, **more: Any) -> Page:
    reply = await client.get(path, **more)
    assert reply.status_code == status, reply.text
    return Page(reply.text)


async def send(
    client: httpx.AsyncClient, path: str, fields: dict[str, Any], status: int = 303, **more: Any
) -> httpx.Response:
    reply = await client.post(
        path, content=urlencode(fields, doseq=True, errors="surrogatepass"), headers=FORM, **more
    )
    assert reply.status_code == status, reply.text
    return reply


async def press(
    client: httpx.AsyncClient, path: str, action: str, status: int = 303, **changes: Any
) -> httpx.Response:
    """Open a page and send its form as a browser does, with changes of fields."""
    own = path.partition("?")[0]
    return await send(
        client, own, {**(await get(client, path)).forms[own], "action": action, **changes}, status
    )


async def test_approving_leads_to_the_next_pending_entry_of_the_same_list(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """303; the list's filter and order go along; what was settled is not met again; at the end it begins anew, then the list."""
    path, met = f"/reviews/{entry(1).id}?decision=support&order=oldest", []
    for _ in range(10):
        met.append(path)
        path = (await press(client, path, "approve")).headers["location"]
        assert "decision=support" in path
        assert "order=oldest" in path
    assert len(set(met)) == 10
    assert path.startswith("/reviews?")
    assert queue.counts()[ReviewStatus.APPROVED] == 10
    assert "Nothing is pending" in (await get(client, path)).words


@pytest.mark.parametrize("order", ["newest", "oldest", "score"])
async def test_previous_and_next_follow_the_order_of_the_list(
    client: httpx.AsyncClient, queue: ReviewQueue, order: str
) -> None:
    """Going on from the first entry meets every one as the list has them, and going back does too."""
    listed = [
        each.removesuffix(f"?order={order}")
        for each in (await get(client, f"/reviews?order={order}")).links("/reviews/rv_")
    ]
    assert len(listed) == 30
    for rel, wanted in (("next", listed), ("prev", listed[::-1])):
        path, met = f"{wanted[0]}?order={order}", []
        while path:
            met.append(path.partition("?")[0])
            page = await get(client, path)
            path = next(
                (each["href"] or "" for tag, each in page.tags if tag == "a" and each.get("rel") == rel), ""
            )
        assert met == wanted


async def undo(client: httpx.AsyncClient, path: str = "/reviews", status: int = 303) -> httpx.Response:
    """Press the button that undoes what was done last, as any page has it."""
    fields = (await get(client, path)).forms["/reviews"]
    return await send(client, "/reviews", {**fields, "action": "undo"}, status)


async def bulk(client: httpx.AsyncClient, numbers: range, action: str) -> None:
    """Tick entries of the list, and press a button."""
    fields = (await get(client, "/reviews?status=all")).forms["/reviews"]
    picks = [f"{entry(number).id}:1" for number in numbers]
    await send(client, "/reviews", {**fields, "pick": picks, "action": action})


async def test_what_was_decided_is_undone_step_by_step_from_any_page(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """The last one first, without a script; one entry is opened again."""
    await press(client, f"/reviews/{FIRST}", "reject")
    await press(client, f"/reviews/{LAST}", "approve")
    for own_id, path in ((LAST, "/reviews"), (FIRST, f"/reviews/{entry(5).id}")):
        assert queue.get(own_id).summary.status.label is not None
        assert (await undo(client, path)).headers["location"].startswith(f"/reviews/{own_id}")
        assert queue.get(own_id).summary.status is ReviewStatus.PENDING
    assert "step" not in (await get(client, "/reviews")).forms["/reviews"]


async def test_a_bulk_decision_is_undone_as_one(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """All of it, and nothing else; the trail keeps what was decided and that it was undone."""
    await press(client, f"/reviews/{FIRST}", "approve")
    await bulk(client, range(10, 17), "reject")
    assert "You rejected 7 entries" in (await get(client, "/reviews")).words
    assert (await undo(client)).headers["location"].startswith("/reviews?")
    assert queue.counts()[ReviewStatus.REJECTED] == 0
    assert queue.counts()[ReviewStatus.APPROVED] == 1
    trail = queue.get(entry(12).id).events
    assert [(each.action, each.status.value) for each in trail] == [
        ("rejected", "rejected"),
        ("undid", "pending"),
    ]
    assert "undid" in (await get(client, f"/reviews/{entry(12).id}")).words
    # Then the step before it.
    await undo(client)
    assert queue.counts()[ReviewStatus.PENDING] == 30


async def test_undo_leaves_what_others_have_decided_since(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """What can be undone is, and the page names the rest; once more there is nothing to undo."""
    await bulk(client, range(3), "approve")
    fields = (await get(client, "/reviews")).forms["/reviews"]
    queue.change(Change(entry(1).id, 2, ReviewStatus.REJECTED), actor="ann")
    page = Page((await undo(client, status=409)).text)
    assert "2 of 3 entries are as they were before" in page.words
    assert entry(1).id in page.text
    assert queue.get(entry(1).id).summary.status is ReviewStatus.REJECTED
    assert queue.counts()[ReviewStatus.APPROVED] == 0
    again = await send(client, "/reviews", {**fields, "action": "undo"}, 422)
    assert "nothing of it to undo" in Page(again.text).words
    for step in ("", "0" * 32, "x", "9" * 99):
        await send(client, "/reviews", {**fields, "action": "undo", "step": step}, 422)


async def test_nobody_undoes_the_step_of_somebody_else(queue: ReviewQueue) -> None:
    """Whoever knows its id or not."""
    queue.change(Change(FIRST, 1, ReviewStatus.APPROVED), actor="bob")
    step = queue.last_step("bob", since=0.0)
    assert step is not None
    headers = {"authorization": "Basic " + base64.b64encode(f"ann:{TOKEN}".encode()).decode()}
    transport = httpx.ASGITransport(console_of(queue, access=TOKENS))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        fields = (await get(client, "/reviews")).forms["/reviews"]
        assert "step" not in fields
        await send(client, "/reviews", {**fields, "action": "undo", "step": step.id}, 422)
    assert queue.get(FIRST).summary.status is ReviewStatus.APPROVED


async def test_undo_gives_back_status_and_marks_and_keeps_what_was_written(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """An entry that was taken up is so again; approving had taken its marks away; the note stays."""
    await press(client, f"/reviews/{FIRST}", "take", marks="own", spans="26-35")
    await press(client, f"/reviews/{FIRST}", "approve", note="looked right")
    await undo(client)
    kept = queue.get(FIRST)
    assert (kept.summary.status, kept.summary.reviewer) == (ReviewStatus.REVIEWED, "local")
    assert (kept.spans, kept.summary.note) == ((Correction(26, 35),), "looked right")


async def test_marks_and_note_are_kept_with_the_decision(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """The form begins with the detectors' marks; approving takes marks away, for an answer that is right has none."""
    page = await get(client, f"/reviews/{FIRST}")
    start = ANSWER.index("Thursdays")
    assert page.forms[f"/reviews/{FIRST}"]["spans"].splitlines()[0] == f"{start}-{start + 9}"
    await press(
        client, f"/reviews/{FIRST}", "take", marks="own", spans="0-12\r\n 26 – 35 \r\n", note="line\r\nline"
    )
    kept = queue.get(FIRST)
    assert kept.spans == (Correction(0, 12), Correction(26, 35))
    assert (kept.summary.status, kept.summary.note) == (ReviewStatus.REVIEWED, "line\nline")
    page = await get(client, f"/reviews/{FIRST}")
    assert page.forms[f"/reviews/{FIRST}"]["spans"] == "0-12\n26-35"
    assert page.forms[f"/reviews/{FIRST}"]["marks"] == "own"
    await press(client, f"/reviews/{FIRST}", "approve")
    assert queue.get(FIRST).spans is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"marks": "own", "spans": "abc"}, "line 1 of the marks"),
        ({"marks": "own", "spans": "5-5"}, "not within"),
        ({"marks": "own", "spans": "0-99999"}, "not within"),
        ({"marks": "own", "spans": "7:0-5"}, "no choice 7"),
        ({"marks": "own", "spans": "\n".join(["0-1"] * 1001)}, "at most 1000"),
        ({"note": "x" * 4001}, "note"),
        ({"note": "a\x00b"}, "note"),
        ({"action": "explode"}, "press one of the buttons"),
    ],
)
async def test_what_cannot_be_saved_says_why_and_is_not_lost(
    client: httpx.AsyncClient, queue: ReviewQueue, changes: dict[str, str], told: str
) -> None:
    """422 with the page, and in it what was typed."""
    given = {"note": "my note", **changes}
    reply = await press(client, f"/reviews/{FIRST}", given.pop("action", "reject"), 422, **given)
    page = Page(reply.text)
    assert told in page.words
    if "\x00" not in given["note"]:
        assert page.forms[f"/reviews/{FIRST}"]["note"] == given["note"]
    if "spans" in given:
        assert page.forms[f"/reviews/{FIRST}"]["spans"] == given["spans"]
    assert queue.get(FIRST).summary.version == 1


async def test_the_second_of_two_reviewers_sees_who_was_faster(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """409 with the entry as it is; the same form, sent again from there, goes through."""
    fields = (await get(client, f"/reviews/{FIRST}")).forms[f"/reviews/{FIRST}"]
    queue.change(Change(FIRST, 1, ReviewStatus.APPROVED, note="theirs"), actor="<b>ann</b>")
    reply = await send(client, f"/reviews/{FIRST}", {**fields, "action": "reject", "note": "mine"}, 409)
    page = Page(reply.text)
    assert "Somebody was faster" in page.words
    assert "<b>ann</b>" in page.words
    assert queue.get(FIRST).summary.note == "theirs"
    again = page.forms[f"/reviews/{FIRST}"]
    assert (again["note"], again["version"]) == ("mine", "2")
    await send(client, f"/reviews/{FIRST}", {**again, "action": "reject"})
    assert queue.get(FIRST).summary.status is ReviewStatus.REJECTED


async def test_ticked_entries_are_settled_each_for_itself(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """Back to the list where all went well; else a page names the others."""
    page = await get(client, "/reviews?decision=default")
    fields = page.forms["/reviews"]
    picks = [each["value"] for tag, each in page.tags if tag == "input" and each.get("name") == "pick"]
    reply = await send(client, "/reviews", {**fields, "pick": picks[:3], "action": "reject"})
    assert reply.headers["location"] == "/reviews?decision=default"
    assert queue.counts()[ReviewStatus.REJECTED] == 3
    reply = await send(client, "/reviews", {**fields, "pick": picks[2:5], "action": "approve"}, 409)
    assert "2 of 3 entries were changed" in Page(reply.text).words
    assert (picks[2] or "").partition(":")[0] in reply.text
    assert queue.counts()[ReviewStatus.REJECTED] == 3
    await send(client, "/reviews", {**fields, "action": "approve"}, 422)
    await send(client, "/reviews", {**fields, "pick": picks[:1], "action": "save"}, 422)


async def test_why_an_entry_is_here_is_told_truly(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """By its rule; a sample is one that takes a share, and a detector that asked for a person is named."""
    asked = content()
    asked["choices"][0]["detectors"][1]["for_review"] = True
    plain = {"flagged": False, "score": 0.2, "level": "low"}
    queue.add(
        [
            entry(60, **plain, rule="flagged", sample=1.0, content=asked),
            entry(61, **plain, rule="control", sample=0.1),
            entry(62, **plain, rule="everything", sample=1.0),
            entry(70, rule="flagged", sample=1.0),
        ]
    )
    told = {number: (await get(client, f"/reviews/{entry(number).id}")).words for number in (60, 61, 62, 70)}
    assert "queued by rule flagged , because numbers found something wrong" in told[60]
    assert "queued by rule control , a sample of 10 % of such answers" in told[61]
    assert "queued by rule everything" in told[62]
    assert [number for number, words in told.items() if "sample of" in words] == [61]
    assert [number for number, words in told.items() if "because" in words] == [60]
    listed = (await get(client, "/reviews?rule=flagged&flagged=false")).words
    assert "not flagged · by rule flagged" in listed
    assert "a sample" not in listed


@pytest.mark.parametrize("field", ["csrf", "version", "pick"])
@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 40, "\udcff", "\u0661", "\x00"])
async def test_forms_that_were_tampered_with_change_nothing(
    client: httpx.AsyncClient, queue: ReviewQueue, field: str, value: str
) -> None:
    """4xx, never an error of the server."""
    path = "/reviews" if field == "pick" else f"/reviews/{FIRST}"
    fields = {**(await get(client, path)).forms[path], "action": "reject", field: value}
    body = urlencode(fields, errors="surrogateescape")
    reply = await client.post(path, content=body, headers=FORM)
    assert 400 <= reply.status_code < 500
    assert queue.counts()[ReviewStatus.PENDING] == 30


async def test_a_form_that_is_too_large_or_of_another_page_is_refused(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """413, 415 and 403."""
    await send(client, f"/reviews/{FIRST}", {"note": "x" * 300_000}, 413)
    assert (await client.post(f"/reviews/{FIRST}", json={})).status_code == 415
    elsewhere = {**FORM, "origin": "http://evil.example"}
    assert (await client.post(f"/reviews/{FIRST}", content="a=b", headers=elsewhere)).status_code == 403
    await send(client, f"/reviews/{FIRST}", {"action": "approve", "version": "1"}, 403)


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "https://evil.example",
        "a=b&a=c",
        "cursor=x",
        "\r\nx: y",
        "status=all&decision=" + "x" * 300,
    ],
)
async def test_the_way_back_stays_in_the_list(client: httpx.AsyncClient, back: str) -> None:
    """Whatever the form says, the redirect is to a review page of the console."""
    location = (await press(client, f"/reviews/{FIRST}", "take", back=back)).headers["location"]
    assert re.fullmatch(rf"/reviews/{FIRST}\?[\w=&%+.-]*", location)
    assert "evil" not in location


async def test_no_text_of_anybody_becomes_a_part_of_a_page(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """Every field hostile: the tags are those of a page without, and nothing unseen is left in it."""
    hurt = replace(
        entry(90),
        decision=HOSTILE, mode=HOSTILE[:16], action=HOSTILE[:16], policy_version=HOSTILE[:30], level=HOSTILE[:16], rule=HOSTILE, model=HOSTILE,
        query_id=HOSTILE[:60], trace_id=HOSTILE[:30], user_id=HOSTILE, scope={HOSTILE: HOSTILE}, detectors={HOSTILE: 0.9}, kinds=(HOSTILE,), excerpt=HOSTILE,
        content=content((HOSTILE * 20,), ([span(HOSTILE * 20, "onerror", note=HOSTILE, kind="fabricated", reason=HOSTILE, confidence=0.5, passage=0, sentence=[0, 20])],), passages=(HOSTILE * 3,), question=HOSTILE),
    )  # fmt: skip
    hurt.content["choices"][0]["detectors"][0] |= {
        "name": HOSTILE, "explanation": HOSTILE, "details": {HOSTILE: HOSTILE},
    }  # fmt: skip
    hurt.content["choices"][0]["claims"][0] |= {"claim_type": HOSTILE, "outcome": HOSTILE, "value": HOSTILE}
    queue.add([hurt])
    queue.change(Change(hurt.id, 1, ReviewStatus.REJECTED, note=HOSTILE), actor=HOSTILE)
    for path in (
        "/reviews?status=all",
        "/reviews?status=rejected",
        f"/reviews/{hurt.id}",
        "/reviews/stats",
        f"/reviews?{urlencode({'decision': HOSTILE[:99]})}",
    ):
        reply = await client.get(path)
        page = Page(reply.text)
        assert not [
            each
            for each in page.tags
            if each[0] == "img" or any(name.startswith("on") or name == "style" for name in each[1])
        ]
        assert "49" not in re.findall(r"'(\d\d) ", page.words)
        # What a list is filtered by stands in it as it is, in attributes that nobody sees.
        seen = re.sub(r'<option value="[^"]*"', "", reply.text)
        assert not re.search("[\u202e\u2066\u200b\x00\x1b]", seen), path
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.slow
async def test_a_very_long_answer_with_thousands_of_spans_is_shown_within_bounds(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """200 KB and 5,000 spans: the page is there, and not many times their size."""
    text = "The clinic offers free dental surgery on Sundays. " * 4_000
    spans = [
        {"start": at * 40, "end": at * 40 + 20, "shown": [at * 40, at * 40 + 20], "score": 0.5 + at % 50 / 100, "detector": "encoder", "differences": []}
        for at in range(5_000)
    ]  # fmt: skip
    queue.add([replace(entry(91), content=content((text,), (spans,)))])
    page = await get(client, f"/reviews/{entry(91).id}")
    assert len(page.text) < 3_000_000
    assert len(page.forms[f"/reviews/{entry(91).id}"]["spans"].splitlines()) <= 1_000
    unseen = "\u200b" * 200_000
    queue.add([replace(entry(92), content=content((unseen,), ([],)))])
    assert "[U+200B]" in (await get(client, f"/reviews/{entry(92).id}")).text


async def test_without_texts_positions_and_hashes_are_shown_with_what_to_set(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """Positions, lengths, hashes, and the policy's key; a cause where texts were dropped."""
    bare = content(text=False)
    queue.add(
        [
            replace(entry(93), has_text=False, excerpt="", content=bare),
            replace(entry(94), has_text=False, excerpt="", content=bare | {"texts_dropped": "too large"}),
        ]
    )
    words = (await get(client, f"/reviews/{entry(93).id}")).words
    start = ANSWER.index("Thursdays")
    for told in (
        "review: {keep_text: true}",
        f"{start}–{start + 9}",
        bare["choices"][0]["sha256"],
        "127 characters",
        "contradicted",
    ):
        assert told in words
    assert "not kept: too large" in (await get(client, f"/reviews/{entry(94).id}")).words
    assert f"Text not kept ({entry(93).id})" in (await get(client, "/reviews")).words


async def test_an_entry_tells_all_that_is_known(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """Question, scores, detectors, claims, ids, history, and what each button means."""
    queue.change(Change(FIRST, 1, ReviewStatus.REVIEWED, note="looking"), actor="ann")
    page = await get(client, f"/reviews/{FIRST}")
    for told in (
        "When can I get a vaccination?", "2 of 30 tokens are marked", "max_token 0.97", "no-figures", "Claims 3, of them 1 verified and 2 not",
        "0.10, 0.05 after its figures were checked", "req-0", "0af7651916cd43dd8448eb211c80319c", "ann took up: looking", "0.90 at a threshold of 0.6",
        "The answer is right (false alarm)", "The answer is wrong (hallucination)", "Taken up by ann", "probability 0.88",
    ):  # fmt: skip
        assert told in page.words


async def test_an_entry_links_to_its_exchange_while_that_is_known(queue: ReviewQueue) -> None:
    """By the id that the response told the client."""
    recent = Recent()
    recent.add(replace(FULL, review_id=FIRST), time=NOW, exchange=EXCHANGE)
    transport = httpx.ASGITransport(console_of(queue, recent=recent))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await get(client, f"/reviews/{FIRST}")).links("/exchanges/") == [
            f"/exchanges/{recent.entries()[0].id}"
        ]
        assert (await get(client, f"/reviews/{LAST}")).links("/exchanges/") == []


async def test_tabs_count_by_status_and_filters_stay(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """The counts are of the filter; pages go on by cursor with it."""
    queue.change(Change(entry(1).id, 1, ReviewStatus.APPROVED), actor="ann")
    page = await get(client, "/reviews?decision=support&limit=4&min_score=&flagged=")
    assert "Pending 9 Taken up 0 Approved 1 Rejected 0 All 10" in page.words
    found, path = [], "/reviews?decision=support&limit=4"
    while path:
        page = await get(client, path)
        found += [link.partition("?")[0] for link in page.links("/reviews/rv_")]
        path = next(iter(link for link in page.links("/reviews?") if "cursor=" in link), "")
    assert len(found) == len(set(found)) == 9


@pytest.mark.parametrize(
    "query",
    [
        "min_score=x",
        "status=perhaps",
        "order=worst",
        "cursor=x",
        "a=b&" * 60,
        "limit=9999",
        "flagged=true&flagged=false",
        "%ff=%ff",
    ],
)
async def test_an_address_that_cannot_be_read_shows_pending_entries_and_says_so(
    client: httpx.AsyncClient, query: str
) -> None:
    """422 with the list."""
    page = await get(client, f"/reviews?{query}", 422)
    assert len(page.links("/reviews/rv_")) == 30


async def test_an_empty_queue_says_how_entries_come(tmp_path: Path) -> None:
    """And a switched off one that it is."""
    for queue, told in ((queue_in(tmp_path), "X-TruthLens-Review-Id"), (None, "switched off")):
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(console_of(queue)), base_url="http://localhost"
        ) as client:
            for path in ("/reviews", "/reviews?status=all"):
                assert told in (await get(client, path)).words
            assert (await client.get("/reviews/stats")).status_code == 200


async def test_what_is_not_there_is_404_and_a_silent_database_503(
    client: httpx.AsyncClient, queue: ReviewQueue, tmp_path: Path
) -> None:
    """Pages that say so, without a path of the server."""
    assert "no such entry" in (await get(client, "/reviews/rv_nope", 404)).words
    assert "no such entry" in (await get(client, "/reviews/%00", 404)).words
    queue.database.dispose()
    (tmp_path / "reviews.db").rename(tmp_path / "away.db")
    (tmp_path / "reviews.db").mkdir()
    for path in ("/reviews", f"/reviews/{FIRST}", "/reviews/stats"):
        page = await get(client, path, 503)
        assert "does not answer" in page.words
        assert str(tmp_path) not in page.text


async def test_viewers_see_everything_but_the_actions(queue: ReviewQueue) -> None:
    """No form that changes something, no note to type; and what they send is refused."""
    queue.change(
        Change(FIRST, 1, ReviewStatus.REJECTED, note="a note", spans=[Correction(26, 35)]), actor="ann"
    )
    app = console_of(queue, access=TOKENS)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for path in ("/reviews?status=all", f"/reviews/{FIRST}", "/reviews/stats"):
            page = await get(client, path, auth=("eve", VIEWER_TOKEN))
            posting = [each for tag, each in page.tags if tag == "form" and each.get("method") == "post"]
            assert posting == []
            assert not [
                each
                for tag, each in page.tags
                if tag == "textarea" or (each.get("type") == "checkbox" and each.get("id") != "keys-on")
            ]
        page = await get(client, f"/reviews/{FIRST}", auth=("eve", VIEWER_TOKEN))
        for told in ("a note", "26-35", "Thursdays", "role reviewer"):
            assert told in page.words
        for path in ("/reviews", f"/reviews/{FIRST}"):
            await send(client, path, {"action": "approve", "version": "2"}, 403, auth=("eve", VIEWER_TOKEN))
        page = await get(client, f"/reviews/{LAST}", auth=("ann", TOKEN))
        await send(
            client,
            f"/reviews/{LAST}",
            {**page.forms[f"/reviews/{LAST}"], "action": "reject"},
            auth=("ann", TOKEN),
        )
        assert queue.get(LAST).summary.reviewer == "ann"


async def test_figures_are_drawn_and_written(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """Precision with its interval, by week, day, decision, detector and kind."""
    assert "No flagged answer is settled yet" in (await get(client, "/reviews/stats")).words
    for number in range(12):
        status = ReviewStatus.REJECTED if number % 4 else ReviewStatus.APPROVED
        queue.change(Change(entry(number).id, 1, status), actor="ann")
    # The figures may be some seconds old; another process has its own.
    transport = httpx.ASGITransport(console_of(queue))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as other:
        page = await get(other, "/reviews/stats")
    for told in (
        "By week",
        "By day",
        "2025-12-29",
        "2026-01-02",
        "support",
        "numbers",
        "contradicted",
        "of 11 flagged answers",
        "18 not settled",
    ):
        assert told in page.words
    assert {"circle", "svg"} <= {tag for tag, _ in page.tags}
