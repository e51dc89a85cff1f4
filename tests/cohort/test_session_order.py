"""What comes first: sessions are ordered as dates where they are dates, and asked about where that is not clear."""

import csv

import pytest
from nifti_files import save
from runs.small_cohort import folders, lesions

from lesioncount.cli import main
from lesioncount.cohort.session_order import in_order
from lesioncount.errors import MapFileError


@pytest.mark.parametrize(
    ("sessions", "note"),
    [
        (["31122023", "01012024"], "day first: 31122023 is 2023-12-31"),
        (["12312023", "01012024"], "month first: 12312023 is 2023-12-31"),
        (["20231231", "20240101"], None),
        (["31-12-2023", "01-01-2024"], "day first"),
        (["31_12_2023", "1_1_2024"], "day first"),
        (["12.31.2023", "1.1.2024"], "month first"),
        (["2023-12-31", "2024-1-1", "2024-1-10"], None),
        (["v31122023", "v01012024"], "day first"),
        (["13012023", "05022023", "01122023"], "day first"),  # the first can be read in one way only, so all can
        (["01012023", "02022023"], "Sessions are read as dates"),  # in two ways, with one order
        (["1", "2", "10"], None),
        (["00000002", "00000010"], None),  # no dates
        (["10002023", "20001999"], None),  # nor these: there is no month 0
        (["0101", "3112"], None),
    ],
)
def test_the_order_of_time(sessions, note):
    found = in_order(set(sessions))
    assert found.sessions == sessions
    assert (found.note is None) == (note is None)
    assert note is None or note in found.note


@pytest.mark.parametrize("sessions", [("02012024", "01022024"), ("1.2.2024", "2.1.2024")])
def test_dates_that_can_be_read_in_two_ways_are_asked_about(sessions):
    with pytest.raises(MapFileError, match=r"with the day or the month first\..*--baseline .*--pairs"):
        in_order(sessions)
    for baseline in sessions:
        assert in_order(sessions, baseline).sessions[0] == baseline


@pytest.mark.parametrize("sessions", [("20231231", "01012024"), ("31122023", "12302023"), ("13132023", "01012024")])
def test_dates_that_are_not_written_alike_are_asked_about(sessions):
    with pytest.raises(MapFileError, match="not all are written in the same way"):
        in_order(sessions)


def test_the_baseline_says_how_dates_are_read():
    """With the day first 2 January comes first, with the month first 1 February, and so for the third."""
    sessions = ["02012024", "01022024", "03012024"]
    assert in_order(sessions, "02012024").sessions == ["02012024", "03012024", "01022024"]
    assert in_order(sessions, "01022024").sessions == ["01022024", "02012024", "03012024"]
    assert in_order(["1", "2", "3"], "2").sessions == ["2", "1", "3"]
    assert in_order(["pre", "post"], "pre").sessions == ["pre", "post"]


def changes(out):
    with (out / "changes.tsv").open() as table:
        return next(csv.DictReader(table, delimiter="\t"))


@pytest.fixture
def by_date(tmp_path):
    """A lesion that came after New Year."""
    for label, heights in (("31122023", (0.9,)), ("01012024", (0.9, 0.8))):
        stem = f"sub-1/ses-{label}/anat/sub-1_ses-{label}_probseg.nii.gz"
        save(tmp_path / "d" / stem, lesions(*heights))
    return tmp_path / "d"


def test_new_is_new_with_the_day_first(by_date, tmp_path, capsys):
    assert main(["compare", str(by_date), "-o", str(tmp_path / "out")]) == 0
    row = changes(tmp_path / "out")
    assert (row["before"], row["after"]) == ("ses-31122023", "ses-01012024")
    assert float(row["new_mean"]) == pytest.approx(0.8, abs=0.01)
    assert "day first: 31122023 is 2023-12-31" in row["notes"]
    assert "note: sub-1: Sessions are read as dates with the day first" in capsys.readouterr().out


def test_another_baseline(by_date, tmp_path, capsys):
    how = ["compare", str(by_date), "-o", str(tmp_path / "out"), "--quiet", "--baseline"]
    assert main([*how, "ses-01012024"]) == 0
    assert changes(tmp_path / "out")["before"] == "ses-01012024"
    assert main([*how, "7", "--overwrite"]) == 2
    assert "there is no session '7'. The maps have the sessions 01012024, 31122023" in capsys.readouterr().err
    assert main([*how, "01012024", "--overwrite", "--sessions", "01012024", "31122023"]) == 2
    assert main(["compare", str(by_date), str(by_date), "-o", str(tmp_path / "two"), "--baseline", "1"]) == 2
    assert "Each folder is one time point here: --baseline" in capsys.readouterr().err


def test_a_folder_or_a_file_compared_with_itself_is_said(tmp_path, capsys):
    first, second = folders(tmp_path)
    said = "The maps of sessions 1 and 2 are the same file"
    assert main(["compare", str(first), str(first), "-o", str(tmp_path / "a")]) == 0
    assert f"note: 3 patients: {said}" in capsys.readouterr().out
    assert said in changes(tmp_path / "a")["notes"]
    (tmp_path / "link.nii.gz").symlink_to(first / "p1.nii.gz")
    assert main(["compare", str(first / "p1.nii.gz"), str(tmp_path / "link.nii.gz"), "-o", str(tmp_path / "b")]) == 0
    assert f"note: link: {said}" in capsys.readouterr().out
    assert main(["compare", str(first), str(second), "-o", str(tmp_path / "c")]) == 0
    assert said not in capsys.readouterr().out


@pytest.mark.parametrize(
    "labels",
    [
        ("311223", "010124"),
        ("150323", "020424"),
        ("311299", "010100"),
        ("122023", "012024"),
        ("31122023", "1012024"),
        ("5122023", "1012024"),
        ("92022", "12023"),
        ("51224", "10125"),
        ("991231", "000101"),
    ],
)
def test_short_dates_whose_numbers_are_in_another_order_are_asked_about(labels):
    with pytest.raises(MapFileError, match="They may be dates"):
        in_order(labels)
    assert in_order(labels, baseline=labels[0]).sessions == list(labels)


@pytest.mark.parametrize(
    "labels", [("202301", "202312"), ("230105", "231231"), ("100001", "100002"), ("010123", "020123"), ("8", "12")]
)
def test_numbers_that_are_in_the_order_of_any_date_they_may_be_are_not_asked_about(labels):
    assert in_order(labels).sessions == list(labels)
