"""The decentralized protocol beside the executors of a split pipeline. [belkhiria19]

load: what an executor has to do, measured where it runs
agent, setup: the agent beside one executor, and what it is told
host: which agent stands beside which executor; starts it there and ends it with it
local: the same on a local cluster

See docs/agents.md.
"""
