"""What finding peaks and cutting regions by them share: the tree, and the walk along its runs."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from lesioncount._kernels.slab cimport Memory, Region, Run, Slab

cdef struct Peak:
    uint64_t key
    uint64_t saddle_key  # 0 where there is no saddle above the threshold
    int64_t at           # position in the caller's C order, as are all `_at`
    int64_t saddle_at    # -1 where there is none
    int32_t parent       # the higher peak that it joins there; -1 where there is none, as in all that follow
    int32_t into         # the peak whose basin lies across the saddle
    int32_t side         # the peak whose basin lies on this side of it: itself, or one that has joined it
    int32_t died         # at which turn it joined
    int32_t voxel        # number among the voxels of the slab, from 1 on
    int32_t region

cdef struct Meeting:     # a voxel at which two basins meet: its own, and one that it looks up into as well
    int64_t at
    int32_t voxel
    int32_t across

cdef struct Loud:        # a run of a region that is looked at
    int32_t voxel        # its first
    int32_t length
    int32_t plane, row, column

cdef struct Tree:
    const Region* regions
    const Run* runs
    const uint64_t* keys
    Py_ssize_t n_regions, n_runs, n_keys, n_rows, n_columns
    int neighbours
    int64_t weights[3]
    uint8_t* quiet       # of each region: nothing to find in it
    Loud* loud           # the runs of all others, region by region
    int32_t* loud_end    # of each region
    int32_t* up          # of each voxel: its highest neighbour, later ~ the number of its peak
    Peak* peaks
    Py_ssize_t n_peaks, peak_room
    Meeting* meetings
    Py_ssize_t n_meetings, meeting_room

cdef struct Cursor:      # where a walk along the runs is
    int64_t row_start, row_end
    int64_t plane, row
    int64_t row_at


cdef inline int64_t column_of(Cursor* cursor, const Tree* tree, const Run* run) noexcept nogil:
    """The column that a run starts in. Moves on to its row: a division for each row is less than one for each run."""
    cdef int64_t row
    if run.start >= cursor.row_end or run.start < cursor.row_start:
        row = run.start // tree.n_columns
        cursor.row_start = row * tree.n_columns
        cursor.row_end = cursor.row_start + tree.n_columns
        cursor.plane, cursor.row = row // tree.n_rows, row % tree.n_rows
        cursor.row_at = cursor.plane * tree.weights[0] + cursor.row * tree.weights[1]
    return run.start - cursor.row_start


cdef class MergeTree:
    cdef Tree tree
    cdef Slab slab
    cdef readonly Memory peaks
