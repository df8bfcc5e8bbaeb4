"""gesscale+: what it adds, removes, holds and says; figures computed by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.latency import LatencyMap
from penstock.core.loop import Loop
from penstock.core.model import Change, Snapshot
from penstock.policies import Gesscale, create
from penstock.policies.gesscale.gesscale_plus import GesscalePlus, Memory, forecasts
from penstock.policies.gesscale.layouts import Layouts
from penstock.policies.gesscale.observed import at_limit
from penstock.policies.gesscale.units import units_of
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.workloads.patterns import Constant, Cosine
from tests.fakes.far_scenarios import (
    DIVIDED,
    PLAIN,
    SKEWED,
    STORING,
    decisions,
    engine,
    far,
    seen_on,
    sizes,
)
from tests.fakes.microbatch_examples import single
from tests.policies.test_policies import CHAIN, but, needs, snapshot


def learnt(*levels: int, rate: float = 200_000.0) -> Memory:
    """After looks at some levels of the plain job, full at all of them."""
    policy = GesscalePlus()
    memory = policy.start(1)
    for i, level in enumerate(levels):
        seen = replace(seen_on(far(PLAIN), level, rate), time=100.0 * (i + 1))
        _, memory = policy.decide(seen, memory)
    return json.loads(json.dumps(memory))  # type: ignore[no-any-return]


def later(seen: Snapshot) -> Snapshot:
    """The same, long after all that was learnt."""
    return replace(seen, time=5000.0)


class TestEnough:
    """The smallest set that carries the load."""

    def test_one_more_and_then_as_many_as_it_takes(self) -> None:
        """5 do 90,909 and 6 do 107,143, which is 5 % more than 100,000 at least."""
        assert sizes(decisions(far(PLAIN), 100_000.0)) == [1, 2, 4, 6, 6, 6, 6, 6]

    def test_the_prediction_is_the_formula(self) -> None:
        seen = seen_on(far(PLAIN), 2, 200_000.0)
        found = {f.slots: f.rate for f in forecasts(seen, learnt(1, 2), "job")}
        assert found[3] == pytest.approx(1e6 / (50 / 3 + 1), rel=0.01)
        assert found[9] == pytest.approx(1e6 / (50 / 9 + 1), rel=0.02)

    def test_no_larger_step_than_it_is_sure_of(self) -> None:
        careful = decisions(far(PLAIN), 100_000.0, policy=GesscalePlus(sure=0.0))
        assert sizes(careful)[:7] == [1, 2, 3, 4, 5, 6, 6]

    def test_spare_is_on_top_of_the_input(self) -> None:
        """103,000 is below what 6 do; a tenth more is not, and 7 do 122,807."""
        assert sizes(decisions(far(PLAIN), 103_000.0))[-1] == 7
        assert sizes(decisions(far(PLAIN), 103_000.0, policy=GesscalePlus(spare=0.0)))[-1] == 6

    def test_a_queue_that_is_worked_off_is_no_shortage(self) -> None:
        said = decisions(far(PLAIN), 100_000.0)
        assert "job: works off its queue" in said[4].proposal.reason

    def test_the_reason_has_the_figures(self) -> None:
        reason = decisions(far(PLAIN), 100_000.0, looks=3)[2].proposal.reason
        assert reason.startswith("job 4→6 on node-")
        assert "target 105,000/s; MST(6) predicted 107," in reason


class TestBackPressure:
    """It may be missing though records wait."""

    def test_where_the_network_decides_nobody_is_held_back(self) -> None:
        seen = seen_on(far(STORING, "fixed", delayed=0.9), 6, 200_000.0)
        source = seen.operators["source"]
        assert source.backpressured is not None and source.backpressured < 0.5
        limits = at_limit(seen, units_of(seen.pipeline))
        assert limits["job"].startswith("records waited all the time, though back pressure is 0.0")
        assert limits["source"] == limits["sink"] == ""

    def test_it_goes_on_where_gesscale_stops(self) -> None:
        """All nodes are 50 ms apart. Two store 400,000 records in 500 · 25 ms: 32,000/s.

        Their CPUs could do 38,462, so they are not held back; ten do 88,889.
        """
        spec = far(DIVIDED, "fixed", delayed=1.0)
        run = engine(spec, 100_000.0)
        loop = Loop(run, Gesscale(), Guards(), mode="act")
        while run.advance(120):
            loop.tick()
        assert len(run.nodes) == 2
        said = decisions(spec, 100_000.0, looks=12)
        assert said[1].seen.operators["job"].arrival_rate == pytest.approx(32_000, rel=0.03)
        assert said[-1].seen.operators["job"].arrival_rate == pytest.approx(88_889, rel=0.03)
        assert "no set of 10 reaches 105,000/s" in said[-1].proposal.reason

    def test_a_lag_that_is_not_told_shows_in_what_is_left_behind(self) -> None:
        seen = seen_on(far(STORING, "fixed", delayed=0.9), 6, 200_000.0)
        source = replace(seen.operators["source"], lag=None)
        blind = replace(seen, operators={**seen.operators, "source": source})
        assert at_limit(blind, units_of(blind.pipeline))["job"]

    def test_what_was_not_measured_is_not_at_its_limit_nor_below_it(self) -> None:
        seen = seen_on(far(PLAIN), 2, 200_000.0)
        job = replace(seen.operators["job"], backpressured=None)
        blind = replace(seen, operators={**seen.operators, "job": job})
        assert "job" not in at_limit(blind, units_of(blind.pipeline))


class TestNoneIsEnough:
    """Where more nodes do not help it says so, and holds the best."""

    def test_a_hot_group_is_no_matter_of_slots(self) -> None:
        said = decisions(far(SKEWED), 100_000.0)
        assert sizes(said)[-1] <= 4  # they do 23,529, ten would do 24,390
        assert "no set of 10 reaches 105,000/s" in said[-1].proposal.reason
        assert said[-1].changes == {}

    def test_nodes_that_do_harm_are_given_up(self) -> None:
        """Three near nodes do 56,604; a window on ten takes 400 · 37.5 ms: 26,667/s."""
        spec = far(STORING, "fixed", delayed=0.7)
        policy, run = GesscalePlus(), engine(spec, 100_000.0)
        memory = policy.start(1)
        for level in (1, 2, 3, 10):  # what it was made to see
            run.apply({"job": Change(before=len(run.nodes), slots=level, raw=level)})
            run.advance(60)
            run.observe()
            run.advance(60)
            seen = run.observe()
            proposal, memory = policy.decide(seen, memory)
        assert seen.operators["job"].arrival_rate == pytest.approx(26_667, rel=0.02)
        assert proposal.needs["job"].slots == 3.0
        assert set(proposal.place["job"].remove) == {f"job-node-{i}" for i in range(4, 11)}
        assert "no set of 10 reaches 105,000/s" in proposal.reason

    def test_it_does_not_wander(self) -> None:
        spec = far(STORING, "fixed", delayed=0.7, delay=0.05)
        path = sizes(decisions(spec, 100_000.0, looks=14))
        assert len(set(path[-6:])) == 1

    def test_gains_below_the_least_are_not_worth_it(self) -> None:
        """With gain 1 nothing is: a set must do twice as much."""
        eager = decisions(far(SKEWED), 100_000.0)
        lazy = decisions(far(SKEWED), 100_000.0, policy=GesscalePlus(gain=1.0))
        assert sizes(lazy)[-1] == 1 < sizes(eager)[-1]


class TestChains:
    """Several pools in a row."""

    def test_what_would_be_next_grows_with_what_holds_it_up(self) -> None:
        """Map takes 10,000 of 15,000 with 4 slots, which is all it can; sinks are 0.9 busy.

        Each needs 4 · 1.5 · 1.05 = 6.3 or 0.9 times that: 7 and 6. Sure of one more at first. One
        slot is enough for sources that are a tenth busy.
        """
        held = snapshot(CHAIN, {"source": 0.9}, offered_rate=15_000.0)
        held = but(but(held, "map", busy=1.0, idle=0.0), "sink", busy=0.9, idle=0.1)
        first, _ = GesscalePlus().decide(held, GesscalePlus().start(1))
        assert needs(first) == {"source": 1.0, "map": 5.0, "sink": 5.0}
        assert "sink 4→5: it would be the next to hold others up" in first.reason
        bold, _ = GesscalePlus(sure=1.0).decide(held, GesscalePlus().start(1))
        assert needs(bold) == {"source": 1.0, "map": 7.0, "sink": 6.0}

    def test_while_all_keep_up_nobody_is_next(self) -> None:
        calm = but(snapshot(CHAIN, offered_rate=10_000.0, lag=0.0), "sink", busy=1.0, idle=0.0)
        proposal, _ = GesscalePlus().decide(calm, GesscalePlus().start(1))
        assert "sink" not in needs(proposal)


class TestLess:
    """Slots that are not needed go, several at once."""

    def down(self, rate: float, memory: Memory | None = None) -> dict[str, float]:
        seen = later(seen_on(far(PLAIN), 8, rate))
        known = learnt(1, 2, 3, 4, 8) if memory is None else memory
        proposal, _ = GesscalePlus().decide(seen, known)
        return {name: need.slots for name, need in proposal.needs.items()}

    def test_as_few_as_are_enough_for_sure(self) -> None:
        """50,000 are carried by 3 (56,604 ± 8 %), 53,000 not for sure."""
        assert self.down(50_000.0) == {"job": 3.0}
        assert self.down(55_000.0) == {"job": 4.0}

    def test_the_farthest_go(self) -> None:
        seen = later(seen_on(far(PLAIN, "fixed"), 8, 80_000.0))
        proposal, _ = GesscalePlus().decide(seen, learnt(1, 2, 3, 4, 8))
        assert proposal.needs["job"].slots == 5.0
        assert set(proposal.place["job"].remove) == {"job-node-6", "job-node-7", "job-node-8"}

    def test_nothing_learnt_nothing_removed(self) -> None:
        seen = seen_on(far(PLAIN), 8, 20_000.0)
        blank = replace(
            seen,
            pools={p: tuple(replace(s, load=None) for s in v) for p, v in seen.pools.items()},
            operators={
                n: replace(o, busy=None, idle=None, backpressured=0.0)
                for n, o in seen.operators.items()
            },
        )
        proposal, _ = GesscalePlus().decide(blank, GesscalePlus().start(1))
        assert proposal.needs == {}

    def test_busy_slots_teach_before_any_limit_is_met(self) -> None:
        """The first look ever: 8 slots are a third busy."""
        assert self.down(50_000.0, GesscalePlus().start(1)).get("job", 8.0) < 8.0


class TestBadMetrics:
    """Nothing happens on what is not known."""

    def test_nodes_that_the_map_does_not_know(self) -> None:
        seen = later(seen_on(far(PLAIN), 2, 100_000.0))
        small = LatencyMap(["node-1", "other"], [[0.0, 0.01], [0.01, 0.0]])
        proposal, _ = GesscalePlus().decide(replace(seen, rtt=small), learnt(1))
        assert "node-2 not in the latency map" in proposal.reason
        assert "job" not in proposal.needs

    def test_an_input_that_is_not_known(self) -> None:
        seen = later(seen_on(far(PLAIN), 2, 100_000.0))
        source = replace(seen.operators["source"], offered_rate=None)
        proposal, _ = GesscalePlus().decide(
            replace(seen, operators={**seen.operators, "source": source}), learnt(1)
        )
        assert proposal.needs == {} and "not known" in proposal.reason

    def test_no_free_node_is_no_move(self) -> None:
        seen = replace(later(seen_on(far(PLAIN), 2, 100_000.0)), free_nodes=())
        proposal, _ = GesscalePlus().decide(seen, learnt(1))
        assert proposal.needs == {} and "no set of 2 reaches" in proposal.reason

    def test_without_groups_and_loads_throughput_is_enough(self) -> None:
        policy, spec = GesscalePlus(), far(PLAIN)
        memory = policy.start(1)
        for level in (1, 2, 3):
            seen = seen_on(spec, level, 100_000.0)
            bare = tuple(replace(slot, load=None) for slot in seen.pools["job"])
            shares = replace(seen.operators["job"], busy=None)
            seen = replace(
                seen,
                time=100.0 * level,
                pools={**seen.pools, "job": bare},
                operators={**seen.operators, "job": shares},
            )
            proposal, memory = policy.decide(seen, memory)
        found = {f.slots: f.rate for f in forecasts(seen, memory, "job")}
        assert found[6] == pytest.approx(107_143, rel=0.05)
        assert proposal.needs["job"].slots > 3

    @pytest.mark.parametrize(
        "wrong", [{"spare": -0.1}, {"sure": 1.5}, {"gain": math.nan}, {"period": -1.0}]
    )
    def test_parameters_that_make_no_sense(self, wrong: dict[str, float]) -> None:
        with pytest.raises(InputError, match=r"gesscale\+"):
            GesscalePlus(**wrong)


class TestMicroBatches:
    """Spark: one pool of executors for all stages, partitions in waves."""

    def executors(self, policy: str, shares: tuple[float, ...] = (), tasks: int = 24) -> list[int]:
        """Half an hour up to 6,000 records/s, half an hour down; one executor does about 900."""
        profile = single(
            tasks=tasks, fixed=0.02, max_rows=30_000, trigger=2.0, planning=0.15, shares=shares
        )
        load = Cosine(low=200.0, high=6000.0, period=3600.0)
        run = MicroBatchEngine(profile, load, seconds=3600.0, start=1, limits=(1, 12), seed=3)
        guards = Guards(minimum=1, maximum=12, cool_down=30.0)
        loop = Loop(run, create(policy), guards, mode="act", seed=3)
        sizes: list[int] = []
        for _ in range(238):
            run.advance(15.0)
            sizes.append(loop.tick().seen.slots("executors"))
        run.finish()
        return sizes

    def test_it_grows_until_it_keeps_up_and_shrinks_again(self) -> None:
        found = self.executors("gesscale+")
        assert 7 <= max(found) <= 9
        assert found[0] == found[-1] == 1

    def test_a_partition_that_is_too_large_is_not_chased(self) -> None:
        """One of 24 has three tenths of the work: four executors carry what it lets through."""
        shares = (0.3,) + (0.7 / 23,) * 23
        assert max(self.executors("gesscale+", shares)) <= 5
        assert max(self.executors("gesscale", shares)) == 12

    def test_waves_are_foreseen(self) -> None:
        """Six like partitions take two waves on 3, 4 and 5 executors alike."""
        profile = single(tasks=6, fixed=0.02, max_rows=30_000)
        run = MicroBatchEngine(profile, Constant(rps=9000.0), seconds=600.0, start=3, seed=3)
        run.advance(300.0)
        seen = run.observe()
        unit = units_of(seen.pipeline)[0]
        shares = {c.slots: c.layout.rest for c in Layouts(seen, unit).more(())}
        assert shares[4] == pytest.approx(1 / 3, rel=0.1)
        assert shares[5] == pytest.approx(1 / 3, rel=0.1)
        assert shares[6] == pytest.approx(1 / 6, rel=0.1)
        assert max(shares) == 6  # more cannot work at once
        run.finish()


def test_figures_tell_how_well_it_foretold() -> None:
    policy = GesscalePlus()
    figures = policy.figures(learnt(1, 2, 3))
    assert figures["measurements"] == 9.0  # of three pools each
    assert figures["model_error"] < 0.03
    assert policy.figures(policy.start(1)) == {"measurements": 0.0}
