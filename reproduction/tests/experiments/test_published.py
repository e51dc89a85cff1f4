"""Numbers of the paper: as many as there are places for them, and none that contradicts another."""

import pytest

from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.stats import THRESHOLDS

HEADS = {"bottleneck", "multihead", "downstream"}


def test_there_is_a_number_for_every_threshold():
    assert set(published.THRESHOLD) == {"cc", "ours_post_hoc"}
    for of in published.THRESHOLD.values():
        assert set(of) == {"accuracy", "f1", "precision", "recall"}
        assert {len(numbers) for numbers in of.values()} == {len(THRESHOLDS)}
        assert all(0 < number < 100 for numbers in of.values() for number in numbers)


def test_both_methods_are_the_same_where_every_candidate_is_counted():
    for score in ("accuracy", "f1", "precision", "recall"):
        ours, theirs = (published.THRESHOLD[method][score] for method in ("ours_post_hoc", "cc"))
        assert ours[-3:] == theirs[-3:]


def test_f1_lies_about_between_precision_and_recall():
    for of in published.THRESHOLD.values():
        for f1, precision, recall in zip(of["f1"], of["precision"], of["recall"], strict=True):
            assert min(precision, recall) - 2 < f1 < max(precision, recall) + 0.1


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
def test_accuracy_after_and_drop_add_up_to_the_accuracy_before(weight):
    """The accuracy before does not depend on the attack."""
    for method, (after, drop, _) in published.ADVERSARIAL[weight].items():
        assert after + drop == pytest.approx(sum(published.ADVERSARIAL[0.1][method][:2]), abs=0.11)


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
def test_drop_is_the_success_rate_of_those_that_were_right(weight):
    assert set(published.ADVERSARIAL[weight]) == HEADS | {"ours"}
    for after, drop, success in published.ADVERSARIAL[weight].values():
        before = after + drop
        assert drop == pytest.approx(success / 100 * before, abs=0.2)


def test_table_1_has_the_attacks_of_the_middle_weight():
    for method in HEADS | {"ours"}:
        *_, success, drop = published.MULTITASK[method]
        assert published.ADVERSARIAL[0.5][method][1:] == (drop, success)


def test_other_tables_have_all_methods():
    for table, n_columns in ((published.MULTITASK, 7), (published.LOW_DATA, 5)):
        assert set(table) == HEADS | {"ours", "ours_post_hoc"}
        assert {len(of) for of in table.values()} == {n_columns}
