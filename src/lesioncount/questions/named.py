"""Questions that have a name, each with the paper that it is from.

They are the criteria of these papers, for research: no diagnosis follows from a map. Only what can be counted is asked
for; symptoms, time, and what else may explain the lesions, are for a physician.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NamedQuestion:
    """A question, what it is in words, and where it is from."""

    text: str
    description: str
    source: str


QUESTIONS: dict[str, NamedQuestion] = {
    "mcdonald2017-dis": NamedQuestion(
        "at least 2 of (periventricular >= 1, juxtacortical >= 1, infratentorial >= 1, spinal_cord >= 1)",
        "Dissemination in space by the 2017 McDonald criteria: a T2 lesion in at least two of four areas. "
        "Juxtacortical stands for cortical or juxtacortical.",
        "Thompson et al., Diagnosis of multiple sclerosis: 2017 revisions of the McDonald criteria, Lancet Neurology "
        "2018;17:162–173",
    ),
    "mcdonald2010-dis": NamedQuestion(
        "at least 2 of (periventricular >= 1, juxtacortical >= 1, infratentorial >= 1, spinal_cord >= 1)",
        "Dissemination in space by the 2010 McDonald criteria: a T2 lesion in at least two of four areas. Lesions that "
        "explain a brainstem or spinal cord syndrome do not count: leave them out first.",
        "Polman et al., Diagnostic criteria for multiple sclerosis: 2010 revisions to the McDonald criteria, Annals of "
        "Neurology 2011;69:292–302",
    ),
    "mcdonald2001-dis": NamedQuestion(
        "at least 3 of (enhancing >= 1 or count >= 9, infratentorial >= 1, juxtacortical >= 1, periventricular >= 3)",
        "Dissemination in space by the 2001 McDonald criteria (Barkhof and Tintoré): three of an enhancing lesion or "
        "nine T2 lesions, an infratentorial one, a juxtacortical one, three periventricular ones. That a lesion of the "
        "spinal cord may stand for one of the brain is not part of it.",
        "McDonald et al., Recommended diagnostic criteria for multiple sclerosis, Annals of Neurology 2001;50:121–127; "
        "after Barkhof et al., Brain 1997;120:2059–2069, and Tintoré et al., AJNR 2000;21:702–706",
    ),
}
