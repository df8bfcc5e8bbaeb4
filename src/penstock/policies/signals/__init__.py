"""What several policies read out of snapshots: backlog, demand, bottleneck, lag."""
