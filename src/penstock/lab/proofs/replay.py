"""Does what ``penstock replay`` foretells come true? A recorded example, and real runs of it."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.history.learning.learn import Learned
from penstock.lab.proofs.examples_run import TIMES, Setting, check_example
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.proofs.replay_figure import draw
from penstock.lab.proofs.replay_play import (
    EXECUTORS,
    WAIT,
    Foretold,
    Profiles,
    foretell,
    mean_of,
)
from penstock.lab.proofs.replay_run import COUNTED_FROM, FALL, RISE, Fed, kept
from penstock.lab.proofs.replay_run import run as really_run
from penstock.policies import create as create_policy
from penstock.policies import spark_dra
from penstock.report import units

__all__ = ["ReplaySettings", "judge", "prove"]

RECORD = "record"
EXECUTORS_WITHIN = 0.15  # of the real mean
WAIT_WITHIN, SPREADS = 0.3, 2.0  # of the real p95, or so many standard deviations of its runs
COST_WITHIN, DEMAND_WITHIN = 0.2, 0.1  # of the event log's
SAME = 0.05  # the lengths of runs may differ by such a share
SHORTEST, LONGEST = 120.0, 7200.0  # seconds of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What is recorded, and what is foretold and run.

    only: an example by name · policy: that acts in the recorded run · policies: those that are
    foretold and really run, ``repeats`` times each · seconds: of the load of each run · seeds: of
    each prediction · period, executors, cpu_share: as in ``examples`` · done: a folder of an
    earlier run, whose finished runs count
    """

    only: str = "windowed"
    policy: str = "ds2"
    policies: tuple[str, ...] = ("hpa-cpu", "dhalion")
    seconds: float = 600.0
    repeats: int = 3
    seeds: int = 5
    period: float = 10.0
    executors: int = 4
    cpu_share: float = 0.4
    done: str | None = None

    def __post_init__(self) -> None:
        check_example(self.only)
        if not self.policies:
            raise InputError("--policies names none")
        for name in (self.policy, *self.policies):
            if name == spark_dra.NAME:
                raise InputError(f"{name} is Spark's own allocation: it does not act by a loop")
            create_policy(name)
        if self.policy in self.policies:
            raise InputError(
                f"--policies {','.join(self.policies)}: {self.policy} is in the recording already; "
                "name others"
            )
        if len(set(self.policies)) < len(self.policies):
            raise InputError(f"--policies {','.join(self.policies)} names one twice")
        if not SHORTEST <= self.seconds <= LONGEST:
            raise InputError(
                f"--seconds {self.seconds:g} must lie between {SHORTEST:g} and {LONGEST:g}"
            )
        for option, value in (("--repeats", self.repeats), ("--seeds", self.seeds)):
            if not 1 <= value <= 100:
                raise InputError(f"{option} {value} must lie between 1 and 100")
        if self.done is not None and not Path(self.done).is_dir():
            raise InputError(f"--done {self.done}: there is no such folder")
        self.setting(self.policy)

    def setting(self, policy: str) -> Setting:
        """How the example is run under a policy."""
        return Setting(
            policy=policy,
            period=self.period,
            executors=self.executors,
            cpu_share=self.cpu_share,
        )

    def runs(self) -> Iterator[tuple[str, str]]:
        """Names and policies of the real runs: the recorded one, then the others in turn."""
        yield RECORD, self.policy
        for repeat in range(1, self.repeats + 1):
            for policy in self.policies:
                yield f"{policy}-{repeat}", policy


def prove(spec: ReplaySettings, *, folder: Path, say: Say) -> Proof:
    """Record, run, then foretell; each run is kept in a folder of its own as soon as it is done.

    One of the runs that fails by itself is left out, and named.
    """
    fed: dict[str, Fed] = {}
    missing: list[str] = []
    interrupted = False
    for name, policy in spec.runs():
        try:
            fed[name] = _real(name, policy, spec, folder, say)
        except EngineError as error:
            if name == RECORD:
                raise
            say(str(error))
            missing.append(f"{name}: {str(error).strip().splitlines()[-1]}")
        except KeyboardInterrupt:
            interrupted = True
            break
    if RECORD not in fed:
        return judge(None, [], interrupted=interrupted)
    say("learning from the recording")
    profiles = Profiles.read(folder / RECORD)
    runs = []
    for name, one in fed.items():
        if name != RECORD:
            say(f"foretelling {name}")
            runs.append(foretell(folder / name, one, profiles, range(spec.seeds)))
    if runs:
        draw(spec.only, runs, folder)
    return judge(profiles, runs, missing=missing, interrupted=interrupted)


def _real(name: str, policy: str, spec: ReplaySettings, folder: Path, say: Say) -> Fed:
    """A run of an earlier folder, or a new one."""
    done = None if spec.done is None else Path(spec.done) / name
    known = None if done is None else kept(done)
    if done is None or known is None:
        say(f"{name}: {spec.only} under {policy}, {spec.seconds:g} s")
        own = folder / name
        return really_run(spec.only, spec.setting(policy), spec.seconds, folder=own, say=say)
    asked = (spec.only, spec.setting(policy))
    if (known.example, known.setting) != asked:
        raise InputError(
            f"--done {spec.done}: {name} is of {known.example} under {known.setting}; give the "
            "options that it was made with, or another folder"
        )
    if abs(known.seconds / spec.seconds - 1.0) > SAME:
        raise InputError(
            f"--done {spec.done}: {name} took {known.seconds:.0f} s, not {spec.seconds:g}: give "
            f"--seconds {known.seconds:.0f}, or another folder"
        )
    shutil.copytree(done, folder / name)
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of a policy: its real runs, and what both profiles foretell in the mean."""

    policy: str
    what: str
    real: Sequence[float]
    by_log: float
    by_journal: float | None

    @property
    def mean(self) -> float:
        """Of the real runs."""
        return statistics.fmean(self.real)

    @property
    def spread(self) -> float:
        """The standard deviation of the real runs; 0 of one."""
        return statistics.stdev(self.real) if len(self.real) > 1 else 0.0

    @property
    def check(self) -> Check:
        """How far the event log's profile is off."""
        off = abs(self.by_log - self.mean)
        if self.what == EXECUTORS:
            share = off / self.mean if self.mean else None
            return Check(
                figure=f"{self.policy}: executors foretold",
                value=share,
                bound=EXECUTORS_WITHIN,
                unit="%",
            )
        return Check(
            figure=f"{self.policy}: p95 wait foretold",
            value=off,
            bound=max(WAIT_WITHIN * self.mean, SPREADS * self.spread),
            unit="s",
        )

    def row(self) -> dict[str, Any]:
        """For the table."""
        told = self.by_journal
        return {
            "policy": self.policy,
            "figure": self.what,
            "real": f"{self.mean:.2f} ±{self.spread:.2f}",
            "foretold": f"{self.by_log:.2f}",
            "off": _off(self.by_log, self.mean),
            "by journal": units.UNKNOWN if told is None else f"{told:.2f}",
            "is off": _off(told, self.mean),
        }


def compared(runs: Sequence[Foretold]) -> list[Compared]:
    """Executors and waits of each policy; every real run and its predictions weigh the same."""
    by_policy: dict[str, list[Foretold]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run)
    return [
        Compared(
            policy=policy,
            what=what,
            real=[run.real.figure(what) for run in mine],
            by_log=statistics.fmean(mean_of(run.by_log, what) for run in mine),
            by_journal=statistics.fmean(mean_of(run.by_journal, what) for run in mine)
            if all(run.by_journal for run in mine)
            else None,
        )
        for policy, mine in by_policy.items()
        for what in (EXECUTORS, WAIT)
    ]


def judge(
    profiles: Profiles | None,
    runs: Sequence[Foretold],
    *,
    missing: Sequence[str] = (),
    interrupted: bool = False,
) -> Proof:
    """What was foretold came true, and both profiles of the recorded run agree."""
    policies = compared(runs)
    checks = [one.check for one in policies]
    tables: dict[str, Sequence[Mapping[str, Any]]] = {}
    if profiles is not None:
        costs = profiles.costs()
        checks += [
            Check(
                figure="profiles agree: seconds of a batch",
                value=max((cost.off for cost in costs), default=None),
                bound=COST_WITHIN,
                unit="%",
            ),
            Check(
                figure="profiles agree: mean demand",
                value=profiles.demand_off,
                bound=DEMAND_WITHIN,
                unit="%",
            ),
        ]
        tables["profiles of the recorded run"] = profile_rows(profiles)
        if costs:
            tables["what a batch takes by both"] = [cost.row() for cost in costs]
    if runs:
        tables["every run"] = [run.row() for run in runs]
    notes = [
        f"load: low, ×{TIMES} from {RISE:.0%} of the time to {FALL:.0%}, low; figures are over "
        f"all but the first {COUNTED_FROM:.0%}",
        f"p95 of the wait: within {WAIT_WITHIN:.0%}, or {SPREADS:g} standard deviations of the "
        "real runs",
        *(f"not run: {reason}" for reason in missing),
        *([profiles.problem] if profiles is not None and profiles.problem else []),
    ]
    return Proof(
        name="replay",
        title="What a replay foretells, and what came true",
        checks=tuple(checks),
        details=tuple(one.row() for one in policies),
        tables=tables,
        notes=tuple(notes),
        interrupted=interrupted,
    )


def profile_rows(profiles: Profiles) -> list[dict[str, str]]:
    """Both profiles of the recorded run, number by number."""
    sides = (profiles.log, profiles.journal)
    told = [{} if learned is None else _numbers(learned) for learned in sides]
    names = dict.fromkeys(name for numbers in told for name in numbers)
    return [
        {
            "number": name,
            "event log": told[0].get(name, units.UNKNOWN),
            "journal": told[1].get(name, units.UNKNOWN),
        }
        for name in names
    ]


def _numbers(learned: Learned) -> dict[str, str]:
    profile, found = learned.profile, {}

    def known(key: str, value: float, factor: float, unit: str) -> str:
        error = profile.errors.get(key)
        more = "" if error is None else f" ± {error * factor:.1f}"
        return f"{value * factor:,.1f}{more} {unit}"

    for query in profile.queries:
        for stage in query.stages:
            name = stage.name
            found[f"{name}: a task"] = known(f"{name}.fixed", stage.fixed, 1e3, "ms")
            found[f"{name}: a record"] = known(f"{name}.per_record", stage.per_record, 1e6, "µs")
        found["planning and commit"] = f"{query.planning + query.commit:.2f} s"
    found["executor start"] = known("start", profile.executor.start, 1.0, "s")
    demands = learned.demand.values()
    found["demand, mean"] = f"{sum(d.mean for d in demands):,.1f} records/s"
    found["demand, peak"] = f"{sum(d.peak for d in demands):,.1f} records/s"
    found["batches"] = str(learned.batches)
    found["on so many executors"] = ", ".join(map(str, learned.sizes))
    found["batches off by"] = f"{learned.error:.0%}"
    return found


def _off(told: float | None, real: float) -> str:
    if told is None or not real:
        return units.UNKNOWN
    return f"{(told / real - 1.0) * 100:+.0f} %".replace("-", "−")
