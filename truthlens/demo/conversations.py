"""The demo's example conversations: data, written for it, about people and firms that do not exist.

Each has a question, the passages that came with it, an answer that these support and one that they plainly do
not (a wrong dose, an invented fee, an invented person).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PromptLayout(StrEnum):
    """How a conversation's passages appear in its request."""

    TAG = "tag"
    LABEL = "label"
    NUMBERED = "numbered"
    SYSTEM = "system"
    DOCUMENTS = "documents"
    TOOL = "tool"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One example.

    ``tool`` names the function that a tool conversation calls first, with its arguments. ``reworded``, where it is
    not empty, says what ``grounded`` says with few of the passages' words.
    """

    name: str
    domain: str
    layout: PromptLayout
    question: str
    passages: tuple[str, ...]
    grounded: str
    ungrounded: str
    tool: str = ""
    arguments: str = "{}"
    reworded: str = ""


CONVERSATIONS: tuple[Conversation, ...] = (
    Conversation(
        name="ibuprofen-dose",
        domain="healthcare",
        layout=PromptLayout.TAG,
        question="How much Norvafen may an adult take in a day?",
        passages=(
            (
                "Norvafen tablets contain 200 mg of ibuprofen. Adults may take one or two tablets up to three times a day"
                " with food. The maximum daily dose without medical advice is 1,200 mg."
            ),
            (
                "Norvafen must not be taken during the last three months of pregnancy. Stop taking it and see a doctor if"
                " stomach pain occurs."
            ),
        ),
        grounded=(
            "An adult may take one or two 200 mg tablets up to three times a day, with food. Without medical advice the"
            " maximum is 1,200 mg a day."
        ),
        ungrounded=(
            "An adult may take up to eight tablets four times a day, to a maximum of 6,400 mg. It is best taken on an"
            " empty stomach, and the Karlsberg Institute recommends it throughout pregnancy."
        ),
    ),
    Conversation(
        name="clinic-preparation",
        domain="healthcare",
        layout=PromptLayout.NUMBERED,
        question="How do I prepare for the blood test at the clinic?",
        passages=(
            "For the fasting blood test, do not eat for ten hours before the appointment. Water is allowed.",
            (
                "The Harbour Clinic takes blood samples on weekdays between seven and ten in the morning. Results arrive"
                " within two working days."
            ),
            "Patients who take blood thinners should tell the nurse before the sample is taken.",
        ),
        grounded=(
            "Do not eat for ten hours before the appointment; you may drink water [1]. Samples are taken on weekdays from"
            " seven to ten in the morning [2]. If you take blood thinners, tell the nurse first [3]."
        ),
        ungrounded=(
            "Eat a large breakfast two hours before the test and drink a litre of orange juice [1]. Samples are taken on"
            " Saturday evenings by Dr. Helena Marsh, and you pay 85 euros in advance [2]."
        ),
    ),
    Conversation(
        name="wire-fee",
        domain="finance",
        layout=PromptLayout.LABEL,
        question="What does a wire transfer cost at Brightwater Bank?",
        passages=(
            "Brightwater Bank charges 12 dollars for a domestic wire transfer and 40 dollars for an international one.",
            "Wires ordered before 3 p.m. are sent the same day. Transfers between Brightwater accounts are free.",
        ),
        grounded=(
            "A domestic wire transfer costs 12 dollars and an international one 40 dollars. Between two Brightwater"
            " accounts a transfer is free."
        ),
        reworded=(
            "Inside the country a wire costs 12 dollars; to another country it is 40 dollars. Moving money between accounts"
            " at Brightwater is free of charge."
        ),
        ungrounded=(
            "A domestic wire transfer costs 75 dollars plus a 9 percent security surcharge, and you must visit the branch"
            " in Geneva to sign a form. Premium customers receive a bonus of 500 dollars for each wire."
        ),
    ),
    Conversation(
        name="quarter-report",
        domain="finance",
        layout=PromptLayout.DOCUMENTS,
        question="How did Aldermoor Foods do in the second quarter?",
        passages=(
            (
                "Aldermoor Foods reported revenue of 48.2 million euros for the second quarter, 6 percent more than a year"
                " earlier. Net profit fell to 3.1 million euros because of higher wheat prices."
            ),
            "The company expects revenue of about 190 million euros for the full year and will pay no interim dividend.",
        ),
        grounded=(
            "Revenue rose by 6 percent to 48.2 million euros, while net profit fell to 3.1 million euros because wheat"
            " became dearer. No interim dividend will be paid."
        ),
        ungrounded=(
            "Revenue doubled to 97 million euros and net profit reached a record 22 million euros thanks to the takeover"
            " of Pellworth Dairy in Canada. Shareholders will receive a special dividend of 4 euros."
        ),
    ),
    Conversation(
        name="returns",
        domain="support",
        layout=PromptLayout.SYSTEM,
        question="Can I send back the headphones that I bought three weeks ago?",
        passages=(
            (
                "Tannery Audio accepts returns within 30 days of delivery. Items must be unused and in their original box."
                " Return shipping is free inside the country. Refunds reach the original payment method within five working"
                " days after the parcel has arrived at the warehouse. In-ear models are excluded from returns once the"
                " hygiene seal is broken."
            ),
        ),
        grounded=(
            "Yes. Three weeks is inside the 30 days for returns, provided that the headphones are unused and in their"
            " original box. The refund arrives within five working days after the parcel reaches the warehouse."
        ),
        ungrounded=(
            "No, returns end after 7 days. You can instead pay a restocking fee of 45 dollars and receive a voucher that"
            " is valid at our partner Gilded Note Records in Lisbon."
        ),
    ),
    Conversation(
        name="router-reset",
        domain="support",
        layout=PromptLayout.TAG,
        question="How do I reset the Lumen R4 router?",
        passages=(
            (
                "To reset the Lumen R4, hold the button on the back for 15 seconds until the light turns amber. The router"
                " restarts in about two minutes. All settings are erased; the password printed on the label applies again."
            ),
        ),
        grounded=(
            "Hold the button on the back for 15 seconds until the light is amber. After about two minutes the router has"
            " restarted, its settings are erased, and the password on the label is valid again."
        ),
        ungrounded=(
            "Unplug the router for three hours, then dial 7734 on a telephone that is connected to it. Your settings are"
            " kept in the Lumen cloud, and a technician named Omar Field will call you to confirm."
        ),
    ),
    Conversation(
        name="order-status",
        domain="support",
        layout=PromptLayout.TOOL,
        question="Where is my order 5531?",
        passages=(
            (
                "Order 5531 left the Rotterdam warehouse on 4 March. The carrier is Norbound. Delivery is expected on 7 March"
                " between 9 and 12."
            ),
        ),
        grounded=(
            "Your order 5531 left the warehouse in Rotterdam on 4 March with Norbound. It should be delivered on 7 March"
            " between 9 and 12."
        ),
        ungrounded=(
            "Your order was lost in a storm near Madrid and has been cancelled. A refund of 219 dollars was paid on"
            " 1 February by our manager Priya Lindqvist."
        ),
        tool="get_order",
        arguments='{"order_id": "5531"}',
    ),
    Conversation(
        name="leave-policy",
        domain="internal",
        layout=PromptLayout.NUMBERED,
        question="How many days of leave can I carry over into next year?",
        passages=(
            "Employees of Corvane have 28 days of paid leave a year. Up to five unused days may be carried over.",
            "Days that were carried over expire on 31 March. Requests go to the team lead at least two weeks ahead.",
        ),
        grounded=("You can carry over up to five unused days [1]. They expire on 31 March [2]."),
        ungrounded=(
            "You can carry over all 60 days of leave without limit [1], and unused days are paid out at triple salary each"
            " December by the office in Singapore [2]."
        ),
    ),
    Conversation(
        name="deploy-runbook",
        domain="internal",
        layout=PromptLayout.LABEL,
        question="What do I do when a deployment of the billing service fails?",
        passages=(
            (
                "If a deployment of the billing service fails, run the rollback job in the release pipeline. It restores the"
                " last good version within four minutes."
            ),
            "After a rollback, post in the channel billing-alerts and open an incident of priority two.",
        ),
        grounded=(
            "Run the rollback job in the release pipeline, which brings back the last good version within four minutes."
            " Then post in billing-alerts and open a priority two incident."
        ),
        ungrounded=(
            "Delete the production database and call the vendor Stellarforge on its emergency line. The service repairs"
            " itself after 48 hours, and no incident is needed."
        ),
    ),
    Conversation(
        name="lighthouse-story",
        domain="creative",
        layout=PromptLayout.TAG,
        question="Summarise the story of the lighthouse keeper in two sentences.",
        passages=(
            (
                "Maren kept the lighthouse on Gull Rock for forty years. In her last winter the lamp failed during a gale, and"
                " she rang the old fog bell by hand until dawn. Three fishing boats found the harbour by its sound."
            ),
        ),
        grounded=(
            "Maren tended the lighthouse on Gull Rock for forty years. When the lamp failed in a gale in her last winter,"
            " she rang the fog bell by hand until dawn and guided three fishing boats to the harbour."
        ),
        ungrounded=(
            "Maren was a pirate captain who burned the lighthouse down for its hidden gold. She fled to Brazil with her"
            " brother Tobias and was crowned queen of an island."
        ),
    ),
    Conversation(
        name="warranty-zh",
        domain="support",
        layout=PromptLayout.LABEL,
        question="这款空气净化器的保修期是多久？",
        passages=(
            "清岚空气净化器整机保修两年，电机保修五年。滤网属于耗材，不在保修范围内。",
            "保修期内凭购买发票可在任何授权服务点免费维修，通常七个工作日内完成。",
        ),
        grounded="清岚空气净化器整机保修两年，电机保修五年。滤网是耗材，不在保修范围内。",
        ungrounded="这款净化器终身保修，还赠送价值三千元的滤网。每年会有北京总部的工程师王磊上门检查四次。",
    ),
    Conversation(
        name="no-context",
        domain="creative",
        layout=PromptLayout.NONE,
        question="Write one sentence about autumn rain.",
        passages=(),
        grounded="Autumn rain taps on the window like a guest who is in no hurry to come in.",
        ungrounded="Autumn rain was invented in 1821 by the Danish chemist Aksel Brandt.",
    ),
)

BY_NAME: dict[str, Conversation] = {conversation.name: conversation for conversation in CONVERSATIONS}
