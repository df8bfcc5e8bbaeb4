"""``docs/results/gesscale.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from penstock.papers.gesscale.simulated.paper import NAMES
from penstock.papers.gesscale.simulated.setups import LEAST, NODES, WARM_UP
from penstock.papers.write_up import WriteUp

TITLE = "The Gesscale paper's evaluation, reproduced"
CAPTIONS = {
    "figure-3.png": "Figure 3. Throughput around a reconfiguration",
    "figure-6.png": "Figure 6. The ideal auto-scaler",
    **{
        f"figure-7{letter}.png": f"Figure 7{letter}. {name}: load and throughput, replicas, and "
        "how many too many"
        for letter, name in zip("abcd", NAMES.values(), strict=True)
    },
}
SHOWN = ("figure-3.png", "figure-6.png", "figure-7a.png", "figure-7d.png")
ABOUT = (
    f"The taxi operator in the geo simulator, on {NODES} nodes whose round trips are drawn between "
    "0 and 300 ms for each seed. The load is New York's taxi drop-offs of 1 and 2 May 2013, three "
    "records per trip, ten times as fast; the paper used the pick-ups of the same days, so single "
    "figures differ. A change stops the job for 120 s. The policies look once a minute, with "
    "no other guard, as the paper's text has it. Its public code does not look for "
    f"{WARM_UP:.0f} s after a restart and keeps at least {LEAST} replicas: that is the set-up "
    "*code* in the table of other set-ups. The speed of a node was calibrated to what "
    "Table III tells of the ideal auto-scaler, on other seeds (docs/geo-simulator.md); what "
    "distance and waiting cost is our choice, and other choices are in the table of other set-ups. "
    "While a job is stopped it has no replica."
)
WRITE_UP = WriteUp(
    name="gesscale",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
    shown=SHOWN,
)
