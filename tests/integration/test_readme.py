"""README's first experiment against a live ``truthlens up``: its lines as they stand, and what it says comes back."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.support.stack import wait_for
from tests.integration.test_up import Up

pytestmark = pytest.mark.envoy

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TRY_IT = README.partition("## Try it")[2].partition("\n## ")[0]
# What README says of every run alike; the time is another each time.
VARYING = {"x-truthlens-latency-ms", "x-truthlens-review-id"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One deployment for the module."""
    running = Up(tmp_path_factory.mktemp("readme"))
    yield running
    running.process.kill()
    running.process.wait()


def line(up: Up, wrong: str = "") -> str:
    """The first experiment's line, at this deployment; ``wrong`` in place of the amount that is wrong."""
    (block,) = re.findall(r"```sh\n(curl .*?)```", TRY_IT, re.DOTALL)
    assert "http://127.0.0.1:10000" in block
    return block.replace("http://127.0.0.1:10000", up.url).replace("75 dollars", wrong or "75 dollars")


def paste(command: str) -> tuple[dict[str, str], str]:
    """Headers of ours and the body that a shell prints for ``command``."""
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    head, _, body = ended.stdout.partition("\n\n")
    assert head.startswith("HTTP/1.1 200 OK")
    return dict(re.findall(r"^(x-truthlens-[\w-]+): (\S+)", head, re.MULTILINE)), body


def test_the_first_line_gives_what_is_written_below_it(up: Up) -> None:
    """The same headers with the same values, save the time, and a score near the one written; the warning in the body."""
    written = dict(re.findall(r"^(x-truthlens-[\w-]+): (\S+)", TRY_IT, re.MULTILINE))
    headers, body = paste(line(up))
    assert headers.keys() == written.keys()
    score = "x-truthlens-score"
    assert abs(float(headers[score]) - float(written[score])) <= 0.1
    same = headers.keys() - VARYING - {score}
    assert {name: headers[name] for name in same} == {name: written[name] for name in same}
    for text in ("⚠️ **Note**: This response may contain", "an international one 40 dollars."):
        assert text in body
        assert text in TRY_IT


def test_the_steps_after_it_do_what_is_written(up: Up) -> None:
    """Right amounts pass, in any words, wrong and exchanged ones are flagged; an edited policy counts."""
    assert "Change `75 dollars` into `40 dollars`" in TRY_IT
    headers, body = paste(line(up, "40 dollars"))
    assert headers["x-truthlens-detected"] == "false"
    assert "⚠️" not in body
    assert "With `45 dollars` it is flagged again" in " ".join(TRY_IT.split())
    assert paste(line(up, "45 dollars"))[0]["x-truthlens-detected"] == "true"
    for amount, flagged in (("40 dollars", "false"), ("75 dollars", "true")):
        reworded = line(up, amount).replace("demo-grounded", "demo-reworded")
        assert paste(reworded)[0]["x-truthlens-detected"] == flagged
    assert "where the documents exchange the two prices" in " ".join(TRY_IT.split())
    headers, _ = paste(line(up, "12 dollars").replace("charges 12 dollars", "charges 40 dollars"))
    assert headers["x-truthlens-detected"] == "true"
    assert "first `threshold: 0.6` to `1`" in " ".join(TRY_IT.split())
    policy = up.policy.read_text(encoding="utf-8")
    edited = policy.replace("threshold: 0.6", "threshold: 1", 1)
    assert edited != policy
    up.policy.write_text(edited, encoding="utf-8")
    wait_for(lambda: paste(line(up))[0]["x-truthlens-detected"] == "false", "the edited policy")
    up.policy.write_text(policy, encoding="utf-8")
    wait_for(lambda: paste(line(up))[0]["x-truthlens-detected"] == "true", "the policy as it was")


def test_the_console_opens_what_the_lines_did(up: Up) -> None:
    """The list links to a page with the plan, the score and the spans."""
    paste(line(up))
    page = httpx.get(up.console).text
    link = re.search(r'href="(/exchanges/\w+)"', page)
    assert link
    shown = " ".join(re.sub(r"<[^>]*>", " ", httpx.get(up.console + link[1]).text).split())
    for told in ("Status checked", "Threshold 0.6", "Spans", "Positions count characters"):
        assert told in shown


def test_the_line_for_detect_scores(up: Up) -> None:
    """README's line for scoring without a gateway, with this interpreter's command."""
    (command,) = re.findall(r"```sh\n(echo .*?)\n```", README, re.DOTALL)
    assert ".venv/bin/truthlens" in command
    executable = up.process.args[0]  # type: ignore[index]
    headers = subprocess.run(
        ["/bin/sh", "-c", command.replace(".venv/bin/truthlens", f"{executable} -m truthlens")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert headers.stdout.startswith("detected")


def test_other_sites_cannot_reach_the_console(up: Up) -> None:
    """Host, origin and media type are looked at by the real server too; probes are let through by any name."""
    body = {"context": ["Tea is free."], "response": "Tea is free."}
    detect = f"{up.console}/v1/detect"
    assert httpx.post(detect, json=body).status_code == 200
    assert httpx.post(detect, json=body, headers={"host": "evil.example"}).status_code == 403
    assert httpx.post(detect, json=body, headers={"origin": "http://evil.example"}).status_code == 403
    assert httpx.post(detect, json=body, headers={"origin": up.console}).status_code == 200
    assert httpx.post(detect, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    for path in ("/healthz", "/readyz", "/metrics"):
        reply = httpx.get(up.console + path, headers={"host": "10.1.2.3:8088"})
        assert (reply.status_code, reply.headers["x-frame-options"]) == (200, "DENY")
