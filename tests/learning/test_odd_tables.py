"""Tables of a cohort with odd content: each is refused with a sentence that names the table."""

import os

import pytest

from lesioncount.errors import CohortError, MapFileError
from lesioncount.learning.participants import read_rows

HEAD = "participant_id\tsession_id\tcount\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (HEAD + "sub-1\tses-1\t" + "9" * 5000 + "\n", "whole number below a billion"),
        (HEAD + "sub-1\tses-1\t" + "9" * 400 + "\n", "whole number below a billion"),
        (HEAD + "sub-../../mine\tses-1\t1\n", "letters, digits"),
        (HEAD + "/etc/passwd\tses-1\t1\n", "letters, digits"),
        (HEAD + "sub-1\tses-../x\t1\n", "letters, digits"),
        (HEAD + "\tses-1\t1\n", "letters, digits"),
        (HEAD + "n/a\tses-1\t1\n", "letters, digits"),
        (HEAD + "sub-" + "a" * 300 + "\tses-1\t1\n", "at most 64"),
        (HEAD + "sub-a\0b\tses-1\t1\n", "letters, digits|cannot be read"),
        ("participant_id\tcount\tcount\nsub-1\t1\t2\n", "more than one column count"),
        ("x" * 100_000 + "\n", "Expected a column participant_id"),
        (HEAD + "sub-1\tses-1\t" + "1" * 200_000 + "\n", "cannot be read"),
        ("", "Expected a column participant_id"),
    ],
)
def test_odd_scans_are_refused_in_a_short_sentence(table, message, tmp_path):
    (tmp_path / "scans.tsv").write_text(table)
    with pytest.raises((CohortError, MapFileError), match=message) as refused:
        read_rows(tmp_path)
    assert len(str(refused.value)) < 1000


def test_a_patient_in_two_parts_is_refused(tmp_path):
    (tmp_path / "scans.tsv").write_text(HEAD + "sub-1\tses-1\t1\n")
    (tmp_path / "participants.tsv").write_text("participant_id\tsplit\nsub-1\ttrain\nsub-1\ttest\n")
    with pytest.raises(CohortError, match="sub-1 is in two parts, 'train' and 'test'"):
        read_rows(tmp_path)


def test_a_pipe_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "scans.tsv")
    with pytest.raises(MapFileError, match="it is no file"):
        read_rows(tmp_path)


def test_bytes_are_no_table(tmp_path):
    (tmp_path / "scans.tsv").write_bytes(bytes(range(256)))
    with pytest.raises(MapFileError, match="cannot be read"):
        read_rows(tmp_path)
