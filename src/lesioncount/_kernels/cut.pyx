"""Regions, and the peaks that stay → the regions of these peaks, cut where their basins meet."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lesioncount._kernels.merge_tree cimport Cursor, MergeTree, Peak, Tree, column_of
from lesioncount._kernels.slab cimport Memory, Region, Run, clear

cdef extern from "grow.h" nogil:
    int lc_grow(void* table, size_t n_bytes)  # table: the address of a pointer

SADDLE_FIELDS = [("key", "u8"), ("at", "i8"), ("parent", "i4"), ("into", "i4"), ("side", "i4"), ("died", "i4")]

cdef struct Saddle:      # of a row of the table; as of a peak, but with the numbers of rows
    uint64_t key
    int64_t at
    int32_t parent, into, side, died


cdef inline void add_piece(Region* row, const Cursor* cursor, int64_t first, int64_t n, int64_t at) noexcept nogil:
    cdef int64_t last = first + n - 1
    row.first_at = min(row.first_at, at)
    row.n_voxels += n
    row.total[0] += n * cursor.plane
    row.total[1] += n * cursor.row
    row.total[2] += n * (first + last) // 2
    row.low[0] = min(row.low[0], <int32_t> cursor.plane)
    row.low[1] = min(row.low[1], <int32_t> cursor.row)
    row.low[2] = min(row.low[2], <int32_t> first)
    row.high[0] = max(row.high[0], <int32_t> cursor.plane)
    row.high[1] = max(row.high[1], <int32_t> cursor.row)
    row.high[2] = max(row.high[2], <int32_t> last)


cdef struct Cut:
    Region* table        # a row for each region that stays as it is and each peak that stays, in the order of the sweep
    Saddle* saddles
    Run* runs            # cut where basins meet
    Py_ssize_t n_rows, n_runs, run_room
    int32_t* stays       # of each peak: itself, or where its voxels go
    int32_t* row_of_peak
    int32_t* row_of_region


cdef inline int add_run(Cut* to, int64_t start, int64_t length, int32_t row) noexcept nogil:
    if to.n_runs == to.run_room:
        to.run_room += to.run_room // 2 + 64
        if lc_grow(&to.runs, to.run_room * sizeof(Run)) < 0:
            return -1
    to.runs[to.n_runs] = Run(start, <int32_t> length, row)
    to.n_runs += 1
    return 0


cdef inline int32_t new_row(Cut* to, int32_t* number, Region row) noexcept nogil:
    number[0] = <int32_t> to.n_rows
    to.table[to.n_rows], to.saddles[to.n_rows] = row, Saddle(0, -1, -1, -1, -1, -1)
    to.n_rows += 1
    return number[0]


cdef int cut_run(Cut* to, const Tree* tree, const Run* run, int32_t voxel, Cursor* cursor) noexcept nogil:
    """Add the pieces of a run to the rows of the peaks that they belong to."""
    cdef int64_t column = column_of(cursor, tree, run), begin = 0, end
    cdef int32_t peak, row
    cdef Region empty
    while begin < run.length:
        peak, end = to.stays[~tree.up[voxel + begin]], begin + 1
        while end < run.length and to.stays[~tree.up[voxel + end]] == peak:
            end += 1
        row = to.row_of_peak[peak]
        if row < 0:
            clear(&empty)
            empty.peak_key, empty.peak_at = tree.peaks[peak].key, tree.peaks[peak].at
            row = new_row(to, &to.row_of_peak[peak], empty)
        add_piece(
            &to.table[row], cursor, column + begin, end - begin, cursor.row_at + (column + begin) * tree.weights[2]
        )
        if add_run(to, run.start + begin, end - begin, row) < 0:
            return -1
        begin = end
    return 0


cdef void find_stays(Cut* to, const Tree* tree, const uint8_t* left_out) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t peak
    for i in range(tree.n_peaks):
        peak = <int32_t> i
        while left_out[peak]:
            peak = tree.peaks[peak].into
        to.stays[i] = peak


cdef void add_saddles(Cut* to, const Tree* tree) noexcept nogil:
    cdef Py_ssize_t i
    cdef const Peak* peak
    for i in range(tree.n_peaks):
        peak = &tree.peaks[i]
        if to.stays[i] == i and peak.into >= 0:
            to.saddles[to.row_of_peak[i]] = Saddle(
                peak.saddle_key, peak.saddle_at, to.row_of_peak[to.stays[peak.parent]],
                to.row_of_peak[to.stays[peak.into]], to.row_of_peak[to.stays[peak.side]], peak.died,
            )


cdef int cut(Cut* to, const Tree* tree, const uint8_t* left_out) noexcept nogil:
    cdef Cursor cursor = Cursor(0, 0, 0, 0, 0)
    cdef const Run* run
    cdef int32_t voxel = 1, row
    cdef Py_ssize_t i
    cdef int status
    find_stays(to, tree, left_out)
    for i in range(tree.n_runs):
        run = &tree.runs[i]
        if tree.quiet[run.region]:
            row = to.row_of_region[run.region]
            if row < 0:
                row = new_row(to, &to.row_of_region[run.region], tree.regions[run.region])
            status = add_run(to, run.start, run.length, row)
        else:
            status = cut_run(to, tree, run, voxel, &cursor)
        if status < 0:
            return -1
        voxel += run.length
    add_saddles(to, tree)
    return 0


def cut_at_saddles(MergeTree merge_tree, const uint8_t[::1] left_out):
    """Cut regions into those of their peaks; what a peak that is left out had goes to the one across its saddle.

    Parameters
    ----------
    merge_tree : MergeTree
    left_out : array of uint8
        Of each peak, whether it is. With a peak, all that have joined it higher up must be left out.

    Returns
    -------
    regions, saddles, runs : buffers of REGION_FIELDS, SADDLE_FIELDS and RUN_FIELDS
    """
    cdef Memory regions = Memory(), saddles = Memory(), runs = Memory()
    cdef Tree* tree = &merge_tree.tree
    cdef Py_ssize_t n_rows = tree.n_regions + tree.n_peaks
    cdef int32_t* numbers = <int32_t*> malloc((n_rows + tree.n_peaks) * sizeof(int32_t))
    cdef Cut to
    cdef int status = -1
    memset(&to, 0, sizeof(Cut))
    if numbers != NULL:
        memset(numbers, -1, n_rows * sizeof(int32_t))
        to.row_of_region, to.row_of_peak = numbers, numbers + tree.n_regions
        to.stays = numbers + n_rows
        if lc_grow(&to.table, n_rows * sizeof(Region)) == 0 and lc_grow(&to.saddles, n_rows * sizeof(Saddle)) == 0:
            with nogil:
                status = cut(&to, tree, &left_out[0])
    free(numbers)
    regions.data, regions.n_bytes = to.table, to.n_rows * sizeof(Region)
    saddles.data, saddles.n_bytes = to.saddles, to.n_rows * sizeof(Saddle)
    runs.data, runs.n_bytes = to.runs, to.n_runs * sizeof(Run)
    if status < 0:
        raise MemoryError("not enough memory for the peaks of this map")
    return regions, saddles, runs
