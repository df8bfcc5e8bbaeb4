"""What is shipped to copy: dashboard, alert rules, manifests and the example configuration."""

from __future__ import annotations

import difflib
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.spark.exporter import Exporter
from penstock.spark.settings.keys import KEYS
from penstock.spark.settings.settings import load

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
MANIFESTS = sorted(DEPLOY.rglob("*.y*ml"))
DASHBOARD = json.loads((DEPLOY / "grafana" / "penstock.json").read_text(encoding="utf-8"))


def read(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def alerts() -> list[dict[str, Any]]:
    (document,) = read(DEPLOY / "prometheus" / "alerts.yml")
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    found = [t["expr"] for panel in DASHBOARD["panels"] for t in panel.get("targets", ())]
    found += [v["definition"] for v in DASHBOARD["templating"]["list"] if "definition" in v]
    return found + [rule["expr"] for rule in alerts()]


def spark_conf() -> dict[str, str]:
    lines = (KUBERNETES / "spark.conf").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.name)
def test_manifests_can_be_read(path: Path) -> None:
    assert all(isinstance(document, dict) for document in read(path))


def test_every_kind_that_is_needed_is_there() -> None:
    kinds = {document["kind"] for path in KUBERNETES.glob("*.yaml") for document in read(path)}
    assert kinds == {
        "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Pod", "PodMonitor",
        "SparkApplication",
    }  # fmt: skip


def test_the_driver_gets_no_more_rights_than_it_needs() -> None:
    account, role, binding = read(KUBERNETES / "rbac.yaml")
    (rule,) = role["rules"]
    assert rule["apiGroups"] == [""]
    assert set(rule["resources"]) == {"pods", "services", "configmaps", "persistentvolumeclaims"}
    assert "*" not in rule["verbs"]
    assert binding["roleRef"]["kind"] == role["kind"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [s["name"] for s in binding["subjects"]] == [account["metadata"]["name"]]
    named = spark_conf()["spark.kubernetes.authenticate.driver.serviceAccountName"]
    assert named == account["metadata"]["name"]


def test_penstocks_settings_are_known_and_fit_the_pods() -> None:
    settings = load(environment={}, spark=spark_conf())
    (driver,) = read(KUBERNETES / "driver-template.yaml")
    (monitor,) = read(KUBERNETES / "pod-monitor.yaml")
    (container,) = driver["spec"]["containers"]
    (port,) = container["ports"]
    assert settings.metrics_port == port["containerPort"]
    assert settings.metrics_host == "0.0.0.0"
    assert driver["metadata"]["annotations"]["prometheus.io/port"] == str(settings.metrics_port)
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]
    wanted = dict(monitor["spec"]["selector"]["matchLabels"])
    assert wanted.pop("spark-role") == "driver"  # Spark's own label
    assert wanted.items() <= driver["metadata"]["labels"].items()
    assert settings.freeze_file is not None
    assert str(settings.freeze_file.parent) == container["volumeMounts"][0]["mountPath"]
    (switch,) = read(KUBERNETES / "freeze.yaml")
    assert driver["spec"]["volumes"][0]["configMap"]["name"] == switch["metadata"]["name"]
    assert "data" not in switch  # shipped switched off


def test_the_operators_application_says_the_same_as_spark_submit() -> None:
    (application,) = read(KUBERNETES / "spark-application.yaml")
    spec = application["spec"]
    fields = {
        "spark.kubernetes.namespace": application["metadata"]["namespace"],
        "spark.kubernetes.container.image": spec["image"],
        "spark.executor.instances": spec["executor"]["instances"],
        "spark.executor.cores": spec["executor"]["cores"],
        "spark.executor.memory": spec["executor"]["memory"],
        "spark.driver.memory": spec["driver"]["memory"],
    }
    fields |= {
        f"spark.kubernetes.authenticate.{role}.serviceAccountName": spec[role]["serviceAccount"]
        for role in ("driver", "executor")
    }
    said = {key: str(value) for key, value in {**fields, **spec["sparkConf"]}.items()}
    assert said == {k: v for k, v in spark_conf().items() if not k.endswith("podTemplateFile")}
    for role in ("driver", "executor"):
        (pod,) = read(KUBERNETES / f"{role}-template.yaml")
        assert spec[role]["template"] == {"metadata": pod["metadata"], "spec": pod["spec"]}


def test_every_metric_that_is_used_is_exported() -> None:
    families = Exporter(load(environment={})).registry.collect()
    exported = {f.name + ("_total" if f.type == "counter" else "") for f in families}
    used = {name for text in expressions() for name in re.findall(r"penstock_\w+", text)}
    plain = {name.removesuffix("_bucket") for name in used}
    assert plain <= exported, "not exported"
    assert exported <= plain, "shown nowhere"


@pytest.mark.parametrize("expression", expressions())
def test_brackets_of_expressions_balance(expression: str) -> None:
    open_ones: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for letter in re.sub(r'"[^"]*"', "", expression):
        if letter in pairs.values():
            open_ones.append(letter)
        elif letter in pairs:
            assert open_ones and open_ones.pop() == pairs[letter]
    assert not open_ones


def test_alerts_say_what_is_wrong_and_where_to_read_on() -> None:
    text = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    sections = {f"docs/production.md#{title.lower().replace(' ', '-')}" for title in titles}
    for rule in alerts():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        assert rule["annotations"]["runbook"] in sections
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(p["x"] >= 0 and p["x"] + p["w"] <= 24 and p["h"] > 0 for p in places)
    for a, b in combinations(places, 2):
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, (a, b)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_the_dashboard_can_be_imported_and_pointed_at_a_job() -> None:
    variables = {v["name"]: v for v in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "query"]
    assert variables["datasource"]["query"] == "prometheus"
    assert DASHBOARD["id"] is None
    for panel in DASHBOARD["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert 'job=~"$job"' in target["expr"]
            assert ("{{query}}" in target["legendFormat"]) == ("$query" in target["expr"])


def test_the_example_configuration_has_every_key_at_its_default() -> None:
    example = load(ROOT / "examples" / "penstock.toml", environment={})
    default = load(environment={})
    parameters = {f"policy.{name}" for name in default.parameters}
    assert set(example.origins) == {*KEYS, *parameters}
    assert replace(example, origins={}, file=None) == replace(default, origins={})


def _strings_of_spark() -> bytes:
    """The constants of the classes in which Spark declares its settings."""
    import pyspark

    where = re.compile(r"spark/(internal/config|deploy/k8s/Config|deploy/yarn/config|sql/internal)")
    jars = Path(pyspark.__file__).parent / "jars"

    def parts() -> Iterator[bytes]:
        for name in ("core", "kubernetes", "yarn", "catalyst", "sql-api"):
            (jar,) = jars.glob(f"spark-{name}_*.jar")
            with zipfile.ZipFile(jar) as archive:
                yield from (archive.read(n) for n in archive.namelist() if where.search(n))

    return b"".join(parts())


def _settings_named_by(texts: Mapping[str, str]) -> set[tuple[str, str]]:
    pattern = re.compile(r"(?<![\w/.-])spark\.(?!penstock\b)[a-z]\w*(?:\.[A-Za-z][\w-]*)+")
    # What follows the first two is the reader's own; the third is Python.
    free = ("spark.yarn.appMasterEnv.", "spark.executorEnv.", "spark.readStream.")
    return {
        (place, name)
        for place, text in texts.items()
        for name in pattern.findall(text)
        if not name.startswith(free)
    }


def test_every_setting_of_spark_that_is_named_exists() -> None:
    paths = [*KUBERNETES.iterdir(), *(ROOT / "examples").glob("*.py")]
    paths += [ROOT / "docs" / name for name in ("kubernetes.md", "yarn.md", "examples.md")]
    named = _settings_named_by({p.name: p.read_text(encoding="utf-8") for p in paths})
    known = _strings_of_spark()
    assert len(named) > 30

    def exists(name: str) -> bool:
        prefix, _, last = name.rpartition(".")  # some are put together from two constants
        whole = name.encode() in known
        return whole or (prefix.encode() in known and f".{last}".encode() in known)

    assert not {(place, name) for place, name in named if not exists(name)}


def test_attaching_penstock_takes_a_handful_of_lines() -> None:
    def code(name: str) -> list[str]:
        text = (ROOT / "examples" / name).read_text(encoding="utf-8")
        return text.split('"""', maxsplit=2)[2].splitlines()  # without what the file says of itself

    changes = list(difflib.ndiff(code("plain_job.py"), code("with_penstock.py")))
    assert sum(line.startswith("+ ") and bool(line.strip("+ ")) for line in changes) <= 8
    assert sum(line.startswith("- ") for line in changes) <= 1
