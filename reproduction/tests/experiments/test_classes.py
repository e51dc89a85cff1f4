"""Classes of counts: single ones, or ranges."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount_reproduction.experiments.classes import CountClasses

PAPER, FIFTHS = CountClasses((0, 1, 2, 3, 4)), CountClasses((0, 11, 20, 30, 53))


def test_classes_have_names_that_can_be_read():
    assert PAPER.names == ("0", "1", "2", "3", "4+")
    assert FIFTHS.names == ("0–10", "11–19", "20–29", "30–52", "53+")
    assert PAPER.are_counts
    assert not FIFTHS.are_counts


def test_counts_belong_to_the_class_that_began_last():
    assert PAPER.of([0, 3, 4, 17]).tolist() == [0, 3, 4, 4]
    assert FIFTHS.of([0, 10, 11, 29, 52, 53, 300]).tolist() == [0, 0, 1, 2, 3, 4, 4]


def test_probabilities_of_classes_are_sums_of_those_of_counts():
    distribution = lc.PoissonBinomial(np.full(60, 0.4))
    exact = distribution.binned(53)[None]
    pmf = distribution.pmf()
    expected = [pmf[:11].sum(), pmf[11:20].sum(), pmf[20:30].sum(), pmf[30:53].sum(), pmf[53:].sum()]
    np.testing.assert_allclose(FIFTHS.binned(exact)[0], expected, atol=1e-15)


@pytest.mark.parametrize("classes", [PAPER, FIFTHS])
def test_accuracy_is_about_classes(classes):
    rng = np.random.default_rng(0)
    distributions = [lc.PoissonBinomial(rng.random(n)) for n in (0, 3, 30, 80)]
    truth = np.array([0, 1, 16, 200])
    found = classes.of_distributions(distributions, truth)
    tables = [classes.binned(one.binned(classes.begins[-1])[None])[0] for one in distributions]
    np.testing.assert_allclose(found.bins, tables)
    assert found.hits.tolist() == (np.argmax(tables, axis=1) == classes.of(truth)).tolist()
    numbers = classes.of_counts(np.array([0, 2, 19, 40]), truth)
    assert numbers.hits.tolist() == (classes.of([0, 2, 19, 40]) == classes.of(truth)).tolist()
