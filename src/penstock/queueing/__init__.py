"""Queues whose arrivals come in bursts: Markovian arrival processes and what they do to a server.

Nothing in here knows of Spark, of a simulator or of a clock. Times are in seconds.
"""

from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.phase_type import PhaseType

__all__ = ["MarkovianArrivalProcess", "PhaseType"]
