"""What a hop's process is told: a file beside its checkpoint, the same at every start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.lab.queries.nexmark_queries import QUERIES, Settings
from penstock.lab.queries.split.hops import Application, Hop, Topics, hops_of

STOP = "stop"  # a file that ends the process between two batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One hop of a query.

    ``folder`` of its checkpoint and, for the sink, its ``result`` · ``conf`` of its session ·
    ``listen`` where it answers the controller · ``trigger``, ``window`` and ``span`` seconds ·
    ``slots`` executors that it may have · ``agents`` whether agents decide on them.
    """

    folder: str
    query: str
    hop: str
    bootstrap_servers: str
    prefix: str
    max_rows: int | None
    minute: float
    watermark: float
    span: float
    trigger: float
    window: float
    slots: int
    listen: str
    conf: Mapping[str, str]
    agents: bool = False

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    @property
    def stop(self) -> Path:
        """The file that ends the process."""
        return self.path / STOP

    def save(self) -> Path:
        """Write it down; returns the file."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "order.json"
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return file

    @classmethod
    def load(cls, file: Path) -> Order:
        """The order in a file."""
        return cls(**json.loads(file.read_text(encoding="utf-8")))

    @property
    def application(self) -> Application:
        """What it does with Spark."""
        query = QUERIES[self.query]
        hop: Hop = next(hop for hop in hops_of(query) if hop.name == self.hop)
        return Application(
            query=query,
            hop=hop,
            topics=Topics(
                bootstrap_servers=self.bootstrap_servers,
                prefix=self.prefix,
                max_rows=self.max_rows,
            ),
            settings=Settings(minute=self.minute, watermark=self.watermark),
            span=self.span,
        )
