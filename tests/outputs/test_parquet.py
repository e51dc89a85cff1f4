"""Tables as Parquet, beside those of text."""

import csv
import sys

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.errors import MissingExtraError
from lesioncount.runs import count_batch


@pytest.fixture
def maps(tmp_path, rng):
    for number in range(6):
        name = f"sub-0{number}_label-lesion_probseg.nii.gz"
        save(tmp_path / "maps" / name, (rng.random((6, 7, 8)) ** 6).astype(np.float32))
    (tmp_path / "maps" / "sub-09_label-lesion_probseg.nii.gz").write_bytes(b"no map")
    return tmp_path / "maps"


def test_a_missing_package_is_said_before_anything_is_counted(maps, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[parquet\]'"):
        count_batch([maps], tmp_path / "out", parquet=True)
    assert not (tmp_path / "out").exists()


class TestWritten:
    """With pyarrow."""

    @pytest.fixture(autouse=True)
    def _arrow(self):
        pytest.importorskip("pyarrow")

    @pytest.mark.parametrize("protocol", ["paper", "peaks"])
    def test_it_holds_what_the_text_holds_with_types(self, maps, tmp_path, protocol):
        from pyarrow import parquet

        arguments = [
            "count",
            str(maps),
            "-o",
            str(tmp_path / "out"),
            "--protocol",
            protocol,
            "--write=parquet",
            "--quiet",
        ]
        assert main(arguments) == 1
        for name in ("counts", "lesions"):
            table = parquet.read_table(tmp_path / "out" / f"{name}.parquet")
            with (tmp_path / "out" / f"{name}.tsv").open() as file:
                rows = list(csv.DictReader(file, delimiter="\t"))
            assert table.column_names == list(rows[0])
            for ours, text in zip(table.to_pylist(), rows, strict=True):
                for column, value in ours.items():
                    expected = None if text[column] == "n/a" else text[column]
                    assert value == expected or float(value) == float(expected)
        counts = parquet.read_table(tmp_path / "out" / "counts.parquet").to_pylist()
        assert counts[0]["participant_id"] == "sub-00"
        assert isinstance(counts[0]["count_median"], int)
        assert isinstance(counts[0]["count_mean"], float)
        assert counts[-1]["count_median"] is None
        assert "no map" not in counts[-1]["error"]
        assert counts[-1]["status"] == "failed"

    def test_a_table_without_rows_has_its_columns(self, tmp_path):
        from pyarrow import parquet

        save(tmp_path / "empty.nii.gz", np.zeros((4, 5, 6), np.float32))
        count_batch([tmp_path / "empty.nii.gz"], tmp_path / "out", parquet=True)
        table = parquet.read_table(tmp_path / "out" / "lesions.parquet")
        assert table.num_rows == 0
        assert "existence" in table.column_names

    def test_it_goes_when_it_is_no_longer_that_of_the_text(self, maps, tmp_path):
        count_batch([maps], tmp_path / "out", parquet=True)
        count_batch([maps], tmp_path / "out", overwrite=True)
        assert not list((tmp_path / "out").glob("*.parquet"))

    def test_it_is_made_when_it_is_asked_for_later(self, tmp_path, maps):
        (maps / "sub-09_label-lesion_probseg.nii.gz").unlink()
        count_batch([maps], tmp_path / "out")
        count_batch([maps], tmp_path / "out", resume=True, parquet=True)
        assert {path.stem for path in (tmp_path / "out").glob("*.parquet")} == {"counts", "lesions"}
