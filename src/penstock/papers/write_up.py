"""How a reproduction is written down: one document, one page, for every paper the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.papers import harness
from penstock.papers.document import markdown, page
from penstock.papers.harness import FIGURES, Reproduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Of one run: the ``command`` that asks for it, ``runs`` in a sentence, and the ``seed`` that
    pictures are of; ``None``: of all."""

    command: str
    runs: str
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteUp:
    """A paper's name on the command line, its title, what was done, and captions by picture.

    ``shown`` pictures that the document has; empty: all. The page has all in any case.
    """

    name: str
    title: str
    about: str
    captions: Mapping[str, str]
    shown: tuple[str, ...] = ()

    def finish(self, found: Reproduction, told: Told) -> None:
        """Write everything that shows what was found into its folder."""
        html = page(
            title=self.title,
            name=self.name,
            about=self.about,
            findings=found.findings,
            tables=found.tables,
            pictures=found.pictures,
            captions=self.captions,
            seeds=found.seeds,
        )
        harness.finish(found, text=self.text(found, told, f"{FIGURES}/"), page=html)

    def publish(self, found: Reproduction, told: Told, docs: Path) -> list[Path]:
        """The document and the pictures that it shows, into a folder of documents."""
        text = self.text(found, told, f"{self.name}-")
        return harness.publish(found, docs, text=text, shown=self._names(found))

    def text(self, found: Reproduction, told: Told, before: str) -> str:
        """Markdown; ``before`` stands before the names of the pictures."""
        return markdown(
            title=self.title,
            command=told.command,
            about=f"{told.runs} {self.about}",
            findings=found.findings,
            tables=found.tables,
            pictures={f"{before}{name}": self.captions[name] for name in self._names(found)},
            first_seed=told.seed,
        )

    def _names(self, found: Reproduction) -> tuple[str, ...]:
        return self.shown or tuple(picture.name for picture in found.pictures)
