"""``docs/results/mead.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from penstock.papers.mead.traces import LM, SYNT
from penstock.papers.write_up import WriteUp

TITLE = "The MEAD paper's evaluation, reproduced"

CAPTIONS = {
    "figure-2.png": "Figure 2. Arrival rates: an uncorrelated trace and a bursty one",
    "figure-3.png": "Figure 3. Models of the matcher and what it does, by utilisation",
    "figure-6.png": "Figure 6. Arrival rates of SYNT and BC",
    "figure-7.png": "Figure 7. Autocorrelation of the inter-arrival times",
    "figure-8.png": "Figure 8. Response time and CPU with targets of the mean",
    "figure-9.png": "Figure 9. Response time and CPU of the threshold policy",
    "figure-10.png": "Figure 10. Distribution of response times with targets of the p95",
}
SHOWN = ("figure-3.png", "figure-7.png", "figure-8.png", "figure-10.png")
ABOUT = (
    "The log-analysis application in the tuple simulator: parser → counter, parser → matcher, "
    "Erlang-2 services. The paper does not publish its service demands; here they are 0.15, 0.10 "
    "and 0.50 of the mean time between arrivals, for all traces and models. BC is the recorded "
    f"trace. SYNT is drawn from processes with the SCV and correlation time {SYNT}, five minutes "
    "each, twice. The Live Maps trace is not available: LM is drawn from a composition of the "
    f"blocks (r2, fast mean, correlation time) {LM}. Both were fixed without a policy. CPU is the "
    "mean over the three operators, response times are of the path to the matcher."
)
WRITE_UP = WriteUp(
    name="mead",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
    shown=SHOWN,
)
