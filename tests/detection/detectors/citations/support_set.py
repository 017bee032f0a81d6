"""Cited sentences for ``check_support``, of ten texts: each with the id of the passage that says it, and of one that does not."""

from __future__ import annotations

PASSAGES = {
    "S0": "Members may borrow eight books for three weeks. A loan can be renewed twice unless another member has reserved the book.",
    "S1": "The reading room opens at nine in the morning. On Saturdays it closes at one in the afternoon.",
    "S2": "A lost card costs 25 dollars. The fee for a replaced key is 40 dollars, payable in cash.",
    "S3": "Laptops are lent to members over sixteen. They must stay inside the building and are due before closing time.",
    "S4": "The east branch was designed by Ana Duarte and opened in 2014. It holds 52,000 volumes on three floors.",
    "S5": "Patients should take the tablet with water after a meal. Alcohol must be avoided during the whole treatment.",
    "S6": "The ferry to Orlop leaves every 30 minutes from pier four. Bicycles travel free; dogs need a ticket of their own.",
    "S7": "The tenant gives notice three months before the end of the lease. The deposit is paid back within six weeks.",
    "S8": "Revenue rose by 12 percent to 4.2 million euros in 2023. The board proposed a dividend of 80 cents a share.",
    "S9": "The alarm is tested on the first Monday of each month. If it rings at any other time, leave by the north stairs.",
}
CITED = [
    ("A loan can be renewed twice unless somebody else has reserved the book.", "S0", "S1"),
    ("On Saturdays the reading room closes at one in the afternoon.", "S1", "S2"),
    ("Replacing a key costs 40 dollars, which has to be paid in cash.", "S2", "S3"),
    ("Laptops must stay inside the building.", "S3", "S0"),
    ("The east branch was designed by Ana Duarte.", "S4", "S6"),
    ("Alcohol must be avoided while the treatment lasts.", "S5", "S7"),
    ("The ferry leaves from pier four every 30 minutes.", "S6", "S9"),
    ("The deposit is paid back within six weeks of the end of the lease.", "S7", "S8"),
    ("In 2023 revenue rose by 12 percent.", "S8", "S4"),
    ("The alarm is tested on the first Monday of the month.", "S9", "S5"),
]
