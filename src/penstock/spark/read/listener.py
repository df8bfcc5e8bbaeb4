"""Spark's events about streaming queries, heard at little cost.

PySpark's own listener copies every field of a progress event over the gateway to the JVM, one
by one; we need only its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """Who is told: ``progress`` with a document, ``idle`` and ``ended`` with a run id."""

    progress: Callable[[Mapping[str, Any]], None]
    idle: Callable[[str, str], None]
    ended: Callable[[str], None]


class Listener:
    """Passes events on to ``Ears``; give it to ``spark.streams.addListener``."""

    def __init__(self, ears: Ears) -> None:
        self.ears = ears
        self._java: Any = None

    @property
    def _jlistener(self) -> Any:
        """What ``addListener`` and ``removeListener`` ask for: the JVM's side of it."""
        if self._java is None:
            from pyspark import SparkContext

            jvm: Any = SparkContext._jvm
            wrapper = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
            self._java = wrapper(_Callbacks(self.ears))
        return self._java


class _Callbacks:
    """The interface that the JVM calls, on a thread of py4j."""

    def __init__(self, ears: Ears) -> None:
        self._ears = ears

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's names)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._ears.progress(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        self._ears.idle(event.runId().toString(), event.timestamp())

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._ears.ended(event.runId().toString())

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
