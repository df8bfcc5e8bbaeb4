"""``penstock demo``: a real Spark query that scales while it runs."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, Out, Parameters, pairs


def demo(
    policy: Annotated[str, typer.Option(help="Policy that acts.")] = "ds2",
    set_: Parameters = None,
    seconds: Annotated[float, typer.Option(help="Length of the load, one cosine period.")] = 150.0,
    low: Annotated[
        float | None, typer.Option(help="Lowest load, records/s.", show_default="1500")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="Highest load, records/s.", show_default="30000")
    ] = None,
    slots: Annotated[int, typer.Option("--max", help="Most executors.")] = 4,
    cpu_share: Annotated[float, typer.Option(help="Share of a core per executor.")] = 0.35,
    period: Annotated[float, typer.Option(help="Seconds between decisions.")] = 3.0,
    seed: Annotated[int, typer.Option(help="Seed of the events.")] = 0,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run Nexmark query 5 on a local Spark cluster and let a policy scale it.

    Then compare its result with a batch run over the same events: no row missing, none too
    many, or it fails.
    """
    from penstock.cli.live import LiveView
    from penstock.core.errors import EngineError
    from penstock.lab.demo import HIGH, LOW, DemoSpec, run_demo
    from penstock.policies import create, spark_dra
    from penstock.report.build import finished_document
    from penstock.report.runs import check_writable

    # Driver time between the stages of a batch is not busy time; DS2's head-room has to cover it.
    parameters = pairs("--set", set_) or ({"over_provisioning": "1.5"} if policy == "ds2" else {})
    create(policy, parameters)  # fail before anything is started
    if policy == spark_dra.NAME:
        raise spark_dra.refused("in the demo")
    spec = DemoSpec(
        policy=policy,
        parameters=parameters,
        seconds=seconds,
        low=LOW if low is None else low,
        high=HIGH if high is None else high,
        fit=low is None and high is None,
        slots=slots,
        cpu_share=cpu_share,
        period=period,
        seed=seed,
        out=out,
    )
    spec.pattern, spec.guards  # noqa: B018 (checks them)
    check_writable(out)
    output.quiet_spark()
    begun = time.monotonic()
    with LiveView(f"penstock demo · {policy} acts", slots) as view:
        result = run_demo(spec, say=view.say, watch=view.watch)
    done, comparison = result.finished, result.comparison
    if as_json:
        output.print_json({**finished_document(done), **dataclasses.asdict(comparison)})
    else:
        output.show_finished(done)
        summary = done.summary
        out_console = output.console()
        out_console.print()
        out_console.print(
            f"{time.monotonic() - begun:.0f} s in all. The query ran on {summary.slots_min} to "
            f"{summary.slots_max} executors, {summary.slots_mean:.1f} on average, and was never "
            f"stopped."
        )
        out_console.print(f"Compared with a batch run: {comparison}.")
    if not comparison.exact:
        raise EngineError(f"the streamed result is not that of the batch run: {comparison}")
