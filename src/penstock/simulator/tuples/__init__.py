"""Tuples through queues, one by one: for response times under bursts."""

from penstock.simulator.tuples.application import Application, log_analysis
from penstock.simulator.tuples.engine import TupleEngine

__all__ = ["Application", "TupleEngine", "log_analysis"]
