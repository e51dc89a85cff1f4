"""Odd tables, as spreadsheets and people write them: whatever a table is for, it is read in the same way."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lesioncount import PoissonBinomial
from lesioncount.assess.groups import CountedSubject
from lesioncount.assess.groups.grouping import GroupOptions, grouped
from lesioncount.assess.truth import read_truth_table
from lesioncount.cohort.tables import read_pairs, read_region_names
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.learning.label_table import LabelTable

SCANS = ("1", "2")


def counts(path):
    table = read_truth_table(path)
    return {name: str(table.count_of(name)) if table.knows(name) else None for name in SCANS}


def labels(path):
    table = LabelTable(path)
    found = {name: table.label_of(name) for name in SCANS}
    return {name: None if label is None or label.count is None else str(label.count) for name, label in found.items()}


def groups(path):
    subjects = [CountedSubject((name,), (PoissonBinomial([0.5]),)) for name in SCANS]
    found = grouped(subjects, GroupOptions(("arm",), path, skip_missing=True))
    levels = {one.name: found.levels[group][0] for one, group in zip(found.subjects, found.group, strict=True)}
    return {name: levels.get(name) for name in SCANS}


def pairs(path):
    for name in (*SCANS, "3", "4"):
        (path.parent / name).touch()
    return {pair.baseline.name: pair.followup.name for pair in read_pairs(path)}


def regions(path):
    return {str(label): name for label, name in read_region_names(path).items()}


@dataclass(frozen=True)
class Kind:
    """A kind of table: its two columns, and how it is read."""

    columns: tuple[str, str]
    read: Callable[[Path], dict[str, str | None]]
    may_be_unknown: bool


KINDS = {
    "counts": Kind(("scan", "count"), counts, may_be_unknown=True),
    "labels": Kind(("scan", "count"), labels, may_be_unknown=True),
    "groups": Kind(("scan", "arm"), groups, may_be_unknown=True),
    "pairs": Kind(("baseline", "followup"), pairs, may_be_unknown=False),
    "regions": Kind(("index", "name"), regions, may_be_unknown=False),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def read(kind, text, folder):
    for placeholder, column in zip(("KEY", "VALUE"), kind.columns, strict=True):
        text = text.replace(placeholder, column)
    path = folder / "table.txt"
    path.write_bytes(text.encode())
    return kind.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "KEY,VALUE\n1,3\n2,4\n",
        "KEY\tVALUE\n1\t3\n2\t4",
        "\ufeffKEY;VALUE\r\n1;3\r\n2;4\r\n",
        "VALUE,KEY\n3,1\n4,2\n",
        " KEY , VALUE\n 1 , 3 \n2, 4\n",
        '"KEY";"VALUE"\n"1";"3"\n"2";"4"\n',
        '\n,,\nKEY,VALUE\n\n1,3\n,\n2,4\n"",\n',
        'KEY,note,VALUE\n1,"a, b;\tc",3\n2,"on two\nlines",4\n',
        '"note; unit",KEY,VALUE\nx,1,3\ny,2,4\n',
        "KEY,VALUE\n1,3,,\n2,4,\n",
        "KEY,VALUE,note,note\n1,3,a,b\n2,4,c,d\n",
        "KEY,VALUE,note\n1,3\n2,4,x\n",
    ],
)
def test_tables_that_say_the_same(kind, text, tmp_path):
    assert read(kind, text, tmp_path) == {"1": "3", "2": "4"}


@pytest.mark.parametrize("unknown", ["", "  ", "n/a", "N/A", "NA", "nan", "NaN", "None", '""', '" n/a "'])
def test_cells_that_say_nothing(kind, unknown, tmp_path):
    text = f"KEY,VALUE\n1,{unknown}\n2,4\n"
    if kind.may_be_unknown:
        assert read(kind, text, tmp_path) == {"1": None, "2": "4"}
    else:
        with pytest.raises(LesionCountError, match=rf"table\.txt, line 2: the row has no {kind.columns[1]}\."):
            read(kind, text, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "but its columns are none"),
        ("KEY\n1\n", "Expected a column '.*' in .*table.txt, but its columns are "),
        ("KEY,VALUE,VALUE\n1,3,3\n", "more than one column '.*'. Rename or remove all but one"),
        ("KEY,VALUE\n2,4\n1\n", "line 3: the row has no .*: it does not have as many cells as the header"),
        ('KEY,note,VALUE\n1,"on two\nlines",3\n2,4\n', "line 4: the row has no .*: it does not have as many cells"),
        ("KEY,VALUE\n1,3,5\n", r"line 2: a row has more cells than the header: \['1', '3', '5'\]"),
        ("KEY,VALUE\n2,4\n,3\n", "line 3: "),
    ],
)
def test_tables_that_are_refused(kind, text, message, tmp_path):
    with pytest.raises(LesionCountError, match=message):
        read(kind, text, tmp_path)


@pytest.mark.parametrize("name", ["counts", "labels", "groups", "regions"])
def test_names_that_are_there_twice(name, tmp_path):
    with pytest.raises(LesionCountError, match=r"line 4: .*1'? has more than one row"):
        read(KINDS[name], "KEY,VALUE\n1,3\n2,4\n1,3\n", tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00KEY", b"KEY,VALUE\n1," + b"3" * 200_000])
def test_files_that_are_no_tables(kind, content, tmp_path):
    (tmp_path / "table.txt").write_bytes(content)
    with pytest.raises(MapFileError, match=r"The table .*table\.txt cannot be read: "):
        kind.read(tmp_path / "table.txt")
    with pytest.raises(MapFileError, match="cannot be read: No such file"):
        kind.read(tmp_path / "none.txt")
