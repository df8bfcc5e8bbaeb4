"""What the paper publishes of its one run. [belkhiria19, §5.2 to §5.4]"""

from __future__ import annotations

PEAK_NODES = 114
LOAD_PEAKS_AT, NODES_PEAK_AT = 100, 104  # iterations
HIGHEST_ACCURACY, LOWEST_ACCURACY = 2.5, 0.33  # of one operator, Figure 5
LOWEST_THROUGHPUT = 0.45
FIRST_MESSAGES = "30 messages at iteration 5, with 16 predecessors and 14 successors"
MOST_MESSAGES = "168 messages at iteration 49"
