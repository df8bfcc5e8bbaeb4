"""``docs/results/decentralized.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from penstock.papers.decentralized.experiment import DEVIATION
from penstock.papers.decentralized.figures import CAPTIONS
from penstock.papers.write_up import WriteUp

TITLE = "The decentralized protocol's evaluation, reproduced"
ABOUT = (
    "Five operators in a row, seven instances each at first, capacity 500, target ratio 0.7, a "
    "trial every 5 steps, 200 steps, every message sent and received. The paper calls the load of "
    f"each operator Brownian and says no more: here it moves by a normal {DEVIATION:g} records a "
    "step (half an instance's capacity), from what seven instances are for, reflected at the work "
    "of one; fixed before any run. The pseudo-code is repaired where it must be, see the page of "
    "the policy."
)
WRITE_UP = WriteUp(
    name="decentralized",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
)
