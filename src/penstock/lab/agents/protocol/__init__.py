"""The decentralized protocol in one instance, its peers and its trials. [belkhiria19]"""
