"""Real masks and real network outputs, through the command."""

import csv
import json

from lesioncount.cli import main


def read(path, delimiter="\t"):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_expert_counts_are_reproduced_from_the_masks(shared_data, tmp_path):
    folder = shared_data / "open_ms"
    expert = {row["patient"]: row for row in read(folder / "counts.csv", ",") if row["space"] == "cs_MNI"}
    definitions = {"n_cc6": ["--connectivity", "6"], "n_cc26_ge3mm3": ["--connectivity", "26", "--min-size", "3mm3"]}
    for column, options in definitions.items():
        out = tmp_path / column
        assert main(["count", str(folder / "masks_mni"), "-o", str(out), "--jobs", "2", "--quiet", *options]) == 0
        counts = read(out / "counts.tsv")
        assert len(counts) == 30
        for row in counts:
            expected = int(expert[row["scan"].removeprefix("patient").split("_")[0]][column])
            assert int(row["count_mode"]) == int(row["cc_count"]) == expected
            assert "binary" in json.loads((out / f"{row['scan']}.json").read_text())["warnings"][0]


def test_real_network_outputs_are_counted(shared_data, tmp_path):
    assert main(["count", str(shared_data / "open_ms" / "nic_probs"), "-o", str(tmp_path), "--quiet"]) == 0
    counts = read(tmp_path / "counts.tsv")
    assert len(counts) == 4
    for row in counts:
        assert int(row["n_candidates"]) > 0
        assert float(row["count_sd"]) > 0


def test_the_protocol_for_ms_keeps_what_is_3_mm_long(shared_data, tmp_path):
    """Of 3115 components in 30 expert masks, 2541 are at least 3 mm long, by the distance of their farthest voxels."""
    arguments = ["count", str(shared_data / "open_ms" / "masks_mni"), "-o", str(tmp_path), "--jobs", "2", "--quiet"]
    assert main([*arguments, "--protocol", "ms"]) == 0
    assert sum(int(row["count_mode"]) for row in read(tmp_path / "counts.tsv")) == 2541
