"""``python -m truthlens.policy`` prints the JSON Schema that is kept in ``config/truthlens.schema.json``."""

from __future__ import annotations

import json
import sys

from truthlens.policy.schema import json_schema


def render() -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
