"""The review pages in a real browser: by keyboard alone, at two widths and in both schemes, and their accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import HOSTILE, Server, every_size
from tests.browser.page_faults import axe_faults, small_targets, too_wide
from tests.fakes.review_console import ANSWER, TOKENS, VIEWER_TOKEN, content, entry
from truthlens.desk.labelled import rows_of
from truthlens.review.records import Change, Correction, ReviewStatus


def own_id(page: Any) -> str:
    found = re.search(r"/reviews/(rv_[0-9a-f]+)", page.url)
    assert found, page.url
    return found[1]


def decide(page: Any, key: str) -> None:
    """Press a key that decides, once the page takes decisions."""
    page.wait_for_selector("html[data-rested]", state="attached")
    page.keyboard.press(key)


def click(page: Any, button: str) -> None:
    """Press a button that decides, once the page takes decisions."""
    page.wait_for_selector("html[data-rested]", state="attached")
    with page.expect_navigation():
        page.click(button)


def select(page: Any, part: str, choice: int = 0) -> None:
    """Select ``part`` of the answer as it is shown, as a mouse would."""
    page.evaluate(
        """([part, choice]) => {
            const answer = document.querySelector(`[data-choice="${choice}"] .annotated-answer > .answer`);
            const at = answer.textContent.indexOf(part);
            if (at < 0) throw new Error(`not shown: ${part}`);
            const walker = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT), range = document.createRange();
            let behind = 0;
            while (walker.nextNode()) {
                const node = walker.currentNode, next = behind + node.data.length;
                if (behind <= at && at < next) range.setStart(node, at - behind);
                if (behind < at + part.length && at + part.length <= next) range.setEnd(node, at + part.length - behind);
                behind = next;
            }
            getSelection().removeAllRanges();
            getSelection().addRange(range);
        }""",
        [part, choice],
    )
    page.wait_for_function("() => document.querySelector('[data-mark-told]').textContent.includes('or m')")


@every_size
def test_a_reviewer_works_by_keyboard_alone(page: Any, server: Server) -> None:
    """List, open, approve, land on the next, undo, mark by arrow keys, reject; each state is in the database."""
    keys = page.keyboard
    page.goto(server.url("/reviews"))
    for key in ("j", "j", "j", "k"):
        keys.press(key)
    assert page.evaluate("document.activeElement.pathname") == f"/reviews/{entry(11).id}"
    keys.press("Enter")
    page.wait_for_url(f"**/reviews/{entry(11).id}**")
    decide(page, "a")
    page.wait_for_url(f"**/reviews/{entry(10).id}**")
    assert server.status(11) == "approved"
    assert "You approved an entry" in page.inner_text(".undo")
    # Also after moving on.
    keys.press("j")
    page.wait_for_url(f"**/reviews/{entry(9).id}**")
    keys.press("k")
    page.wait_for_url(f"**/reviews/{entry(10).id}**")
    decide(page, "u")
    page.wait_for_url(f"**/reviews/{entry(11).id}**")
    assert server.status(11) == "pending"
    # The first word, and two more.
    page.focus("[data-choice] .answer")
    for key in ("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        keys.press(key)
    page.wait_for_function("() => document.querySelector('[data-mark-told]').textContent.includes('or m')")
    assert page.evaluate("getSelection().toString().trim()") == "Vaccinations are given"
    keys.press("m")
    assert "Vaccinations are given" in page.inner_text("[data-marks]")
    keys.press("n")
    keys.type("a and r are typed, not pressed")
    keys.press("Escape")
    decide(page, "r")
    page.wait_for_url(f"**/reviews/{entry(10).id}**")
    settled = server.queue.get(entry(11).id)
    assert settled.summary.status is ReviewStatus.REJECTED
    assert settled.summary.note == "a and r are typed, not pressed"
    assert settled.spans is not None
    marked = [ANSWER[each.start : each.end].strip() for each in settled.spans]
    assert marked == ["Vaccinations are given", "Thursdays", "free dental surgery"]


def test_ticked_entries_are_settled_together(page: Any, server: Server) -> None:
    """X ticks, r rejects what is ticked; without a tick nothing happens."""
    page.goto(server.url("/reviews?order=oldest"))
    page.keyboard.press("r")
    assert "Tick entries first" in page.inner_text("[data-ticked]")
    for key in ("j", "x", "j", "x", "j"):
        page.keyboard.press(key)
    assert page.inner_text("[data-ticked]") == "2 ticked:"
    with page.expect_navigation():
        decide(page, "r")
    assert [server.status(number) for number in range(3)] == ["rejected", "rejected", "pending"]
    assert "order=oldest" in page.url


def test_many_are_undone_as_one(page: Any, server: Server) -> None:
    """By one key, from the list; it says of how many."""
    page.goto(server.url("/reviews?order=oldest"))
    for _ in range(5):
        page.keyboard.press("j")
        page.keyboard.press("x")
    with page.expect_navigation():
        decide(page, "r")
    assert "You rejected 5 entries" in page.inner_text(".undo")
    with page.expect_navigation():
        decide(page, "u")
    assert {server.status(number) for number in range(12)} == {"pending"}
    assert page.query_selector(".undo") is None


def test_the_entry_that_comes_up_by_itself_takes_no_key_of_the_one_before(page: Any, server: Server) -> None:
    """R pressed six times, or a double click, decides about one entry; a moment later keys decide again."""
    twice = "const own = document.querySelector('button.reject'); own.click(); own.click();"
    page.clock.install(time=0)
    page.clock.pause_at(60_000)
    page.goto(server.url(f"/reviews/{entry(8).id}"))
    for number, press in ((8, lambda: page.keyboard.press("r")), (7, lambda: page.evaluate(twice))):
        # The clock of the page stands: what is pressed now comes before it takes decisions.
        for _ in range(6):
            press()
        page.clock.run_for(299)
        press()
        assert server.status(number) == "pending"
        page.clock.run_for(1)
        press()
        page.keyboard.press("r")
        page.wait_for_url(f"**/reviews/{entry(number - 1).id}**")
        assert [each.action for each in server.queue.get(entry(number).id).events] == ["rejected"]
    assert server.queue.counts()[ReviewStatus.REJECTED] == 2


def test_what_was_written_is_not_left_behind_without_a_word(page: Any, server: Server) -> None:
    """Going on asks first where a note was not sent; what is sent or untouched asks nothing."""
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept() if len(asked) > 1 else dialog.dismiss()

    page.on("dialog", answer)
    page.goto(server.url(f"/reviews/{entry(8).id}"))
    page.keyboard.press("j")
    page.wait_for_url(f"**/reviews/{entry(7).id}**")
    page.keyboard.press("n")
    page.keyboard.type("half a thought")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_function("() => true")
    assert (asked, page.input_value("#note")) == (["beforeunload"], "half a thought")
    click(page, "button[value=save]")
    assert server.queue.get(entry(7).id).summary.note == "half a thought"
    page.keyboard.press("j")
    page.wait_for_url(f"**/reviews/{entry(6).id}**")
    assert asked == ["beforeunload"]
    page.fill("#note", "gone")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url(f"**/reviews/{entry(5).id}**")
    assert asked == ["beforeunload"] * 2


def test_a_mark_within_a_mark_narrows_it(page: Any, server: Server) -> None:
    """It is shown, saved, shown again and exported; the rest of the detector's mark is not; one beside it is added."""
    page.goto(server.url(f"/reviews/{entry(3).id}"))
    select(page, "dental surgery")
    page.keyboard.press("m")
    assert "Narrowed to" in page.inner_text("[data-mark-told]")
    wanted = ["Thursdays", "dental surgery"]
    shown = "Array.from(CSS.highlights.get('own-marks'), String)"
    assert page.evaluate(shown) == wanted
    click(page, "button[value=save]")
    assert page.evaluate(shown) == wanted
    select(page, "dental")
    page.keyboard.press("m")
    select(page, "on Sundays")
    page.keyboard.press("m")
    decide(page, "r")
    page.wait_for_url(f"**/reviews/{entry(2).id}**")
    wanted = ["Thursdays", "dental", "on Sundays"]
    kept = server.queue.get(entry(3).id)
    assert [ANSWER[each.start : each.end] for each in kept.spans or ()] == wanted
    (row,) = rows_of(kept)
    assert [ANSWER[each["start"] : each["end"]] for each in row["spans"]] == wanted


def test_counts_change_by_themselves_and_nothing_else_does(page: Any, server: Server) -> None:
    """Ticks, focus and typed text stay while the tabs follow what others do."""
    page.goto(server.url("/reviews"))
    page.click("summary")
    page.fill("#f-min", "0.3")
    page.check("input[name=pick] >> nth=1")
    page.focus("#f-min")
    server.queue.change(Change(entry(0).id, 1, ReviewStatus.APPROVED), actor="ann")
    page.wait_for_function("() => document.getElementById('tab-approved').textContent.includes('1')")
    assert page.input_value("#f-min") == "0.3"
    assert page.is_checked("input[name=pick] >> nth=1")
    assert page.evaluate("document.activeElement.id") == "f-min"


def test_a_span_lights_up_what_it_was_compared_with(page: Any, server: Server) -> None:
    """By focus: the sentence beside it, what differs, which detector and how sure."""
    page.goto(server.url(f"/reviews/{entry(3).id}"))
    page.focus("a.span >> nth=0")
    assert "Vaccinations are given on Wednesdays" in page.inner_text(".sentence.lit")
    card = page.inner_text("[data-card-body]")
    for told in ("contradicted", "encoder", "0.88", "Thursdays", "Wednesdays"):
        assert told in card
    page.keyboard.press("Escape")
    assert page.is_hidden("[data-card]")


@pytest.mark.parametrize(
    "part", ["smile", "\U0001f600 end", "[U+200B]width", "onerror", "Sundays.", "[U+202E]", "+202", "zero"]
)
def test_marks_of_texts_with_hidden_characters_are_where_they_were_made(
    browser: Any, server: Server, part: str
) -> None:
    """Positions count the characters of the text, whatever stands on the page for hidden ones."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server.url(f"/reviews/{server.hostile.id}"))
        select(page, part)
        page.keyboard.press("m")
        decide(page, "r")
        page.wait_for_url(lambda url: server.hostile.id not in url)
        assert page.evaluate("window.hurt") is None
    spans = server.queue.get(server.hostile.id).spans
    assert spans is not None
    wanted = {"[U+200B]width": "\u200bwidth", "[U+202E]": "\u202e", "+202": "\u202e"}.get(part, part)
    assert wanted in {HOSTILE[each.start : each.end] for each in spans} or (
        part == "Sundays." and len(spans) == 1
    )


def test_marks_are_shown_again_and_removed(page: Any, server: Server) -> None:
    """A reviewer's marks come back as they were; one that is removed and saved is gone; the detectors' can stand again."""
    marks = [Correction(0, 12), Correction(26, 35)]
    server.queue.change(Change(entry(5).id, 1, ReviewStatus.REVIEWED, spans=marks), actor="ann")
    page.goto(server.url(f"/reviews/{entry(5).id}"))
    assert page.evaluate("Array.from(CSS.highlights.get('own-marks'), String)") == [
        "Vaccinations",
        "Thursdays",
    ]
    page.click("[data-marks] button >> nth=0")
    assert page.evaluate("Array.from(CSS.highlights.get('own-marks'), String)") == ["Thursdays"]
    click(page, "button[value=save]")
    assert server.queue.get(entry(5).id).spans == (Correction(26, 35),)
    page.check("input[name=marks][value=detectors]")
    click(page, "button[value=save]")
    assert server.queue.get(entry(5).id).spans is None


def test_who_comes_late_is_told_and_goes_on(page: Any, server: Server) -> None:
    """The conflict names who made it what; the typed note is still there; deciding once more works."""
    page.goto(server.url(f"/reviews/{entry(4).id}"))
    page.fill("#note", "my note")
    server.queue.change(Change(entry(4).id, 1, ReviewStatus.APPROVED), actor="ann")
    page.focus("h1 a")
    decide(page, "r")
    page.wait_for_selector(".conflict")
    told = page.inner_text(".conflict")
    assert "ann" in told
    assert "Approved" in told
    assert page.input_value("#note") == "my note"
    assert server.status(4) == "approved"
    decide(page, "r")
    page.wait_for_url(f"**/reviews/{entry(3).id}**")
    assert server.status(4) == "rejected"


def test_help_tells_the_keys_and_switches_them_off(page: Any, server: Server) -> None:
    """? opens it, Escape closes it; keys that are switched off do nothing, and ? still helps."""
    page.goto(server.url(f"/reviews/{entry(4).id}"))
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("a")
    page.uncheck("#keys-on")
    page.keyboard.press("Escape")
    assert page.is_hidden("#help")
    page.keyboard.press("a")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    assert server.status(4) == "pending"


def test_all_of_it_works_without_scripts(browser: Any, server: Server) -> None:
    """Filter, open, mark by positions, reject, put back: by forms and links."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(server.url("/reviews"))
        page.click("summary")
        page.select_option("#f-decision", "support")
        page.click("button:has-text('Show')")
        page.click("[data-open] >> nth=0")
        page.check("input[value=own]")
        page.click("[data-lines] summary")
        page.fill("#spans", "26-35")
        page.click("button[value=reject]")
        assert "decision=support" in page.url
        rejected = server.queue.listed().entries
        done = next(each for each in rejected if each.status is ReviewStatus.REJECTED)
        assert server.queue.get(done.id).spans == (Correction(26, 35),)
        page.click(".undo button")
        assert own_id(page) == done.id
        assert server.queue.get(done.id).summary.status is ReviewStatus.PENDING


def test_a_viewer_has_keys_to_read_and_none_to_decide(page: Any, serve: Callable[..., Server]) -> None:
    """J and k go; a, r and u do nothing."""
    server = serve(TOKENS)
    page.goto(server.url("/login"))
    page.fill("#name", "eve")
    page.fill("#token", VIEWER_TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(server.url("/"))
    page.goto(server.url(f"/reviews/{entry(4).id}"))
    for key in ("a", "r", "u", "m", "n", "x"):
        page.keyboard.press(key)
    assert page.query_selector("form#decide, button[name=action]") is None
    page.keyboard.press("j")
    page.wait_for_url(f"**/reviews/{entry(3).id}**")
    assert server.status(4) == "pending"


def paths(server: Server) -> dict[str, str]:
    return {
        "list": "/reviews?status=all",
        "filters": "/reviews?decision=support&order=score",
        "nothing": "/reviews?decision=support&kind=x",
        "entry": f"/reviews/{entry(3).id}",
        "own marks": f"/reviews/{entry(5).id}",
        "hostile": f"/reviews/{server.hostile.id}",
        "no text": f"/reviews/{entry(60).id}",
        "figures": "/reviews/stats",
        "unknown": "/reviews/rv_nope",
    }


@every_size
def test_pages_are_accessible_and_fit(page: Any, server: Server) -> None:
    """Axe finds nothing serious; nothing is wider than the page; targets are large enough for fingers."""
    server.queue.add([entry(60, has_text=False, excerpt="", content=content(text=False))])
    marks = [Correction(0, 12), Correction(26, 35)]
    server.queue.change(
        Change(entry(5).id, 1, ReviewStatus.REJECTED, spans=marks, note="a note"), actor="local"
    )
    server.queue.change(Change(entry(6).id, 1, ReviewStatus.APPROVED), actor="ann")
    problems: dict[tuple[str, str], object] = {}
    for name, path in paths(server).items():
        page.goto(server.url(path))
        if name == "list":
            page.check("input[name=pick] >> nth=1")
        if wide := too_wide(page):
            problems[name, "wide"] = wide
        # What is behind the open help cannot be reached, and is not looked at then.
        for helping in (False, True) if name in ("list", "entry") else (False,):
            if helping:
                page.keyboard.press("?")
            problems |= {(name, rule): found for rule, found in axe_faults(page).items()}
        if page.viewport_size["width"] < 500:
            page.goto(server.url(path))
            if small := small_targets(page):
                problems[name, "small"] = small
    assert problems == {}
