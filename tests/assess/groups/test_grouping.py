"""Which group each scan belongs to, and what does not make groups."""

from pathlib import Path

import numpy as np
import pytest

from lesioncount import PoissonBinomial
from lesioncount.assess.groups import CountedSubject
from lesioncount.assess.groups.grouping import GroupOptions, grouped
from lesioncount.errors import GroupError, MapFileError

COUNT = (PoissonBinomial([0.5]),)


def scans(*names, folder=None):
    """Scans by BIDS names: ``sub-01_ses-02`` is that of a participant."""
    found = []
    for name in names:
        participant, _, session = name.partition("_")
        is_bids = participant.startswith("sub-")
        found.append(
            CountedSubject(
                (name,), COUNT, participant if is_bids else None, session if is_bids and session else None, folder
            )
        )
    return found


@pytest.fixture
def table(tmp_path):
    def write(text, name="table.tsv"):
        path = tmp_path / name
        path.write_text(text.replace(" ", "\t"))
        return path

    return write


def test_patients_have_their_group_from_a_table_of_participants(table):
    path = table("participant_id arm\nsub-01 placebo\n02 treated\nsub-09 other\n")
    found = grouped(scans("sub-02_ses-01", "sub-01_ses-01", "sub-02_ses-02"), GroupOptions(("arm",), path))
    assert found.levels == (("placebo",), ("treated",))
    assert found.group.tolist() == [1, 0, 1]
    assert found.patients == ("sub-02", "sub-01", "sub-02")
    assert (found.table, found.n_skipped, found.n_nobodys, found.exposure) == (path, 0, 0, None)


def test_scans_have_their_group_and_patient_from_a_table_of_scans(table):
    path = table("scan,participant_id,arm\na,P1,x\nb,P1,y\nc,n/a,y\n", "table.csv")
    found = grouped(scans("a", "b", "c"), GroupOptions(("arm",), path))
    assert found.group.tolist() == [0, 1, 1]
    assert found.patients == ("P1", "P1", "c")
    assert found.n_nobodys == 1


def test_columns_make_combinations_and_the_reference_is_first(table):
    path = table("scan arm site\na x A\nb x B\nc y B\n")
    assert grouped(scans("a", "b", "c"), GroupOptions(("arm", "site"), path)).levels == (
        ("x", "A"),
        ("x", "B"),
        ("y", "B"),
    )
    found = grouped(scans("a", "b", "c"), GroupOptions(("arm", "site"), path, reference=("x", "B")))
    assert found.levels == (("x", "B"), ("x", "A"), ("y", "B"))
    assert found.group.tolist() == [1, 0, 2]


def test_sessions_are_known_from_names(table):
    found = grouped(scans("sub-01_ses-01", "sub-01_ses-02"), GroupOptions(("session_id",)))
    assert (found.levels, found.table) == ((("ses-01",), ("ses-02",)), None)
    path = table("participant_id arm\nsub-01 x\n")
    found = grouped(scans("sub-01_ses-01", "sub-01_ses-02"), GroupOptions(("arm", "session_id"), path))
    assert found.levels == (("x", "ses-01"), ("x", "ses-02"))


def test_exposure_is_read_and_must_make_sense(table):
    path = table("scan arm years\na x 2\nb y 0.5\n")
    assert grouped(scans("a", "b"), GroupOptions(("arm",), path, "years")).exposure.tolist() == [2, 0.5]
    for years in ("0", "-1", "inf", "two"):
        path = table(f"scan arm years\na x 2\nb y {years}\n")
        with pytest.raises(GroupError, match=f"expected 'years' of b to be above 0, but got '{years}'"):
            grouped(scans("a", "b"), GroupOptions(("arm",), path, "years"))


def test_one_exposure_of_a_patient_is_not_that_of_several_scans(table):
    path = table("participant_id arm years\nsub-01 x 2\nsub-02 y 2\n")
    options = GroupOptions(("arm",), path, "years")
    assert grouped(scans("sub-01_ses-01", "sub-02_ses-01"), options).exposure.tolist() == [2, 2]
    with pytest.raises(GroupError, match=r"sub-01 has several scans, but .* has one 'years' for all of them"):
        grouped(scans("sub-01_ses-01", "sub-01_ses-02"), options)


def test_scans_without_a_group_are_named_or_left_out(table):
    path = table("scan arm\na x\nb n/a\nd y\n")
    with pytest.raises(GroupError, match=r"no arm for 2 scans in .*: b, c\. It holds: a, b, d\. Add them"):
        grouped(scans("a", "b", "c", "d"), GroupOptions(("arm",), path))
    found = grouped(scans("a", "b", "c", "d"), GroupOptions(("arm",), path, skip_missing=True))
    assert [one.name for one in found.subjects] == ["a", "d"]
    assert found.n_skipped == 2
    with pytest.raises(GroupError, match="no arm for 1 scan in"):
        grouped(scans("c"), GroupOptions(("arm",), path, skip_missing=True))


def test_a_scan_without_an_exposure_is_missing_too(table):
    path = table("scan arm years\na x 1\nb y n/a\n")
    with pytest.raises(GroupError, match="no arm, years for 1 scan"):
        grouped(scans("a", "b"), GroupOptions(("arm",), path, "years"))


def test_the_table_of_a_dataset_is_found_if_there_is_one(tmp_path):
    folder = tmp_path / "derivatives" / "sub-01"
    folder.mkdir(parents=True)
    with pytest.raises(GroupError, match=r"There is no participants\.tsv in or above the folders of the maps"):
        grouped(scans("sub-01", folder=folder), GroupOptions(("arm",)))
    (tmp_path / "participants.tsv").write_text("participant_id\tarm\nsub-01\tx\n")
    assert grouped(scans("sub-01", folder=folder), GroupOptions(("arm",))).table == tmp_path / "participants.tsv"
    (tmp_path / "derivatives" / "participants.tsv").write_text("participant_id\nsub-01\n")
    with pytest.raises(GroupError, match=r"There are several: .*derivatives.*Name the table"):
        grouped(scans("sub-01", folder=folder), GroupOptions(("arm",)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name arm\na x\n", "Expected a column 'scan', 'pair' or 'participant_id' in .*columns are name, arm"),
        ("", "its columns are none"),
        ("scan group\na x\n", r"Expected a column 'arm' in .*columns are scan, group\. Name columns of this table"),
        ("scan arm arm\na x x\n", "more than one column 'arm'"),
        ("scan arm\na x\na y\n", "'a' has more than one row"),
        ("scan arm\na\n", "does not have as many cells"),
    ],
)
def test_tables_that_make_no_groups(table, text, message):
    with pytest.raises(GroupError, match=message):
        grouped(scans("a"), GroupOptions(("arm",), table(text)))


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(MapFileError, match="cannot be read: No such file"):
        grouped(scans("a"), GroupOptions(("arm",), tmp_path / "none.tsv"))


def test_one_row_does_not_serve_two_scans(table):
    both = [CountedSubject((name, "map"), COUNT) for name in ("a__map", "b__map")]
    with pytest.raises(GroupError, match="would serve both a__map and b__map"):
        grouped(both, GroupOptions(("arm",), table("scan arm\nmap x\n")))


@pytest.mark.parametrize(
    ("by", "reference", "message"),
    [
        ((), None, "at least one column to group by"),
        (("scan",), None, "'scan' cannot be grouped by: it is a column of our own"),
        (("arm", "arm"), None, "'arm' cannot be grouped by: it is there more than once"),
        (("arm", "site"), ("x",), "a value for each of arm, site .* but got x"),
        (("arm",), ("z",), "no group 'z' to be the reference; the groups are x, y"),
    ],
)
def test_groups_that_make_no_sense(table, by, reference, message):
    path = table("scan arm site\na x A\nb y B\n")
    with pytest.raises(GroupError, match=message):
        grouped(scans("a", "b"), GroupOptions(by, path, reference=reference))


def test_a_column_with_many_values_is_no_group(table):
    names = [f"s{i}" for i in range(51)]
    path = table("scan age\n" + "".join(f"{name} {i}\n" for i, name in enumerate(names)))
    with pytest.raises(GroupError, match="age would make 51 groups"):
        grouped(scans(*names), GroupOptions(("age",), path))


def test_levels_are_the_places_of_groups(rng, table):
    names = [f"s{i}" for i in range(30)]
    levels = rng.choice(list("zyx"), 30)
    path = table("scan arm\n" + "".join(f"{name} {level}\n" for name, level in zip(names, levels, strict=True)))
    found = grouped(scans(*names), GroupOptions(("arm",), path))
    assert np.array(found.levels)[found.group, 0].tolist() == levels.tolist()
    assert isinstance(found.table, Path)
