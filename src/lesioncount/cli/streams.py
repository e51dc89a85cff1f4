"""Standard output and error that never end a run: what nobody reads any more is dropped."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


class ForgivingStream:
    """A stream that goes quiet when its reader has gone: a closed pipe, a closed terminal, a full disk.

    Parameters
    ----------
    stream : text stream or None
        None where Python found none, as with ``>&-``.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = _nowhere() if stream is None else stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal cannot show

    def write(self, text: str) -> int:
        """Write as far as somebody reads."""
        with self._forgiven():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush as far as somebody reads."""
        with self._forgiven():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _forgiven(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):  # ValueError: it was closed
            with suppress(OSError, ValueError):  # what is left in its buffer must not fail at the end of the process
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            self._stream = _nowhere()


@contextmanager
def forgiving_streams() -> Iterator[None]:
    """Make printing safe while a command runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (ForgivingStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _nowhere() -> IO[str]:
    return Path(os.devnull).open("w", encoding="utf-8")  # for as long as the process lives
