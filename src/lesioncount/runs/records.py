"""The record of one scan: everything about its count as one JSON file, from which tables are made."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.atomic import replacing, write_text
from lesioncount.files.formats import files_of
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.count_content import count_content
from lesioncount.runs.count_file import ScanCount, count_file

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit

FORMAT_VERSION = 1
_HASHED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """All that a count depends on beside the map and the mask."""

    protocol: CountingProtocol = field(default_factory=CountingProtocol)
    channel: int | None = None
    scale: float | None = None
    logits: bool = False
    save_labels: bool = False
    calibration: CalibrationFit | None = None
    conformal: bool = False  # whether guaranteed intervals are wanted, beside those of the distribution

    def to_dict(self) -> dict[str, Any]:
        """As plain values; of a calibration, what it does to a count."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        fit = self.calibration
        applied = None if fit is None else fit.calibration.to_dict() | {"fingerprint": fit.fingerprint}
        return values | {"protocol": self.protocol.to_dict(), "calibration": applied}


@dataclass(frozen=True)
class Scan:
    """One scan to be counted: its name in the results, and its files."""

    name: str
    path: Path
    mask: Path | None = None
    problem: str | None = None  # why it cannot be counted, where that is known before
    members: tuple[Path, ...] = ()  # several maps of the same scan, of which ``path`` is the first

    @property
    def maps(self) -> tuple[Path, ...]:
        """All maps of the scan."""
        return self.members or (self.path,)


def count_scan(scan: Scan, settings: Settings, out: Path) -> dict[str, Any]:
    """Count one scan and write its record; what goes wrong with the scan is part of the record, not an exception."""
    record: dict[str, Any] = {"format": FORMAT_VERSION, "scan": scan.name, "status": "failed", "error": None}
    try:
        record |= {"input": _inputs(scan), "settings": settings.to_dict()}
        counts = [_counted(path, scan, settings) for path in scan.maps]
        if settings.save_labels:
            _write_labels(label_path(out, scan.name), counts[0])
        record |= _content(counts, settings) | {"status": "ok"}
    except (LesionCountError, OSError, MemoryError) as error:
        record["error"] = str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001 - whatever one file does to a reader, the others are counted
        record["error"] = f"unexpected {type(error).__name__}: {error}"
    if record["status"] != "ok":
        label_path(out, scan.name).unlink(missing_ok=True)  # not the label map of another time
    try:
        write_text(record_path(out, scan.name), to_json(record))
    except MapFileError as error:
        record |= {"status": "failed", "error": record["error"] or str(error)}
    return {key: record.get(key) for key in ("scan", "status", "error", "count", "input", "warnings")}


def _counted(path: Path, scan: Scan, settings: Settings) -> ScanCount:
    return count_file(
        path,
        protocol=settings.protocol,
        mask=scan.mask,
        channel=settings.channel,
        scale=settings.scale,
        logits=settings.logits,
        keep_runs=settings.save_labels,
    )


def is_done(scan: Scan, settings: Settings, out: Path) -> bool:
    """Whether the record is there, without error, and of the same files and settings."""
    record = read_record(out, scan.name)
    if scan.problem is not None or record is None or not _is_complete(record, scan.name):
        return False
    if record.get("settings") != json.loads(to_json(settings.to_dict())):
        return False
    try:
        now = _inputs(scan)
    except OSError:
        return False
    # By content: the same file may have been given as another path.
    same = all(record["input"].get(key) == now.get(key) for key in ("sha256", "mask_sha256", "members_sha256"))
    return same and (not settings.save_labels or label_path(out, scan.name).exists())


def _is_complete(record: dict[str, Any], name: str) -> bool:
    """Whether a record is one of ours, without error, and has all that tables are made from."""
    kinds = {"input": dict, "count": dict, "lesions": list, "pmf": list, "warnings": list}
    return (
        (record.get("format"), record.get("scan"), record.get("status")) == (FORMAT_VERSION, name, "ok")
        and all(isinstance(record.get(key), kind) for key, kind in kinds.items())
        and all(
            isinstance(record["count"].get(key), int | float) for key in ("count_mode", "count_mean", "n_candidates")
        )
        and all(isinstance(row, dict) and "existence" in row for row in record["lesions"])
    )


def foreign_file(out: Path, name: str, *, labels: bool) -> Path | None:
    """A file that a scan would write over, and that is no result of ours."""
    path = record_path(out, name)
    if path.exists() and "format" not in (read_record(out, name) or {"format": None}):
        return path
    if labels and label_path(out, name).exists() and not path.exists():
        return label_path(out, name)
    return None


def remove_results(out: Path) -> None:
    """Remove the records and label maps of an earlier run, so that none of them outlives the next one."""
    for path in out.glob("*.json"):
        record = read_record(out, path.stem)
        if record is not None and record.get("format") == FORMAT_VERSION and record.get("scan") == path.stem:
            label_path(out, path.stem).unlink(missing_ok=True)
            path.unlink()


def read_record(out: Path, name: str) -> dict[str, Any] | None:
    """The record of a scan; None when there is none, or it is not one."""
    try:
        record = json.loads(record_path(out, name).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def record_path(out: Path, name: str) -> Path:
    """Where the record of a scan is."""
    return out / f"{name}.json"


def label_path(out: Path, name: str) -> Path:
    """Where the label map of a scan is."""
    return out / f"{name}_lesions.nii.gz"


def fingerprint(path: Path) -> str:
    """SHA-256 of a file and those that belong to it; of a folder, of the names, sizes and times of its files."""
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            status = file.stat()
            digest.update(f"{file.relative_to(path)}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
        return digest.hexdigest()
    for file in files_of(path):
        with file.open("rb") as stream:
            while block := stream.read(_HASHED_AT_ONCE):
                digest.update(block)
    return digest.hexdigest()


def _inputs(scan: Scan) -> dict[str, Any]:
    if scan.problem is not None:
        raise MapFileError(scan.problem)
    try:
        inputs: dict[str, Any] = {"path": str(scan.path.absolute()), "sha256": fingerprint(scan.path)}
        if scan.mask is not None:
            inputs |= {"mask": str(scan.mask.absolute()), "mask_sha256": fingerprint(scan.mask)}
        if scan.members:
            inputs["members"] = [str(path.absolute()) for path in scan.members]
            inputs["members_sha256"] = [fingerprint(path) for path in scan.members]
    except PermissionError as error:
        raise MapFileError(f"{error.filename} cannot be read: {error.strerror}.") from None
    return inputs


def _content(counts: list[ScanCount], settings: Settings) -> dict[str, Any]:
    source = counts[0].source
    return {
        "map": {
            "file_format": source.format,
            "shape": source.shape,
            "dtype": str(source.dtype),
            "spacing_mm": source.spacing_mm,
            "affine": None if source.affine is None else source.affine.tolist(),
        },
        "warnings": list(dict.fromkeys(warning for count in counts for warning in count.warnings)),
        **count_content(counts, settings.calibration, conformal=settings.conformal),
    }


def _write_labels(path: Path, count: ScanCount) -> None:
    import nibabel

    n = len(count.result.candidates)
    labels = count.result.candidates.label_map(np.uint16 if n < 1 << 16 else np.int32)
    affine = np.eye(4) if count.source.affine is None else count.source.affine
    kind: Any = nibabel.Nifti1Image if max(labels.shape) < 1 << 15 else nibabel.Nifti2Image  # 16 bits for each axis
    with replacing(path) as temporary:
        nibabel.save(kind(labels, affine), temporary)


def to_json(record: dict[str, Any]) -> str:
    """A record as text, with null for numbers that JSON does not have."""
    # A line per key: readable, and yet made by the fast encoder, which indents nothing.
    lines = (
        f"{json.dumps(key)}: {json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)}"
        for key, value in record.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _plain(value: Any) -> Any:
    """Without NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
