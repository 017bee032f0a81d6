"""A headless Chromium and a console with a review queue for it; skipped where either is missing."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.fakes.ports import free_port
from tests.fakes.review_console import console_of, content, entry, queue_in, span
from truthlens.process.settings import Access
from truthlens.review.store.queue import ReviewQueue

HOSTILE = (
    '<img src=x onerror="window.hurt=1"> \u202eright to left\u202c zero\u200bwidth \x00 \r\n'
    "smile \U0001f600 end. The clinic is free on Sundays."
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'truthlens[test]'"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium (what .ci/run does)")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


class Listening:
    """An ASGI application that listens on a port of its own; ``asked`` has what the browser sent, as lines of requests and referrers."""

    def __init__(self, app: ASGIApp) -> None:
        self.asked: list[str] = []
        self.port = free_port()
        self._app = app
        config = uvicorn.Config(
            self._noted,
            host="127.0.0.1",
            port=self.port,
            log_level="error",
            lifespan="off",
            interface="asgi3",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.02)

    async def _noted(self, scope: Scope, receive: Receive, send: Send) -> None:
        referrers = [value for name, value in scope["headers"] if name == b"referer"]
        line = b" ".join([scope["method"].encode(), scope["raw_path"], scope["query_string"], *referrers])
        self.asked.append(line.decode("latin-1"))
        await self._app(scope, receive, send)

    def url(self, path: str) -> str:
        return f"http://localhost:{self.port}{path}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


class Server(Listening):
    """A console that has a queue of twelve entries and a hostile one."""

    def __init__(self, folder: Path, access: Access | None = None) -> None:
        self.queue: ReviewQueue = queue_in(folder)
        self.queue.add([entry(number) for number in range(12)])
        hostile = content(
            (HOSTILE,),
            (
                [
                    span(
                        HOSTILE,
                        "free on Sundays",
                        kind="fabricated",
                        reason="no passage says so",
                        confidence=0.7,
                    )
                ],
            ),
        )
        self.hostile = entry(
            50, excerpt=HOSTILE, model=HOSTILE, user_id=HOSTILE, query_id=HOSTILE[:60], content=hostile
        )
        self.queue.add([self.hostile])
        super().__init__(console_of(self.queue, access=access))

    def status(self, number: int) -> str:
        return self.queue.get(entry(number).id).summary.status.value

    def stop(self) -> None:
        super().stop()
        self.queue.database.dispose()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(access: Access | None = None) -> Server:
        running.append(Server(tmp_path, access))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve()


SIZES = [(1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")]
every_size = pytest.mark.parametrize("page", SIZES, indirect=True, ids=lambda each: f"{each[0]}-{each[1]}")


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page, of the size and scheme that a parameter gives; an error of a script or of the content security policy fails the test."""
    width, scheme = getattr(request, "param", SIZES[0])
    context = browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme=scheme, has_touch=width < 500
    )
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    made.set_default_timeout(15_000)
    yield made
    context.close()
    # A page that answers 409 or 422 is told of as an error, too.
    expected = ("status of 4", "CONNECTION_REFUSED")  # the server may stop before the page does
    assert [each for each in problems if not any(text in each for text in expected)] == []
