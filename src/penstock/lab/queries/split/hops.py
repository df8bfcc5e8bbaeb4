"""Nexmark's queries as applications: one hop per operator, in the graph of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.errors import unknown
from penstock.core.pipeline import Operator, Pipeline
from penstock.lab.queries.nexmark_queries import NEAR_STATES, NexmarkQuery, Settings
from penstock.lab.queries.split import rows
from penstock.lab.sources import kafka
from penstock.workloads.nexmark import SCHEMAS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SINK = "sink"
_SOURCES: Mapping[Table, str] = {"bid": "source", "person": "persons", "auction": "auctions"}
_STEPS = {"q1": "map", "q2": "filter", "q3": "join", "q5": "window", "q8": "join", "q11": "window"}
_FILTER = "filter"  # of query 3: persons of three states, before they are joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One operator of a query as an application of its own.

    ``reads`` the hops above it, in the order of its sources; none for one that reads a ``table``
    of the generator · ``depth`` hops above it on the longest way.
    """

    name: str
    reads: tuple[str, ...] = ()
    table: Table | None = None
    depth: int = 0


def hops_of(query: NexmarkQuery) -> tuple[Hop, ...]:
    """The hops of a query, each after those it reads from.

    >>> from penstock.lab.queries.nexmark import QUERIES
    >>> [hop.name for hop in hops_of(QUERIES["q3"])]
    ['persons', 'auctions', 'filter', 'join', 'sink']
    """
    if query.name not in _STEPS:
        raise unknown("query", query.name, _STEPS)
    sources = {table: Hop(name=_SOURCES[table], table=table) for table in query.tables}
    hops = list(sources.values())
    above = [hop.name for hop in hops]
    if query.name == "q3":
        hops.append(Hop(name=_FILTER, reads=(above[0],), depth=1))
        above[0] = _FILTER
    depth = 1 + max(hop.depth for hop in hops)
    step = _STEPS[query.name]
    hops.append(Hop(name=step, reads=tuple(above), depth=depth))
    hops.append(Hop(name=SINK, reads=(step,), depth=depth + 1))
    return tuple(hops)


def pipeline_of(query: NexmarkQuery, *, partitions: int | None = None) -> Pipeline:
    """The query as a pipeline in which every operator has a pool of its own."""
    hops = hops_of(query)
    return Pipeline(
        operators={
            hop.name: Operator(pool=hop.name, stateful=hop.table is None, partitions=partitions)
            for hop in hops
        },
        edges=tuple((above, hop.name) for hop in hops for above in hop.reads),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Where the hops of a run read and write.

    ``prefix`` of the topics · ``max_rows`` that a batch of any hop takes of a topic.
    """

    bootstrap_servers: str
    prefix: str
    max_rows: int | None = None

    def of(self, name: str) -> str:
        """The topic of a table, or the one that a hop writes to."""
        return f"{self.prefix}-{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What one hop of a query does with Spark.

    ``span`` seconds of event time that a batch of any hop covers at most: what comes late from
    above is never later than the spans of all hops above together.
    """

    query: NexmarkQuery
    hop: Hop
    topics: Topics
    settings: Settings
    span: float

    @property
    def watermark(self) -> float:
        """Seconds to wait for what comes late."""
        return self.settings.watermark + self.span * self.hop.depth

    def result(self, spark: SparkSession) -> DataFrame:
        """The rows that it gives out, with their ids; those of the sink without."""
        hop, query = self.hop, self.query
        if hop.table is not None:
            return self._table(spark, hop.table)
        if hop.name == SINK:
            schema = self._columns(spark, hop.reads[0])
            return self._above(spark, hop.reads[0], schema, query.time).drop(rows.ID)
        if hop.name == _FILTER and query.name == "q3":
            persons = self._above(spark, hop.reads[0], self._columns(spark, hop.reads[0]))
            return persons.where(persons["state"].isin(*NEAR_STATES))
        return self._step(spark)

    def _step(self, spark: SparkSession) -> DataFrame:
        """The query itself, over the rows of the hops above."""
        query = self.query
        frames = {
            table: self._above(spark, name, self._columns(spark, name))
            for table, name in zip(query.tables, self.hop.reads, strict=True)
        }
        if not query.stateful:  # one row for each at most: it keeps its id
            return query.transform(frames, self.settings).select(*query.columns, rows.ID)
        plain = {table: frame.drop(rows.ID) for table, frame in frames.items()}
        result = query.transform(plain, self.settings).select(*query.columns)
        return result.withColumn(rows.ID, rows.contents(result))

    def _table(self, spark: SparkSession, table: Table) -> DataFrame:
        """The generator's rows; nobody writes them twice, so their place is their id."""
        records = kafka.records(
            spark,
            self.topics.of(table),
            bootstrap_servers=self.topics.bootstrap_servers,
            max_rows=self.topics.max_rows,
        )
        columns = self.query.tables[table]
        return kafka.parsed(records, table, columns, rows.place().alias(rows.ID))

    def _above(
        self, spark: SparkSession, name: str, schema: StructType, time: str = "date_time"
    ) -> DataFrame:
        frame = rows.read(
            spark,
            self.topics.of(name),
            schema,
            bootstrap_servers=self.topics.bootstrap_servers,
            max_rows=self.topics.max_rows,
        )
        return rows.without_repeats(frame, time, self.watermark)

    def _columns(self, spark: SparkSession, name: str) -> StructType:
        """What the topic of a hop holds, but for the ids."""
        query = self.query
        ddl = {t: SCHEMAS[t].select(columns).ddl for t, columns in query.tables.items()}
        for table, source in _SOURCES.items():
            if name == source or (table == "person" and name == _FILTER and query.name == "q3"):
                return _empty(spark, ddl[table]).schema
        frames = {table: _empty(spark, text) for table, text in ddl.items()}
        return query.build(frames, self.settings).schema


def _empty(spark: SparkSession, ddl: str) -> DataFrame:
    return spark.createDataFrame([], ddl)
