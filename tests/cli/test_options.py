"""Options that are given by what help says of them."""

import argparse
import shlex
from pathlib import Path

import pytest

from lesioncount.cli.options import NUMBER, REPEATED, add_options


@pytest.fixture
def parse():
    """A parser of one option of each kind."""
    parser = argparse.ArgumentParser()
    options = {
        "--all": "a flag",
        "--mask FILE|FOLDER": "a path",
        "--protocol NAME|FILE": ("a text", {"default": "paper"}),
        "--channel N": "a whole number",
        "--threshold T": ("a number", NUMBER),
        "--candidates {regions,peaks}": "one of two words",
        "--ask QUESTION": ("several texts", REPEATED),
    }
    add_options(parser, options)
    return lambda *given: vars(parser.parse_args(given))


def test_what_stands_for_a_value_says_its_kind(parse):
    given = shlex.split("--all --mask m --channel 2 --threshold 0.5 --candidates peaks --ask a --ask b")
    assert parse(*given) == {
        "all": True,
        "mask": Path("m"),
        "protocol": "paper",
        "channel": 2,
        "threshold": 0.5,
        "candidates": "peaks",
        "ask": ["a", "b"],
    }


def test_what_is_repeated_begins_empty_each_time(parse):
    assert parse("--ask", "a")["ask"] == ["a"]
    assert parse()["ask"] == []


@pytest.mark.parametrize("given", [["--channel", "1.5"], ["--candidates", "both"], ["--mask", ""]])
def test_a_value_of_another_kind_is_refused(parse, given, capsys):
    with pytest.raises(SystemExit):
        parse(*given)
    assert "error: argument" in capsys.readouterr().err
