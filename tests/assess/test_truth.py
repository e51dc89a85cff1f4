"""Lesions that experts drew one by one."""

import json

import numpy as np
import pytest
from nifti_files import save

import lesioncount as lc
from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.truth import Instances, read_truth_table, true_lesions
from lesioncount.cli import main
from lesioncount.errors import SpacingError, TruthError
from lesioncount.files.geometry import VoxelGrid


def drawn(tmp_path, values, protocol=None, **options):
    values = np.asarray(values)
    np.save(tmp_path / "mask.npy", values)
    grid = VoxelGrid(tmp_path / "map.npy", values.shape, None, None)
    return true_lesions(tmp_path / "mask.npy", grid, protocol or lc.CountingProtocol(), instances=True, **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("ndim", [2, 3])
def test_each_value_is_a_lesion_though_it_touches_another(tmp_path, dtype, ndim):
    values = np.zeros((6, 7), dtype)
    large = 250 if dtype == np.uint8 else 60_000
    values[1, 1:3], values[1, 3:5], values[4, 4], values[2, 6] = 3, large, 7, 3  # 3 lies in two pieces
    values = values if ndim == 2 else np.stack([np.zeros_like(values), values])
    found = drawn(tmp_path, values)
    assert len(found) == 3
    np.testing.assert_array_equal(found.label_map(), np.searchsorted([0, 3, 7, large], values))


def test_a_binary_mask_is_one_lesion_or_none(tmp_path):
    assert len(drawn(tmp_path, np.eye(4, dtype=bool))) == 1
    assert len(drawn(tmp_path, np.zeros((4, 4)))) == 0


def test_nan_is_outside(tmp_path):
    assert len(drawn(tmp_path, [[np.nan, 1.0], [2.0, 0.0]])) == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, -3], [1, 2]], "holds -3"),
        ([[0.0, 0.5], [1, 2.25]], "holds 0.5, 2.25"),
        ([[0.0, np.inf], [1, 2]], "holds inf"),
    ],
)
def test_values_that_number_nothing_are_errors(tmp_path, values, message):
    with pytest.raises(TruthError, match=f"whole numbers from 0 .*--truth-instances.*{message}"):
        drawn(tmp_path, values)


def test_the_smallest_size_is_that_of_the_protocol():
    values = np.zeros((5, 6, 7), np.int32)
    values[0, 0, :3], values[2:4, 2:4, 2:4], values[4, 5, 6] = 5, 9, 2
    for protocol, kept in (
        ({"min_voxels": 3}, [5, 9]), ({"min_volume_mm3": 4}, [9]), ({"min_length_mm": 3}, [5]), ({}, [2, 5, 9]),
    ):  # fmt: skip
        found = Instances.of(values, lc.CountingProtocol(**protocol), spacing_mm=(1.0, 1.0, 1.0))
        assert len(found) == len(kept)
        np.testing.assert_array_equal(found.label_map() > 0, np.isin(values, kept))
        assert found.label_map().max() == len(kept)
    with pytest.raises(SpacingError):
        Instances.of(values, lc.CountingProtocol.named("ms"), spacing_mm=None)


def test_only_what_is_inside_the_mask_counts(tmp_path):
    np.save(tmp_path / "within.npy", np.array([[1, 1, 0, 0]]))
    assert len(drawn(tmp_path, [[4, 0, 5, 6]], within=tmp_path / "within.npy")) == 1


def test_instances_and_a_label_exclude_each_other(tmp_path):
    with pytest.raises(TruthError, match="no --truth-label"):
        TruthOptions(masks=(tmp_path,), label=1, instances=True)


def test_touching_instances_are_the_truth_of_an_evaluation(tmp_path, capsys):
    """Two nuclei that touch: one candidate, and one of the two has it for its own."""
    p, values = np.full((20, 20), 0.01, np.float32), np.zeros((20, 20), np.uint16)
    p[4:12, 4:8], values[4:8, 4:8], values[8:12, 4:8] = 0.9, 700, 12
    for folder, array in (("maps", p), ("masks", values)):
        (tmp_path / folder).mkdir()
        for name in "ab":
            np.save(tmp_path / folder / f"{name}.npy", array)
    paths = {name: str(tmp_path / name) for name in ("maps", "masks", "out", "eval", "none")}
    assert main(["count", paths["maps"], "-o", paths["out"], "--quiet"]) == 0
    arguments = ["evaluate", paths["out"], "--truth", paths["masks"], "-o", paths["eval"]]
    assert main(arguments) == 2
    assert "If each value is a lesion of its own, pass --truth-instances" in capsys.readouterr().err
    assert main([*arguments, "--truth-instances"]) == 0
    content = json.loads((tmp_path / "eval" / "evaluation.json").read_text())
    assert [row["truth"] for row in content["scans"]] == [2, 2]
    assert [content["lesions"][name] for name in ("n_hit", "n_shared", "n_missed")] == [2, 2, 0]
    assert content["truth"]["kind"] == "instances"
    assert "more than one value" not in capsys.readouterr().out
    for name in "ab":
        np.save(tmp_path / "masks" / f"{name}.npy", values > 0)
    assert main([*arguments, "--truth-instances", "--overwrite"]) == 0
    assert "No mask holds more than one value" in capsys.readouterr().out


def test_nuclei_are_counted_as_experts_drew_them(shared_data, tmp_path):
    with np.load(shared_data / "nuclei" / "nuclei.npz") as nuclei:
        counts = [len(drawn(tmp_path, values)) for values in nuclei["instances"][:40]]
        assert counts == nuclei["count"][:40].tolist()


def test_rows_may_be_called_as_the_pictures_are(tmp_path):
    (tmp_path / "counts.csv").write_text("scan,count\ndish1.png,3\ndish1,4\ndish2.JPG,5\ndish3.jpg,6\n")
    table = read_truth_table(tmp_path / "counts.csv")
    assert table.count_of("dish1") == 4  # its own name comes first
    assert table.count_of("dish3") == 6
    assert table.count_of("dish2") == 5
    assert not table.knows("dish4")
    table.check_each_has_its_own([["dish1"], ["dish3"]])
    with pytest.raises(TruthError, match=r"'dish3\.jpg' would serve both"):
        table.check_each_has_its_own([["a", "dish3"], ["b", "dish3"]])


@pytest.mark.parametrize(("of", "truth"), [("new", [1, 0]), ("gone", [0, 1])])
def test_the_table_of_changes_that_synthesize_writes_is_truth(tmp_path, of, truth):
    for session, places in (("01", [4]), ("02", [4, 12]), ("03", [12])):
        values = np.zeros((8, 8, 20), np.float32)
        values[4, 4, places] = 0.9
        name = f"sub-001/ses-{session}/anat/sub-001_ses-{session}_probseg.nii.gz"
        (tmp_path / "maps" / name).parent.mkdir(parents=True)
        save(tmp_path / "maps" / name, values)
    rows = (
        "participant_id\tbaseline\tfollowup\tn_before\tn_after\tn_new\tn_gone",
        "sub-001\tses-01\tses-02\t1\t2\t1\t0",
        "sub-001\tses-02\tses-03\t2\t1\t0\t1",
    )
    (tmp_path / "changes.tsv").write_text("\n".join(rows) + "\n")
    compared, evaluation = str(tmp_path / "compared"), str(tmp_path / "evaluation")
    assert main(["compare", str(tmp_path / "maps"), "-o", compared, "--quiet"]) == 0
    table = ["--truth-counts", str(tmp_path / "changes.tsv")]
    assert main(["evaluate", compared, "--of", of, *table, "-o", evaluation, "--quiet"]) == 0
    content = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    assert [row["truth"] for row in content["scans"]] == truth
