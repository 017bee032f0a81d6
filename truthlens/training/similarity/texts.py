"""Provide our own sentences for rounding and comparing the similarity model: short and long.

They prove nothing about quality; they show how far activations reach and whether a rounded model still
computes what the original does.
"""

from __future__ import annotations

from truthlens.training.export.parity_inputs import samples

_SENTENCES = """
The ferry to the outer islands leaves at nine and takes forty minutes in calm weather.
Boil the rice for twelve minutes, then let it stand under a lid until the water is gone.
Interest on the loan is fixed at 3.9 % for five years and follows the base rate afterwards.
A torn ligament in the knee usually heals without surgery if the joint stays stable.
The parliament passed the water act in 2014 by 212 votes to 187.
Photosynthesis turns carbon dioxide and water into sugar, and oxygen is left over.
Press and hold the power button for ten seconds to reset the router to its factory settings.
Her second novel, which was published posthumously, won three prizes.
Copper conducts heat almost twice as well as aluminium but weighs more than three times as much.
You can appeal within thirty days of the date on the letter.
The museum does not lend paintings that are older than four hundred years.
Wolves returned to the valley in the 1990s after an absence of about a century.
The warranty covers faults in material; scratches, dents and water damage are excluded.
In chess, the king and a rook may move in a single turn if neither has moved before.
Nobody was hurt when the crane toppled onto the empty bus depot on Tuesday evening.
Sort the list first; binary search only works on ordered data.
The bank charges $25 for each transfer abroad, whatever the amount.
Bees tell each other where flowers are by dancing on the comb.
Vitamin D is made in the skin under sunlight and stored in fatty tissue.
The treaty was signed in Lisbon on 3 March and came into force a year later.
If the dough is too sticky, add flour by the spoonful until it comes off the bowl.
The company's revenue fell from 4.1 to 3.6 billion euros, mostly because of weak demand for diesel engines.
Sound travels faster in water than in air, and faster still in steel.
Children under six travel free when they are accompanied by an adult.
According to the report, the bridge had not been inspected since 2009.
The comet will be visible to the naked eye shortly before dawn.
To remove the filter, turn it anticlockwise and pull it towards you.
Applicants must hold a degree in law and speak at least two official languages.
The river floods every few years, so the houses there stand on wooden posts.
Glass is neither a crystal nor a liquid; it is an amorphous solid.
He scored twice in the final and was named player of the tournament.
The vaccine is given in two doses, at least four weeks apart.
Tax returns have to be filed by 31 July unless an adviser files them.
The castle burned down in 1621 and was rebuilt in a plainer style.
Garlic should be planted in autumn, five centimetres deep and with the pointed end up.
The library closes at noon on Saturdays, and it is not open on Sundays at all.
A byte has eight bits, and a kibibyte has 1,024 bytes.
The defendant pleaded guilty to fraud but denied that he had forged the signature.
Mount Kestrel is 2,914 metres high and was first climbed in winter by two sisters from Brennick.
Yes.
No, that is not possible.
Unable to answer based on the given passages.
1. Rinse the wound with clean water.
- **Cost:** about 40 euros a month (plus tax)
| Model | Weight | Range |
Step 3: tighten the four bolts crosswise to 25 Nm.
https://example.org/help/returns?lang=en
WARNING!!! Do NOT mix bleach with ammonia...
""".strip()


def texts() -> list[str]:
    """Return about a hundred texts of one to some three hundred words, always the same, in the same order."""
    found = _SENTENCES.splitlines()
    for sample in samples():
        found += [sample.query, sample.answer, *sample.passages]
    return found
