"""What people see first, and options that stand for several."""

import argparse
import re

import pytest

from lesioncount.cli import _COMMANDS, main
from lesioncount.cli.map_arguments import smallest_sizes


def options_of(text):
    return set(re.findall(r"^  (?:-\w[^,]*, )?(--[\w-]+)", text, re.MULTILINE))


def help_of(command, option, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, option])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", _COMMANDS)
def test_the_first_screen_has_few_options(command, capsys):
    assert len(options_of(help_of(command, "--help", capsys))) <= 18


@pytest.mark.parametrize("command", ["count", "compare"])
def test_the_rest_is_one_option_away(command, capsys):
    first, every = (options_of(help_of(command, option, capsys)) for option in ("--help", "--help-all"))
    assert first < every
    assert {"--connectivity", "--cluster", "--coupling" if command == "compare" else "--ask"} <= every
    assert f"{len(every) - len(first)} more options" in " ".join(help_of(command, "--help", capsys).split())


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("3vox", {"min_voxels": 3}),
        ("3mm3", {"min_volume_mm3": 3.0}),
        ("2.5 mm³", {"min_volume_mm3": 2.5}),
        ("3mm", {"min_length_mm": 3.0}),
        ("3mm,10vox", {"min_length_mm": 3.0, "min_voxels": 10}),
    ],
)
def test_a_smallest_size_has_its_unit(text, sizes):
    assert smallest_sizes(text) == sizes


@pytest.mark.parametrize("text", ["3", "", "mm", "-3mm", "3cm", "2.5vox", "3mm,", "1e3mm", "٣mm", "nanmm"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size such as 3vox, 3mm3 or 3mm"):
        smallest_sizes(text)


def test_what_cannot_be_written_is_refused_with_what_can(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "a", "b", "-o", str(tmp_path), "--write", "labels,dicom"])
    assert "'dicom' cannot be written. There are labels, parquet" in capsys.readouterr().err
