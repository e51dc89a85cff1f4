"""The table of candidates: what it holds, what it refuses, and that equal things are held once."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.candidate_table import CandidateTable

TOUCHING = np.array([[0.3, 0.9, 0.6, 0.5, 0.6, 0.8, 0.3, 0.0, 0.7]])


def test_columns_are_found_by_name():
    table = CandidateTable.of([0.9, 0.8], saddle=[0, 0.5], other=[0.1, 0.2], volume=[40, 3])
    assert table.names == ("peak", "saddle", "other", "risen", "volume")
    assert table["volume"].tolist() == table.columns["volume"].tolist() == [40, 3]
    assert table["risen"].tolist() == table.peak.tolist()
    assert table.rows(table["volume"] > 10).columns["peak"].tolist() == [0.9]


def test_a_column_that_is_missing_is_named_beside_those_that_are_there():
    with pytest.raises(CalibrationError, match=r"no column 'volume'\. It has 'peak', 'saddle'"):
        CandidateTable.of([0.5], saddle=[0.1])["volume"]


@pytest.mark.parametrize(
    ("peak", "columns", "message"),
    [
        ([7.0], {}, r"in \[0, 1\]"),
        ([float("nan")], {}, r"in \[0, 1\]"),
        (0.5, {}, "one dimension"),
        ([[0.5]], {}, "one dimension"),
        (["x"], {}, "an array of probabilities"),
        ([0.5], {"saddle": [0.6]}, "a saddle from 0 up to its peak"),
        ([0.5], {"saddle": [0.1, 0.2]}, "1 values of saddle"),
        ([0.5], {"other": [0.5, 0.4]}, "1 values of other"),
        ([0.5], {"other": [7.0]}, r"at both times.*\[0, 1\]"),
        ([0.5], {"other": [0.5], "risen": [-0.5]}, r"at both times.*\[0, 1\]"),
        ([0.5], {"risen": [0.5]}, "at the other time"),
        ([0.5], {"volume": [1, 2]}, "1 values of volume"),
        ([0.5], {"volume": ["large"]}, "numbers in all other columns"),
    ],
)
def test_columns_that_do_not_fit_are_refused(peak, columns, message):
    with pytest.raises(CalibrationError, match=message):
        CandidateTable.of(peak, **columns)


@pytest.mark.parametrize("protocol", ["paper", "peaks"])
def test_candidates_of_a_map_need_no_columns_by_hand(protocol):
    found = lc.find_candidates(TOUCHING, protocol=protocol)
    table = CandidateTable.of(found.peak_probability, saddle=found.saddle_probability)
    assert CandidateTable.of_candidates(found).columns.keys() == table.columns.keys()
    for calibration in (lc.Calibration(), lc.Calibration(0.7, -0.3, spread=0.5, extra_rate=0.1)):
        assert calibration.existence(found).tolist() == calibration.existence(table).tolist()
        assert calibration.distribution(found).pmf().tolist() == calibration.distribution(table).pmf().tolist()
        assert calibration.at_nodes(found)[0].tolist() == calibration.at_nodes(table)[0].tolist()


@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=5), max_size=4), st.booleans())
def test_joined_tables_have_the_candidates_of_all(scans, touching):
    tables = [
        CandidateTable.of([p for p, _ in scan], saddle=[p * share for p, share in scan] if touching else None)
        for scan in scans
    ]
    joined = CandidateTable.joined(tables)
    assert len(joined) == sum(map(len, tables))
    for name in ("peak", "saddle"):
        assert joined[name].tolist() == [value for table in tables for value in table[name]]


def test_joined_tables_have_the_columns_that_all_of_them_have():
    with_volume, without = CandidateTable.of([0.5], volume=[3]), CandidateTable.of([0.4], saddle=[0.1])
    assert set(CandidateTable.joined([with_volume, without]).names) == {"peak", "saddle"}
    assert CandidateTable.joined([with_volume, with_volume])["volume"].tolist() == [3, 3]


def test_what_is_equal_is_held_once():
    """A run holds the tables of a hundred thousand scans."""
    one, other = CandidateTable.of([0.5, 0.4], saddle=[0, 0]), CandidateTable.of([0.3, 0.2])
    assert one.names is other.names
    assert one.saddle is other.saddle
    assert one.existence() is one.peak
    arrived = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert arrived.names is one.names
    assert arrived.peak.tolist() == one.peak.tolist()
    changing = CandidateTable.of([0.5], other=[0.1])
    assert changing["risen"] is changing.peak
