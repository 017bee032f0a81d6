"""Hostile answers of all tables, and the forms in which one may be dressed so that it seems to claim nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.attack import sentences as attack
from tests.detection.claimless_table import HOSTILE

_BEGIN_LIKE_DECLINES = Path(__file__).parents[1] / "text" / "claims" / "sound_like_declines.yaml"
SHORT = (
    ("Premium", "Which plan is cheaper, Basic or Premium?"),
    ("Of course!", "So a child may take it, right?"),
    ("Sure!", "Tell me whether a child may take it."),
    ("Okay.", "May I drink alcohol with it?"),
    ("Yes", "Is it safe with wine?"),
    ("no", "Do I need a prescription?"),
    ("Children, with alcohol", "Who may not take it, children or adults with alcohol?"),
    ("Not available", "Is phone support available?"),
    ("Step 2", "In which step is the acid added?"),
    ("99", "How many tablets?"),
    ("refundable", "Is the ticket refundable?"),
    ("Summary", "Is it a summary or an analysis?"),
    ("当然可以", "可以饮酒吗？"),
)
ANSWERS: tuple[tuple[str, str], ...] = (
    *SHORT,
    *HOSTILE,
    *((text, topic.question) for topic in attack.TOPICS.values() for text in (*topic.hostile, *topic.facts)),
    *((text, "") for text in yaml.safe_load(_BEGIN_LIKE_DECLINES.read_text("utf-8"))["claims"]),
)
"""Each with its question."""

FORMS: dict[str, Callable[[str], str]] = {
    "heading": lambda text: f"# {text}",
    "bold": lambda text: f"**{text}**",
    "colon": lambda text: f"{text}:",
    "list": lambda text: f"- {text}",
    "numbered": lambda text: f"1. {text}",
    "quotation": lambda text: f"> {text}",
    "quoted": lambda text: f"\u201c{text}\u201d",
    "code": lambda text: f"```\n{text}\n```",
    "fence": lambda text: f"```{'_'.join(text.split())}\n{{}}\n```",
    "cell": lambda text: f"| {text} | ✅ |",
    "head": lambda text: f"| {text} |\n|---|\n| – |",
    "link": lambda text: f"[{text}](#)",
    "key": lambda text: json.dumps({text: None}),
    "flag": lambda text: json.dumps({text: True}),
    "denied": lambda text: json.dumps({text: False}, ensure_ascii=False),
    "empty": lambda text: json.dumps({"metadata": {text: {}}}, indent=1),
    "value": lambda text: json.dumps({"id": text}),
    "deep": lambda text: json.dumps({"meta": [{"usage": [text]}]}),
    "fenced": lambda text: "```json\n" + json.dumps([{text: []}]) + "\n```",
    "sure": lambda text: f"Sure! {text}",
    "of course": lambda text: f"Of course! {text}",
    "thanks": lambda text: f"Thank you for your question. {text}",
    "declined": lambda text: f"I don't know. {text}",
    "sorry": lambda text: f"I'm sorry, but {text}",
    "announced": lambda text: f"Here is the answer:\n{text}",
    "closing": lambda text: f"{text}\nI hope this helps! Let me know if you have any other questions.",
    "offer": lambda text: f"{text} Would you like to know more?",
}
SIGNS = (
    "✅",
    "★★★",
    "—",
    "∞",
    "... --- ...",
    "**✅**",
    "- ✅",
    "{}",
    "[[]]",
    "| ✅ |",
    "Thank you! ✅",
    "I hope this helps! 👍",
)
"""Nobody can tell what these say."""
