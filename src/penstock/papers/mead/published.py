"""What the paper reports. [russo21, Tables I, II, III and §VII-A, §VII-D]"""

from __future__ import annotations

from collections.abc import Mapping

TRACES = ("synt", "bc", "lm")
MODELS = ("mead-mg1", "mead-kingman", "mead")
NAMES: Mapping[str, str] = {
    "mead-mg1": "M/G/1",
    "mead-kingman": "GI/G/1",
    "mead": "MAP/G/1",
    "mead+": "mead+",
    "cpu-threshold": "threshold",
}

Figures = tuple[float, float]  # response time in seconds, CPU in percent

TABLE_1: Mapping[tuple[str, float], Mapping[str, Figures]] = {
    ("synt", 0.1): {
        "mead-mg1": (0.254, 46.4),
        "mead-kingman": (0.177, 46.4),
        "mead": (0.056, 53.2),
    },
    ("synt", 0.2): {
        "mead-mg1": (0.393, 46.4),
        "mead-kingman": (0.208, 46.4),
        "mead": (0.127, 50.2),
    },
    ("synt", 0.3): {
        "mead-mg1": (0.609, 46.5),
        "mead-kingman": (0.263, 48.3),
        "mead": (0.142, 48.1),
    },
    ("bc", 0.3): {"mead-mg1": (0.906, 46.9), "mead-kingman": (0.820, 47.0), "mead": (0.035, 55.8)},
    ("bc", 0.5): {"mead-mg1": (2.101, 46.8), "mead-kingman": (1.194, 46.9), "mead": (0.158, 53.1)},
    ("bc", 0.75): {"mead-mg1": (2.800, 46.9), "mead-kingman": (2.210, 46.8), "mead": (0.368, 50.3)},
    ("lm", 1.5): {"mead-mg1": (7.499, 45.4), "mead-kingman": (6.077, 45.5), "mead": (0.751, 61.2)},
    ("lm", 3.0): {"mead-mg1": (7.931, 45.0), "mead-kingman": (6.344, 45.4), "mead": (1.580, 56.9)},
    ("lm", 5.0): {"mead-mg1": (9.382, 45.4), "mead-kingman": (6.311, 45.4), "mead": (2.698, 53.8)},
}
"""Mean response time under a target for the mean."""

TABLE_2: Mapping[tuple[str, float], Mapping[str, Figures]] = {
    ("synt", 0.5): {"mead-mg1": (1.478, 46.6), "mead": (0.371, 60.0)},
    ("synt", 0.75): {"mead-mg1": (1.184, 46.6), "mead": (0.590, 49.7)},
    ("bc", 0.5): {"mead-mg1": (3.871, 47.1), "mead": (0.195, 58.6)},
    ("bc", 1.0): {"mead-mg1": (3.711, 47.1), "mead": (0.274, 54.5)},
    ("lm", 7.0): {"mead-mg1": (30.057, 45.5), "mead": (4.830, 60.2)},
    ("lm", 10.0): {"mead-mg1": (29.642, 45.7), "mead": (9.546, 55.9)},
}
"""95th percentile under a target for it."""

TABLE_3: Mapping[tuple[str, float], Mapping[int, Figures]] = {
    ("synt", 0.2): {25_000: (0.126, 49.9), 50_000: (0.141, 48.7), 100_000: (0.468, 47.6)},
    ("bc", 0.5): {25_000: (0.175, 53.0), 50_000: (0.217, 51.2), 100_000: (0.516, 49.8)},
    ("lm", 3.0): {25_000: (2.126, 54.2), 50_000: (2.415, 52.3), 100_000: (2.267, 53.0)},
}
"""Mean response time with a single window of so many arrivals."""

THRESHOLD: Mapping[str, Figures] = {"synt": (0.122, 49.0), "bc": (0.310, 49.0), "lm": (2.4, 48.0)}

COSTS: Mapping[str, str] = {
    "fit of one window": "12 to 20 s",
    "mean response time of a queue": "200 ms",
    "95th percentile": "2.5 s",
}
