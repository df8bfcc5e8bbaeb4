"""MEAD and its kin: the least CPU that keeps a response time under bursts. [russo21]

Read in this order:

parameters: what all variants have, and the levels of CPU
cpu_threshold: the simple baseline, one level up or down
demands: what a record takes at each operator
response: response times of a path of queues, by three models
decision: one decision, from what is known by a search over levels to a proposal
batched: the same for a query in micro-batches
mead: the policy with its models, mead, mead-mg1 and mead-kingman
mead_plus: an outlook by replays instead of a fitted process

The queues themselves are in ``penstock.queueing``.
"""
