"""What a run shows while it goes on."""

import io

from lesioncount import PoissonBinomial
from lesioncount.cli.progress import progress_on
from lesioncount.results.record import Entry
from lesioncount.results.scan_numbers import CandidateNumbers, CountNumbers, ScanNumbers


class Terminal(io.StringIO):
    def isatty(self):
        return True


def summary(name, status="ok"):
    count = CountNumbers.of(PoissonBinomial([0.5]))
    return Entry(scan=name, status=status, count=ScanNumbers.of(CandidateNumbers(1, 1, None), count))


def test_a_terminal_gets_a_bar():
    stream = Terminal()
    with progress_on(stream, quiet=False) as update:
        for done in (1, 2):
            update(summary(f"scan{done}"), done, 2)
    assert "2/2" in stream.getvalue()
    assert "counting" in stream.getvalue()


def test_a_file_gets_a_line_now_and_then_and_for_every_failure():
    stream = io.StringIO()
    with progress_on(stream, quiet=False) as update:
        for done in range(1, 1001):
            update(summary(f"scan{done}", "failed" if done == 7 else "ok"), done, 1000)
    lines = stream.getvalue().splitlines()
    assert "7/1000 scan7 failed" in lines
    assert lines[-1] == "1000/1000 scan1000 ok"
    assert len(lines) == 21


def test_quiet_runs_show_nothing():
    with progress_on(Terminal(), quiet=True) as update:
        assert update is None


def test_plain_lines_say_how_much_time_is_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with progress_on(stream, quiet=False) as update:
        for done in range(1, 101):
            now[0] += 36.0
            update(summary(f"scan{done}"), done, 100)
    lines = stream.getvalue().splitlines()
    assert "5/100 scan5 ok, about 57 min left" in lines
    assert "75/100 scan75 ok, about 15 min left" in lines
    assert lines[-1] == "100/100 scan100 ok"


def test_where_scans_take_long_nobody_waits_for_a_line(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with progress_on(stream, quiet=False) as update:
        for done in range(1, 5):
            now[0] += 70.0
            update(summary(f"scan{done}"), done, 10_000)
    assert len(stream.getvalue().splitlines()) == 4
    assert stream.getvalue().startswith("1/10000 scan1 ok\n2/10000 scan2 ok, about 8 d left\n")
