"""The evaluation of the decentralized protocol, in its step simulator. [belkhiria19, §5]"""
