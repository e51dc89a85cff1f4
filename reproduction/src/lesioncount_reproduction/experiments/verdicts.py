"""Results → the table of claims: what was measured, on what, and whether the claim holds."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from lesioncount_reproduction.experiments.claims import FEWEST_SEEDS, STATEMENTS, Claim
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Result, Row, Table

_LINE = 100


def claims_of(results: Sequence[Result]) -> list[Claim]:
    """All claims that the results say something about, by number and data set; a smoke test says nothing."""
    found = [claim for result in results for claim in result.claims if result.preset != "smoke"]
    return sorted(found, key=lambda claim: (claim.number, claim.data_set != "synthetic", claim.data_set))


def claims_table(results: Sequence[Result]) -> Table:
    """A row per claim and data set."""
    rows: list[Row] = [
        (
            str(claim.number),
            claim.statement,
            claim.data_set,
            " ".join(f"{one.text}." for one in claim.evidence) + (f" {claim.remark}" if claim.remark else ""),
            claim.verdict,
            claim.basis,
        )
        for claim in claims_of(results)
    ]
    columns = tuple(Column(head) for head in ("", "claim", "data", "measured", "verdict", "on"))
    note = (
        "Estimates are means over training seeds, with 95 % intervals over patients. A claim holds, or does not, where "
        "the interval and every seed lie on one side of the bound; otherwise it is undecided."
    )
    return Table("claims", "Nine claims of the paper", columns, tuple(rows), note)


def summary_table(results: Sequence[Result]) -> Table:
    """A row per claim, a column per data set: the verdict, and the number that decided it."""
    claims = claims_of(results)
    data_sets = list(dict.fromkeys(claim.data_set for claim in claims))
    found = {(claim.number, claim.data_set): claim for claim in claims}
    rows: list[Row] = [
        (str(number), statement, *(_in_short(found.get((number, data_set))) for data_set in data_sets))
        for number, statement in STATEMENTS.items()
        if any((number, data_set) in found for data_set in data_sets)
    ]
    columns = tuple(Column(head) for head in ("", "claim", *data_sets))
    return Table("summary", "Which claims of the paper hold", columns, tuple(rows))


def _in_short(claim: Claim | None) -> str:
    if claim is None:
        return ""
    deciding = [one for one in claim.evidence if one.verdict == claim.verdict] or list(claim.evidence)
    number = f": {written(deciding[0].estimate, deciding[0].kind, unit=True)}" if deciding else ""
    return f"**{claim.verdict}**{number}{' (too few seeds)' if claim.needs_seeds else ''}"


def verdict_lines(results: Sequence[Result]) -> list[str]:
    """The same for a terminal."""
    if all(result.preset == "smoke" for result in results):
        return ["Everything runs. A smoke test says nothing about the claims."]
    claims = claims_of(results)
    lines = []
    for number, statement in STATEMENTS.items():
        of_number = [claim for claim in claims if claim.number == number]
        if not of_number:
            continue
        lines += ["", f"{number}. {statement}."]
        for claim in of_number:
            why = f", fewer than {FEWEST_SEEDS}" if claim.needs_seeds else ""
            lines.append(f"   {claim.data_set}: {claim.verdict.upper()}  ({claim.basis}{why})")
            for one in claim.evidence:
                lines += textwrap.wrap(one.text, _LINE, initial_indent="     ", subsequent_indent="       ")
            lines += textwrap.wrap(claim.remark, _LINE, initial_indent="     ", subsequent_indent="       ")
    return [*lines, ""]
