"""Questions that are asked of two maps."""

import numpy as np
import pytest
from two_visits import VISITS, a_map

import lesioncount as lc
from lesioncount.errors import QuestionError
from lesioncount.questions import Question


@pytest.fixture
def changes():
    return lc.compare(*map(a_map, VISITS["sub-02"]), coupling=0)


def test_answers_follow_from_the_candidates(changes):
    """A lesion of 0.5 stays; two come, of 0.6 and 0.4."""
    np.testing.assert_allclose(changes.p_new, [0.25, 0.6, 0.4], rtol=1e-6)
    assert changes.ask("new >= 1") == pytest.approx(1 - 0.75 * 0.4 * 0.6)
    assert changes.ask("count = 3") == pytest.approx(0.5 * 0.6 * 0.4)
    assert changes.ask(Question.parse("persisting = 1 and gone = 0")) == pytest.approx(0.25 * 0.75)


@pytest.mark.parametrize("patient", VISITS)
@pytest.mark.parametrize("kind", ["new", "gone", "persisting"])
def test_answers_about_one_number_are_those_of_its_distribution(patient, kind):
    changes = lc.compare(*map(a_map, VISITS[patient]))
    for k in (0, 1, 2):
        assert changes.ask(f"{kind} = {k}") == pytest.approx(float(np.append(getattr(changes, kind).pmf(), [0] * 9)[k]))


@pytest.mark.parametrize("patient", VISITS)
def test_the_count_is_that_of_the_later_map(patient):
    changes = lc.compare(*map(a_map, VISITS[patient]))
    for k in (1, 2, 3):
        assert changes.ask(f"count >= {k}") == pytest.approx(changes.after.ask(f"count >= {k}"))


def test_regions_are_not_known_over_time(changes):
    with pytest.raises(QuestionError, match="asks for left, which is not counted here"):
        changes.ask("left >= 1")
