"""What to say of a question that cannot be read, or cannot be answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import quoted

# Characters of a question that are shown around the place, and of a word.
_BEFORE, _AFTER, _LONGEST_WORD = 50, 40, 60

# Names that are listed, nearest first.
_MOST_NAMES = 12


def refused(message: str, text: str, place: int, advice: str = "") -> QuestionError:
    """The error for a place in the text of a question, with the place pointed at."""
    begin, end = max(place - _BEFORE, 0), min(place + _AFTER, len(text))
    before, after = ("…" if begin > 0 else ""), ("…" if end < len(text) else "")
    line = before + "".join(char if char.isprintable() else " " for char in text[begin:end]) + after
    pointer = " " * (len(before) + place - begin) + "^"
    return QuestionError("\n".join([f"{message}:", f"  {line}", f"  {pointer}", *([advice] if advice else [])]))


def cut(word: str) -> str:
    """A word for a message, however long it is."""
    return word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…"


def unknown(names: Sequence[str], known: Collection[str]) -> QuestionError:
    """The error for names that stand for nothing that was counted."""
    verb = "are" if len(names) > 1 else "is"
    told = ", ".join(cut(quoted(name)) for name in names[:_MOST_NAMES])
    if not known:
        return QuestionError(f"The question asks for {told}, but there is nothing to ask for.")
    return QuestionError(f"The question asks for {told}, which {verb} not counted here. {_listed(names[0], known)}")


def _listed(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    shown = ", ".join(cut(quoted(one)) for one in near[:_MOST_NAMES])
    more = f" and {len(near) - _MOST_NAMES} more" if len(near) > _MOST_NAMES else ""
    return f"Known names, nearest first: {shown}{more}."


def nearest(name: str, known: Collection[str]) -> list[str]:
    """All known names, the most similar first."""
    import difflib  # not at the top: for those only who mistype

    given = name[:_LONGEST_WORD].lower()
    matcher = difflib.SequenceMatcher(b=given)

    def likeness(one: str) -> float:
        matcher.set_seq1(one[:_LONGEST_WORD].lower())
        return matcher.ratio()

    return sorted(known, key=likeness, reverse=True)
