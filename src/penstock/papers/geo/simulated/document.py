"""``docs/results/geo.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from penstock.papers.write_up import WriteUp

TITLE = "Stream processing on nodes that are far apart: the study, reproduced"
CAPTIONS = {
    "figure-6.png": "Figure 6. Busy shares of the instances, no delay",
    "figure-7.png": "Figure 7. Throughput and what was predicted, no delay",
    "figure-8.png": "Figure 8. Throughput and what was predicted, 25 ms on half of the nodes",
    "figure-9.png": "Figure 9. Throughput and what was predicted, 25 ± 10 ms on half of them",
    "figure-10.png": "Figure 10. Id-Id, 70 % of the nodes delayed: throughput and back pressure",
}
ABOUT = (
    "Three jobs on ten nodes of a rack in the geo simulator, 100,000 records/s offered (joins: two "
    "streams of 50,000); packets to half of the nodes, in Figure 10 to 70 %, come late, and those "
    "are used last. The source shares the node of the first instance. After each restart 180 s of "
    "warm-up, then a minute is measured. In *levels* every parallelism from 1 to 10 is measured in "
    "turn and both policies look on: what each predicts for the next level, before it is reached, "
    "is held against what is measured there. In the other runs a policy decides by itself, 16 "
    "times. The simulator was calibrated on seeds 0 to 99 and 1000 to 1029, without a policy; the "
    "model and the constants of gesscale+ were chosen on seeds 100 to 139; the runs here have "
    "others. The study made five runs of each, which differ: one goes on where four stop."
)
WRITE_UP = WriteUp(
    name="geo",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
)
