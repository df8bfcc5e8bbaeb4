"""What several policies read out of snapshots, or remember of them.

demand: what each operator would have to process
cpu: how much of their CPU the slots of a pool used
bottleneck: who holds up the others, by back pressure
backlog: how much waits, and how fast that grows
windows: the samples of the recent past
warm_up: the time after a change of size in which figures say little
learned: what windows teach of operators
catch_up: how fast a backlog is worked off, and when spare slots go
reason: sentences of large pipelines
"""
