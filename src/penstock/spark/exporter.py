"""Figures for Prometheus: the last decision as gauges, what was done as counters.

Everything is set when a decision is made; a scrape only reads. Series of queries and executors
that are gone are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from penstock import __version__
from penstock.core.errors import InputError, MissingError
from penstock.core.loop import Decision
from penstock.core.model import QuerySeen, Rescale, Slot
from penstock.spark.settings.settings import Settings

ErrorKind = Literal["observe", "act", "policy", "journal", "record", "metrics", "other"]
MOST_SERIES = 500  # queries or executors that are shown; Prometheus is not for more
LONGEST_LABEL = 100
PHASES = ("registered", "first_task", "steady")
BUCKETS = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600)

_OF_QUERY: Mapping[str, tuple[str, str]] = {
    "penstock_backlog_records": ("lag", "Records that wait at the sources."),
    "penstock_backlog_seconds": ("lag_seconds", "How long the oldest waiting record has waited."),
    "penstock_offered_records_per_second": ("offered_rate", "What the sources offer."),
    "penstock_processed_records_per_second": ("processed_rate", "What is processed."),
    "penstock_batch_duration_seconds": ("batch_duration", "Mean duration of a micro-batch."),
    "penstock_state_rows": ("state_rows", "Rows of state after the last batch."),
    "penstock_state_bytes": ("state_bytes", "Memory of state after the last batch."),
    "penstock_busy_ratio": ("busy", "Share of the executors' time that was spent in tasks."),
    "penstock_backpressured_ratio": ("backpressured", "Share of time lost while records wait."),
}
_OF_POOL = {
    "penstock_executors": "Executors that are there.",
    "penstock_target_executors": "Executors after the last decision.",
    "penstock_raw_target_executors": "What the policy asked for, unrounded and before guards.",
    "penstock_cpu_share_ratio": "Share of its nominal CPU that an executor may use.",
}
_OF_EXECUTOR = {
    "penstock_executor_cpu_ratio": "Share of its CPU that an executor used.",
    "penstock_executor_load_ratio": "Share of the time that an executor spent in tasks.",
}
_PLAIN = {
    "penstock_min_executors": "Fewest executors allowed.",
    "penstock_max_executors": "Most executors allowed.",
    "penstock_frozen": "1 while the kill switch is on.",
    "penstock_last_decision_timestamp_seconds": "When the last decision was made.",
    "penstock_observation_age_seconds": "Age of the newest batch at the last decision.",
}
_COUNTERS = {
    "penstock_decisions_total": ("Decisions made.", ("policy", "action", "reason")),
    "penstock_actions_total": ("Changes of size that were asked for.", ("pool", "direction")),
    "penstock_errors_total": ("What went wrong.", ("kind",)),
}
SOURCE, PARTITION = "penstock_source_backlog_records", "penstock_partition_backlog_records"
INFO, LATENCY = "penstock_info", "penstock_latency_seconds"
DURATION = "penstock_action_duration_seconds"
NAMES = (
    INFO,
    *_PLAIN,
    *_OF_QUERY,
    SOURCE,
    PARTITION,
    LATENCY,
    *_OF_POOL,
    *_OF_EXECUTOR,
    *_COUNTERS,
    DURATION,
)
QUANTILES = {"0.5": "latency_p50", "0.95": "latency_p95", "0.99": "latency_p99"}


class PortError(InputError):
    """The port for Prometheus cannot be had."""


class Exporter:
    """The metrics of one Autoscaler, in a registry of their own, and the server for them."""

    def __init__(self, settings: Settings) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ImportError:
            raise MissingError(
                "metrics_port needs prometheus-client: pip install 'penstock[spark]'"
            ) from None
        self.registry = CollectorRegistry()
        self.url: str | None = None
        self._server: Any = None
        self._policy = settings.policy

        def gauge(name: str, text: str, *labels: str) -> Any:
            return Gauge(name, text, labels, registry=self.registry)

        self._gauges = {n: gauge(n, text) for n, text in _PLAIN.items()}
        self._gauges |= {n: gauge(n, text, "pool") for n, text in _OF_POOL.items()}
        self._gauges |= {n: gauge(n, text, "executor") for n, text in _OF_EXECUTOR.items()}
        self._gauges |= {n: gauge(n, text, "query") for n, (_, text) in _OF_QUERY.items()}
        self._gauges[LATENCY] = gauge(
            LATENCY, "From the release of a record to its commit.", "query", "quantile"
        )
        self._gauges[SOURCE] = gauge(SOURCE, "Records that wait at a source.", "query", "source")
        self._gauges[PARTITION] = gauge(
            PARTITION, "Records that wait in a partition.", "query", "source", "partition"
        )
        info = gauge(INFO, "What runs here.", "version", "policy", "mode")
        info.labels(__version__, settings.policy, settings.mode).set(1)
        self._decisions, self._actions, self._errors = (
            Counter(name, text, labels, registry=self.registry)
            for name, (text, labels) in _COUNTERS.items()
        )
        for kind in get_args(ErrorKind):
            self._errors.labels(kind)
        text = "From asking for a size until its effect."
        self._durations = Histogram(
            DURATION, text, ("phase",), buckets=BUCKETS, registry=self.registry
        )
        self._gauges["penstock_min_executors"].set(settings.guards.minimum)
        self._gauges["penstock_max_executors"].set(settings.guards.maximum)
        self._shown: dict[str, set[tuple[str, ...]]] = {}
        self._timed: dict[float, set[str]] = {}

    def serve(self, host: str, port: int) -> str:
        """Listen; returns the address. Port 0 takes any that is free."""
        from prometheus_client import start_http_server

        try:
            self._server, self._thread = start_http_server(port, host, self.registry)
        except (OSError, OverflowError) as error:
            raise PortError(
                f"metrics_port {port} on {host} cannot be had: {error}. "
                "Choose another, or 0 for any free one"
            ) from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"
        return self.url

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def count_error(self, kind: ErrorKind) -> None:
        """Count something that went wrong."""
        self._errors.labels(kind).inc()

    def show_frozen(self, frozen: bool) -> None:
        """Show whether the kill switch is on."""
        self._gauges["penstock_frozen"].set(int(frozen))

    def show(self, decision: Decision) -> None:
        """Show one decision and what it saw."""
        seen = decision.seen
        self._gauges["penstock_last_decision_timestamp_seconds"].set(seen.time)
        self._gauges["penstock_observation_age_seconds"].set(seen.age)
        self._show_queries(dict(list(seen.queries.items())[:MOST_SERIES]))
        self._show_slots([slot for slots in seen.pools.values() for slot in slots][:MOST_SERIES])
        for name, value in (
            ("penstock_executors", {p: float(len(slots)) for p, slots in seen.pools.items()}),
            ("penstock_target_executors", {p: c.slots for p, c in decision.targets.items()}),
            ("penstock_raw_target_executors", {p: c.raw for p, c in decision.targets.items()}),
            (
                "penstock_cpu_share_ratio",
                {p: slots[0].cpu_share for p, slots in seen.pools.items() if slots},
            ),
        ):
            self._set(name, {(pool,): figure for pool, figure in value.items()})
        action, reason = action_of(decision), reason_of(decision)
        self._decisions.labels(self._policy, action, reason).inc()
        if decision.applied:
            for pool, change in decision.changes.items():
                direction = "up" if change.slots > change.before else "down"
                self._actions.labels(pool, direction).inc()
        self._time(seen.rescales)

    def _show_queries(self, queries: Mapping[str, QuerySeen]) -> None:
        for name, (field, _) in _OF_QUERY.items():
            self._set(name, {(_label(q),): getattr(seen, field) for q, seen in queries.items()})
        latencies: dict[tuple[str, ...], float | None] = {
            (_label(q), quantile): getattr(seen, field)
            for q, seen in queries.items()
            for quantile, field in QUANTILES.items()
        }
        self._set(LATENCY, latencies)
        self._show_sources(queries)

    def _show_sources(self, queries: Mapping[str, QuerySeen]) -> None:
        sources = [
            ((_label(q), _label(s.name)), s) for q, seen in queries.items() for s in seen.sources
        ]
        self._set(SOURCE, {labels: s.lag for labels, s in sources[:MOST_SERIES]})
        partitions = [
            ((*labels, _label(name)), lag)
            for labels, s in sources
            for name, lag in s.partitions.items()
        ]
        self._set(PARTITION, dict(partitions[:MOST_SERIES]))

    def _show_slots(self, slots: Iterable[Slot]) -> None:
        slots = list(slots)
        self._set("penstock_executor_cpu_ratio", {(_label(s.id),): s.cpu for s in slots})
        self._set("penstock_executor_load_ratio", {(_label(s.id),): s.load for s in slots})

    def _set(self, name: str, values: Mapping[tuple[str, ...], float | None]) -> None:
        """Set a gauge; what was not measured, or is gone, has no series."""
        gauge = self._gauges[name]
        measured = {labels: v for labels, v in values.items() if v is not None}
        for labels in self._shown.get(name, set()) - measured.keys():
            gauge.remove(*labels)
        for labels, value in measured.items():
            gauge.labels(*labels).set(value)
        self._shown[name] = set(measured)

    def _time(self, rescales: Iterable[Rescale]) -> None:
        """Observe each phase of each action once."""
        known = {rescale.time: rescale for rescale in rescales}
        self._timed = {time: self._timed.get(time, set()) for time in known}
        for time, rescale in known.items():
            for phase in PHASES:
                seconds = getattr(rescale, phase)
                if seconds is not None and phase not in self._timed[time]:
                    self._durations.labels(phase).observe(seconds)
                    self._timed[time].add(phase)


def action_of(decision: Decision) -> Literal["up", "down", "stay"]:
    """What the decision does to the number of executors."""
    grown = sum(c.slots - c.before for c in decision.changes.values())
    return "up" if grown > 0 else "down" if grown < 0 else "stay"


def reason_of(decision: Decision) -> str:
    """What decided, in one word: the policy, a guard's name, ``frozen`` or ``unusable``."""
    if decision.outcome in ("frozen", "unusable"):
        return decision.outcome
    return decision.effects[-1].guard if decision.effects else "policy"


def _label(text: str) -> str:
    return text[:LONGEST_LABEL]
