"""Peaks whose regions are too small join the region across their saddle."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from lesioncount._kernels.slab cimport Region, find, merge_into

cdef struct Size:
    int64_t n_voxels
    double length_mm
    double spacing_mm[3]  # along planes, rows and columns of the sweep


cdef inline bint is_small(const Region* row, const Size* least) noexcept nogil:
    cdef double length = 0
    cdef int axis
    for axis in range(3):
        length = max(length, (row.high[axis] - row.low[axis] + 1) * least.spacing_mm[axis])
    return row.n_voxels < least.n_voxels or length < least.length_mm


def join_small(
    unsigned char[::1] table, const int32_t[::1] into, const int32_t[::1] side, const int32_t[::1] turns,
    int64_t n_voxels, double length_mm, tuple spacing_mm, int32_t[::1] row_of,
):
    """Join rows that are too small with their neighbours, in the order in which peaks have joined higher ones.

    A row that is too small goes to the row across its saddle. If a large one has joined it before, it is a small tip on
    a broad shoulder, and takes the shoulder in: the two become one row with the higher peak. What becomes one row
    touches in both cases. A row that has neither is left as it is.

    Parameters
    ----------
    table : bytes of REGION_FIELDS
        Rows that take others in are changed.
    into, side : array of int32
        The rows that touch at the saddle of each row: across it, and on this side.
    turns : array of int32
        Rows in the order in which they joined, those last that did not.
    n_voxels, length_mm, spacing_mm
        The smallest size; voxel sizes along planes, rows and columns.
    row_of : array of int32
        Set to the row that each row is part of at the end.
    """
    cdef Region* rows = <Region*> &table[0]
    cdef int32_t[::1] below = row_of.copy()
    cdef Size least
    cdef int32_t row, across
    cdef Py_ssize_t i
    least.n_voxels, least.length_mm = n_voxels, length_mm
    least.spacing_mm[0], least.spacing_mm[1], least.spacing_mm[2] = spacing_mm
    with nogil:
        for i in range(row_of.shape[0]):
            row_of[i], below[i] = <int32_t> i, -1
        for i in range(turns.shape[0]):
            row = turns[i]
            if is_small(&rows[row], &least) and below[row] >= 0:
                merge_into(&rows[row], &rows[below[row]])
                row_of[below[row]] = row
            if into[row] < 0:
                continue
            across = find(&row_of[0], into[row])
            if is_small(&rows[row], &least):
                merge_into(&rows[across], &rows[row])
                row_of[row] = across
            elif below[across] < 0:
                below[across] = find(&row_of[0], side[row])
        for i in range(row_of.shape[0]):
            row_of[i] = find(&row_of[0], <int32_t> i)
