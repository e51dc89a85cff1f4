"""The text of a question → a question that can be asked of any count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import Condition
from lesioncount.questions.named import QUESTIONS
from lesioncount.questions.parser import parse
from lesioncount.questions.refusals import cut, nearest, unknown


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
