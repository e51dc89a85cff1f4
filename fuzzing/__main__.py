"""``python -m fuzzing``: mutate files of all formats for some minutes, and print what was found."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzing.cases import Case, Outcome
from fuzzing.findings import Findings
from fuzzing.home import make_home
from fuzzing.pool import Pool
from fuzzing.worker import TARGETS

# Between lines that say how far it is.
_SECONDS_TO_TELL = 60

# That a format has before it is the turn of another.
_SECONDS_AT_ONCE = 5

# Of each format, however slow: whole commands take a second, and would get a third of this in equal shares of the time.
_FEWEST_A_MINUTE = 6


class _Plan:
    """Which case is next: formats take turns so that each has the same time, and slow ones enough inputs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._seed, self._numbers = options.seed, Counter[str]()
        self._spent: dict[str, float] = dict.fromkeys(options.only or TARGETS, 0.0)
        self._began = time.monotonic()
        self._end = self._began + 60 * options.minutes
        self._now = ""
        self._one = options.case
        if self._one is not None:
            self._numbers = Counter(dict.fromkeys(self._spent, self._one))

    def next_case(self) -> Case | None:
        """The next case, or None when it is time to stop."""
        if time.monotonic() > self._end:
            return None
        waiting = {name for name in self._spent if self._one is None or self._numbers[name] == self._one}
        if not waiting:
            return None
        due = _FEWEST_A_MINUTE * (time.monotonic() - self._began) / 60
        behind = {name for name in waiting if self._numbers[name] < due}
        least = min(behind or waiting, key=lambda one: self._spent[one])
        # Not at every turn: a worker that is new, because the last one died, imports what a format needs again.
        is_long = self._now in waiting and self._spent[self._now] > self._spent[least] + _SECONDS_AT_ONCE
        if is_long or self._now not in (behind or waiting):
            self._now = least
        case = Case(self._seed, self._now, self._numbers[self._now])
        self._numbers[self._now] += 1
        return case

    def done(self, case: Case, seconds: float) -> None:
        """Take down the time that a case took."""
        self._spent[case.format] += seconds


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code is 1 if there are findings."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="lesioncount-fuzz-") as temporary:
        home = Path(temporary) / "home"
        # In a process of its own: this one must stay small, and outlive everything.
        maker = multiprocessing.get_context("spawn").Process(target=make_home, args=(home,))
        maker.start()
        maker.join()
        if maker.exitcode != 0:
            print("The valid files could not be made.", file=sys.stderr)
            return 2
        findings, plan, told = Findings(options.findings), _Plan(options), time.monotonic()

        def done(case: Case, outcome: Outcome, files: Path, seconds: float) -> None:
            nonlocal told
            plan.done(case, seconds)
            findings.add(case, outcome, files)
            if options.case is not None:
                print(f"{outcome.kind} {outcome.cause}\n{outcome.detail}")
            if time.monotonic() - told > _SECONDS_TO_TELL:
                told = time.monotonic()
                n = sum(sum(counts.values()) for counts in findings.counts.values())
                print(f"{n} inputs, {len(findings.by_cause)} causes", file=sys.stderr, flush=True)

        Pool(options.jobs, home, Path(temporary)).run(plan.next_case, done)
    print(findings)
    return 1 if findings.by_cause else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--only", action="append", choices=list(TARGETS), metavar="FORMAT", help=", ".join(TARGETS))
    parser.add_argument("--case", type=int, metavar="N", help="only this input, as a finding names it")
    parser.add_argument(
        "--findings", type=Path, default=Path(__file__).with_name("findings"), help="folder for what is found"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
