"""Random questions, each with a function that says of counts whether they fulfil it: written apart from the parser."""

import operator
from itertools import pairwise

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "count")
SIGNS = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq, "!=": operator.ne,
    "=": operator.eq, "≥": operator.ge, "≤": operator.le, "≠": operator.ne,
}  # fmt: skip
NUMBERS = {"at least": operator.ge, "at most": operator.le, "exactly": operator.eq}


@st.composite
def sums(draw):
    terms = draw(st.lists(st.sampled_from(NAMES) | st.integers(0, 3), min_size=1, max_size=3))
    text = draw(st.sampled_from([" + ", "+"])).join(map(str, terms))
    if draw(st.booleans()):
        text = f"({text})"
    return text, lambda counts: sum(counts[term] if isinstance(term, str) else term for term in terms)


@st.composite
def comparisons(draw):
    first = draw(st.sampled_from(NAMES).map(lambda name: (name, lambda counts: counts[name])))
    parts = [first, *draw(st.lists(sums(), min_size=1, max_size=2))]
    signs = [draw(st.sampled_from(list(SIGNS))) for _ in parts[1:]]
    text = parts[0][0] + "".join(f" {sign} {part[0]}" for sign, part in zip(signs, parts[1:], strict=True))

    def holds(counts):
        values = [value(counts) for _, value in parts]
        return all(SIGNS[sign](*pair) for sign, pair in zip(signs, pairwise(values), strict=True))

    return text, holds


@st.composite
def _combined(draw, inner):
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    kind = draw(st.sampled_from(["and", "or", "NOT", *NUMBERS]))
    if kind == "NOT":
        text, holds = parts[0]
        return f"NOT ({text})", lambda counts: not holds(counts)
    if kind in NUMBERS:
        number = draw(st.integers(0, len(parts)))
        text = f"{kind} {number} of ({', '.join(text for text, _ in parts)})"
        return text, lambda counts: NUMBERS[kind](sum(holds(counts) for _, holds in parts), number)
    every = all if kind == "and" else any
    return f" {kind} ".join(f"({text})" for text, _ in parts), lambda counts: every(holds(counts) for _, holds in parts)


def questions():
    """Pairs of a text and a function of a dict of counts."""
    return st.recursive(comparisons(), _combined, max_leaves=4)
