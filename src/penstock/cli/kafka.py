"""``penstock lab kafka``: a broker on this machine, and Nexmark's events written to one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, command_group, pairs, seconds_of
from penstock.core.errors import EngineError

if TYPE_CHECKING:
    from penstock.lab.kafka.producer import Progress
    from penstock.workloads.nexmark import Table

LOOK = 0.2  # seconds between looks at the broker
SAY_EVERY = 10.0  # seconds between lines where there is no terminal
_WORK, _KAFKA = "Events", "Kafka"

kafka = command_group("kafka", "Run a Kafka broker, and write Nexmark's events to one.")


@kafka.command("broker")
def broker(
    port: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1.", show_default="a free one")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Keep its records in this folder.", show_default="removed at the end"),
    ] = None,
) -> None:
    """Run one Apache Kafka broker in the foreground, until Ctrl-C.

    The first time it is downloaded. It listens on this machine only and
    asks for no password.
    """
    from penstock.lab.clusters.standalone.daemons import tail
    from penstock.lab.kafka.broker import LocalBroker

    with LocalBroker(port=port, data=data, say=output.say) as running:
        screen = output.console()
        screen.print(running.bootstrap_servers)
        output.say("Ctrl-C ends it. In another terminal, for a minute of events:")
        output.say(
            f"  penstock lab kafka produce --bootstrap-servers {running.bootstrap_servers} \\\n"
            "    --workload constant --minutes 1"
        )
        while running.alive:
            time.sleep(LOOK)
        raise EngineError(f"the broker ended by itself. Its last lines:\n{tail(running.log)}")


@kafka.command("produce")
def produce(
    bootstrap_servers: Annotated[
        str,
        typer.Option(help="HOST:PORT of the cluster, several with commas.", rich_help_panel=_KAFKA),
    ],
    workload: Annotated[
        str, typer.Option(help="The load; see `penstock workload list`.", rich_help_panel=_WORK)
    ] = "cosine",
    workload_set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A workload parameter.", rich_help_panel=_WORK),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="How long.", rich_help_panel=_WORK, show_default="the workload's own, or 140"
        ),
    ] = None,
    tables: Annotated[
        str,
        typer.Option(help="person, auction, bid: several with commas.", rich_help_panel=_WORK),
    ] = "bid",
    seed: Annotated[int, typer.Option(help="Of load and events.", rich_help_panel=_WORK)] = 0,
    start: Annotated[
        float | None,
        typer.Option(
            "--start-time",
            help="Epoch second of the first event; the same one to go on.",
            rich_help_panel=_WORK,
            show_default="now",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Topics are PREFIX-TABLE.", rich_help_panel=_KAFKA)
    ] = "nexmark",
    partitions: Annotated[int, typer.Option(help="Of each topic.", rich_help_panel=_KAFKA)] = 8,
    processes: Annotated[
        int, typer.Option(help="That write, each its own partitions.", rich_help_panel=_KAFKA)
    ] = 1,
    client_set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of librdkafka: TLS, passwords.",
            rich_help_panel=_KAFKA,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write Nexmark's events to Kafka at the rate of a workload, each once.

    Started again with the same options and --start-time, it goes on where it was.
    """
    from penstock.lab.kafka.producer import NexmarkProducer
    from penstock.workloads.nexmark import NexmarkEvents, NexmarkStream
    from penstock.workloads.patterns import create, duration

    pattern = create(workload, pairs("--workload-set", workload_set), seed=seed)
    events = NexmarkStream(
        events=NexmarkEvents(seed=seed),
        pattern=pattern,
        start=float(int(time.time())) if start is None else start,
        seconds=seconds_of(minutes, duration(pattern)),
        tables=cast("tuple[Table, ...]", tuple(name.strip() for name in tables.split(","))),
        partitions=partitions,
    )
    producer = NexmarkProducer(
        events,
        bootstrap_servers=bootstrap_servers,
        prefix=prefix,
        processes=processes,
        extra=pairs("--client-set", client_set),
    )
    watch = _Watch()
    interrupted = False
    try:
        with watch, producer:
            output.say(f"writing to {', '.join(producer.topics.values())}")
            producer.wait(watch=watch.see)
    except KeyboardInterrupt:
        interrupted = True
    document = watch.document() | {
        "topics": list(producer.topics.values()),
        "partitions": partitions,
        "start": events.start,
        "interrupted": interrupted,
    }
    if as_json:
        output.print_json(document)
    else:
        _show(document)
    if interrupted:
        output.say(f"to go on: the same command with --start-time {events.start:.15g}")
        raise KeyboardInterrupt


class _Watch:
    """Shows how far a producer is, and remembers its worst moment."""

    def __init__(self) -> None:
        self._bar = output.progress()
        self._task = self._bar.add_task("connecting", total=1.0)
        self._begun = self._said = time.monotonic()
        self._first: Progress | None = None
        self._last: Progress | None = None
        self._worst = 0.0

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def see(self, now: Progress) -> None:
        """Take in how far it is now, and show it."""
        if self._first is None:
            self._first, self._begun = now, time.monotonic()
        self._last = now
        self._worst = max(self._worst, now.behind_seconds)
        line = f"{now.written:,} events, {now.behind_seconds:.1f} s behind"
        self._bar.update(
            self._task, description=line, total=max(now.total, 1), completed=now.written
        )
        if self._bar.disable and time.monotonic() - self._said >= SAY_EVERY:
            self._said = time.monotonic()
            output.say(line)

    def document(self) -> dict[str, Any]:
        """What was written, how fast, and how late at worst."""
        seconds = 0.0 if self._first is None else time.monotonic() - self._begun
        written = 0 if self._last is None else self._last.written
        before = 0 if self._first is None else self._first.written
        return {
            "written": written,
            "before": before,
            "total": None if self._last is None else self._last.total,
            "seconds": seconds,
            "rate": (written - before) / seconds if seconds > 0 else None,
            "worst_behind_seconds": None if self._last is None else self._worst,
        }


def _show(document: dict[str, Any]) -> None:
    from penstock.report import units
    from penstock.report.table import plain_table

    table = plain_table()
    for column in ("topics", "partitions", "events", "of", "events/s", "worst behind"):
        table.add_column(column, justify="left" if column == "topics" else "right")
    total = document["total"]
    table.add_row(
        "\n".join(document["topics"]),
        str(document["partitions"]),
        f"{document['written']:,}",
        "–" if total is None else f"{total:,}",
        units.count(document["rate"]),
        units.seconds(document["worst_behind_seconds"]),
    )
    output.console().print(table)
