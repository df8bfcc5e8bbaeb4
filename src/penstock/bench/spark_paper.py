"""A paper's experiments on real Spark: how often they are done, and how they are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.bench import reproduction
from penstock.bench.reproduction import FIGURES, Reproduction
from penstock.bench.reproduction_text import markdown, page

SEEDS = 3  # unless said otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """So many times each, with the seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = 0

    def __post_init__(self) -> None:
        reproduction.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def often(self) -> str:
        """How often everything is done."""
        return "once" if self.seeds == 1 else f"{self.seeds} times"

    def command(self, name: str) -> str:
        """That asks for it."""
        seeds = f" --seeds {self.seeds}" if self.seeds != SEEDS else ""
        first = f" --first-seed {self.first_seed}" if self.first_seed else ""
        return f"penstock reproduce {name}{seeds}{first}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPaper:
    """Its name on the command line, its title, what was done, and captions by picture.

    ``one`` whether pictures are of the first seed, and not of all runs.
    """

    name: str
    title: str
    about: str
    captions: Mapping[str, str]
    one: bool = False

    def finish(self, plan: SparkPlan, found: Reproduction) -> None:
        """Write everything that shows what was found into its folder."""
        html = page(
            title=self.title,
            name=self.name,
            about=self.about,
            findings=found.findings,
            tables=found.tables,
            pictures=found.pictures,
            captions=self.captions,
            seeds=plan.seeds,
        )
        reproduction.finish(found, text=self._text(plan, found, f"{FIGURES}/"), page=html)

    def publish(self, plan: SparkPlan, found: Reproduction, docs: Path) -> list[Path]:
        """The document and its pictures, into a folder of documents."""
        text = self._text(plan, found, f"{self.name}-")
        return reproduction.publish(found, docs, text=text, shown=tuple(self.captions))

    def _text(self, plan: SparkPlan, found: Reproduction, before: str) -> str:
        names = [picture.name for picture in found.pictures]
        return markdown(
            title=self.title,
            command=plan.command(self.name),
            about=f"All of it {plan.often}. {self.about}",
            findings=found.findings,
            tables=found.tables,
            pictures={f"{before}{name}": self.captions[name] for name in names},
            first_seed=plan.first_seed if self.one else None,
        )
