"""What the pages of counts and of comparisons differ in: what they are called, what they show, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lesioncount.report.backgrounds import Slices
from lesioncount.report.templates import template

# What a section is drawn on: an image, a text that says why there is none, or nothing that was asked for.
Image = Path | str | None


@dataclass(frozen=True)
class SectionText:
    """A section as parts of a page, both of them HTML; and whether something could not be shown as it was to be."""

    summary: str
    body: str
    has_note: bool

    @classmethod
    def rendered(cls, summary: str, body: str, slices: Slices, **content: Any) -> SectionText:
        """From the names of two templates, and what they show."""
        head, text = (template(name).render(slices=slices, **content) for name in (summary, body))
        return cls(head, text, bool(slices.notes))


@dataclass(frozen=True, eq=False, kw_only=True)
class PageKind:
    """The page of one command: what it calls its things, and functions of its runs, results, records and entries.

    An entry is what becomes of a scan or a patient, with its ``name``, ``status`` and ``error``.
    """

    folder: str  # of sections; the page beside it has the same name
    template: str
    section_templates: tuple[str, ...]  # what a section looks like is decided by these
    what: str  # "scan"
    again: str  # what to do when a record is gone
    no_image: str  # what a section says when there is none; then comes where it was looked for
    many: int  # from more than so many on, sections are closed until they are asked for, but for the first ones
    has_parts: bool  # whether the rows of a very long table are files of their own
    about: Callable[[Any], object]  # what else the page says of a run
    images: Callable[[Any, Path, str], Mapping[str, Sequence[Path | None]]]  # of sessions, given where, and a suffix
    section: Callable[[Any, Sequence[Image], Any], SectionText]  # of a record; None: maps are read again
    interest: Callable[[Any], float]  # of an entry: those with more come first
    content: Callable[[Any, Sequence[Any], Mapping[str, str]], dict[str, Any]]  # what else its template asks for
