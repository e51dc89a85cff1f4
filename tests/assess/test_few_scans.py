"""Fewer than ten scans bear no verdict: neither in notes nor on the page nor in what is printed."""

import re

import numpy as np
from nifti_files import save

from lesioncount.assess.evaluation.evaluation import FEWEST_TO_JUDGE
from lesioncount.cli import main

# What only a verdict says.
VERDICTS = (
    "systematically", "are too narrow for the errors", "about as good", "neither clearly", "no clear difference",
    ": better", ": worse", "is better than", "is worse than",
)  # fmt: skip


def said_of(tmp_path, capsys, n):
    """All that is said of n scans whose maps are certain of twice as many lesions as there are."""
    for i in range(n):
        p = np.zeros((6, 16, 8), np.float32)
        p[2, 1::3, 2] = 0.995
        p[2, 2, 5] = 0.3
        save(tmp_path / "maps" / f"s{i}.nii.gz", p)
        save(tmp_path / "masks" / f"s{i}.nii.gz", ((p > 0.9) & (np.arange(16) < 8)[:, None]).astype(np.uint8))
    out = str(tmp_path / "out")
    assert main(["count", str(tmp_path / "maps"), "-o", out, "--quiet"]) == 0
    assert main(["evaluate", out, "--truth", str(tmp_path / "masks"), "-o", str(tmp_path / "evaluation")]) == 0
    page = (tmp_path / "evaluation" / "evaluation.html").read_text()
    page = re.sub(r"<svg.*?</svg>|<style.*?</style>|<script.*?</script>", " ", page, flags=re.DOTALL)
    return capsys.readouterr().out + re.sub(r"<[^>]*>", " ", page)


def verdicts_in(text):
    return {one for one in VERDICTS if one in text}


def test_nine_scans_bear_no_verdict_and_ten_do(tmp_path, capsys):
    few = said_of(tmp_path / "few", capsys, FEWEST_TO_JUDGE - 1)
    assert verdicts_in(few) == set()
    assert "A verdict takes 10." in few
    assert "The maps are polarised" in few
    enough = said_of(tmp_path / "enough", capsys, FEWEST_TO_JUDGE)
    assert {"systematically", "are too narrow for the errors", "about as good"} <= verdicts_in(enough)
