"""A Spark standalone cluster whose workers are at sites: a slot at a site is a worker there.

::

    spec = SitesSpec(sites=(Site(name="near", slots=2), Site(name="far", delay=0.025, slots=2)))
    with SiteCluster(spec, start_on=("near", "far")) as cluster:
        spark = cluster.session("demo")

The master and the driver are at home. A standalone master cannot be told where to start an
executor, so every worker has one core: starting a worker at a site is how a slot is added there,
and a worker whose executor has left is ended. Executors get the CPU quota of their site.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.core.errors import EngineError, InputError
from penstock.core.latency import LatencyMap
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.clusters.standalone.daemons import Post
from penstock.lab.host.java import find_java, find_spark
from penstock.lab.sites.engine import SiteEngine
from penstock.lab.sites.network import Sites
from penstock.lab.sites.spec import SitesSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SiteCluster:
    """Running sites with a Spark cluster on them; a context manager, or start and stop.

    ``start_on`` the sites of the first slots, once per slot; by default one at home ·
    ``executor_memory`` heap of each executor · ``warm_up`` CPU-seconds that an executor may use
    at full speed first. ``sites`` are the networks, ``spark`` the cluster on them: executors,
    their CPU and shares are asked of it.
    """

    def __init__(
        self,
        spec: SitesSpec,
        *,
        start_on: Sequence[str] = (),
        executor_memory: str = "512m",
        warm_up: float = ClusterSpec().warm_up,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        first = Counter(start_on or spec.nearest(1))
        for name, slots in first.items():
            if slots > spec[name].slots:
                raise InputError(
                    f"start_on names {name} {slots} times; it has room for {spec[name].slots} slots"
                )
        self._first = list(first.elements())
        self._offer = ClusterSpec(
            slots=spec.slots,
            executor_memory=executor_memory,
            warm_up=warm_up,
        )
        self._say = say
        self._numbers = count(1)
        self._site_of: dict[str, str] = {}  # worker → site
        self._spark: LocalCluster | None = None
        self._open = ExitStack()
        self.sites = Sites(spec, say=say)

    @property
    def spark(self) -> LocalCluster:
        """The Spark cluster."""
        if self._spark is None:
            raise EngineError("the cluster is not running: call start(), or use it in a with block")
        return self._spark

    @property
    def spec(self) -> SitesSpec:
        """The sites as they are now."""
        return self.sites.spec

    @property
    def cpu(self) -> LocalCluster:
        """What measures and limits the CPU of its executors: the Spark cluster."""
        return self.spark

    @property
    def home(self) -> str:
        """The site of the master and the driver."""
        return self.spec.home

    @property
    def rtt(self) -> LatencyMap:
        """The measured round trips between sites."""
        return self.sites.rtt

    @property
    def prices(self) -> dict[str, float]:
        """The price of a slot at each site."""
        return {site.name: site.price for site in self.spec.sites}

    def worker_of(self, executor_id: str, app: str | None = None) -> str | None:
        """The name of the worker that started an executor; ``None`` if it is gone."""
        return self.spark.worker_of(executor_id, app)

    def site_at(self, host: str) -> str:
        """The site that has an address; the address itself if none has."""
        return next((name for name, at in self.sites.addresses.items() if at == host), host)

    def workers(self) -> dict[str, str]:
        """The site of every worker that runs or starts."""
        return {name: self._site_of[name] for name in self.spark.posts}

    def room(self) -> dict[str, int]:
        """How many more slots each site has room for; a slot that is leaving still counts."""
        used = Counter(self.workers().values())
        return {site.name: max(0, site.slots - used[site.name]) for site in self.spec.sites}

    def add_slot(self, site: str) -> str:
        """Start a worker at a site; returns its name at once.

        Its executor comes when an application wants one more than it has.
        """
        post = self._post(site)
        self.spark.add_worker(post)
        return post.name

    def remove_worker(self, name: str) -> None:
        """End a worker; decommission its executor first, or its tasks fail and are repeated."""
        self.spark.remove_worker(name)

    def engine(self, spark: Any, *, window: float = 15.0, arrivals: bool = False) -> SiteEngine:
        """The engine of a session on this cluster, which chooses sites."""
        return SiteEngine(spark, self, window=window, arrivals=arrivals)

    def conf(self) -> dict[str, str]:
        """Spark configuration for an application that begins on all slots that are there."""
        return self.spark.conf(start_with=len(self.spark.posts))

    def environment(self) -> dict[str, str]:
        """Environment variables for a process that is to create a session from :meth:`conf`."""
        return self.spark.environment()

    @property
    def folder(self) -> Path:
        """The private folder of the Spark cluster."""
        return self.spark.folder

    def session(self, name: str, *, conf: Mapping[str, str] | None = None) -> SparkSession:
        """A new Spark session, with an executor on every slot that is there."""
        return self.spark.session(name, start_with=len(self.spark.posts), conf=conf)

    # ---- start and stop --------------------------------------------------------------------

    def start(self) -> Self:
        """Make the sites, then the cluster on them; a failure leaves nothing."""
        find_java(), find_spark()  # what is missing is said before anything is made
        with ExitStack() as opening:
            opening.enter_context(self.sites)
            spark = LocalCluster(
                self._offer,
                host=self.sites.addresses[self.spec.home],
                posts=[self._post(site) for site in self._first],
                say=self._say,
            )
            opening.enter_context(spark)
            self._spark = spark
            self._open = opening.pop_all()
        return self

    def stop(self) -> None:
        """End the cluster, then remove the sites; idempotent."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *problem: Any) -> None:
        self._open.__exit__(*problem)
        self._spark = None

    def _post(self, name: str) -> Post:
        site = self.spec[name]
        post = Post(
            name=f"{name}.{next(self._numbers)}",
            slots=1,
            memory=self._offer.worker_memory(1),
            cpu_share=site.cpu,
            host=self.sites.addresses[name],
            network=self.sites.namespace(name),
        )
        self._site_of[post.name] = name
        return post
