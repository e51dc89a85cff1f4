"""The text of a question → a question that can be asked of any count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import Condition
from lesioncount.questions.parser import parse
from lesioncount.questions.tokens import cut, nearest, unknown


@dataclass(frozen=True)
class Question:
    """Something that numbers of lesions fulfil or not, such as a criterion.

    Made by `parse` from a text, by `named` from the name of a known criterion, or by `asked` from either. Two questions
    are equal if they ask the same in the same order, however they are written; ``str`` gives the plainest text.

    Examples
    --------
    >>> question = Question.parse("periventricular>=1 AND (juxtacortical >= 1 or (infratentorial) >= 1)")
    >>> print(question)
    periventricular >= 1 and (juxtacortical >= 1 or infratentorial >= 1)
    >>> question.names
    ('periventricular', 'juxtacortical', 'infratentorial')
    >>> Question.parse(str(question)) == question
    True
    """

    condition: Condition
    text: str = field(compare=False)
    name: str | None = field(default=None, compare=False)
    source: str | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str) -> Question:
        """The question that a text asks.

        Parameters
        ----------
        text : str
            Comparisons of sums of counts, joined by ``and``, ``or``, ``not`` and ``at least 2 of (…, …)``. Names with
            other characters than letters, digits, ``_``, ``-`` and ``.`` are in double quotes.

        Raises
        ------
        QuestionError
            If it is none, with the place where reading stopped.
        """
        return cls(parse(text), text)

    @classmethod
    def named(cls, name: str) -> Question:
        """One of the known criteria in ``QUESTIONS``."""
        if not isinstance(name, str) or name not in QUESTIONS:
            known = ", ".join(nearest(str(name), QUESTIONS))
            raise QuestionError(f"There is no question {cut(str(name))!r}. Known are {known}.")
        one = QUESTIONS[name]
        return cls(parse(one.text), one.text, name, one.source)

    @classmethod
    def asked(cls, text: str) -> Question:
        """From the name of a known criterion, or else from a text: what ``--ask`` takes."""
        is_name = isinstance(text, str) and text.strip() in QUESTIONS
        return cls.named(text.strip()) if is_name else cls.parse(text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What it counts, in the order of the text."""
        return tuple(dict.fromkeys(self.condition.names()))

    def given(self, known: Collection[str]) -> tuple[Question, tuple[str, ...]]:
        """The question as it can be asked where these names are counted, and names that are missing.

        What a named question asks for may be out of a scan's sight, as the spinal cord is of a head's. It is taken as 0
        lesions; as all named questions can only gain by a lesion, the answer is then a lower bound. A name that is
        missing from a question of one's own is an error.

        Examples
        --------
        >>> regions = ["periventricular", "juxtacortical", "infratentorial"]
        >>> _, missing = Question.named("mcdonald2017-dis").given(regions)
        >>> missing
        ('spinal_cord',)
        """
        missing = tuple(name for name in self.names if name not in known)
        if not missing:
            return self, ()
        if self.name is None or len(missing) == len(self.names):
            raise unknown(missing, known)
        return replace(self, condition=self.condition.without(frozenset(missing))), missing

    def __str__(self) -> str:
        return str(self.condition)


@dataclass(frozen=True)
class NamedQuestion:
    """A question, what it is in words, and where it is from."""

    text: str
    description: str
    source: str


# The criteria of these papers, for research: no diagnosis follows from a map. Only what can be counted is asked for;
# symptoms, time, and what else may explain the lesions, are for a physician.
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
