"""Gesscale and its kin: throughput over slots and network delay, and where slots go. [arkian21]

Read in this order:

units: what is scaled as one, and whether it is at its limit
moves: what becomes of a unit, on which nodes, and the proposal of all units together
thresholds: the two simple baselines, thr-nlunaware and thr-nlaware
calibration: what a throughput model was fitted with, and how well it foretold
gesscale: one slot more at the limit, fewer where the model says so; mdl-nlunaware
layouts, observed, gesscale_plus: the smallest set of nodes that is enough by a learnt model

The models themselves are in ``penstock.capacity``, distances in ``penstock.network``.
"""
