"""Configurations that nobody would write: each is refused with a sentence."""

import os
import subprocess
import sys

import pytest

from lesioncount.errors import ConfigError
from lesioncount.learning.config import TrainingConfig


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\nseed = " + "9" * 400 + "\n", "seed in \\[run\\] to be a number of ordinary size"),
        ("[run]\nseed = " + "9" * 5000 + "\n", "does not parse"),
        ("[run]\nseed = 0x" + "f" * 50_000 + "\n", "too long to show"),
        ("[data]\nshape = [8, 8, 0x" + "f" * 50_000 + "]\n", "too long to show"),
        ("[data]\nshape = [true, 8, 8]\n", "shape in \\[data\\] to be"),
        ("[data]\nshape = [100000, 100000, 100000]\n", "shape in \\[data\\] to be"),
        ("[optimizer]\nlearning_rate = nan\n", "learning_rate in \\[optimizer\\] to be a number of ordinary size"),
        ("[optimizer]\nlearning_rate = -inf\n", "ordinary size"),
        ("[optimizer]\nlearning_rate = 0\n", "learning_rate in \\[optimizer\\] to be"),
        ("[loss]\ncount_growth = 1e300\n", "count_growth in \\[loss\\] to be"),
        ("[loss]\nmax_count = 1000000000\n", "max_count in \\[loss\\] to be"),
        ("[network]\nfilters = 1000000\n", "filters in \\[network\\] to be at least 1"),
        ("[network]\nlevels = 1000000000\n", "filters in \\[network\\] to be at least 1"),
        ("[run]\nworkers = -1\n", "workers in \\[run\\] to be at least 0"),
        ("a = " + "[" * 100_000, "does not parse"),
        ("a" * 10_000 + " = 1\n", "Expected a section"),
        ("[" + "a" * 10_000 + "]\n", "no section called 'aaa"),
    ],
)
def test_odd_values_are_refused_in_a_short_sentence(text, message):
    with pytest.raises(ConfigError, match=message) as refused:
        TrainingConfig.from_toml(text)
    assert len(str(refused.value)) < 12_000


def test_files_that_are_no_text_or_never_end_are_refused(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "long.toml").write_bytes(b"#" * (1 << 21))
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("bytes.toml", "long.toml", "pipe.toml", ".", "no\0name"):
        with pytest.raises(ConfigError, match="cannot be read as a file"):
            TrainingConfig.load(tmp_path / name)


def test_a_table_where_a_section_should_be_is_named():
    with pytest.raises(ConfigError, match="Expected a section"):
        TrainingConfig.from_dict({"run": [1]})


def test_a_seed_on_the_command_line_is_checked_like_one_in_a_file(tmp_path):
    command = [sys.executable, "-m", "lesioncount", "train", "smoke", "--seed", "9" * 400, "-o", str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "t").exists()
