"""The decentralized protocol as real processes, one per agent. [belkhiria19]

transport: frames on the wire, channels that lose nothing, and who may come in
protocol: an agent among its peers: membership, messages, trials
processes: how a host starts, feeds, hears and ends agents, and what runs in each process
pipeline: instances of a pipeline of ours, which pass records to each other over TCP
executors: agents beside the executors of a split Spark pipeline

See docs/agents.md.
"""
