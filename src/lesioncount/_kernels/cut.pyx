"""Regions, and the peaks that stay → the regions of these peaks, cut where their basins meet."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lesioncount._kernels.merge_tree cimport Cursor, MergeTree, Peak, Tree, column_of
from lesioncount._kernels.slab cimport Memory, Region, Run, Slab, clear

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
    Py_ssize_t n_rows, n_runs
    int32_t* stays       # of each peak: itself, or where its voxels go
    int32_t* row_of_peak
    int32_t* row_of_region


cdef inline void number(int32_t* row, Cut* to) noexcept nogil:
    """Give a region or a peak the next row, unless it has one."""
    if row[0] < 0:
        row[0] = <int32_t> to.n_rows
        to.n_rows += 1


cdef void count_pieces(Cut* to, Tree* tree) noexcept nogil:
    """Number rows, count the pieces of runs, and let each voxel look up to the peak that it goes to."""
    cdef const Run* run
    cdef int32_t voxel = 1, v, peak, before
    cdef Py_ssize_t i
    for i in range(tree.n_runs):
        run = &tree.runs[i]
        if tree.quiet[run.region]:
            number(&to.row_of_region[run.region], to)
            to.n_runs += 1
        else:
            before = -1
            for v in range(voxel, voxel + run.length):
                peak = tree.up[v] = to.stays[~tree.up[v]]
                if peak != before:
                    number(&to.row_of_peak[peak], to)
                    to.n_runs += 1
                before = peak
        voxel += run.length


cdef int make_room(Cut* to, Slab slab) noexcept nogil:
    """Take over the memory of the slab: in noise, a second copy of its tables would take as much as all else."""
    cdef bint is_in_place = True
    cdef Py_ssize_t i
    for i in range(slab.n_regions):  # where regions are in the order of the sweep, none comes before its own place
        is_in_place &= to.row_of_region[i] < 0 or to.row_of_region[i] >= i
    if is_in_place:
        to.table, slab.regions = slab.regions, NULL
    to.runs, slab.runs = slab.runs, NULL
    if slab.n_keys * sizeof(uint64_t) < to.n_rows * sizeof(Saddle):
        free(slab.keys)  # too short: to grow it would leave a gap
    else:
        to.saddles = <Saddle*> slab.keys
    slab.keys = NULL
    if lc_grow(&to.table, to.n_rows * sizeof(Region)) < 0 or lc_grow(&to.runs, to.n_runs * sizeof(Run)) < 0:
        return -1
    return lc_grow(&to.saddles, to.n_rows * sizeof(Saddle))


cdef void fill_table(Cut* to, const Tree* tree, const Region* regions) noexcept nogil:
    """The rows of regions that stay as they are, from the last on, and empty ones for peaks."""
    cdef Region empty
    cdef Py_ssize_t i
    for i in range(tree.n_regions - 1, -1, -1):
        if to.row_of_region[i] >= 0:
            to.table[to.row_of_region[i]] = regions[i]
    clear(&empty)
    for i in range(tree.n_peaks):
        if to.row_of_peak[i] >= 0:
            empty.peak_key, empty.peak_at = tree.peaks[i].key, tree.peaks[i].at
            to.table[to.row_of_peak[i]] = empty


cdef void cut_runs(Cut* to, const Tree* tree) noexcept nogil:
    """Cut runs where basins meet. From the last run on: pieces are more than runs, and take their place."""
    cdef Cursor cursor = Cursor(0, 0, 0, 0, 0)
    cdef Py_ssize_t i, at = to.n_runs
    cdef int64_t column, begin, end
    cdef const int32_t* peak = tree.up + tree.n_keys  # of the first voxel of a run
    cdef int32_t row
    cdef Run run
    for i in range(tree.n_runs - 1, -1, -1):
        run = to.runs[i]
        peak -= run.length
        if tree.quiet[run.region]:
            at -= 1
            to.runs[at] = Run(run.start, run.length, to.row_of_region[run.region])
            continue
        column, end = column_of(&cursor, tree, &run), run.length
        while end > 0:
            begin = end - 1
            while begin > 0 and peak[begin - 1] == peak[begin]:
                begin -= 1
            row, at = to.row_of_peak[peak[begin]], at - 1
            to.runs[at] = Run(run.start + begin, <int32_t> (end - begin), row)
            add_piece(
                &to.table[row], &cursor, column + begin, end - begin, cursor.row_at + (column + begin) * tree.weights[2]
            )
            end = begin


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
    for i in range(to.n_rows):
        to.saddles[i] = Saddle(0, -1, -1, -1, -1, -1)
    for i in range(tree.n_peaks):
        peak = &tree.peaks[i]
        if to.stays[i] == i and peak.into >= 0:
            to.saddles[to.row_of_peak[i]] = Saddle(
                peak.saddle_key, peak.saddle_at, to.row_of_peak[to.stays[peak.parent]],
                to.row_of_peak[to.stays[peak.into]], to.row_of_peak[to.stays[peak.side]], peak.died,
            )


cdef int cut(Cut* to, Tree* tree, Slab slab, const uint8_t* left_out) noexcept nogil:
    find_stays(to, tree, left_out)
    count_pieces(to, tree)
    if make_room(to, slab) < 0:
        return -1
    fill_table(to, tree, to.table if slab.regions == NULL else slab.regions)
    cut_runs(to, tree)
    add_saddles(to, tree)
    return 0


def cut_at_saddles(MergeTree merge_tree, const uint8_t[::1] left_out):
    """Cut regions into those of their peaks; what a peak that is left out had goes to the one across its saddle.

    Parameters
    ----------
    merge_tree : MergeTree
        Used up, as is its slab, whose memory the result takes over.
    left_out : array of uint8
        Of each peak, whether it is. With a peak, all that have joined it higher up must be left out.

    Returns
    -------
    regions, saddles, runs : buffers of REGION_FIELDS, SADDLE_FIELDS and RUN_FIELDS
    """
    cdef Memory regions = Memory(), saddles = Memory(), runs = Memory()
    cdef Tree* tree = &merge_tree.tree
    cdef Py_ssize_t n_rows = tree.n_regions + tree.n_peaks  # at most
    cdef int32_t* numbers = <int32_t*> malloc((n_rows + tree.n_peaks) * sizeof(int32_t))
    cdef Cut to
    cdef int status = -1
    memset(&to, 0, sizeof(Cut))
    if numbers != NULL:
        memset(numbers, -1, n_rows * sizeof(int32_t))
        to.row_of_region, to.row_of_peak = numbers, numbers + tree.n_regions
        to.stays = numbers + n_rows
        with nogil:
            status = cut(&to, tree, merge_tree.slab, &left_out[0])
    free(numbers)
    merge_tree.slab.empty()
    regions.data, regions.n_bytes = to.table, to.n_rows * sizeof(Region)
    saddles.data, saddles.n_bytes = to.saddles, to.n_rows * sizeof(Saddle)
    runs.data, runs.n_bytes = to.runs, to.n_runs * sizeof(Run)
    if status < 0:
        raise MemoryError("not enough memory for the peaks of this map")
    return regions, saddles, runs
