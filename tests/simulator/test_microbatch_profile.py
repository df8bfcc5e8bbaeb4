"""Profiles as JSON: exact there and back, wrong ones refused with the way out."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.simulator.microbatch import (
    ExecutorProfile,
    Profile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
    read_profile,
    write_profile,
)
from tests.fakes.microbatch_examples import counting, pair, single
from tests.places import ROOT


@pytest.mark.parametrize("profile", [single(), pair()], ids=["one", "two"])
def test_a_profile_survives_json(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    write_profile(profile, path)
    assert read_profile(path) == profile
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 1


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    with pytest.raises(InputError, match=r"cannot read the profile .*No such file"):
        read_profile(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="is not JSON"):
        read_profile(path)
    document = to_json(pair())
    path.write_text(json.dumps({**document, "executors": 3}), encoding="utf-8")
    with pytest.raises(InputError, match=r"profile.json: unknown key of Profile 'executors'"):
        read_profile(path)
    path.write_text(json.dumps({**document, "version": 9}), encoding="utf-8")
    with pytest.raises(InputError, match=r"version 9 cannot be read.*version 1"):
        read_profile(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 0}, "tasks = 0 must be a whole number ≥ 1"),
        ({"tasks": 2.5}, r"tasks = 2.5 must be a whole number"),
        ({"fixed": -0.1}, "fixed = -0.1 must be a finite number ≥ 0"),
        ({"per_record": "x"}, "not a StageProfile"),
        ({"source": None}, "either a source or the stages upstream"),
        ({"upstream": ["other"]}, "either a source or the stages upstream"),
        ({"shares": [0.5, 0.5]}, "2 shares for 4 tasks"),
        ({"shares": [0.5, 0.5, 0.5, -0.5]}, "must be ≥ 0 and sum to 1"),
        ({"source": "bid"}, "unknown source of stage read 'bid'; did you mean 'bids'"),
        ({"state": {"operator": "dedupe", "seconds": 0}}, "seconds = 0.0 must be .* above 0"),
    ],
)
def test_wrong_stages_are_refused(change: dict[str, Any], message: str) -> None:
    document = to_json(single())
    document["queries"][0]["stages"][0] |= change
    with pytest.raises(InputError, match=message):
        from_json(Profile, document)


def test_wrong_names_and_executors_are_refused() -> None:
    query = counting()
    with pytest.raises(InputError, match="no stage reads the source people"):
        replace(query, sources=(*query.sources, SourceProfile(name="people")))
    late = StageProfile(name="late", upstream=("later",), tasks=1, fixed=0.1, per_record=0.0)
    with pytest.raises(InputError, match="unknown stage before late: 'later'"):
        replace(query, stages=(*query.stages, late))
    with pytest.raises(InputError, match="query 'counts' is there twice"):
        Profile(version=1, queries=(query, query))
    with pytest.raises(InputError, match="at least one query"):
        Profile(version=1, queries=())
    with pytest.raises(InputError, match=r"slowdown = 0.5 must be ≥ 1"):
        ExecutorProfile(slowdown=0.5)
    with pytest.raises(InputError, match=r"boost = 1.5 must be above 0 and ≤ 1"):
        ExecutorProfile(boost=1.5)
    with pytest.raises(InputError, match="not both"):
        ExecutorProfile(slowdown=2.0, warm_up=1.0, boost=0.5, boost_for=1.0)
    with pytest.raises(InputError, match="must be shares"):
        ExecutorProfile(cpu_idle=0.9, cpu_busy=0.5)
    with pytest.raises(InputError, match=r"share = 0 must be a finite number above 0"):
        ExecutorProfile(share=0)
    with pytest.raises(InputError, match="max_rows = 0"):
        SourceProfile(name="bids", max_rows=0)


@pytest.mark.parametrize(
    "kind", [Profile, QueryProfile, SourceProfile, StageProfile, StateProfile, ExecutorProfile]
)
def test_every_key_is_documented(kind: type[Any]) -> None:
    text = (ROOT / "docs" / "micro-batch.md").read_text(encoding="utf-8")
    for field in fields(kind):
        assert f"`{field.name}`" in text, f"docs/micro-batch.md does not explain {field.name}"
