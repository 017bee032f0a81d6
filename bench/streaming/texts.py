"""The question, the evidence and the answer of ``bench/streaming/run.py``.

The answer is cut into words, one a token.
"""

from __future__ import annotations

import re

CONTEXT = (
    "The river ferry runs between the old harbour and the market square from March to October. It leaves every twenty "
    "minutes on weekdays and every half hour at weekends. A single ticket costs four euros, a day ticket nine euros. "
    "Bicycles travel free of charge outside the rush hours. Dogs must be kept on a lead. The crossing takes eleven "
    "minutes. Tickets are sold on board and at the kiosk by the bridge. In fog the ferry does not sail. Groups of more "
    "than fifteen people should call a day ahead. The ferry carries sixty passengers."
)
ANSWER = (
    "The ferry connects the old harbour with the market square between March and October. On weekdays it leaves every "
    "twenty minutes. At weekends it leaves every half hour. A single ticket costs four euros, and bicycles are free "
    "outside the rush hours. Dogs must be kept on a lead. The crossing takes eleven minutes. Tickets are sold on board "
    "and at the kiosk by the bridge. The ferry does not sail in fog. "
)
WORDS = re.findall(r"\S+\s*", ANSWER)
SENTENCE_WORDS = len(re.findall(r"\S+\s*", ANSWER.partition(". ")[0]))
REQUEST = {
    "model": "bench",
    "messages": [
        {"role": "user", "content": f"<context>{CONTEXT}</context>\nHow do I get to the market square?"}
    ],
}
# No sentence ends in it: what a gate holds until its time is up.
ENDLESS = re.findall(r"\S+\s*", ANSWER.replace(". ", ", "))
