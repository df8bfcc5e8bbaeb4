"""The decentralized protocol beside the executors of a split pipeline. [belkhiria19]

``account``, ``load`` what an executor has to do, measured where it runs · ``driver`` one executor
more or fewer · ``setup``, ``agent``, ``process`` the agent beside one executor · ``assignments``,
``host`` start an agent beside every executor and end it with it · ``local`` on a local cluster.
See docs/agents.md.
"""
