"""Log analysis under the bursts of BC-pAug89: response times kept with less CPU, on real Spark.

All runs see the same packets on the same warm executor. The trace is played at a speed at which the
records alone keep ``LOAD`` of the full quota busy, by a cost that is measured first. The first run
has full CPU; the targets are ``slack`` times what it reaches.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

from penstock.core.errors import InputError
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.proofs.bursts_run import COURSE, BurstRun, BurstSession, TracePiece
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.policies import create
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    STYLE,
    WIDTH,
    new_figure,
    save_figure,
)
from penstock.report.runs import PICTURE
from penstock.workloads.recorded import bellcore

QUOTA = 0.6  # of a core: an executor's nominal CPU
LOAD = 0.4  # of it for the records, at full CPU
P95 = 0.95
SAVING = 0.25  # of full allocation, at least
LEAST_SECONDS = 60.0
CALIBRATION = 75.0  # seconds; the newest third of what is seen in them counts
FIRST_SPEED = 0.5  # of the trace, for want of better knowledge
FIRST = 200_000  # packet of the trace that the calibration begins with
POLICIES = ("mead+", "mead-mg1")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstsSettings:
    """Seconds of each run, those before it, between decisions, and the targets.

    ``slack`` targets over what full CPU reached · ``lines`` of log that a packet brings.
    """

    seconds: float = 300.0
    before: float = 75.0
    period: float = 5.0
    slack: float = 2.0
    lines: int = 4

    def __post_init__(self) -> None:
        if not LEAST_SECONDS <= self.seconds <= 3600.0:
            raise InputError(f"--seconds {self.seconds:g} must lie between 60 and 3600")
        if not 1.0 < self.slack <= 100.0:
            raise InputError(f"--slack {self.slack:g} must be above 1 and at most 100")
        if self.lines < 1 or self.before < 0.0 or not self.period > 0.0:
            raise InputError("lines ≥ 1, before ≥ 0 and period > 0 must hold")


def prove(spec: BurstsSettings, *, folder: Path, say: Say) -> Proof:
    """Full CPU, then each policy with a target of the mean and of the 95th percentile."""
    courses: list[BurstRun] = []
    with LocalCluster(ClusterSpec(slots=1, cpu_share=QUOTA), say=say) as cluster:
        if not cluster.limited:
            raise InputError(f"CPU shares cannot be set here. {cluster.why_unlimited}")
        with BurstSession(cluster, journals=folder, say=say) as session:
            speed = _speed(session, spec, say)
            plan = TracePiece(
                first=FIRST,
                speed=speed,
                lines=spec.lines,
                before=spec.before,
                seconds=spec.seconds,
                period=spec.period,
            )
            full = session.run("full", plan, None)
            courses.append(full)
            targets = {0.0: spec.slack * full.mean, P95: spec.slack * full.p95}
            for name in POLICIES:
                for percentile, target in targets.items():
                    parameters = {"target": target, "percentile": percentile}
                    what = f"{name} {_what(percentile)}"
                    courses.append(session.run(what, plan, create(name, parameters)))
        shutil.copytree(cluster.folder / "logs", folder / "logs", dirs_exist_ok=True)
    (folder / COURSE).write_text(json.dumps([asdict(c) for c in courses]) + "\n", encoding="utf-8")
    draw(courses, {_what(p): t for p, t in targets.items()}, folder)
    return judge(courses, targets, speed=speed, spec=spec)


def _what(percentile: float) -> str:
    return "p95" if percentile else "mean"


def _speed(session: BurstSession, spec: BurstsSettings, say: Say) -> float:
    """How fast to play the trace, by what a line costs at full CPU.

    Measured slowly first, then again at about the right speed: larger batches and a warm executor
    change what a line costs.
    """
    speed = FIRST_SPEED
    rate = spec.lines / float(bellcore().mean())
    for _ in range(2):
        plan = TracePiece(
            first=0,
            speed=speed,
            lines=spec.lines,
            before=CALIBRATION,
            seconds=0.0,
            period=spec.period,
        )
        cost = session.cost(plan)
        speed = LOAD / (cost * rate)
        say(f"a line costs {1e6 * cost:.0f} µs: the trace is played at {speed:.2f} times its speed")
    return speed


def judge(
    courses: Sequence[BurstRun], targets: dict[float, float], *, speed: float, spec: BurstsSettings
) -> Proof:
    """What ``mead+`` reached beside its targets; ``mead-mg1`` stands beside it."""
    by_name = {course.name: course for course in courses}
    checks = []
    for percentile, target in targets.items():
        what = _what(percentile)
        course = by_name[f"mead+ {what}"]
        reached = course.p95 if percentile else course.mean
        checks.append(
            Check(figure=f"mead+: {what} response", value=reached, bound=target, unit="s")
        )
        saved = 1.0 - course.share
        checks.append(
            Check(
                figure=f"mead+: CPU saved, {what}",
                value=saved,
                bound=SAVING,
                at_most=False,
                unit="%",
            )
        )
    failed = float(sum(course.failed for course in courses))
    wrong = float(sum(abs(course.wrong) for course in courses))
    checks.append(Check(figure="failed tasks and restarted batches", value=failed, bound=0.0))
    checks.append(Check(figure="lines lost, repeated or matched wrongly", value=wrong, bound=0.0))
    changes = float(min(c.changes for c in courses if c.name != "full"))
    checks.append(
        Check(figure="changes of a share, fewest", value=changes, bound=1.0, at_most=False)
    )
    return Proof(
        name="bursts",
        title="Bursts: log analysis, BC-pAug89 replayed, CPU shares set while it runs",
        checks=tuple(checks),
        details=tuple(_row(course, targets) for course in courses),
        notes=(
            f"{spec.seconds:.0f} s of the trace at {speed:.2f} times its speed, {spec.lines} lines "
            f"per packet; 100 % is {QUOTA:g} core; targets are {spec.slack:g} times what full CPU "
            "reached; response times of every line, measured where it leaves",
            f"the workload monitor used at most {max(c.monitor_ms for c in courses):.0f} ms of CPU "
            f"in a run and {max(c.monitor_bytes for c in courses) / 1e3:.0f} kB",
        ),
    )


def _row(course: BurstRun, targets: dict[float, float]) -> dict[str, object]:
    percentile = P95 if course.name.endswith("p95") else 0.0
    reached = course.p95 if percentile else course.mean
    target = None if course.name == "full" else targets[percentile]
    return {
        "run": course.name,
        "target s": None if target is None else round(target, 2),
        "mean s": round(course.mean, 2),
        "p95 s": round(course.p95, 2),
        "met": None if target is None else reached <= target,
        "CPU share %": round(100.0 * course.share, 1),
        "CPU used %": round(100.0 * course.used, 1),
        "changes": course.changes,
        "batches": course.batches,
    }


COLOURS = {"full": GREY, "mead+": BLUE, "mead-mg1": ORANGE}


def draw(courses: Sequence[BurstRun], targets: Mapping[str, float], folder: Path) -> Path:
    """Draw the courses as ``report.png``: a column per target, response times above shares."""
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        axes = figure.subplots(2, len(targets), squeeze=False, sharex=True)
        for column, (what, target) in enumerate(targets.items()):
            shown = [c for c in courses if c.name == "full" or c.name.endswith(f" {what}")]
            above, below = axes[0][column], axes[1][column]
            for course in shown:
                _lines(above, below, course)
            above.axhline(target, color=INK, lw=1.0, ls="--", label=f"target of the {what}")
            above.set_title(f"Response time, target {what} {target:.2f} s", loc="left")
            above.set_yscale("log")
            above.legend(loc="best")
            below.set_title("CPU share (%)", loc="left")
            below.set_ylim(0, 105)
            below.set_xlabel("time (seconds)")
        axes[0][0].set_ylabel("seconds, mean of 5 s")
        figure.tight_layout()
    return save_figure(figure, folder / PICTURE)


def _lines(above: Axes, below: Axes, course: BurstRun) -> None:
    name = course.name.split()[0]
    times = [t for t, _, _ in course.points]
    above.plot(times, [r for _, r, _ in course.points], color=COLOURS[name], lw=1.5, label=name)
    shares = [100.0 * s for _, _, s in course.points]
    below.step(times, shares, where="post", color=COLOURS[name], lw=1.5)
