"""A folder of NIfTI files and tables → a cohort: synthetic data that was written, or real data in the same layout."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, ShapeError
from lesioncount.files.formats import open_map
from lesioncount.files.geometry import check_same_grid
from lesioncount.files.source import MapSource
from lesioncount.learning import layout
from lesioncount.learning.cohort import SEQUENCES, SPLITS, Cohort, Split, Visit, checked_split, count_of, z_scored
from lesioncount.learning.participants import Row, read_rows

# Values of a mask that is not one, named in the message.
_NAMED = 6


class FolderCohort(Cohort):
    """Scans in files, each read when it is asked for. Made by `read_cohort`.

    Attributes
    ----------
    folder : Path
    rows : tuple of Row
        What the tables say about the scans.
    """

    def __init__(self, folder: Path, rows: tuple[Row, ...], *, normalize: bool) -> None:
        self.folder, self.rows, self.normalize = folder, rows, normalize

    def __len__(self) -> int:
        """Number of scans."""
        return len(self.rows)

    def __repr__(self) -> str:
        """Its folder and its size."""
        return f"<FolderCohort in {self.folder}: {len(self)} scans>"

    def split(self, name: Split, /) -> Self:
        """The scans of one part, according to ``participants.tsv``."""
        if all(row.split is None for row in self.rows):
            raise CohortError(
                f"Nothing says which scans of {self.folder} are for {checked_split(name)}. Give "
                f"{layout.PARTICIPANTS} a column split with {', '.join(SPLITS)}."
            )
        rows = tuple(row for row in self.rows if row.split == checked_split(name))
        return type(self)(self.folder, rows, normalize=self.normalize)

    def scan(self, index: int, /) -> Visit:
        """Read a scan and check that its files and labels agree."""
        row = self.rows[index]
        sources = [self._open(row, self._image(row, sequence)) for sequence in SEQUENCES]
        for sequence, source in zip(SEQUENCES, sources, strict=True):
            _check_grid(row, sources[0], source, sequence)
        images = np.stack([_image(row, source) for source in sources])
        brain = self._mask(row, layout.BRAIN, sources[0])
        brain = np.asarray((images != 0).any(axis=0)) if brain is None else brain
        lesions = self._mask(row, layout.LESIONS, sources[0])
        return Visit(
            patient=row.patient,
            session=row.session,
            split=row.split,
            images=z_scored(images, brain) if self.normalize else images,
            brain=brain,
            lesions=lesions,
            all_lesions=self._mask(row, layout.ALL_LESIONS, sources[0]),
            affine=np.eye(4) if sources[0].affine is None else sources[0].affine,
            count=row.count if lesions is None else _agreed_count(row, lesions),
            at_least=row.at_least,
            at_most=row.at_most,
        )

    def check_files(self) -> None:
        """Raise a `CohortError` unless all images are there."""
        for row in self.rows:
            missing = [sequence for sequence in SEQUENCES if not self._image(row, sequence).is_file()]
            if missing:
                raise CohortError(
                    f"{row.name}: expected {len(SEQUENCES)} images, but {', '.join(missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} missing: there is no {self._image(row, missing[0])}."
                )

    def _image(self, row: Row, sequence: str) -> Path:
        return layout.image_path(self.folder, row.patient, row.session, sequence)

    def _mask(self, row: Row, name: str, grid: MapSource) -> NDArray[np.bool_] | None:
        path = layout.mask_path(self.folder, row.patient, row.session, name)
        if not path.is_file():
            return None
        source = self._open(row, path)
        _check_grid(row, grid, source, f"the mask {name}")
        return _binary(row, source)

    def _open(self, row: Row, path: Path) -> MapSource:
        source = open_map(path)
        if len(source.shape) != 3:
            raise CohortError(f"{row.name}: expected three axes, but {path} has shape {source.shape}.")
        return source


def read_cohort(folder: str | Path, /, *, normalize: bool = False) -> FolderCohort:
    """Open a folder of scans in the layout of BIDS.

    Parameters
    ----------
    folder : path
        It holds ``scans.tsv`` (columns ``participant_id`` and ``session_id``; for scans without a lesion mask also
        ``count``, or ``at_least`` and ``at_most``) and the images, ``sub-…/ses-…/anat/…_T1w.nii.gz`` and so on. It may
        hold ``participants.tsv`` (``participant_id``, ``split``) and masks in ``derivatives/masks``. Without a brain
        mask, the brain is where some image is not 0. NaN in a mask is outside.
    normalize : bool, default False
        Whether to give each image mean 0 and variance 1 inside the brain. Synthetic images have them already.

    Returns
    -------
    FolderCohort
        The tables and the names of the files have been checked. Images and masks are checked when they are read.
    """
    folder = Path(folder)
    cohort = FolderCohort(folder, read_rows(folder), normalize=normalize)
    cohort.check_files()
    return cohort


def _check_grid(row: Row, grid: MapSource, source: MapSource, what: str) -> None:
    try:
        check_same_grid(grid.grid, source.grid, what)
    except ShapeError as error:
        raise CohortError(f"{row.name}: its images and masks must lie voxel on voxel. {error}") from None


def _image(row: Row, source: MapSource) -> NDArray[np.float32]:
    values = source.values().T.astype(np.float32)
    if not np.isfinite(values).all():
        raise CohortError(f"{row.name}: {source.path} has voxels that are not finite.")
    return values


def _binary(row: Row, source: MapSource) -> NDArray[np.bool_]:
    values = np.nan_to_num(source.values().T, nan=0)  # NaN is outside
    found = np.unique(values).tolist()
    if not (set(found) <= {0, 1} or set(found) <= {0, 255}):
        shown = ", ".join(f"{value:g}" for value in found[:_NAMED]) + (" …" if len(found) > _NAMED else "")
        raise CohortError(f"{row.name}: expected a mask of 0 and 1, but {source.path} holds {shown}.")
    return np.ascontiguousarray(values != 0)


def _agreed_count(row: Row, lesions: NDArray[np.bool_]) -> int:
    """The number of lesions in a mask, which must agree with the table."""
    count = count_of(lesions)
    if not row.allows(count):
        said = str(row.count) if row.count is not None else "{} to {:g}".format(*row.bounds)
        raise CohortError(
            f"{row.name}: {layout.SCANS} says {said} lesions, but the mask has {count}, 18-connected as in the paper. "
            "Correct one of them, or write n/a in the table: then the mask is counted."
        )
    return count
