"""Identities of candidates in DICOM: the same in both files, and whenever a map is counted again."""

from __future__ import annotations

from dataclasses import dataclass

from lesioncount.optional import optional


@dataclass(frozen=True)
class Tracked:
    """Who the candidates of a scan are.

    Attributes
    ----------
    scan : str
        Name of the scan.
    origin : tuple of str
        All that they depend on: the hash of the map, the protocol, …
    """

    scan: str
    origin: tuple[str, ...]

    def uid(self, label: int) -> str:
        """The tracking UID of a candidate; 0 is the scan as a whole."""
        generate = optional("pydicom.uid", "dicom", "Writing DICOM").generate_uid
        return str(generate(entropy_srcs=["lesioncount", *self.origin, str(label)]))

    def name(self, label: int) -> str:
        """The tracking identifier of a candidate, for people."""
        scan = ascii_text(self.scan)[:40]
        return f"{scan} lesion {label}" if label else f"{scan} all candidates"


def ascii_text(text: str) -> str:
    """A text that can be written whatever the character set, which is that of the patient's name."""
    return text.encode("ascii", "replace").decode()
