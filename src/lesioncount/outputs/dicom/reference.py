"""Whom DICOM results are about: the segmentation that was counted, or the images that the map was made from."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError, ShapeError
from lesioncount.files.byte_streams import explained
from lesioncount.files.dicom import ENDINGS, segmentation, to_ras
from lesioncount.files.dicom_series import read_series
from lesioncount.files.formats import map_ending
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.lattice import place
from lesioncount.results.lesion_rows import LesionRow

# What a result must know of the patient and the study; empty is allowed, as in the standard.
_KNOWN = (
    "PatientID", "PatientName", "PatientBirthDate", "PatientSex", "StudyID", "StudyDate", "StudyTime",
    "AccessionNumber", "ReferringPhysicianName",
)  # fmt: skip

# To which positions of slices are compared, in millimetres: they are written as decimals.
_DIGITS = 2


@dataclass(frozen=True, eq=False)
class DicomReference:
    """What results refer to: the patient, the study, the frame of reference, and the images they are shown on.

    Attributes
    ----------
    images : tuple of pydicom.Dataset
        What was counted, or what the map was made from: one segmentation, or the images of a series.
    grid : VoxelGrid
        Of their voxels, along slices, rows and columns.
    is_segmentation : bool
    """

    images: tuple[Any, ...]
    grid: VoxelGrid
    is_segmentation: bool = False

    @classmethod
    def of(cls, grid: VoxelGrid, series: Path | None) -> Self:
        """That of a map: its series where one was given, or the map itself if it is DICOM."""
        if series is not None:
            found = read_series(series)
            with explained(series, "cannot be referred to"):
                return cls(tuple(map(_completed, found.images)), found.grid)
        if map_ending(grid.path) not in ENDINGS:
            raise MapFileError(
                f"{grid.path} does not say whose scan it is. For DICOM results name the folder of the images it was "
                "made from: --dicom-series FOLDER."
            )
        with explained(grid.path, "cannot be referred to"):
            return cls((_completed(segmentation(grid.path)),), grid, is_segmentation=True)

    @property
    def first(self) -> Any:
        """The image that patient and study are taken from."""
        return self.images[0]

    @property
    def affine(self) -> NDArray[np.float64]:
        """From slice, row and column to RAS millimetres: images always have a place."""
        if self.grid.affine is None:
            raise ShapeError(f"{self.grid.path} does not say where its voxels lie.")
        return self.grid.affine

    @property
    def frame_of_reference(self) -> str:
        """In which positions are given."""
        return str(self.first.FrameOfReferenceUID)

    @property
    def image_series(self) -> str:
        """The UID of the series of images: those that a segmentation says it is of, where it does."""
        referred = self.first.get("ReferencedSeriesSequence") if self.is_segmentation else None
        return str((referred[0] if referred else self.first).SeriesInstanceUID)

    def placed(self, labels: NDArray[Any], grid: VoxelGrid) -> NDArray[Any]:
        """Labels on the grid of a map, along the slices, rows and columns of the images."""
        there = place(grid, self.grid, "the map")
        is_dicom = map_ending(grid.path) in ENDINGS  # which leaves out empty slices
        if not there.is_inside or not (is_dicom or labels.size == np.prod(self.grid.shape)):
            raise ShapeError(
                f"Expected the map on the voxels of the series in {self.grid.path}, {self.grid.shape} along slices, "
                f"rows and columns, but {grid.path} has {grid.shape}. Is it the series that the map was made from?"
            )
        return there.on_grid(labels)

    def point(self, lesion: LesionRow) -> NDArray[np.float64]:
        """Where a detection lies, in millimetres as DICOM has them, (1, 3); it must be inside of the images."""
        if lesion.peak_x_mm is None:
            raise ShapeError(
                "A DICOM report says where each detection lies in the patient, which pixels alone do not tell: give "
                "the image (--images), or positions in millimetres."
            )
        place = np.array([lesion.peak_x_mm, lesion.peak_y_mm, lesion.peak_z_mm, 1])
        index = np.linalg.solve(self.affine, place)[:3]
        if (index < -1).any() or (index > self.grid.shape).any():
            raise ShapeError(
                f"Candidate {lesion.label} lies outside of the series in {self.grid.path}. Is it the series that the "
                "detector was given?"
            )
        return to_ras(place)[None, :3]

    def refer(self, seg: Any) -> None:
        """Let a segmentation of candidates refer to the images, not only to the segmentation that was counted.

        Viewers show a segmentation on the images it refers to; another segmentation is nothing to show it on.
        """
        referred = self.first.get("ReferencedSeriesSequence") if self.is_segmentation else None
        if not referred:
            return
        seg.ReferencedSeriesSequence = [*deepcopy(referred), *seg.ReferencedSeriesSequence]
        sources = {_at(frame): frame.get("DerivationImageSequence") for frame in _frames(self.first)}
        for frame in _frames(seg):
            source = sources.get(_at(frame))
            if source:
                frame.DerivationImageSequence = deepcopy(source)


def _completed(data: Any) -> Any:
    """A header in which all is there that must be, if only empty: exports and anonymisers leave elements out."""
    if not data.get("FrameOfReferenceUID") or not data.get("StudyInstanceUID"):
        raise ValueError("it has no StudyInstanceUID or FrameOfReferenceUID, without which nothing can refer to it")
    for name in _KNOWN:
        if name not in data:
            setattr(data, name, "")
    return data


def _frames(seg: Any) -> Iterable[Any]:
    found: Iterable[Any] = seg.PerFrameFunctionalGroupsSequence
    return found


def _at(frame: Any) -> tuple[float, ...] | None:
    """Where a frame lies."""
    place = frame.get("PlanePositionSequence")
    return tuple(round(float(mm), _DIGITS) for mm in place[0].ImagePositionPatient) if place else None
