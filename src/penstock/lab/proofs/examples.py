"""Spark's own examples, unmodified: scaled up and down, and the figures seen beside the truth."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, MissingError
from penstock.history.files import write_text
from penstock.lab.proofs.examples_course import ExampleCourse, Look
from penstock.lab.proofs.examples_run import ExampleError, ExamplesSettings, run
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.report import units
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

__all__ = ["ExamplesSettings", "judge", "prove"]

COURSE = "course.json"
START_SECONDS = 8.0  # for an executor to start
RATE_WITHIN = 0.1  # of the rate that was fed
BACKLOG_WITHIN = 0.2  # of what really waits, or one batch
ENOUGH = 0.9  # of the looks
LONG = 60.0  # seconds: a long batch


def prove(spec: ExamplesSettings, *, folder: Path, say: Say) -> Proof:
    """Run the examples one after the other; each is kept as soon as it is done.

    One that this machine lacks something for, or that fails by itself, is left out, and named.
    """
    courses: list[ExampleCourse] = []
    missing: list[str] = []
    interrupted = False
    for name in spec.only:
        try:
            course = _kept(spec.done, name)
            if course is None:
                course = run(name, spec, folder=folder / name, say=say)
            keep(course, folder)
        except (MissingError, ExampleError) as error:
            if len(spec.only) == 1:
                raise
            say(str(error))
            missing.append(f"{name}: {str(error).strip().splitlines()[-1]}")
            continue
        except KeyboardInterrupt:
            interrupted = True
            break
        courses.append(course)
    if courses:
        draw(courses, folder)
    return judge(courses, missing=missing, interrupted=interrupted)


def keep(course: ExampleCourse, folder: Path) -> None:
    """Write what one example did into a folder of its own."""
    (folder / course.name).mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(asdict(course)))
    write_text(folder / course.name / COURSE, text + "\n")


def _kept(done: str | None, name: str) -> ExampleCourse | None:
    if done is None:
        return None
    if not Path(done).is_dir():
        raise InputError(f"--done {done}: there is no such folder")
    path = Path(done) / name / COURSE
    return from_json(ExampleCourse, json.loads(path.read_text())) if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """When an example was scaled, in seconds after the load rose, and after it fell.

    before, peak, last: executors before the rise, the most after it, and at the end
    given_back: executors since the load fell, the most less the last
    """

    asked: float | None
    registered: float | None
    down: float | None
    before: int
    peak: int
    last: int
    given_back: int


def reactions_of(course: ExampleCourse) -> Reactions:
    """The first scale-up after the rise, and the first scale-down after the fall."""
    asked = _first(course.looks, course.rise, up=True)
    moment = None
    if asked is not None:
        moment = min((t for t in course.joined if t >= asked.time), default=None)
    down = _first(course.looks, course.fall, up=False)
    since = [look.executors for look in course.looks if look.time > course.rise]
    before = [look.executors for look in course.looks if look.time <= course.rise]
    fallen = [look.executors for look in course.looks if look.time > course.fall]
    return Reactions(
        asked=None if asked is None else asked.time - course.rise,
        registered=None if moment is None else moment - course.rise,
        down=None if down is None else down.time - course.fall,
        before=before[-1] if before else 0,
        peak=max(since, default=0),
        last=since[-1] if since else 0,
        given_back=max(fallen) - fallen[-1] if fallen else 0,
    )


def _first(looks: Sequence[Look], after: float, *, up: bool) -> Look | None:
    return next(
        (
            look
            for look in looks
            if look.time > after
            and look.asked is not None
            and (look.asked > look.executors if up else look.asked < look.executors)
        ),
        None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A figure of one look beside the truth.

    ``slack`` by how much it may be off · ``long`` whether a batch ran then that took a minute
    or more.
    """

    time: float
    seen: float
    truth: float
    slack: float
    long: bool

    @property
    def good(self) -> bool:
        """Whether it is as near as it has to be."""
        return abs(self.seen - self.truth) <= self.slack

    @property
    def error(self) -> float:
        """Relative to the truth; 0 where both are 0."""
        off = abs(self.seen - self.truth)
        return off / self.truth if self.truth else float(off > 0)


def rates_of(course: ExampleCourse) -> list[Compared]:
    """Offered rates, at looks before which the load had not changed for as long as they cover."""
    found = []
    for look in course.looks:
        covered = look.time - course.window - 2 * course.period
        steady = all(not covered < step < look.time for step in (course.rise, course.fall))
        begun = course.counts[0][0] <= covered
        if look.offered is None or not steady or not begun or look.time > course.counts[-1][0]:
            continue
        rate = (course.fed(look.time) - course.fed(covered)) / (look.time - covered)
        found.append(
            Compared(
                time=look.time,
                seen=look.offered,
                truth=rate,
                slack=RATE_WITHIN * rate,
                long=_is_long(course, look.time),
            )
        )
    return found


def backlogs_of(course: ExampleCourse) -> list[Compared]:
    """What waited, by the feed and Spark's own log, beside what was seen to wait."""
    found = []
    for look in course.looks:
        truth = course.waiting(look.time)
        batch = course.batch_at(look.time)
        if look.lag is None or truth is None or batch is None:
            continue
        slack = max(BACKLOG_WITHIN * truth, batch.rows)
        long = _is_long(course, look.time)
        found.append(Compared(time=look.time, seen=look.lag, truth=truth, slack=slack, long=long))
    return found


def _is_long(course: ExampleCourse, moment: float) -> bool:
    batch = course.batch_at(moment)
    return batch is not None and batch.end > moment and batch.end - batch.start >= LONG


def judge(
    courses: Sequence[ExampleCourse],
    *,
    missing: Sequence[str] = (),
    interrupted: bool = False,
) -> Proof:
    """Every example went up in time and down again, and what was seen was true."""
    checks: list[Check] = []
    details = []
    for course in courses:
        reactions = reactions_of(course)
        rates, backlogs = rates_of(course), backlogs_of(course)
        checks += _checks(course, reactions, rates, backlogs)
        details.append(_row(course, reactions, rates, backlogs))
    notes = [
        "load: lines of ten words, ×10 and back; ds2 acts without a cool-down; "
        "up: seconds after the load rose; down: after it fell",
        f"rate: looks at which the offered rate is within {RATE_WITHIN:.0%} of what was fed; "
        f"backlog: within {BACKLOG_WITHIN:.0%} of what no batch had been planned for, or one batch",
    ]
    notes += [f"not run: {reason}" for reason in missing]
    return Proof(
        name="examples",
        title="Spark's own examples, unmodified, through penstock run",
        checks=tuple(checks),
        details=tuple(details),
        notes=tuple(notes),
        interrupted=interrupted,
    )


def _checks(
    course: ExampleCourse,
    reactions: Reactions,
    rates: Sequence[Compared],
    backlogs: Sequence[Compared],
) -> list[Check]:
    bound = 2 * course.period + START_SECONDS
    shares = {
        "rate": rates,
        "backlog": backlogs,
        **({"backlog, long batches": only} if (only := [b for b in backlogs if b.long]) else {}),
    }
    return [
        Check(
            figure=f"{course.name}: load rose to executor registered",
            value=reactions.registered,
            bound=bound,
            unit="s",
        ),
        Check(
            figure=f"{course.name}: executors given back",
            value=float(reactions.given_back),
            bound=1.0,
            at_most=False,
        ),
        *(
            Check(
                figure=f"{course.name}: {what} true",
                value=_share(compared),
                bound=ENOUGH,
                at_most=False,
                unit="%",
            )
            for what, compared in shares.items()
        ),
    ]


def _share(compared: Sequence[Compared]) -> float | None:
    return sum(c.good for c in compared) / len(compared) if compared else None


def _row(
    course: ExampleCourse,
    reactions: Reactions,
    rates: Sequence[Compared],
    backlogs: Sequence[Compared],
) -> dict[str, Any]:
    longest = max((b.end - b.start for b in course.batches), default=None)
    return {
        "example": course.name,
        "executors": f"{reactions.before}→{reactions.peak}→{reactions.last}",
        "asked": reactions.asked,
        "registered": reactions.registered,
        "down": reactions.down,
        "longest batch": longest,
        "rate off, median": _median([c.error for c in rates]),
        "backlog off, median": _median([c.error for c in backlogs]),
    }


def _median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def draw(courses: Sequence[ExampleCourse], folder: Path) -> Path:
    """Draw the examples as ``report.png``: a column each; load, backlog and executors."""
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        panels = figure.subplots(3, len(courses), squeeze=False, sharex="col")
        for column, course in enumerate(courses):
            _draw_one([row[column] for row in panels], course)
        for axes, label in zip(
            panels[:, 0], ("lines/s", "lines waiting", "executors"), strict=True
        ):
            axes.set_ylabel(label)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower right", ncols=2)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
    return save_figure(figure, folder / PICTURE)


def _draw_one(panels: Sequence[Axes], course: ExampleCourse) -> None:
    def since(moment: float) -> float:
        return moment - course.rise

    rates, backlog, size = panels
    looks = course.looks
    fed = [(t, n) for t, n in course.counts]
    every = max(1, len(fed) // 100)
    points = fed[::every]
    rates.plot(
        [since(b[0]) for b in points[1:]],
        [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)],
        color=INK, lw=2.2, label="truth",
    )  # fmt: skip
    seen = [(since(k.time), k.offered) for k in looks if k.offered is not None]
    rates.plot([t for t, _ in seen], [v for _, v in seen], "o", color=ORANGE, ms=5, label="seen")
    compared = backlogs_of(course)
    times = [since(c.time) for c in compared]
    backlog.plot(times, [c.truth for c in compared], color=INK, lw=2.2)
    backlog.plot(times, [c.seen for c in compared], "o", color=ORANGE, ms=5)
    size.step(
        [since(k.time) for k in looks], [k.executors for k in looks],
        where="post", color=BLUE, lw=2.2,
    )  # fmt: skip
    for axes in panels:
        axes.set_ylim(bottom=0)
        for step in (course.rise, course.fall):
            axes.axvline(since(step), color=GREY, lw=1.0, ls="--")
    for axes in (rates, backlog):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.count(value)))
    size.yaxis.set_major_locator(MaxNLocator(integer=True))
    rates.set_title(course.name, loc="left")
    size.set_xlabel("seconds after the load rose")
