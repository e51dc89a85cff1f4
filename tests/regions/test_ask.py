"""Questions that are asked of a result."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import LowerBoundWarning, QuestionError
from lesioncount.questions import Question

MAP = np.array([[0.8, 0.0, 0.0, 0.4, 0.0, 0.25]])
LABELS = np.array([[1, 1, 0, 2, 2, 2]])
NAMES = {1: "periventricular", 2: "infratentorial"}


@pytest.fixture
def result():
    return lc.count_lesions(MAP, regions=LABELS, region_names=NAMES, within="near = periventricular <= 3mm",
                            spacing_mm=(1, 1))  # fmt: skip


def test_answers_follow_from_the_candidates(result):
    assert result.ask("count >= 1") == pytest.approx(1 - 0.2 * 0.6 * 0.75)
    assert result.ask("periventricular >= 1 and infratentorial >= 1") == pytest.approx(0.8 * (1 - 0.6 * 0.75))
    assert result.ask("infratentorial >= 2") == pytest.approx(0.4 * 0.25)
    assert result.ask(Question.parse("near >= 2")) == pytest.approx(0.8 * 0.4)
    assert result.ask("outside = 0") == 1


def test_regions_that_overlap_share_their_lesions(result):
    assert result.ask("near >= 1 and periventricular >= 1") == pytest.approx(0.8)


def test_named_questions_warn_of_what_is_missing(result):
    with pytest.warns(LowerBoundWarning, match="no region juxtacortical nor spinal_cord"):
        answer = result.ask("mcdonald2017-dis")
    assert answer == pytest.approx(0.8 * (1 - 0.6 * 0.75))


def test_without_regions_only_the_count_can_be_asked_for():
    result = lc.count_lesions(MAP)
    assert result.ask("count >= 3") == pytest.approx(0.8 * 0.4 * 0.25)
    with pytest.raises(QuestionError, match="asks for periventricular"):
        result.ask("periventricular >= 1")


def test_a_map_without_candidates_fulfils_what_needs_none():
    result = lc.count_lesions(np.zeros((4, 4)), regions=np.ones((4, 4), int), region_names={1: "all_of_it"})
    assert result.ask("all_of_it >= 1") == 0
    assert result.ask("count = 0") == 1
