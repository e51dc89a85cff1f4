"""Tokens → a condition: one function for each rule of the grammar.

::

    any        = all ("or" all)*
    all        = one ("and" one)*
    one        = "not" one | number_of | comparison
    number_of  = ("at" "least" | "at" "most" | "exactly") NUMBER "of" "(" any ("," any)* ")"
    comparison = sum ((">=" | "<=" | ">" | "<" | "==" | "!=") sum)*
    sum        = term ("+" term)*
    term       = NAME | NUMBER | "(" any ")"

Brackets may hold a sum or a condition. Which of the two is known at their end only, so both are read by the same
functions, and what needs a condition checks that it got one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from lesioncount.questions.conditions import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Not,
    NumberOf,
    Sum,
    joined,
    quoted,
)
from lesioncount.questions.tokens import Token, refused, tokens_of

# Brackets within brackets: no question that a person understands comes near.
_DEEPEST = 40

_NUMBER_SIGNS = {"least": ">=", "most": "<="}


def parse(text: str) -> Condition:
    """The condition that a text asks for."""
    return _Parser(text).condition()


class _Parser:
    """A place among the tokens, which goes on as rules are read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0
        self._depth = 0

    def condition(self) -> Condition:
        """All of the text."""
        if self._token.kind == "end":
            self._refuse("a question", 'Such as "count >= 9", or "periventricular >= 1 and juxtacortical >= 1".')
        condition = self._checked(self._any())
        if self._token.kind != "end":
            self._refuse("`and`, `or` or the end")
        if next(condition.names(), None) is None:
            raise refused("Expected the name of something that is counted, but there are only numbers", self._text, 0)
        return condition

    def _any(self) -> Condition | Sum:
        return self._joined("or", AnyOf, self._all)

    def _all(self) -> Condition | Sum:
        return self._joined("and", AllOf, self._one)

    def _joined(self, word: str, kind: type[AllOf | AnyOf], rule: Callable[[], Condition | Sum]) -> Condition | Sum:
        first = rule()
        if not self._is_word(word):
            return first
        parts = [self._checked(first)]
        while self._took_word(word):
            parts.append(self._checked(rule()))
        return joined(kind, parts)

    def _one(self) -> Condition | Sum:
        if self._is_word("not"):
            self._deeper()
            self._at += 1
            negated = Not((self._checked(self._one()),))
            self._depth -= 1
            return negated
        if self._is_word("at") or self._is_word("exactly"):
            return self._number_of()
        return self._comparison()

    def _number_of(self) -> Condition:
        sign = self._number_sign()
        number = self._token
        if number.kind != "number":
            self._refuse("a number, as in `at least 2 of (…, …)`")
        self._at += 1
        if not self._took_word("of"):
            self._refuse("`of`, as in `at least 2 of (…, …)`")
        parts = self._list()
        if int(number.value) > len(parts):
            raise refused(
                f"Expected a number of at most {len(parts)}, for there are {len(parts)} conditions, but got {number}",
                self._text,
                number.place,
            )
        return NumberOf(tuple(parts), sign, int(number.value))

    def _number_sign(self) -> str:
        if self._took_word("exactly"):
            return "=="
        self._at += 1
        word = self._token.value.lower()
        if self._token.kind != "word" or word not in _NUMBER_SIGNS:
            self._refuse("`least` or `most` after `at`")
        self._at += 1
        return _NUMBER_SIGNS[word]

    def _list(self) -> list[Condition]:
        if not self._is_sign("("):
            self._refuse("conditions in brackets, as in `at least 2 of (…, …)`")
        self._deeper()
        parts: list[Condition] = []
        while self._is_sign("(" if not parts else ","):
            self._at += 1
            parts.append(self._checked(self._any()))
        self._close("`,` or `)`")
        return parts

    def _comparison(self) -> Condition | Sum:
        first = self._sum()
        if not self._is_comparison():
            return first
        sums, operators = [self._added(first)], []
        while self._is_comparison():
            operators.append(self._token.value)
            self._at += 1
            sums.append(self._added(self._sum()))
        return Comparison(tuple(sums), tuple(operators))

    def _sum(self) -> Condition | Sum:
        first = self._term()
        if not self._is_sign("+"):
            return first
        total = self._added(first)
        while self._is_sign("+"):
            self._at += 1
            more = self._added(self._term())
            total = Sum(total.counted + more.counted, total.constant + more.constant)
        return total

    def _term(self) -> Condition | Sum:
        token = self._token
        if self._is_sign("("):
            return self._bracket()
        if token.kind == "word":
            self._refuse(
                "a name or a number", f"To ask for something of that name, write it in quotes: {quoted(token.value)}."
            )
        if token.kind not in ("name", "number"):
            self._refuse("a name or a number")
        self._at += 1
        return Sum((token.value,)) if token.kind == "name" else Sum((), int(token.value))

    def _bracket(self) -> Condition | Sum:
        self._deeper()
        self._at += 1
        inside = self._any()
        self._close("`)`")
        return inside

    def _checked(self, part: Condition | Sum) -> Condition:
        if isinstance(part, Sum):
            self._refuse("a comparison, such as `>= 1`")
        return part

    def _added(self, part: Condition | Sum) -> Sum:
        if not isinstance(part, Sum):
            self._refuse("`and` or `or`", "What stands before it is true or false already, and no number.")
        return part

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _is_word(self, word: str) -> bool:
        return self._token.kind == "word" and self._token.value.lower() == word

    def _took_word(self, word: str) -> bool:
        taken = self._is_word(word)
        self._at += taken
        return taken

    def _is_sign(self, sign: str) -> bool:
        return self._token.kind == "sign" and self._token.value == sign

    def _is_comparison(self) -> bool:
        return self._token.kind == "sign" and self._token.value in COMPARISONS

    def _close(self, expected: str) -> None:
        if not self._is_sign(")"):
            self._refuse(expected)
        self._at += 1
        self._depth -= 1

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise refused(f"Expected at most {_DEEPEST} levels of brackets", self._text, self._token.place)

    def _refuse(self, expected: str, advice: str = "") -> NoReturn:
        raise refused(f"Expected {expected}, but got {self._token}", self._text, self._token.place, advice)
