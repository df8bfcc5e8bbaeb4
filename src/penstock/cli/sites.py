"""``penstock lab sites``: networks with delays between them, on this machine."""

from __future__ import annotations

import select
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.cli import output
from penstock.cli.options import AsJson
from penstock.core.errors import InputError, PenstockError

if TYPE_CHECKING:
    from penstock.lab.sites.link_load import LinkLoad
    from penstock.lab.sites.network import Sites
    from penstock.lab.sites.spec import Emulation, Site, SitesSpec

LOOK = 2.0  # seconds between looks whether the sites are still connected
MOST_COLUMNS = 6  # sites whose round trips fit beside each other


def sites(
    file: Annotated[Path | None, typer.Argument(help="Sites from a file (TOML).")] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DELAY[,KEY=VALUE…]",
            help="A site, such as oslo=25ms,jitter=5ms,bandwidth=100mbit; repeatable.",
        ),
    ] = None,
    home: Annotated[
        str | None, typer.Option(help="Where this machine itself is.", show_default="the first")
    ] = None,
    jitter: Annotated[
        str | None, typer.Option(help="For every site with a delay, such as 10ms.")
    ] = None,
    emulation: Annotated[
        str | None, typer.Option(help="auto, netem or tun.", show_default="auto")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Measure once and leave.")] = False,
    load: Annotated[
        float | None, typer.Option(help="Also load each pair for so many seconds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make sites with delays between them, measure them, stay until Ctrl-C.

    A site is a network of its own on this machine. DELAY is one way, on the
    way into the site: the round trip between two sites is the sum of theirs.
    While it stays, a line such as `oslo=80ms` changes a site. Needs root.
    """
    from penstock.lab.sites.link_load import loads
    from penstock.lab.sites.network import Sites

    spec = _spec(file, site or [], home, jitter, emulation)
    if load is not None and not 0 < load <= 600:
        raise InputError(f"--load {load:g} s must be above 0 and at most 600")
    with Sites(spec, say=output.say) as running:
        carried = [] if load is None else loads(running, load)
        if as_json:
            output.print_json(document(running, carried))
        else:
            _show(running, carried)
        if not once:
            _explain(running, file)
            _stay(running)


def _spec(
    file: Path | None,
    texts: list[str],
    home: str | None,
    jitter: str | None,
    emulation: str | None,
) -> SitesSpec:
    from penstock.lab.sites.spec import Site, SitesSpec
    from penstock.spark.settings.toml_file import seconds

    if (file is None) == (not texts):
        raise InputError("give either a file of sites or several --site NAME=DELAY")
    if file is not None:
        spec = SitesSpec.read(file)
    else:
        spec = SitesSpec(sites=tuple(Site.parse(text) for text in texts))
    more: dict[str, Any] = {}
    if jitter is not None:
        wide = seconds(jitter)
        if wide is None:
            raise InputError(f"--jitter {jitter!r} must look like 10ms")
        more["sites"] = tuple(_jittery(site, wide) for site in spec.sites)
    if home is not None:
        more["home"] = home
    if emulation is not None:
        more["emulation"] = cast("Emulation", emulation)
    return replace(spec, **more)


def _jittery(site: Site, jitter: float) -> Site:
    """The same sites with jitter, where there is a delay to change."""
    return replace(site, jitter=jitter) if site.delay else site


def document(running: Sites, carried: list[LinkLoad]) -> dict[str, Any]:
    """The sites and what was measured, for ``--json``; seconds and bytes per second."""
    spec = running.spec
    names = [site.name for site in spec.sites]
    return {
        "emulation": running.emulation,
        "realtime": running.realtime,
        "home": spec.home,
        "sites": [
            {
                "name": site.name,
                "address": running.addresses[site.name],
                "enter": running.entrance(site.name),
                "delay_one_way_seconds": site.delay,
                "jitter_seconds": site.jitter,
                "bandwidth_bytes_per_second": site.bandwidth,
                "slots": site.slots,
                "cpu": site.cpu,
                "price": site.price,
            }
            for site in spec.sites
        ],
        "expected_rtt_seconds": [[spec.rtt(a, b) for b in names] for a in names],
        "rtt_seconds": running.rtt.rtt.tolist(),
        "loads": [
            {
                "from": load.one,
                "to": load.other,
                "rtt_idle_seconds": load.idle,
                "rtt_loaded_seconds": load.loaded,
                "throughput_bytes_per_second": load.throughput,
            }
            for load in carried
        ],
    }


def _show(running: Sites, carried: list[LinkLoad]) -> None:
    from penstock.report.table import plain_table

    spec, rtt = running.spec, running.rtt
    names = [site.name for site in spec.sites]
    wide = len(names) > MOST_COLUMNS
    table = plain_table()
    table.add_column("site")
    table.add_column("address")
    table.add_column("delay in", justify="right")
    for name in ("to home", "to the farthest") if wide else names:
        table.add_column(name, justify="right")
    for site in spec.sites:
        home = " (home)" if site.name == spec.home else ""
        delay = f"{site.delay * 1e3:g}" + (f" ± {site.jitter * 1e3:g}" if site.jitter else "")
        if wide:
            far = max(rtt.between(site.name, other) for other in names)
            times = [rtt.between(site.name, spec.home), far]
        else:
            times = [rtt.between(site.name, other) for other in names]
        cells = [f"{seconds * 1e3:.1f}" if seconds else "–" for seconds in times]
        table.add_row(site.name + home, running.addresses[site.name], delay, *cells)
    out = output.console()
    out.print("Measured round trips and one-way delays, in ms")
    out.print()
    out.print(table)
    if carried:
        out.print()
        _show_loads(carried)


def _show_loads(carried: list[LinkLoad]) -> None:
    from penstock.report.table import plain_table

    table = plain_table()
    for column in ("from", "to", "idle, ms", "under load, ms", "MB/s"):
        table.add_column(column, justify="left" if column in ("from", "to") else "right")
    for load in carried:
        table.add_row(
            load.one,
            load.other,
            f"{load.idle * 1e3:.2f}",
            f"{load.loaded * 1e3:.2f}",
            f"{load.throughput / 1e6:.0f}",
        )
    output.console().print(table)


def _explain(running: Sites, file: Path | None) -> None:
    """How to use them, on standard error."""
    output.say("Any program can run at a site, from another terminal, as root:")
    for site in running.spec.sites:
        entrance = running.entrance(site.name)
        way = "COMMAND" if entrance is None else f"nsenter --net={entrance} COMMAND"
        output.say(f"  {site.name:12} {way}")
    output.say(f"A Spark job on such sites: penstock run --sites {file or 'FILE'} job.py")
    output.say("NAME=DELAY and Enter changes a site; Ctrl-C ends it.")


def _stay(running: Sites) -> None:
    """Obey lines of standard input until interrupted; without one, only stay."""
    watched = [sys.stdin]
    while True:
        ready, _, _ = select.select(watched, (), (), LOOK)
        if not ready:
            running.state()  # fails if nothing connects the sites any more
            continue
        line = sys.stdin.readline()
        if not line:
            watched = []
        elif line.strip():
            try:
                name = line.partition(",")[0].partition("=")[0].strip()
                running.change(running.spec[name].changed(line.strip()))
            except PenstockError as problem:
                output.say(f"error: {problem}")
            else:
                _show(running, [])
