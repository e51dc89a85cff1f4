"""Regions by distance, as users write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesioncount.errors import RegionError
from lesioncount.regions import Within
from lesioncount.regions.within import all_within


@pytest.mark.parametrize(
    ("text", "name", "regions", "mm"),
    [
        ("ventricles <= 3mm", "ventricles<=3mm", ("ventricles",), 3.0),
        ("ventricles<=3", "ventricles<=3mm", ("ventricles",), 3.0),
        ("periventricular = ventricles <= 1.5 mm", "periventricular", ("ventricles",), 1.5),
        ("pv = left + right ≤ 3 MM", "pv", ("left", "right"), 3.0),
        ("Left Lateral Ventricle + right <= .5mm", "Left Lateral Ventricle+right<=0.5mm",
         ("Left Lateral Ventricle", "right"), 0.5),
        ('near = "a+b" + "x <= y" <= 0mm', "near", ("a+b", "x <= y"), 0.0),
        ("4 <= 2mm", "4<=2mm", ("4",), 2.0),
    ],
)  # fmt: skip
def test_distances_are_read_as_they_are_written(text, name, regions, mm):
    found = Within.parse(text)
    assert (found.name, found.regions, found.distance_mm) == (name, regions, mm)
    assert Within.parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it does not end in <= and a distance"),
        ("ventricles", "it does not end in <= and a distance"),
        ("<= 3mm", "names and signs do not take turns"),
        ("ventricles <= ", "names and signs do not take turns"),
        ("a = b = c <= 3mm", "it does not end in <= and a distance"),
        ("a <= 3mm + b", "it does not end in <= and a distance"),
        ("ventricles < 3mm", "nothing can begin with '<'"),
        ('"ventricles <= 3mm', "nothing can begin with '\"'"),
        ("ventricles <= 3cm", "'3cm' is not a distance from 0 to 30 mm"),
        ("ventricles <= -3mm", "'-3mm' is not a distance"),
        ("ventricles <= 31mm", "'31mm' is not a distance"),
        ("ventricles <= nan", "'nan' is not a distance"),
        ("a;b <= 3mm", "a name must not hold ';'"),
    ],
)
def test_what_is_no_distance_says_what_one_is(text, why):
    with pytest.raises(RegionError, match=r"such as 'periventricular = ventricles <= 3mm'.*" + re.escape(why)):
        Within.parse(text)


@pytest.mark.parametrize("given_", [3, None, "x" * 2000])
def test_what_is_no_text_is_refused(given_):
    with pytest.raises(RegionError, match="Expected a distance to regions"):
        Within.parse(given_)


def test_reserved_names_and_doubles_are_refused():
    with pytest.raises(RegionError, match="cannot be called 'new'"):
        Within.parse("new = a <= 1mm")
    with pytest.raises(RegionError, match="Two regions by distance are called 'pv'"):
        all_within(["pv = a <= 1mm", "pv = b <= 1mm"])


@given(st.text(max_size=60))
def test_any_text_is_a_distance_or_an_error_of_ours(text):
    try:
        found = Within.parse(text)
    except RegionError:
        return
    assert Within.parse(str(found)) == found
