"""A synthetic cohort → its folder, with what is known beyond masks and counts: areas, lesions, and changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lesioncount.folder.atomic import write_text
from lesioncount.folder.tables import to_tsv
from lesioncount.runs.workers import results_of
from lesioncount_reproduction.cohort import bids_name
from lesioncount_reproduction.cohort_files import (
    AREAS_FOLDER,
    CHANGES_FOLDER,
    Progress,
    image_path,
    save_volume,
    write_cohort,
    write_description,
)
from lesioncount_reproduction.synthetic.ageing import AgeingCohort
from lesioncount_reproduction.synthetic.areas import AREAS, area_counts, area_of
from lesioncount_reproduction.synthetic.cohort import PlannedVisit, SyntheticCohort

Rows = list[dict[str, Any]]

AREA_TABLE, AREA_COLUMNS = "areas.tsv", ("scan", "region", "count")
LESION_TABLE = "lesions.tsv"
LESION_COLUMNS = ("participant_id", "session_id", "lesion", "marked", "region", "volume_mm3", "x_mm", "y_mm", "z_mm")
CHANGE_TABLE = "changes.tsv"

# Names of label maps in BIDS.
_AREAS, _LESIONS, _NEW, _GONE = "desc-areas_dseg", "desc-lesions_dseg", "desc-new_dseg", "desc-gone_dseg"


def write_synthetic(
    folder: str | Path, cohort: SyntheticCohort[Any], /, *, jobs: int = 1, progress: Progress | None = None
) -> None:
    """Write scans and masks as `write_cohort` does, and beside them areas, lesions and, of an ageing cohort, changes.

    Tables come after the files that they are about: without its table, something is unfinished.

    Parameters
    ----------
    folder : path
        Created if it does not exist. It must be empty: nothing is ever overwritten.
    cohort : GadCohort or AgeingCohort
    jobs : int, default 1
        Number of processes. The files do not depend on it.
    progress : callable, optional
        Called with what was written, the number of scans done so far, and their total number.
    """
    folder = Path(folder)
    write_cohort(folder, cohort, jobs=jobs, progress=progress)
    _write_areas(folder, cohort, jobs, progress)
    if isinstance(cohort, AgeingCohort):
        _write_changes(folder, cohort, jobs, progress)


def _write_areas(folder: Path, cohort: SyntheticCohort[Any], jobs: int, progress: Progress | None) -> None:
    of_scans = _for_each(partial(_areas_of_scan, folder, cohort), cohort, jobs, progress, "areas")
    home = folder / AREAS_FOLDER
    write_description(home, "Areas of brains")
    names = [{"index": index, "name": name} for index, name in AREAS.items()]
    write_text(home / f"{_AREAS}.tsv", to_tsv(("index", "name"), names))
    write_text(folder / LESION_TABLE, to_tsv(LESION_COLUMNS, (row for _, rows in of_scans for row in rows)))
    write_text(folder / AREA_TABLE, to_tsv(AREA_COLUMNS, (row for rows, _ in of_scans for row in rows)))


def _areas_of_scan(folder: Path, cohort: SyntheticCohort[Any], index: int) -> tuple[Rows, Rows]:
    """Write the areas of a scan; give the rows of its areas and of its lesions."""
    visit = cohort.visits[index]
    areas, lesions = cohort.areas(visit), cohort.lesions(visit)
    _save(folder / AREAS_FOLDER, cohort, visit, _AREAS, areas)
    counts = area_counts((blob for blob in lesions.values() if blob.labelled), areas, cohort.lattice)
    name = bids_name(visit.patient_label, visit.session_label)
    of_lesions = [
        {
            **_whose(visit),
            "session_id": f"ses-{visit.session_label}",
            "lesion": number,
            "marked": int(blob.labelled),
            "region": area_of(blob, areas, cohort.lattice),
            "volume_mm3": blob.volume_mm3,
            **dict(zip(("z_mm", "y_mm", "x_mm"), map(float, blob.centre_mm), strict=True)),
        }
        for number, blob in lesions.items()
    ]
    return [{"scan": name, "region": region, "count": n} for region, n in counts.items()], of_lesions


def _write_changes(folder: Path, cohort: AgeingCohort, jobs: int, progress: Progress | None) -> None:
    of_scans = _for_each(partial(_changes_of_scan, folder, cohort), cohort, jobs, progress, "changes")
    write_description(folder / CHANGES_FOLDER, "Lesions, each with a number, and which are new or gone")
    rows = [row for row in of_scans if row is not None]
    columns = tuple(rows[0]) if rows else ("participant_id", "baseline", "followup")
    write_text(folder / CHANGE_TABLE, to_tsv(columns, rows))


def _changes_of_scan(folder: Path, cohort: AgeingCohort, index: int) -> dict[str, Any] | None:
    """Write what is new in a scan, and what will be gone in the next; give the row of the former."""
    visit = cohort.visits[index]
    home = folder / CHANGES_FOLDER
    _save(home, cohort, visit, _LESIONS, cohort.instances(visit))
    if (index, index + 1) in cohort.pairs:
        _save(home, cohort, visit, _GONE, cohort.changes(index, index + 1).gone)
    if (index - 1, index) not in cohort.pairs:
        return None
    changes = cohort.changes(index - 1, index)
    _save(home, cohort, visit, _NEW, changes.new)
    sessions = {"baseline": cohort.visits[index - 1], "followup": visit}
    return {
        **_whose(visit),
        **{when: f"ses-{planned.session_label}" for when, planned in sessions.items()},
        **changes.counts,
        "misregistration_mm": changes.misregistration_mm,
    }


def _for_each(
    work: Callable[[int], Any], cohort: SyntheticCohort[Any], jobs: int, progress: Progress | None, what: str
) -> list[Any]:
    """Results for all scans, in their order."""
    found: dict[int, Any] = {}
    for place, future in results_of(work, range(len(cohort)), jobs=jobs):
        found[place] = future.result()
        if progress is not None:
            progress(what, len(found), len(cohort))
    return [found[place] for place in range(len(cohort))]


def _save(home: Path, cohort: SyntheticCohort[Any], visit: PlannedVisit, name: str, labels: Any) -> None:
    path = image_path(home, visit.patient_label, visit.session_label, name)
    save_volume(path, labels, cohort.lattice.affine)


def _whose(visit: PlannedVisit) -> dict[str, str]:
    return {"participant_id": f"sub-{visit.patient_label}"}
