"""Names of an earlier version that still work, with a warning, for one release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

# Deprecated in 0.2. What is deprecated next gets a version of its own.
GONE_IN = "0.3"

C = TypeVar("C", bound=type)


def warn_deprecated(old: str, new: str, *, stacklevel: int = 1) -> None:
    """Tell the caller of the function that calls this what to write instead, and until when.

    Parameters
    ----------
    old, new : str
        What was written, and what to write.
    stacklevel : int
        How many functions lie between that one and the user's code, and one more.
    """
    warnings.warn(
        f"{old} is deprecated and goes in version {GONE_IN}: use {new}.", DeprecationWarning, stacklevel=stacklevel + 2
    )


def takes_old_keyword(old: str, new: str) -> Callable[[C], C]:
    """Let a class whose option has another name now be made with the old one, too."""

    def decorated(cls: C) -> C:
        made: Callable[..., None] = cls.__init__  # type: ignore[misc]  # of this class, not of one below it

        @wraps(made)
        def init(self: Any, *args: Any, **options: Any) -> None:
            if old in options:
                warn_deprecated(f"{cls.__name__}({old}=…)", f"{new}=")
                options[new] = options.pop(old)
            made(self, *args, **options)

        cls.__init__ = init  # type: ignore[misc]
        return cls

    return decorated
