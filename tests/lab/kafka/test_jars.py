"""The cache of jars: whole or not there, one download at a time, and clear when it fails."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.core.errors import MissingError
from penstock.lab.host.java import find_java
from penstock.lab.kafka import jars
from penstock.lab.kafka import jars as ivy
from penstock.lab.kafka.jars import Artifact, JarSet

SET = JarSet(
    name="things-1",
    what="things",
    artifacts=(Artifact(group="g", name="thing", version="1"),),
)
Fake = Callable[[str], None]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "penstock" / "jars"


@pytest.fixture
def maven(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A program in the place of Java that does what a script says."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    java = dataclasses.replace(find_java(), home=home)
    monkeypatch.setattr(ivy, "find_java", lambda: java)

    def does(script: str) -> None:
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return does


def test_a_set_is_downloaded_once(maven: Fake, cache: Path, tmp_path: Path) -> None:
    maven(f"echo run >> {tmp_path}/runs; echo jar > jars/thing-1.jar; echo jar > jars/other-2.jar")
    said: list[str] = []
    names = [jar.name for jar in jars.get(SET, said.append)]
    assert names == ["other-2.jar", "thing-1.jar"]
    assert jars.cached(SET) and jars.get(SET) == jars.get(SET)
    assert (tmp_path / "runs").read_text() == "run\n"
    assert said == ["downloading things: once, about a minute…"]
    assert sorted(p.name for p in cache.iterdir()) == [".lock", "things-1"]


def test_a_download_cut_off_leaves_nothing_that_looks_whole(maven: Fake, cache: Path) -> None:
    maven("echo half > jars/thing-1.jar; echo 'SERVER ERROR: Connection reset'; exit 1")
    with pytest.raises(MissingError, match="Is this machine offline"):
        jars.get(SET)
    assert not jars.cached(SET)
    (cache / "things-1.part" / "jars").mkdir(parents=True)  # as a killed process leaves it
    (cache / "things-1.part" / "jars" / "half.jar").touch()
    maven("echo jar > jars/thing-1.jar")
    assert [jar.name for jar in jars.get(SET)] == ["thing-1.jar"]


def test_two_at_once_download_once(maven: Fake, tmp_path: Path) -> None:
    maven(f"echo run >> {tmp_path}/runs; echo jar > jars/thing-1.jar")
    found: list[list[Path]] = []
    both = threading.Barrier(2)

    def one() -> None:
        both.wait()
        found.append(jars.get(SET))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert (tmp_path / "runs").read_text() == "run\n"


def test_offline_says_so_and_what_to_do(maven: Fake, cache: Path) -> None:
    maven("echo 'Host repo not found. url=…'; echo ':: g#thing;1: not found'; exit 1")
    with pytest.raises(MissingError) as caught:
        jars.get(SET)
    assert caught.value.exit_code == 3
    assert not isinstance(caught.value, ivy.NotPublishedError)
    for part in ("g:thing:1", "Host repo not found", f"copy the folder {cache / 'things-1'}"):
        assert part in str(caught.value)


def test_an_artifact_that_maven_does_not_have(maven: Fake) -> None:
    maven("echo ':: g#thing;1: not found'; exit 1")
    with pytest.raises(ivy.NotPublishedError, match="Maven does not have g:thing;1"):
        jars.get(SET)


def test_an_older_connector_stands_in_for_one_that_is_not_published(
    maven: Fake, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "4.3.9")
    maven(
        "grep -q 'rev=\"4.3.9\"' ivy.xml && { echo ':: g#c;4.3.9: not found'; exit 1; }\n"
        "echo jar > jars/connector.jar"
    )
    said: list[str] = []
    assert [jar.parent.name for jar in jars.connector_jars(said.append)] == [
        "spark-kafka-4.3.9-by-4.2.0"
    ]
    assert any("an older one stands in: Spark's Kafka connector 4.2.0" in line for line in said)
    assert jars.connector_conf() == {
        "spark.jars": str(cache / "spark-kafka-4.3.9-by-4.2.0" / "connector.jar")
    }
    maven("echo jar > jars/right.jar")  # the right one is preferred wherever it is
    (cache / "spark-kafka-4.3.9").mkdir()
    (cache / "spark-kafka-4.3.9" / "right.jar").touch()
    assert [jar.name for jar in jars.connector_jars()] == ["right.jar"]


def test_no_connector_stands_in_where_none_is_known_to_work(
    maven: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "9.9.0")
    maven("echo ':: g#c;9.9.0: not found'; exit 1")
    with pytest.raises(ivy.NotPublishedError):
        jars.connector_jars()


def test_ivy_is_told_what_to_leave_out() -> None:
    text = ivy.ivy_file(SET.artifacts, ["jsr305", "hadoop-client-api", "jsr305"])
    wanted = ElementTree.fromstring(text).find("dependencies")
    assert wanted is not None
    assert [(e.tag, e.get("name") or e.get("module")) for e in wanted] == [
        ("dependency", "thing"),
        ("exclude", "hadoop-client-api"),
        ("exclude", "jsr305"),
    ]


def test_the_doctor_tells_what_is_missing_and_makes_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "4.3.0")
    monkeypatch.setenv("HOME", str(tmp_path))
    empty = jars.check()
    assert not empty.ok
    assert empty.found.startswith("not here: the jars of the broker, the jars of the connector")
    assert not cache.exists()
    for name in (jars.BROKER.name, "spark-kafka-4.3.0-by-4.2.0"):
        (cache / name).mkdir(parents=True)
    assert jars.check().found == f"broker {jars.KAFKA}, connector 4.2.0 in place of 4.3.0"
