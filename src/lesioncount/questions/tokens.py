"""The text of a question → its words, numbers and signs, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import KEYWORDS, NAME
from lesioncount.questions.refusals import refused

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
