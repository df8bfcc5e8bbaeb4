"""A Kafka broker that is killed and comes back while it is written to and read from.

Nobody is restarted but the broker: the producer tries again, the query waits. Every record has its
place in its topic, so one that was lost or written twice would be seen there, and every row of the
result is compared with a batch run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.jars import connector_conf
from penstock.lab.kafka.producer import NexmarkProducer
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.queries import nexmark
from penstock.lab.queries.running import fail_if_ended
from penstock.lab.sources.kafka import KafkaTopics
from penstock.workloads.patterns import Constant

QUERY = "q5"
SLOTS = 2
RATE = 2_000.0  # records/s
LEAD = 15.0  # seconds from the start of the producer to that of the load
CALM = 25.0  # seconds of load before each kill and after the last
CLOSING = 2 * setting.SETTINGS.minute + 5.0  # seconds of load after which the result is not judged
FINAL_SECONDS = 240.0
LOOK = 0.1
MOST_SECONDS = 60.0  # until a batch with data after the broker is back


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How often the broker is killed, and for how many seconds it is away."""

    kills: int = 2
    away: float = 8.0

    def __post_init__(self) -> None:
        if not 1 <= self.kills <= 20:
            raise InputError(f"--kills {self.kills} must lie between 1 and 20")
        if not 0 <= self.away <= 60:
            raise InputError(f"--away {self.away:g} s must lie between 0 and 60")

    @property
    def seconds(self) -> float:
        """How many seconds the load lasts."""
        return self.kills * (CALM + self.away + MOST_SECONDS / 2) + CALM + CLOSING


def prove(spec: BrokerSettings, *, folder: Path, say: Say) -> Proof:
    """Run it; the cluster, the broker and the topics are gone afterwards."""
    query = nexmark.QUERIES[QUERY]
    cluster_spec = ClusterSpec(slots=SLOTS, cpu_share=None)
    with LocalBroker(say=say) as broker, LocalCluster(cluster_spec, say=say) as cluster:
        conf = {"spark.sql.shuffle.partitions": str(SLOTS)} | connector_conf(say)
        spark = cluster.session("penstock lab prove broker", start_with=SLOTS, conf=conf)
        events = setting.stream_of(
            query,
            Constant(rps=RATE),
            start=time.time() + LEAD,
            seconds=spec.seconds,
            slots=SLOTS,
            max_rows=int(RATE * 10 * setting.TRIGGER),
        )
        home = cluster.folder / "query"
        topics = KafkaTopics(bootstrap_servers=broker.bootstrap_servers)
        with NexmarkProducer(
            events, bootstrap_servers=broker.bootstrap_servers, columns=dict(query.tables)
        ) as producer:
            running: Any = nexmark.start(
                spark, query, events, setting.SETTINGS, folder=home, trigger=setting.TRIGGER,
                topics=topics,
            )  # fmt: skip
            rest = _Rest(running, producer)
            rest.until(events.start)
            kills = [_kill(number, spec, broker, rest, say) for number in range(spec.kills)]
            say("waiting until everything is written and read…")
            producer.wait(within=spec.seconds + FINAL_SECONDS)
            until = events.end - CLOSING
            nexmark.wait_until_final(running, query, events, until, within=FINAL_SECONDS)
            nexmark.stop(running)
            written = producer.progress().written
        say("comparing the result with a batch run…")
        answer = nexmark.compare(spark, query, events, setting.SETTINGS, folder=home, until=until)
        return judge(kills, written, events.total("bid"), answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill: seconds that the broker was away and until it answered again, and after that
    until a batch with data was done.
    """

    away: float
    next_batch: float


def judge(kills: list[Kill], written: int, total: int, answer: nexmark.Comparison) -> Proof:
    """Judge that nothing was lost or repeated, and how soon work went on."""
    return Proof(
        name="broker",
        title=f"Broker: killed {len(kills)} times under {QUERY} over Kafka",
        checks=(
            Check(figure="rows missing", value=answer.missing, bound=0),
            Check(figure="rows surplus", value=answer.surplus, bound=0),
            Check(figure="records not in Kafka", value=total - written, bound=0),
            Check(figure="records twice in Kafka", value=max(0, written - total), bound=0),
            Check(
                figure="next batch after it is back, longest",
                value=max((kill.next_batch for kill in kills), default=None),
                bound=MOST_SECONDS,
                unit="s",
            ),
        ),
        details=tuple(
            {
                "kill": number,
                "away s": round(kill.away, 1),
                "next batch s": round(kill.next_batch, 1),
            }
            for number, kill in enumerate(kills, 1)
        ),
        notes=(f"{answer}; neither the query nor the producer was restarted",),
    )


class _Rest:
    """Waits while query and producer are alive."""

    def __init__(self, running: Any, producer: NexmarkProducer) -> None:
        self.running, self.producer = running, producer

    def until(self, moment: float) -> None:
        self.wait("the time to pass", lambda: time.time() >= moment, within=moment - time.time())

    def wait(self, what: str, holds: Callable[[], bool], *, within: float) -> None:
        deadline = time.monotonic() + within + LOOK
        while not holds():
            fail_if_ended(self.running)
            self.producer.progress()  # raises if one of its processes failed
            if time.monotonic() > deadline:
                raise EngineError(f"waited {within:.0f} s in vain for {what}")
            time.sleep(LOOK)

    def newest(self) -> Batch | None:
        return setting.last_batch(self.running)


def _kill(number: int, spec: BrokerSettings, broker: LocalBroker, rest: _Rest, say: Say) -> Kill:
    """Kill the broker in the midst of work, and wait until the query works again."""
    rest.until(time.time() + CALM)
    begun = time.monotonic()
    broker.kill()
    say(f"kill {number + 1}: the broker is away for {spec.away:g} s…")
    rest.until(time.time() + spec.away)
    broker.restart()
    away, back = time.monotonic() - begun, time.time()
    say(f"kill {number + 1}: it is back after {away:.1f} s")

    def worked() -> bool:
        batch = rest.newest()
        return batch is not None and batch.rows > 0 and batch.start > back

    rest.wait("a batch after the broker came back", worked, within=4 * MOST_SECONDS)
    return Kill(away=away, next_batch=time.time() - back)
