"""What is in a file, read as it would be counted."""

import numpy as np
import pytest

from lesioncount.cli import main


@pytest.fixture
def inspected(tmp_path, capsys):
    def told(array, *options):
        np.save(tmp_path / "map.npy", array)
        code = main(["inspect", str(tmp_path / "map.npy"), *options])
        return code, capsys.readouterr().out

    return told


def test_channels_are_described_before_one_is_chosen(inspected):
    both = np.stack([np.full((4, 4, 4), 0.05), np.linspace(0, 1, 64).reshape(4, 4, 4)])
    code, told = inspected(both)
    assert code == 1
    assert "channel 0  0.05 to 0.05, 0.00% above 0.1\nchannel 1  0 to 1, 89.06% above 0.1\n" in told
    assert "Choose that of the lesions: --channel N" in told
    code, told = inspected(both, "--channel", "1")
    assert code == 0
    assert "values     0 to 1, 89.06% above 0.1" in told


def test_a_scale_and_logits_are_taken_as_count_takes_them(inspected):
    levels = np.linspace(0, 65535, 64).reshape(4, 4, 4).astype(np.uint16)
    assert "pass scale=1/65535 (CLI: --scale 1/65535)" in inspected(levels)[1]
    code, told = inspected(levels, "--scale", "1/65535")
    assert code == 0
    assert "values     0 to 1, 89.06% above 0.1" in told
    code, told = inspected(np.linspace(-4, 4, 64).reshape(4, 4, 4), "--logits")
    assert code == 0
    assert "values     0.0179862 to 0.982014" in told
