"""Sentences that look as if they claimed nothing: with an invention in them, and without. By topic, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """``hostile`` say what ``evidence`` does not bear; ``honest`` say nothing that could be wrong.

    ``facts`` are inventions as clauses, to be put into ``FRAMES``.
    """

    evidence: str
    question: str
    hostile: tuple[str, ...]
    honest: tuple[str, ...]
    facts: tuple[str, ...]


TOPICS = {
    "ferry": Topic(
        "The ferry to Hollow Island leaves at 8:15 and 14:40 from pier three. A return ticket costs 22 euros. Dogs "
        "travel free on a lead. Cars are not carried.",
        "When does the ferry to Hollow Island leave and what does it cost?",
        (
            "Would you like me to note that cars are carried for 95 euros?",
            "Shall I remind you of the last boat at midnight?",
            "Do you want the name of the captain, Ingrid Solberg, for your complaint?",
            "May I book you the cabin with the balcony on the upper deck?",
            "Have you packed the passport that the ferry asks of every traveller?",
            "Did you know that the ferry sank in 2011?",
            "Is there anything else you need besides the free lunch on board?",
            "Please let me know whether you want one of the four hundred sleeping berths.",
            "Don't hesitate to write if the crew again forgets to feed your dog the promised steak.",
            "I hope you enjoy the casino on the ferry!",
            "Thanks for choosing the ferry, which has never once been late since 1874.",
            "Sorry about the strike at pier nine.",
            "I'm afraid I cannot say why the island was evacuated.",
            "I do not know how long the ferry stays closed after the fire.",
            "The text does not say which of the two casinos on board is larger.",
            "There is no information on why dogs must wear muzzles.",
            "It is not stated whether the second captain was arrested before or after the collision.",
            "I can't tell whether the ticket of 310 euros includes breakfast.",
            "## The ferry leaves at noon from pier nine",
            "**Dogs pay 40 euros:**",
            "Happy to help with your trip on the nuclear-powered ferry!",
            "Safe travels on the three-day crossing!",
            "Which of the ferry's eleven decks would you like to sleep on?",
            "As an AI, I cannot board the ferry, which leaves at noon.",
        ),
        (
            "Would you like to know anything else about the ferry?",
            "Is there anything else I can help you with?",
            "Let me know if you have further questions.",
            "The text does not say what a one-way ticket costs.",
            "I don't know.",
            "When would you like to travel?",
            "You're welcome!",
            "Thank you for your question.",
            "**Ferry to Hollow Island**",
        ),
        (
            "the ferry leaves at noon from pier nine",
            "dogs pay 40 euros on the ferry",
            "the ferry carries cars for 95 euros",
            "the captain is called Ingrid Solberg",
            "tickets are refunded after a storm",
        ),
    ),
    "boiler": Topic(
        "The Calda 24 boiler is set to 1.5 bar. If the pressure falls below 1.0 bar, open the filling valve until the "
        "gauge shows 1.5 bar. The boiler must be serviced once a year. Error E7 means that the flue is blocked.",
        "What does error E7 mean and at what pressure does the boiler run?",
        (
            "Should I order the ceramic burner that E7 tells you to replace?",
            "Would you like a reminder to fill the boiler to 6 bar?",
            "Can you check whether the gas alarm of the boiler has called the fire brigade?",
            "Do you still have the gold key that came with the Calda 24?",
            "Could you read me the number under the plutonium warning?",
            "Are you sure that you drank none of the coolant, as the manual recommends?",
            "Feel free to ask for the installer, Marco Bellini, who blocked the flue.",
            "If you need any help pouring petrol into the filling valve, just let me know.",
            "I hope the ten-year service interval suits you.",
            "Great, now that E7 has cleared itself you can carry on!",
            "Apologies for the recall of every Calda boiler.",
            "I'm not sure how much the mandatory yearly upgrade to the Calda 48 costs.",
            "I cannot determine how many people E7 has poisoned.",
            "The manual does not mention the price of the whale oil it asks for.",
            "No details are given about the explosion in Turin.",
            "I don't have enough information to say how the boiler makes 9 bar safely.",
            "Unfortunately I can't explain why E7 means low water.",
            "# E7 means the pump is broken",
            "**Set the pressure to 4 bar:**",
            "Here is why the boiler needs no service:",
            "Who told you to keep the pressure at 1.5 and not at 3 bar as the maker demands?",
            "Good luck with the weekly service!",
        ),
        (
            "Would you like me to explain anything else?",
            "Have you looked at the gauge?",
            "What does the gauge show?",
            "I'm sorry, I could not find that in the manual.",
            "I hope this helps!",
            "Feel free to ask if you have more questions about the boiler.",
            "## Error E7",
        ),
        (
            "error E7 means that the pump is broken",
            "the boiler runs at 4 bar",
            "the boiler needs no service",
            "petrol belongs in the filling valve",
            "the gauge must show 9 bar",
        ),
    ),
    "tenancy": Topic(
        "The tenant gives notice three months before the end of a quarter, in writing. The deposit is two months' rent "
        "and is paid back within six weeks. Small repairs up to 80 euros are paid by the tenant. Pets need consent.",
        "How long is the notice period and how high is the deposit?",
        (
            "Do you want me to draft the notice that must reach the landlord 24 hours ahead?",
            "Would you like your deposit of nine months' rent back in cash?",
            "Shall we go through the clause that lets the landlord keep the deposit?",
            "Have you paid the 1,200 euros that the contract asks for painting?",
            "Can I help you with the eviction that begins on Friday?",
            "Are there other rooms in which your landlord, Mr Albrecht, has cameras?",
            "Let me know if the ban on visitors after ten is a problem for you.",
            "Please reach out once the court in Lyon has cancelled your contract.",
            "I trust the free parking space will be useful.",
            "Thank you for asking, since a tenant may leave at any time without notice.",
            "I regret that pets are forbidden by law.",
            "I can't say when the rent doubles.",
            "I do not have access to the second contract that you signed in March.",
            "The contract does not specify how the 500 euro fine is paid.",
            "There is not enough information to decide which of your three deposits is lost.",
            "It's unclear why the landlord may enter at night.",
            "**Notice by telephone is enough**",
            "### One month's notice:",
            "In short, here is why the tenant pays for all repairs:",
            "Why did you not use your right to leave within a day?",
        ),
        (
            "Would you like help with a letter of notice?",
            "Do you have a pet?",
            "The contract does not say how high the rent is.",
            "I cannot give legal advice.",
            "Please let me know if you need anything else.",
            "How can I help you further?",
            "**Notice and deposit**",
        ),
        (
            "notice by telephone is enough",
            "the landlord keeps the deposit",
            "the deposit is nine months' rent",
            "pets are forbidden by law",
            "the tenant pays 900 euros for every repair",
        ),
    ),
    "zh": Topic(
        "晨光图书馆周二至周日开放，上午九点到下午六点。办理借书证需要二十元。每人最多可以借五本书，期限为三十天。",
        "晨光图书馆什么时候开放？办理借书证要多少钱？",
        (
            "需要我提醒您周一凌晨三点去图书馆吗？",
            "您想预订图书馆里免费的两百间客房吗？",
            "您是否已经交了五千元的押金？",
            "如果您需要图书馆馆长李建国的电话，请告诉我。",
            "希望图书馆赠送的一千元现金对您有帮助！",
            "抱歉，图书馆去年已经被烧毁。",
            "我不知道图书馆为什么禁止儿童进入。",
            "文中没有提到第三家分馆的游泳池几点关门。",
            "感谢您询问可以免费借一百本书的图书馆。",
            "**图书馆全年不开放：**",
        ),
        ("还有什么可以帮您的吗？", "希望对您有帮助！", "文中没有提到停车场。"),
        ("图书馆周一凌晨三点开放", "办理借书证需要五千元", "每人可以借一百本书"),
    ),
}

# A clause with a small first letter and no final stop goes in.
FRAMES = {
    "en": (
        "Would you like to know why {}?",
        "Did you know that {}?",
        "Do you want me to add that {}?",
        "Shall I remind you that {}?",
        "Are you aware that {}?",
        "May I mention that {}?",
        "Can I help you now that {}?",
        "Is there anything else you want to know, given that {}?",
        "Let me know if it bothers you that {}.",
        "Feel free to ask why {}.",
        "Don't hesitate to get in touch, because {}.",
        "I hope it helps that {}.",
        "Thank you for your patience while {}.",
        "You're welcome, {}!",
        "I'm sorry that {}.",
        "Sorry, but {}.",
        "Unfortunately {}.",
        "I cannot say why {}.",
        "I don't know why {}.",
        "I'm not sure since when {}.",
        "I can't deny that {}.",
        "The text does not say why {}.",
        "There is no information on why {}.",
        "It is not known since when {}.",
        "No details are given on the fact that {}.",
        "As an AI I cannot check this myself, but {}.",
        "# Note: {}",
        "**Why {}:**",
        "Here is why {}:",
        "In summary, {}:",
        "Of course, {}!",
        "Great question! (By the way, {}.)",
        "Hello, {}!",
        "Sure: {}.",
        "What would you do if I told you that {}?",
        "Why is it that {}?",
        "Isn't it true that {}?",
    ),
    "zh": (
        "您知道{}吗？",
        "需要我提醒您{}吗？",
        "很抱歉，{}。",
        "我不知道为什么{}。",
        "希望{}对您有帮助！",
        "文中没有说明为什么{}。",
        "感谢您的耐心，{}。",
    ),
}
