"""Verdicts: what holds, what does not, and what cannot be told."""

import math
from dataclasses import replace

import pytest

from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.claims import STATEMENTS, Claim, Evidence
from lesioncount_reproduction.experiments.result import Result
from lesioncount_reproduction.experiments.verdicts import claims_of, claims_table, verdict_lines

NAN = math.nan


def evidence(low, high, *seeds, side="above", bound=0.0):
    return Evidence("difference", Estimate((low + high) / 2, low, high, seeds), "points", side, bound)


GOOD, BAD, OPEN = evidence(0.1, 0.3, 0.1, 0.2, 0.3), evidence(-0.3, -0.1, -0.1, -0.2, -0.3), evidence(-1, 1, 0, 0, 0)
ABSENT = replace(GOOD, untested="the head never learned")


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (evidence(0.1, 0.3, 0.2), "holds"),
        (evidence(-0.3, -0.1, -0.2), "does not hold"),
        (evidence(-0.1, 0.3, 0.2), "undecided"),
        (evidence(0.0, 0.3, 0.2), "undecided"),  # on the bound is on no side of it
        (evidence(0.1, 0.3, 0.2, 0.2, -0.01), "undecided"),  # one seed on the other side
        (evidence(-0.3, -0.1, -0.2, -0.2, 0.01), "undecided"),
        (evidence(0.1, 0.3, 0.2, side="below"), "does not hold"),
        (evidence(0.1, 0.3, 0.2, side="below", bound=0.31), "holds"),
        (evidence(0.1, 0.3, 0.2, side="below", bound=0.2), "undecided"),
        (evidence(-0.04, 0.1, 0.0, bound=-0.05), "holds"),
        (evidence(-0.06, 0.1, 0.0, bound=-0.05), "undecided"),
        (evidence(NAN, NAN, NAN), "undecided"),
        (evidence(0.1, 0.3, 0.2, NAN, 0.2), "undecided"),
        (evidence(NAN, 0.3, 0.2), "undecided"),
        (evidence(NAN, NAN, NAN, side="below"), "undecided"),
    ],
)
def test_evidence_needs_the_interval_and_every_seed_on_one_side(given, verdict):
    assert given.verdict == verdict


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ((GOOD,), "holds"),
        ((GOOD, GOOD), "holds"),
        ((GOOD, OPEN), "undecided"),
        ((GOOD, BAD), "does not hold"),
        ((OPEN, BAD), "does not hold"),
        ((GOOD, ABSENT), "not tested"),
        ((OPEN, ABSENT), "not tested"),
        ((BAD, ABSENT), "does not hold"),
        ((), "not tested"),
    ],
)
def test_all_evidence_must_hold_and_one_that_does_not_is_enough(given, verdict):
    assert Claim(1, "synthetic", given, "").verdict == verdict
    assert Claim(6, "synthetic", given, "").verdict == verdict


@pytest.mark.parametrize("number", STATEMENTS)
@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (-0.3, -0.1)])
def test_two_trainings_do_not_rank_methods_that_are_trained(number, low, high):
    middle = (low + high) / 2
    two, three = (Claim(number, "leaf", (evidence(low, high, *[middle] * n),), "") for n in (2, 3))
    decided = "holds" if low > 0 else "does not hold"
    assert three.verdict == decided
    assert not three.needs_seeds
    assert two.verdict == ("undecided" if number >= 6 else decided)
    assert two.needs_seeds == (number >= 6)


def test_evidence_says_what_it_should_be():
    assert evidence(0.1, 0.25, 0.2, bound=-0.05).text == (
        "difference: 17.5 points [10.0, 25.0], should be above −5.0 points"
    )


def test_evidence_against_a_head_that_never_learned_says_so():
    assert ABSENT.verdict == "not tested"
    assert ABSENT.text.endswith("(not tested: the head never learned)")


def test_claims_survive_plain_values():
    claim = Claim(7, "leaf", (GOOD, BAD, ABSENT), "10 test scans of 5 patients, 3 training seeds", "A remark.")
    content = claim.to_dict()
    assert content["verdict"] == "does not hold"
    assert content["statement"] == STATEMENTS[7]
    assert [one["verdict"] for one in content["evidence"]] == ["holds", "does not hold", "not tested"]
    assert Claim.from_dict(content) == claim


@pytest.fixture
def results():
    def result(name, data_set, preset, *claims):
        return Result(name, data_set, preset, 10, 5, (0, 1), (), (), claims)

    def claim(number, data_set, given):
        return Claim(number, data_set, (given,), "10 test scans of 5 patients, 2 training seeds")

    return [
        result("multitask", "synthetic", "laptop", claim(6, "synthetic", evidence(0.1, 0.3, 0.2, 0.2))),
        result("threshold", "leaf", "laptop", claim(2, "leaf", OPEN), claim(1, "leaf", BAD)),
        result("threshold", "synthetic", "laptop", claim(1, "synthetic", GOOD)),
    ]


def test_claims_stand_by_number_with_the_synthetic_cohort_first(results):
    assert [(claim.number, claim.data_set) for claim in claims_of(results)] == [
        (1, "synthetic"), (1, "leaf"), (2, "leaf"), (6, "synthetic"),
    ]  # fmt: skip
    rows = claims_table(results).rows
    assert [row[4] for row in rows] == ["holds", "does not hold", "undecided", "undecided"]
    assert rows[0][1] == STATEMENTS[1]
    assert all("should be above" in row[3] for row in rows)


def test_verdicts_are_printed_with_what_they_stand_on(results):
    text = "\n".join(verdict_lines(results))
    assert f"1. {STATEMENTS[1]}." in text
    assert "synthetic: HOLDS  (10 test scans of 5 patients, 2 training seeds)" in text
    assert "leaf: DOES NOT HOLD  (" in text
    assert "synthetic: UNDECIDED  (10 test scans of 5 patients, 2 training seeds, fewer than 3)" in text
    assert STATEMENTS[9] not in text


def test_a_smoke_test_gives_no_verdict():
    smoke = Result("threshold", "synthetic", "smoke", 10, 5, (0,), (), (), (Claim(1, "synthetic", (GOOD,), ""),))
    assert verdict_lines([smoke]) == ["Everything runs. A smoke test says nothing about the claims."]
