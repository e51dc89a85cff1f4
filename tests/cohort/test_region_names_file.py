"""Tables of regions."""

import re

import pytest

from lesioncount.cohort.tables import read_region_names
from lesioncount.errors import MapFileError, RegionError


@pytest.mark.parametrize(
    "text",
    [
        "index\tname\n1\tfront\n2\tback left\n",
        "\ufeffname,colour,Index\nfront,#f00,1\n\nback left,#0f0, 2 \n",
        "ID;Region\n0;outside\n1;front\n2;back left\n",
        "label\tname\tabbreviation\n1\tfront\tF\n2\tback left\tn/a\n",
    ],
)
def test_tables_are_read_as_bids_and_others_have_them(tmp_path, text):
    (tmp_path / "names.tsv").write_text(text, encoding="utf-8")
    assert read_region_names(tmp_path / "names.tsv") == {1: "front", 2: "back left"}


def test_several_labels_may_share_a_name_and_order_is_kept(tmp_path):
    (tmp_path / "names.tsv").write_text("index\tname\n9\tventricles\n-4\tventricles\n2\tcortex\n")
    assert list(read_region_names(tmp_path / "names.tsv").items()) == [
        (9, "ventricles"), (-4, "ventricles"), (2, "cortex"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expected a column 'index' in PATH, but its columns are none"),
        ("index\tcolour\n1\tred\n", "Expected a column 'name' in PATH, but its columns are index, colour"),
        ("index\tindex\tname\n1\t1\ta\n", "more than one column 'index'"),
        ("index\tname\n1\ta\n1\tb\n", "label 1 has more than one row"),
        ("index\tname\n1.5\ta\n", "a whole number, but got '1.5'"),
        ("index\tname\n²\ta\n", "a whole number, but got '²'"),
        ("index\tname\n99999999999\ta\n", "a whole number, but got '99999999999'"),
        ("index\tname\n1\n", "line 2: the row has no name: it does not have as many cells as the header"),
        ("index\tname\n1\t\n", "PATH, line 2: the row has no name"),
        ("index\tname\n1\tNew\n", "label 1: A region cannot be called 'New'"),
        ("index\tname\n", "but it has no rows"),
    ],
)
def test_tables_that_are_none_say_why(tmp_path, text, why):
    path = tmp_path / "names.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RegionError, match=re.escape(why.replace("PATH", str(path)))):
        read_region_names(path)


def test_files_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(MapFileError, match="cannot be read: No such file"):
        read_region_names(tmp_path / "none.tsv")
    (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe\x00index")
    with pytest.raises(MapFileError, match="cannot be read"):
        read_region_names(tmp_path / "binary.tsv")
