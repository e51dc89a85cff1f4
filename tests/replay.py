"""A process that runs commands one after the other, for tests of inputs that may kill it.

Reads a JSON list of arguments per line, and answers with a line: the exit code, what was said, and the peak of memory.
"""

import contextlib
import io
import json
import os
import resource
import sys
import traceback
import warnings
from pathlib import Path

# Beyond the 2 GB that are promised, so that what takes more is seen, and far below what a machine has.
_HARD_LIMIT = 6 << 30


def page_of_results(folder):
    from lesioncount.report import write_report

    write_report(Path(folder))


def page_of_evaluation(folder):
    from lesioncount.report.evaluation import write_evaluation_page

    write_evaluation_page(Path(folder))


PAGES = {"page-of-results": page_of_results, "page-of-evaluation": page_of_evaluation}


def called(arguments):
    """The exit code of a command; pages, which have no command of their own, are written by their functions."""
    from lesioncount.cli import main
    from lesioncount.errors import LesionCountError

    if arguments[0] not in PAGES:
        return main(arguments)
    try:
        PAGES[arguments[0]](*arguments[1:])
    except LesionCountError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def answer(arguments):
    out = io.StringIO()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # measure the peak of memory anew
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = called(arguments)
        except SystemExit as end:
            code = end.code
        except BaseException:  # noqa: BLE001 - a traceback, which the test looks for
            traceback.print_exc()
            code = -1
    return {"code": code, "said": out.getvalue()[-4000:], "peak": peak()}


def peak():
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    return 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_HARD_LIMIT, _HARD_LIMIT))
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what compiled code prints is no answer
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
