"""What is wrong with all maps is said once, and leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest

from lesioncount.cli import main

NNUNET = Path(__file__).resolve().parents[1] / "fixtures" / "nnunet"


def save(folder, **arrays):
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return str(folder)


def test_the_same_error_of_all_maps_is_one_error_and_nothing_is_written(tmp_path, capsys):
    maps, out = save(tmp_path / "maps", a=np.zeros((2, 4, 4, 4)), b=np.zeros((2, 4, 4, 4))), tmp_path / "out"
    assert main(["count", maps, "-o", str(out)]) == 2
    told = capsys.readouterr().err
    assert told.count("holds 2 channels") == 1
    assert "all 2: nothing was written" in told
    assert not out.exists()
    assert main(["count", maps, "-o", str(out), "--channel", "1"]) == 0


def test_the_same_error_of_all_maps_with_a_known_count_is_one_error(tmp_path, capsys):
    maps = save(tmp_path / "maps", **{"a b": np.zeros((2, 4, 4)), "c d": np.zeros((2, 4, 4))})
    (tmp_path / "counts.csv").write_text("well,cells\na b,1\nc d,2\n")
    assert (
        main(["count", maps, "--known", str(tmp_path / "counts.csv"), "--channel", "7", "-o", str(tmp_path / "out")])
        == 2
    )
    told = capsys.readouterr().err
    assert "all 2: nothing was written" in told
    assert told.count("a b.npy") == 1
    assert "%20" not in told


def test_errors_that_differ_are_rows(tmp_path):
    maps, out = save(tmp_path / "maps", a=np.zeros((2, 4, 4, 4)), b=np.zeros((3, 4, 4, 4))), tmp_path / "out"
    assert main(["count", maps, "-o", str(out)]) == 1
    assert (out / "counts.tsv").read_text("utf-8").count("holds") == 2


def test_one_good_map_is_counted_beside_bad_ones(tmp_path):
    maps = save(tmp_path / "maps", a=np.zeros((2, 4, 4, 4)), b=np.zeros((2, 4, 4, 4)), c=np.zeros((4, 4, 4)))
    assert main(["count", maps, "-o", str(tmp_path / "out")]) == 1


def test_patients_that_share_an_error_are_not_compared(tmp_path, capsys):
    for session in ("1", "2"):
        save(tmp_path / session, a=np.zeros((2, 4, 4, 4)), b=np.zeros((2, 4, 4, 4)))
    out = tmp_path / "out"
    assert main(["compare", str(tmp_path / "1"), str(tmp_path / "2"), "-o", str(out)]) == 2
    assert capsys.readouterr().err.count("holds 2 channels") == 1
    assert not out.exists()


@pytest.mark.parametrize("name", ["a", "other"])
def test_a_folder_of_failures_only_does_not_block(tmp_path, name):
    bad, out = save(tmp_path / "maps", a=np.full((4, 4, 4), 7.0)), str(tmp_path / "out")
    assert main(["count", bad, "-o", out]) == 1
    good = save(tmp_path / "good", **{name: np.zeros((4, 4, 4))})
    assert main(["count", good, "-o", out]) == 0
    assert (tmp_path / "out" / "a.json").exists() == (name == "a")
    assert main(["count", good, "-o", out]) == 2


def test_the_only_label_of_nnunet_is_said(tmp_path, capsys):
    assert main(["count", str(NNUNET / "normal"), "-o", str(tmp_path / "out")]) == 0
    assert "note: nnU-Net, channel 1: lesion. It is the only label in dataset.json" in capsys.readouterr().out
