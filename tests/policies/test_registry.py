"""The table of policies: presets, what loads when, and what a policy of one's own may leave out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.core.ports import figures_of, wants_arrivals
from penstock.policies import (
    POLICIES,
    DynamicAllocation,
    Gesscale,
    MdlNlunaware,
    Mead,
    MeadKingman,
    MeadMg1,
    SparkDra,
    ThrNlaware,
    ThrNlunaware,
    create,
    name_of,
    parameters_of,
)
from penstock.policies.gesscale.thresholds import Thresholds
from tests.places import ROOT

MEAD: dict[str, Any] = {
    "target": 0.3,
    "levels": "0.4,0.55,0.7,0.85,1",
    "windows": "50000,25000",
    "delta": 0.05,
    "service_scv": 0.5,
    "gradual": False,
}
GESSCALE = {"period": 60.0, "head_room": 0.3, "backpressured": 0.5, "gain_per_price": 0.0}
THRESHOLDS = {"high": 0.9, "low": 0.5, "period": 60.0}
OF_0_1: dict[str, Mapping[str, Any]] = {
    "mead": {**MEAD, "percentile": 0.0, "maps": 5},
    "mead-mg1": {**MEAD, "percentile": 0.0},
    "mead-kingman": MEAD,
    "gesscale": GESSCALE,
    "mdl-nlunaware": GESSCALE,
    "thr-nlaware": THRESHOLDS,
    "thr-nlunaware": THRESHOLDS,
}
PRESETS = {
    "mead": (Mead(), Mead(model="map")),
    "mead-mg1": (MeadMg1(), Mead(model="mg1")),
    "mead-kingman": (MeadKingman(), Mead(model="kingman")),
    "gesscale": (Gesscale(), Gesscale(aware=True)),
    "mdl-nlunaware": (MdlNlunaware(), Gesscale(aware=False)),
    "thr-nlaware": (ThrNlaware(), Thresholds(aware=True)),
    "thr-nlunaware": (ThrNlunaware(), Thresholds(aware=False)),
}


@pytest.mark.parametrize("name", OF_0_1)
def test_a_preset_has_the_name_and_the_parameters_that_it_had_in_0_1(name: str) -> None:
    for policy in (create(name), create(name, OF_0_1[name]), *PRESETS[name]):
        assert policy == create(name)
        assert name_of(policy) == name
        assert parameters_of(policy) == OF_0_1[name]
    assert POLICIES[name].parameters == tuple(parameters_of(create(name)))


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("mead", "model"),
        ("mead-mg1", "maps"),
        ("mead-kingman", "percentile"),
        ("gesscale", "aware"),
        ("thr-nlaware", "aware"),
    ],
)
def test_what_a_name_settles_is_no_parameter_of_it(name: str, parameter: str) -> None:
    with pytest.raises(InputError, match=f"unknown parameter of policy {name} '{parameter}'"):
        create(name, {parameter: "1"})


def test_a_model_that_would_not_use_a_parameter_refuses_it() -> None:
    with pytest.raises(InputError, match="mead-mg1: maps = 3 says nothing"):
        MeadMg1(maps=3)
    with pytest.raises(InputError, match=r"mead-kingman: percentile = 0\.9 must be 0"):
        MeadKingman(percentile=0.9)
    with pytest.raises(InputError, match="unknown model of mead 'mg2'; did you mean 'mg1'"):
        Mead(model="mg2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"mead-mg1: target = 0\.0"):
        MeadMg1(target=0.0)


def test_spark_dra_is_still_found_under_its_old_name() -> None:
    assert SparkDra is DynamicAllocation
    assert name_of(SparkDra()) == "spark-dra"


@dataclass(frozen=True)
class Own:
    """Only what a policy must have."""

    level: float = 0.5

    def start(self, seed: int) -> int:
        return seed

    def decide(self, seen: Snapshot, memory: int) -> tuple[Proposal, int]:
        return Proposal(reason="as it is"), memory + 1


class Telling(Own):
    """Tells figures and needs arrivals."""

    single_arrivals: ClassVar[bool] = True

    def figures(self, memory: int) -> Mapping[str, float]:
        return {"decisions": float(memory)}


def test_a_policy_of_ones_own_offers_what_it_likes() -> None:
    assert (name_of(Own()), parameters_of(Own())) == ("Own", {"level": 0.5})
    assert (figures_of(Own(), 3), wants_arrivals(Own())) == ({}, False)
    assert (figures_of(Telling(), 3), wants_arrivals(Telling())) == ({"decisions": 3.0}, True)


LIGHT = [name for name, policy in POLICIES.items() if policy.extra is None]
BLOCK = (
    "import sys\n"
    "for name in ('scipy', 'numba', 'matplotlib', 'pyarrow'): sys.modules[name] = None\n"
)


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_extras_the_light_policies_decide_and_the_others_say_what_they_need() -> None:
    assert {"static", "ds2", "hpa-cpu", "hpa-varga", "hpa+", "dhalion", "dhalion+"} < set(LIGHT)
    assert {"proactive", "decentralized", "drs", "cpu-threshold", "thr-nlaware"} < set(LIGHT)
    said = run(
        BLOCK + "from penstock.core.errors import MissingError\n"
        "from penstock.policies import POLICIES, create, name_of\n"
        "from tests.fakes.scenarios import healthy\n"
        "for name in POLICIES:\n"
        "    try: policy = create(name)\n"
        "    except MissingError as error: print(error); continue\n"
        "    assert policy.decide(healthy(), policy.start(1))[0].reason\n"
        "    print(name_of(policy))\n"
    ).splitlines()
    assert [line for line in said if not line.startswith("policy ")] == LIGHT
    needs = 'needs scipy, which is not installed; pip install "penstock[models]"'
    heavy = [name for name in POLICIES if name not in LIGHT]
    assert [line for line in said if line.startswith("policy ")] == [
        f"policy {name} {needs}" for name in heavy
    ]


def test_without_extras_policies_are_listed_and_one_that_lacks_its_own_says_so() -> None:
    code = BLOCK + "from penstock.cli import main\nmain()"

    def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True
        )

    listed = penstock("policies")
    assert listed.returncode == 0, listed.stderr
    assert all(f"\n{name} " in listed.stdout for name in POLICIES)
    assert "needs scipy" in listed.stdout
    one = penstock("policies", "mead")
    assert (one.returncode, one.stdout) == (3, "")
    assert 'pip install "penstock[models]"' in one.stderr


def test_a_policy_is_loaded_when_it_is_asked_for() -> None:
    said = run(
        "import sys, penstock.policies as p\n"
        "def ours(): return {m for m in sys.modules if m.startswith('penstock.policies.')}\n"
        "assert ours() == {'penstock.policies.spark_dra'}, ours()\n"
        "assert 'numpy' not in sys.modules\n"
        "from penstock.policies import DS2\n"
        "assert 'penstock.policies.ds2' in ours() and 'penstock.policies.dhalion' not in ours()\n"
        "p.name_of(DS2()), p.parameters_of(DS2())\n"
        "assert 'penstock.policies.dhalion' not in ours()\n"
        "p.create('decentralized'), p.create('proactive'), p.create('thr-nlaware')\n"
        "print('scipy' in sys.modules)\n"
    )
    assert said == "False\n"


def test_every_name_that_is_exported_is_there() -> None:
    import penstock.policies

    for name in penstock.policies.__all__:
        assert getattr(penstock.policies, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'DS3'"):
        _ = penstock.policies.DS3  # type: ignore[attr-defined]
