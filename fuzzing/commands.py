"""The command line, called in this process: what it printed, or an error that should not be."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

from fuzzing.cases import RefusedError

# How a run writes of an error that nobody thought of.
_UNEXPECTED = re.compile(r"Traceback|unexpected \w*(Error|Exception)\b")


def command(*arguments: Any) -> str:
    """What a command printed; `RefusedError` if it ended with exit code 1 or 2 and a sentence.

    Anything else, such as another exit code, silence, or an error that was caught as "unexpected", is an error here.
    """
    from lesioncount.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    said = err.getvalue() or out.getvalue()
    if _UNEXPECTED.search(said):
        raise RuntimeError(f"caught as unexpected: {said[-300:]}")
    if code in (1, 2) and said.strip():
        raise RefusedError(said.strip()[-500:])
    if code != 0:
        raise RuntimeError(f"exit code {code}, having said {said[-300:]!r}")
    return out.getvalue()
