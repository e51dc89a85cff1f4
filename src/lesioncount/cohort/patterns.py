"""Paths with fields, such as ``flair/{participant}_{session}_FLAIR.nii.gz`` → the files they mean."""

from __future__ import annotations

import glob
import itertools
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from lesioncount.cohort.whose import label_of
from lesioncount.errors import MapFileError
from lesioncount.files.remote_listing import matches
from lesioncount.files.remote_path import absolute_text

# What a participant or a session may begin with, or not, in names of files.
_PREFIXES = {"participant": "sub-", "session": "ses-", "sub": "sub-", "ses": "ses-"}

_SAME_AS = {"sub": "participant", "ses": "session"}
_ALWAYS = ("participant", "session", "name", "folder", "scan")
_FIELDS = f"{', '.join(f'{{{one}}}' for one in _ALWAYS)} and entities of BIDS such as {{run}}"


def is_pattern(path: Path) -> bool:
    """Whether a path has fields to be filled, and is not itself that of a file."""
    return bool(re.search(r"\{\w*\}", str(path))) and not path.exists()


class PathPattern:
    """A path with fields in braces, and wildcards if needed.

    Parameters
    ----------
    text : str
        Of files here, or in a bucket. Fields are ``participant``, ``session``, ``name`` (of the file, without its
        ending), ``folder`` (of the file, below the folder that was given), ``scan`` (its name in results), and
        entities of BIDS such as ``run``.
    """

    def __init__(self, text: str) -> None:
        try:
            self._parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise MapFileError(f"{text} is not a pattern of paths: {error}.") from None
        self.text = text
        self.fields = {field for _, field, _, _ in self._parts if field is not None}
        wrong = [field for field in sorted(self.fields) if not re.fullmatch(r"[A-Za-z]+", field)]
        if wrong or any(spec or conversion for _, _, spec, conversion in self._parts):
            raise MapFileError(f"The pattern {text} has a field that is none. Fields are {_FIELDS}.")

    def matches(self, values: Mapping[str, str | None]) -> list[Path]:
        """The files that are meant for a scan; none if a field of it is not known.

        Participants and sessions are found with and without ``sub-`` and ``ses-``.
        """
        names = sorted(self.fields)
        choices = [_forms(field, values.get(_SAME_AS.get(field, field))) for field in names]
        found: dict[str, Path] = {}
        for chosen in itertools.product(*choices):
            text = self._filled(dict(zip(names, chosen, strict=True)))
            for match in matches(text):
                found.setdefault(absolute_text(match), match)
        return [found[key] for key in sorted(found)]

    def check_known(self, scans: Sequence[Mapping[str, str | None]]) -> None:
        """Raise if there is a field that no scan has a value for."""
        for field in sorted(self.fields):
            if scans and not any(values.get(_SAME_AS.get(field, field)) for values in scans):
                why = "no scan has one" if field in (*_ALWAYS, *_SAME_AS) else "there is no such field"
                raise MapFileError(
                    f"The pattern {self.text} has the field {{{field}}}, but {why}. Fields are "
                    f"{_FIELDS}; participants and sessions are those of BIDS names, or of --name-pattern."
                )

    def _filled(self, values: Mapping[str, str]) -> str:
        """The path of a scan. What is not a field may hold wildcards; what stands for one does not."""
        return "".join(
            literal + ("" if field is None else glob.escape(values[field])) for literal, field, _, _ in self._parts
        )


def _forms(field: str, value: str | None) -> list[str]:
    if value is None:
        return []
    prefix, label = _PREFIXES.get(field), label_of(value) or ""
    return [value] if prefix is None else list(dict.fromkeys([value, label, prefix + label]))
