"""Photographs that somebody counts for maps."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from lesioncount.cli import main
from lesioncount.results.count_warnings import DARK_PICTURES, PICTURE
from lesioncount.results.value_shares import are_pictures, is_picture, shares_of
from lesioncount.runs import count_batch, count_file


def a_map(rng):
    """Some lesions with soft edges on background with a little noise."""
    spots = gaussian_filter((rng.random((96, 96)) > 0.998).astype(float), 3)
    logits = 40 * (spots / spots.max() - 0.4) + rng.normal(0, 0.5, (96, 96))
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def a_photograph(rng):
    """Bright, with shades of grey."""
    grey = gaussian_filter(rng.random((96, 96)), 4)
    return (0.3 + 0.6 * (grey - grey.min()) / np.ptp(grey)).astype(np.float32)


def a_dark_picture(rng):
    """Grey things on black, a few of them bright."""
    things = gaussian_filter(rng.random((96, 96)), 6)
    things = np.clip((things - np.quantile(things, 0.6)) / np.ptp(things), 0, 1)
    return (0.05 + 0.9 * things / things.max() * rng.uniform(0.3, 1)).astype(np.float32)


def test_maps_are_maps_alone_and_together(rng):
    shares = [shares_of(a_map(rng)) for _ in range(20)]
    assert not any(map(is_picture, shares))
    assert not are_pictures(shares)


def test_a_photograph_is_told_alone(rng):
    assert is_picture(shares_of(a_photograph(rng)))
    assert is_picture(shares_of(1 - a_map(rng)))


def test_dark_pictures_are_told_together_only(rng):
    shares = [shares_of(a_dark_picture(rng)) for _ in range(20)]
    assert not any(map(is_picture, shares))
    assert are_pictures(shares[:5])
    assert not are_pictures(shares[:4])


def test_small_crops_are_not_judged(rng):
    assert shares_of(a_photograph(rng)[:60, :60]) == ()


def test_what_is_no_probability_outside_of_a_mask_is_not_seen(rng):
    values = a_map(rng)
    values[:8] = np.nan
    values[8:16] = 300
    assert not is_picture(shares_of(values))


def test_a_stream_gives_the_shares_of_the_whole(tmp_path, rng):
    values = np.stack([a_map(rng)] * 200)
    np.save(tmp_path / "map.npy", values)
    assert count_file(tmp_path / "map.npy").shares == pytest.approx(shares_of(values), abs=600)


@pytest.fixture
def folder_of(tmp_path, rng):
    def made(picture, n):
        (tmp_path / "maps").mkdir()
        for i in range(n):
            np.save(tmp_path / "maps" / f"p{i}.npy", picture(rng))
        return tmp_path / "maps"

    return made


def test_a_photograph_is_warned_of_in_row_table_and_page(folder_of, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["count", str(folder_of(a_photograph, 1)), "-o", str(out), "--report"]) == 0
    assert PICTURE in capsys.readouterr().out
    for name in ("counts.tsv", "p0.json", "report.html"):
        assert "Hardly any of the map is background" in (out / name).read_text("utf-8"), name


def test_dark_pictures_are_warned_of_together_also_when_resumed(folder_of, tmp_path):
    maps = folder_of(a_dark_picture, 6)
    for resume in (False, True):
        found = count_batch([maps], tmp_path / "out", resume=resume).warnings
        assert [scan.name for scan in found[DARK_PICTURES]] == [f"p{i}" for i in range(6)]


class Terminal:
    """What somebody types."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def isatty(self):
        return True

    def readline(self):
        self.asked += 1
        return self.answer


@pytest.mark.parametrize(("answer", "code", "n"), [("y\n", 0, 3), ("\n", 130, 1), ("", 130, 1)])
def test_on_a_terminal_it_is_asked_once(folder_of, tmp_path, monkeypatch, capsys, answer, code, n):
    typed = Terminal(answer)
    monkeypatch.setattr("sys.stdin", typed)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    out = tmp_path / "out"
    assert main(["count", str(folder_of(a_photograph, 3)), "-o", str(out)]) == code
    assert typed.asked == 1
    assert "p0: Hardly any of the map is background" in capsys.readouterr().err
    assert len((out / "counts.tsv").read_text("utf-8").splitlines()) == n + 1


def test_nobody_is_asked_without_a_terminal(folder_of, tmp_path):
    assert main(["count", str(folder_of(a_photograph, 2)), "-o", str(tmp_path / "out")]) == 0
