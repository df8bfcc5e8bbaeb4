"""Scaling without a controller: every instance decides for itself. [belkhiria19]

The protocol between instances as a pure state machine (``protocol``), the decision of one instance
(``policy``), a checker of all interleavings, which refutes the pseudo-code as it is printed
(``check``), and the paper's simulator: what both its ways share (``steps``), every message on its
own (``message_steps``), or counted (``counted_steps``).
"""

from penstock.decentralized.instance import Instance, siblings_of, wired
from penstock.decentralized.messages import Address
from penstock.decentralized.policy import LocalPolicy, Probabilistic
from penstock.decentralized.protocol import ScalingProtocol

__all__ = [
    "Address",
    "Instance",
    "LocalPolicy",
    "Probabilistic",
    "ScalingProtocol",
    "siblings_of",
    "wired",
]
