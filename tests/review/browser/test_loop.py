"""The whole loop: review twenty scans by keyboard, export, calibrate from them, count the others with it."""

import csv
import json

import nibabel
import numpy as np
import pytest
from served_page import Server

from lesioncount.cli import main

SHAPE = (12, 14, 8)
SPOTS = [(2, 2, 2), (8, 3, 5), (3, 10, 5)]


def save_maps(folder, n, rng):
    folder.mkdir()
    for number in range(n):
        probabilities = np.zeros(SHAPE, np.float32)
        for spot in SPOTS:
            probabilities[spot] = rng.uniform(0.2, 0.95)
        nibabel.save(nibabel.Nifti1Image(probabilities, np.eye(4)), folder / f"scan{number:02}.nii.gz")
    return folder


def total_of(out, column):
    with (out / "counts.tsv").open(encoding="utf-8", newline="") as table:
        return sum(float(row[column]) for row in csv.DictReader(table, delimiter="\t"))


def run(*command):
    assert main([str(word) for word in command]) == 0


@pytest.mark.slow
def test_twenty_reviewed_scans_calibrate_the_others(tmp_path, rng, another):
    out = tmp_path / "out"
    run("count", save_maps(tmp_path / "maps", 20, rng), "-o", out, "--quiet")
    with Server(out) as server:
        reader = another(server.address, "Ann")
        reader.page.click("#begin")
        for _ in range(20):
            reader.page.wait_for_selector(".scan")
            scan = reader.page.title()
            # A reader who finds that the network is too sure of itself.
            existence = map(float, reader.page.locator("#list .existence").all_text_contents())
            reader.press("l" if rng.random() < 0.6 * value else "n" for value in existence)
            reader.page.keyboard.press("d")
            reader.until(f"document.title !== {json.dumps(scan)}")
        reader.page.wait_for_selector(".cohort")
        assert "20 of 20" in reader.text(".tiles")
        assert "All scans are done" in reader.text(".cohort")
        reader.page.click("#export")
        reader.page.wait_for_selector(".written li")
    rows = (out / "reviewed_counts.tsv").read_text("utf-8").splitlines()
    assert len(rows) == 21
    run("calibrate", out, "--reviews", "-o", tmp_path / "calibration.json")
    others = save_maps(tmp_path / "others", 3, rng)
    run("count", others, "-o", tmp_path / "new", "--quiet", "--calibration", tmp_path / "calibration.json")
    assert total_of(tmp_path / "new", "count_mean_calibrated") < total_of(tmp_path / "new", "count_mean")
