"""What experiments need on one machine: clusters, brokers, sites, sources, queries, proofs."""
