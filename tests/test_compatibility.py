"""What version 0.1 accepted is still accepted: names, options, configuration, own policies.

Its journals are in tests/history, its run folders in tests/compare, its profile of a query
(examples/twin) in tests/bench.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

import penstock
from penstock import Need, Proposal, Snapshot
from penstock.cli.app import app
from penstock.cli.renamed import modernized
from penstock.history.journal import read
from penstock.policies import create, name_of
from penstock.spark.exporter import NAMES
from penstock.spark.settings.keys import PRODUCTION
from penstock.spark.settings.settings import load
from tests.fakes.spark import looks, played
from tests.places import REFERENCE

OLD = REFERENCE / "0.1"
ROOT = typer.main.get_command(app)
COMMANDS: dict[str, list[str]] = json.loads((OLD / "commands.json").read_text(encoding="utf-8"))
PUBLIC = (
    "Autoscaler Blackout Change Guards Need Operator OperatorSeen PenstockError Pipeline Proposal "
    "Slot Snapshot"
)
METRICS = """
penstock_action_duration_seconds penstock_actions_total penstock_backlog_records
penstock_backlog_seconds penstock_backpressured_ratio penstock_batch_duration_seconds
penstock_busy_ratio penstock_cpu_share_ratio penstock_decisions_total penstock_errors_total
penstock_executor_cpu_ratio penstock_executor_load_ratio penstock_executors penstock_frozen
penstock_info penstock_last_decision_timestamp_seconds penstock_latency_seconds
penstock_max_executors penstock_min_executors penstock_observation_age_seconds
penstock_offered_records_per_second penstock_partition_backlog_records
penstock_processed_records_per_second penstock_raw_target_executors
penstock_source_backlog_records penstock_state_bytes penstock_state_rows
penstock_target_executors
"""
POLICIES = """
static hpa-cpu hpa-varga ds2 dhalion hpa+ ds2+ dhalion+ proactive mead mead+ mead-mg1 mead-kingman
cpu-threshold drs gesscale gesscale+ mdl-nlunaware thr-nlunaware thr-nlaware decentralized
"""


class Doubling:
    """A policy as a user of 0.1 wrote it: two methods, nothing of ours inherited."""

    def start(self, seed: int) -> dict[str, int]:
        return {"seen": 0}

    def decide(self, seen: Snapshot, memory: dict[str, int]) -> tuple[Proposal, dict[str, int]]:
        needs = {pool: Need(slots=2.0 * len(slots)) for pool, slots in seen.pools.items()}
        return Proposal(reason="twice as many", pool_needs=needs), {"seen": memory["seen"] + 1}


def test_public_names_are_there() -> None:
    assert set(PUBLIC.split()) <= set(penstock.__all__)
    for name in PUBLIC.split():
        assert getattr(penstock, name).__name__ == name


def test_metric_names_are_the_same() -> None:
    assert {name.removesuffix("_total") for name in METRICS.split()} <= {
        name.removesuffix("_total") for name in NAMES
    }


@pytest.mark.parametrize("name", POLICIES.split())
def test_policies_have_their_names(name: str) -> None:
    assert name_of(create(name)) == name


def test_the_configuration_file_is_read_as_before() -> None:
    settings = load(OLD / "penstock.toml", environment={}, spark=None, given={})
    assert settings.guards == PRODUCTION
    assert (settings.policy, settings.mode, settings.period) == ("ds2", "advise", 15.0)


def test_an_own_policy_acts_and_is_journalled(tmp_path: Path) -> None:
    journal = tmp_path / "decisions.jsonl"
    session, made = played(
        looks(1000.0, 1000.0, 1000.0),
        Doubling(),
        min_executors=1,
        max_executors=7,
        journal=journal,
    )
    assert ("request", 7) in session.sparkContext.calls
    assert any(decision.applied for decision in made)
    header, entries = read(journal)
    assert header.policy == "Doubling"
    assert entries and all(e.decision.proposal.reason == "twice as many" for e in entries)
    assert entries[-1].state.memory == {"seen": len(entries)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_understood(command: str) -> None:
    for option in COMMANDS[command]:
        arguments, _ = modernized([*command.split(), option])
        found: Any = ROOT
        while hasattr(found, "commands"):
            found = found.commands[arguments.pop(0)]
        names = {n for p in found.params for n in (*p.opts, *p.secondary_opts)}
        assert arguments[-1] in names
