"""The text of a question → its words, numbers and signs; and what to say where it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lesioncount.errors import QuestionError, listed
from lesioncount.questions.conditions import KEYWORDS, NAME, quoted

# Questions come from command lines and files: the sum of all regions of a large atlas is shorter than this.
LONGEST_TEXT = 10_000

# More digits than any count has.
_MOST_DIGITS = 9

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_SIGN = re.compile(r">=|<=|==|!=|[≥≤≠<>=+(),]")
_SAME_SIGN = {"=": "==", "≥": ">=", "≤": "<=", "≠": "!="}
_NUMBER = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"\d+\.\d*")

_INSTEAD = {
    "'": 'Names with other characters than letters, digits, "_", "-" and "." go into double quotes.',
    "&": "Write `and`.",
    "|": "Write `or`.",
    "!": "Write `not`, or `!=`.",
    "-": "There are no negative numbers and no differences: write the sum on the other side.",
    "*": "Counts can be added only.",
}


@dataclass(frozen=True)
class Token:
    """A piece of the text: its kind (name, number, word, sign or end), what it says, and where it begins."""

    kind: str
    value: str
    place: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"`{self.value[:60]}`"


def tokens_of(text: str) -> list[Token]:
    """All tokens of a question, the last of which is its end."""
    if not isinstance(text, str):
        raise QuestionError(f'Expected a question as text, such as "count >= 9", but got {type(text).__name__}.')
    if len(text) > LONGEST_TEXT:
        raise QuestionError(
            f"Expected a question of at most {LONGEST_TEXT} characters, but it has {len(text)}. Ask several questions."
        )
    tokens, place = [], _skipped(text, 0)
    while place < len(text):
        token, end = _next(text, place)
        tokens.append(token)
        place = _skipped(text, end)
    return [*tokens, Token("end", "", len(text.rstrip()))]


def _next(text: str, place: int) -> tuple[Token, int]:
    if found := _QUOTED.match(text, place):
        return _quoted_name(text, found), found.end()
    if found := _SIGN.match(text, place):
        return Token("sign", _SAME_SIGN.get(found[0], found[0]), place), found.end()
    if found := NAME.match(text, place):
        return Token(_kind(text, found[0], place), found[0], place), found.end()
    if text[place] == '"':
        raise refused("Expected a closing double quote after the one here", text, place)
    raise refused(
        f"Expected a name, a number or a comparison, but got {text[place]!r}",
        text,
        place,
        _INSTEAD.get(text[place], ""),
    )


def _quoted_name(text: str, found: re.Match[str]) -> Token:
    if not found[1]:
        raise refused("Expected a name between the quotes", text, found.start())
    return Token("name", found[1].replace('""', '"'), found.start())


def _kind(text: str, word: str, place: int) -> str:
    if _NUMBER.fullmatch(word):
        if len(word) > _MOST_DIGITS:
            raise refused(f"Expected a number of at most {_MOST_DIGITS} digits", text, place)
        return "number"
    if _DECIMAL.fullmatch(word):
        raise refused(f"Expected a whole number, but got {word[:20]}", text, place, "Lesions are counted one by one.")
    return "word" if word.lower() in KEYWORDS else "name"


def _skipped(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


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
    near = (cut(quoted(one)) for one in nearest(name, known))
    return f"Known names, nearest first: {listed(near, _MOST_NAMES)}."


def nearest(name: str, known: Collection[str]) -> list[str]:
    """All known names, the most similar first."""
    import difflib  # not at the top: for those only who mistype

    given = name[:_LONGEST_WORD].lower()
    matcher = difflib.SequenceMatcher(b=given)

    def likeness(one: str) -> float:
        matcher.set_seq1(one[:_LONGEST_WORD].lower())
        return matcher.ratio()

    return sorted(known, key=likeness, reverse=True)
