"""How often a paper's experiments are done on real Spark."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.papers import harness
from penstock.papers.write_up import Told

SEEDS = 3  # unless said otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many times each, with the seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = 0

    def __post_init__(self) -> None:
        harness.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def told(self, name: str) -> Told:
        """In words; pictures are of the first seed."""
        seeds = f" --seeds {self.seeds}" if self.seeds != SEEDS else ""
        first = f" --first-seed {self.first_seed}" if self.first_seed else ""
        often = "once" if self.seeds == 1 else f"{self.seeds} times"
        return Told(
            command=f"penstock reproduce {name}{seeds}{first}",
            runs=f"All of it {often}.",
            seed=self.first_seed,
        )
