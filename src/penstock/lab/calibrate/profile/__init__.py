"""The profile of a Nexmark query, measured on a local cluster by steps of load and size."""
