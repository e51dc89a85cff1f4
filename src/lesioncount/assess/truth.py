"""The truth about scans: masks by experts, also with a number for each lesion, or a table of counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.checks import checked_spacing
from lesioncount.cohort.table_names import COUNT, READER, SCAN, count_columns, named_rows, with_pairs
from lesioncount.cohort.tables import ScanTable, Table
from lesioncount.errors import TruthError
from lesioncount.files.formats import open_mask
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.files.lattice import place
from lesioncount.files.masks import is_dicom_pair, mask_on
from lesioncount.files.source import MapSource
from lesioncount.protocol import CountingProtocol
from lesioncount.results.scan_count import COMPONENT_THRESHOLD
from lesioncount.sweep.sizes import large_enough

# Values that a message names when a mask holds other values than 0 and 1.
_NAMED = 6

# To which the values of a mask with a scale are rounded.
_DIGITS = 4

# Names that a message repeats.
_SHOWN = 5


@dataclass(frozen=True)
class TruthTable(ScanTable):
    """A table with a row per scan: true counts by one or several readers, and other columns such as the patient.

    Attributes
    ----------
    count_columns : tuple of str
        One for each reader.
    note : str
        Which columns were taken, if they are not called ``scan`` and ``count``.
    """

    count_columns: tuple[str, ...] = (COUNT,)
    note: str = ""

    def knows(self, *names: str) -> bool:
        """Whether there is a count under one of these names."""
        return any(self.cell(column, *names) is not None for column in self.count_columns)

    def count_of(self, scan: str, *other_names: str) -> int:
        """The true count of a scan, which may have more than one name; the median of several readers, the lower one."""
        return middle_of(self.counts_of(scan, *other_names))

    def counts_of(self, scan: str, *other_names: str) -> tuple[int, ...]:
        """What each reader of a scan has counted; there must be one."""
        row = self.row(scan, *other_names)
        read = [] if row is None else [row.whole_number(column, scan) for column in self.count_columns]
        counts = tuple(count for count in read if count is not None)
        if not counts:
            raise TruthError(f"{self.path}: there is no {' and no '.join(self.count_columns)} of {scan}.")
        return counts

    def column(self, name: str, scans: Iterable[Sequence[str]]) -> list[str] | None:
        """The values of a column for scans, each given by its names; None if there is no such column.

        A scan of which the column says nothing has its own name: who is not known is nobody else.
        """
        if name not in self.columns:
            return None
        self.table.check_once(name)
        return [self.cell(name, *names) or names[0] for names in scans]


def middle_of(counts: Sequence[int]) -> int:
    """The median of what readers have counted; of two in the middle the lower one, which is a count as well."""
    return sorted(counts)[(len(counts) - 1) // 2]


def read_truth_table(
    path: Path,
    scans: Sequence[Sequence[str]] = (),
    /,
    *,
    scan_column: str | None = None,
    count_column: str | None = None,
    suffix: str = "",
    of: str = "lesions",
) -> TruthTable:
    """Read a table of counts, separated by tabs, commas or semicolons.

    Parameters
    ----------
    path : Path
    scans : sequence of sequence of str
        What each scan may be called (`names_in_tables`).
    scan_column, count_column : str, optional
        Default: the column that names most scans, and the one called ``count``, those of readers (``reader1``, …), or
        the only one of whole numbers. If scans have several rows, a column ``reader`` says whose.
    suffix : str
        What names in the table end in that those of maps do not have.
    of : str
        What is counted: of ``new`` lesions, say, a column ``n_new`` comes first.
    """
    table = with_pairs(Table.read(path, TruthError))
    named = named_rows(table, scans, column=scan_column, suffix=suffix)
    counts = count_columns(table, named.column, count_column, of=of)
    names = [row.get(named.column) for row in table.rows]
    if READER in table.columns and len(counts) == 1 and len(set(names)) < len(names):
        table, counts = table.by_reader(named.column, READER, *counts)
    found = TruthTable.of(table, named.column, *counts, advice="Name them with --scan-column and --count-column.")
    is_as_usual = (named.column, counts, named.more, named.instead) == (SCAN, (COUNT,), "", "")
    where = f"counts in {', '.join(map(repr, counts))}"
    note = "" if is_as_usual else f"In {path.name}, names are in {named.in_words}, {where}."
    return replace(found, count_columns=counts, keys=named.keys, note=note)


def check_none_missing(missing: Sequence[str], known: Iterable[str], where: str) -> None:
    """Raise when some scans have no truth."""
    if not missing:
        return
    raise TruthError(
        f"There is no truth for {len(missing)} scan{'' if len(missing) == 1 else 's'} in {where}: {some(missing)}. It "
        f"holds: {some(sorted(known))}. Rename them, or leave them out (--skip-missing)."
    )


def some(names: Sequence[str]) -> str:
    """The first of some names, as a message shows them."""
    return f"{', '.join(names[:_SHOWN]) or 'nothing'}{' …' if len(names) > _SHOWN else ''}"


def true_lesions(
    path: Path,
    grid: VoxelGrid,
    protocol: CountingProtocol,
    *,
    label: int | None = None,
    instances: bool = False,
    within: Path | None = None,
) -> Candidates | Instances:
    """The lesions of a mask, counted under the same protocol as the map, on the same grid.

    Parameters
    ----------
    path : Path
        Of the mask. It holds 0 and 1, or 0 and 255, or with ``label`` or ``instances`` any whole numbers.
    grid : VoxelGrid
        Of the map.
    protocol : CountingProtocol
    label : int, optional
        Which value is a lesion.
    instances : bool, default False
        Each value but 0 is a lesion of its own, whether it touches others or lies in several pieces. So it is in any
        case where the file says so: a DICOM SEG whose segments are of one kind and have tracking UIDs.
    within : Path, optional
        The mask that the count was restricted to.
    """
    source = open_mask(path)
    if protocol.has_detections:  # boxes are compared with lesions that are drawn, of the same smallest size
        protocol = protocol.components_above(COMPONENT_THRESHOLD)
        grid = grid if grid.shape else source.grid
    reading: dict[str, Any] = {"label": label, "instances": instances or (source.has_instances and label is None)}
    spacing = (source.grid if grid.spacing_mm is None else grid).voxel_edges_mm
    inside = None if within is None else mask_on(grid, open_mask(within))
    if not is_dicom_pair(grid, source.grid):
        check_same_grid(grid, source.grid, "the mask")
        return _lesions(path, _values(source), protocol, inside=inside, spacing_mm=spacing, **reading)
    # A segmentation may leave empty slices out. So lesions can lie where the map has no slice: missed, but lesions.
    box, where = place(source.grid, grid, "the mask").covering(_values(source))
    if inside is not None:
        around = np.zeros(box.shape, bool)
        around[where] = inside
        inside = around
    found = _lesions(path, box, protocol, inside=inside, spacing_mm=spacing, **reading)
    return Instances(len(found), found.label_map()[where])


def _lesions(
    path: Path,
    values: NDArray[Any],
    protocol: CountingProtocol,
    *,
    label: int | None,
    instances: bool,
    inside: NDArray[np.bool_] | None,
    spacing_mm: ArrayLike | None,
) -> Candidates | Instances:
    if instances:
        _check_instances(values, path)
        return Instances.of(values if inside is None else np.where(inside, values, 0), protocol, spacing_mm=spacing_mm)
    lesions = values == label if label is not None else _as_binary(values, path)
    components = protocol.components_above(protocol.threshold)  # a mask has no peaks
    return find_candidates(lesions, protocol=components, mask=inside, spacing_mm=spacing_mm, warn=False)


def _values(source: MapSource) -> NDArray[Any]:
    """The values of a mask; NaN, which some programs write outside of the brain, is 0."""
    values = source.values()
    if values.dtype.kind != "f":
        return values
    # A scale is stored in single precision: 255 times a 255th is not quite 1.
    rounded = values if source.scale is None else np.round(values, _DIGITS)
    return np.where(np.isnan(rounded), 0, rounded)


def _check_instances(values: NDArray[Any], path: Path) -> None:
    is_wrong = values < 0
    if values.dtype.kind == "f":
        is_wrong |= (values != np.floor(values)) | np.isinf(values)
    if is_wrong.any():
        raise TruthError(
            f"Expected whole numbers from 0 (--truth-instances: each value is a lesion), but {path} holds "
            f"{_shown(np.unique(values[is_wrong]))}."
        )


def _shown(found: NDArray[Any]) -> str:
    return ", ".join(f"{value:g}" for value in found[:_NAMED]) + (" …" if len(found) > _NAMED else "")


def _as_binary(values: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    found = np.unique(values)
    if len(found) <= 2 and set(found.tolist()) <= {0, 1, 255} and not {1, 255} <= set(found.tolist()):
        return np.asarray(values != 0)
    if np.any(found != np.floor(found)):
        raise TruthError(
            f"Expected a mask of 0 and 1, but {path} holds {_shown(found)}: it looks like a map of probabilities."
        )
    raise TruthError(
        f"Expected a mask of 0 and 1, but {path} holds {_shown(found)}. If each value is a lesion of its own, pass "
        "--truth-instances; if one of them marks all lesions, name it: --truth-label."
    )


@dataclass(frozen=True, eq=False)
class Instances:
    """Lesions that were drawn one by one: each value of a mask is one, wherever its voxels lie.

    Examples
    --------
    >>> drawn = np.array([[7, 7, 900, 900], [0, 7, 0, 3]])
    >>> Instances.of(drawn, CountingProtocol(min_voxels=2), spacing_mm=None).label_map()
    array([[1, 1, 2, 2],
           [0, 1, 0, 0]], dtype=int32)
    """

    n: int
    _labels: NDArray[np.int32]

    @classmethod
    def of(cls, values: NDArray[Any], protocol: CountingProtocol, /, *, spacing_mm: ArrayLike | None) -> Instances:
        """The values of a mask that are not 0, in rising order, but for those that are too small for the protocol."""
        voxel_size = checked_spacing(spacing_mm, values.ndim, protocol)
        where = np.nonzero(values)
        found, which = np.unique(values[where], return_inverse=True)
        high, low = np.zeros((2, len(found), values.ndim), dtype=np.int64)
        low[:] = values.shape
        np.minimum.at(low, which, np.transpose(where))
        np.maximum.at(high, which, np.transpose(where))
        kept = large_enough(
            np.bincount(which, minlength=len(found)),
            high - low + 1,
            protocol,
            voxel_size,
        )
        labels = np.zeros(values.shape, dtype=np.int32)
        labels[where] = np.where(kept, np.cumsum(kept), 0)[which]
        return cls(int(kept.sum()), labels)

    def __len__(self) -> int:
        return self.n

    def label_map(self) -> NDArray[np.int32]:
        """An array of the shape of the mask: 0 outside, 1, 2, … in the voxels of each lesion."""
        return self._labels
