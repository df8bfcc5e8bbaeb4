"""Apache Kafka: its jars, a broker on this machine, reaching a cluster, events written to it."""
