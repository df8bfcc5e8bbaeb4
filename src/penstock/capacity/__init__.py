"""Throughput as a function of the number of slots, learnt from measurements."""
