"""Why a finding comes out as it does: the mechanism in the simulator, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WHY: Mapping[str, str] = {
    "a": "DS2 sizes for the rate, not for what waits. At 1.0 every restart leaves a backlog that "
    "nothing works off, and because busy time reads below 100 % at saturation it takes a slot for "
    "faster than it is. At 1.4 the spare capacity drains the queue before the next restart.",
    "b": "DS2 goes to λ/μ in one step and reads μ too high, so it stays nearest to the oracle. The "
    "others keep 30 % in reserve, or overshoot while they catch up.",
    "c": "CPU has a base load, so HPA-CPU keeps small operators larger than they must be, and it "
    "rises before a queue or back pressure is there. On Q1 the factor of one action (CPU at its "
    "ceiling over the target, 1.3) is as much as the load rises in a cool-down.",
    "d": "Dhalion multiplies the bottleneck by 1 + bp/(1 − bp). Back pressure at saturation is "
    "1 − busy and large above operators that are a little too small, so it overshoots; then it "
    "gives back at most 20 % per action, one action every 315 s.",
    "e": "On Q11 the need rises by several slots per cool-down. Dhalion's factor of up to 10 gets "
    "there in one action, and it goes on while anything waits. HPA-CPU's factor is at most CPU's "
    "ceiling over the target; DS2 does not count what waits.",
    "f": "A saturated slot reads at most 94 % CPU (less in Q11's window), so the largest factor of "
    "an action is 0.94 over the target: 1.57 at 0.6, 1.04 at 0.9. At 1.0 it is below 1: the "
    "operators only shrink, and rounding up stops them.",
    "g": "Utilisation (1 − idle) has no base load, so HPA-Varga lets operators shrink further than "
    "HPA-CPU and starts to grow later; its lag term acts on the bottleneck only.",
    "h": "Stage 1 begins with one slot per operator and a backlog; with one action every 315 s "
    "most of the 40 minutes go into working it off, and then sizes come down again. In stage 2 "
    "DS2 and HPA-CPU come from above and stop where rounding up leaves a reserve.",
    "i": "Q5's sink works only when the window fires, once a minute. In a tick without that its "
    "busy time is 0; strict DS2 divides by it and asks for all that the guards allow (+15 per "
    "action). Repaired, an operator without a measured service rate keeps its size.",
    "j": "At 1.3 every idle operator loses 30 % at each healthy look; growing back takes one "
    "action per operator, 315 s apart, while the load rises.",
}
_INSTEAD: Sequence[tuple[str, str, str, str]] = (
    (
        *("d", "decreasing", "HPA-CPU"),
        "Under decreasing HPA-CPU has more: with a base load of 22 % its CPU stays high, so that "
        "it keeps about 1.4 times the oracle's slots all the way down, while Dhalion is healthy "
        "on most of the way and gives back 20 % per action, down to the need and below it.",
    ),
    (
        *("e", "cosine", "HPA-Varga"),
        "Under cosine HPA-Varga is about as fast here: its lag term goes on growing the "
        "bottleneck until the queue is gone, up to the 80 slots allowed. The thesis tells of "
        "failed checkpoints after HPA-Varga's large scale-downs; the simulator's restarts do not "
        "fail.",
    ),
    (
        *("h", "stage 1", "HPA-Varga"),
        "HPA-Varga comes to rest in stage 1: once the queue is gone, utilisation under a constant "
        "rate hardly moves here and rounding up hides that. In the thesis the sources' "
        "utilisation went on changing (7.4).",
    ),
)
"""Why a part of a finding does not hold here: the finding, two words of the part, the mechanism."""
_UNKNOWN = "Why that is different here is not known"

DISTANCES = """
Why cells differ:

- The thesis ran each cell once, on one drawing of its loads that it does not give. Under random,
  increasing and decreasing the drawing decides most of the figure; ours are means over all seeds.
- One calibration serves all auto-scalers of a query, and one downtime model all queries. It
  cannot be exact for every cell.
- HPA-Varga is faster here on Q3, Q5 and Q11. Its restarts never fail, as many did in the thesis,
  and its utilisation varies little under a steady load.
- HPA-CPU on Q11 acts seldom at 0.8 and 0.9: a saturated window reads less CPU than that here, so
  it cannot grow. In the thesis CPU went up to about 90 %.
- DS2 on Q11 uses more slots. The paper's mean at 1.0 is far below the oracle's, so DS2 must have
  taken its slots for faster still than the busy ceilings here let it.
- Dhalion under increasing and decreasing uses fewer slots: its largest scale-ups are smaller here,
  and rounding down takes more than 20 % from small operators.
- Dhalion on Q3, and at 1.1 and 1.15 on Q1, is slower here; why is not known.
"""


def why(id: str, failures: Sequence[str] = ()) -> str:
    """The mechanism behind a finding, and behind each part of it that does not hold."""
    parts = [_WHY[id]]
    for failure in failures:
        known = (text for i, a, b, text in _INSTEAD if i == id and a in failure and b in failure)
        parts.append(next(known, f"{_UNKNOWN}: {failure}."))
    return " ".join(dict.fromkeys(parts))
