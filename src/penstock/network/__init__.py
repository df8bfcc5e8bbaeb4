"""Round trips between nodes: maps of them, estimates by coordinates, and where slots should be.

Seconds everywhere but in files, whose column says milliseconds. Round trips, unless a name says
*inbound*: that is the one-way delay of packets on their way to a node.
"""
