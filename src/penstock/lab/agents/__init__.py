"""The decentralized protocol as real processes: one per instance, records over TCP. [belkhiria19]

``pipeline`` what runs · ``frames``, ``wire``, ``handshake`` what is on the wire · ``channel``,
``link``, ``reception`` one channel, its sending and its receiving end · ``outbox``, ``worker``,
``source``, ``sink`` records · ``peers``, ``membership`` an instance among others · ``trial`` its
decisions · ``agent`` an instance · ``process`` its process · ``host`` starts and
ends processes on a machine · ``run`` a run from start to end. See docs/agents.md.
"""

from penstock.lab.agents.pipeline.operators import Operator, Pipeline

__all__ = ["Operator", "Pipeline"]
