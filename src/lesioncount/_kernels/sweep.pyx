"""The region sweep: one pass over a range of planes → the slab of regions found in them."""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lesioncount._kernels.slab cimport APART, SLANTED, Reach, Region, Run, Slab, clear, reach_of

cdef extern from "blocks.h" nogil:
    ctypedef struct lc_keys:
        uint64_t base
        uint64_t low
        uint64_t high
        uint64_t benign_low
        uint64_t benign_high
        uint64_t zero
        uint64_t half
        uint64_t one

    ctypedef struct lc_row_ops:
        uint64_t (*largest)(
            const void* rows, size_t n_rows, size_t n_columns, const lc_keys* keys, uint64_t* of_row
        ) noexcept nogil
        void (*foreground)(const void* row, size_t n, const lc_keys* keys, uint64_t* words) noexcept nogil
        int (*any_bad)(const void* row, size_t n, const lc_keys* keys, const uint64_t* within) noexcept nogil
        int (*any_between)(
            const void* row, size_t n, uint64_t base, uint64_t above, uint64_t below, const uint64_t* within
        ) noexcept nogil
        void (*peaks)(
            const void* row, size_t n, const int32_t* edges, uint64_t base, uint64_t* key, int32_t* column
        ) noexcept nogil
        void (*gather)(const char* start, Py_ssize_t stride, size_t n, void* row) noexcept nogil
        uint64_t* (*keep)(
            const void* row, size_t n, const int32_t* edges, const lc_keys* keys, uint64_t* kept
        ) noexcept nogil

    const lc_row_ops* lc_row_ops_for(int itemsize, int is_signed, int level)
    void lc_mask_words(const char* row, Py_ssize_t stride, size_t n, uint64_t* words)
    int lc_first_bit(uint64_t word)
    int lc_widest()
    const char* lc_level_name(int level)

cdef extern from "grow.h" nogil:
    int lc_grow(void* table, size_t n_bytes)  # table: the address of a pointer


# Rows are looked at in blocks: 8 KiB stay in the first-level cache for the second look at those that are not quiet.
cdef enum:
    BLOCK_BYTES = 8192
    BLOCK_ROWS = 64
    LOOK_AHEAD = 64  # the most that room may grow at once: address space, not memory, is what it costs

cdef int level = lc_widest()

cdef struct Plane:
    uint64_t* words      # a bit for each voxel, set in the foreground; one empty word before and after every row
    int32_t* runs        # for foreground voxels only: the number of its run

cdef struct Finds:       # beside the runs that the slab keeps, by the number of the run
    int32_t* parent      # union-find: a run of the same region that was found earlier, or itself
    uint64_t* peak_key
    int32_t* peak_column
    Py_ssize_t room

cdef struct Scan:
    const lc_row_ops* ops
    lc_keys keys
    Reach reach
    int64_t weights[3]   # of plane, row and column in the caller's C order
    Py_ssize_t n_rows, n_columns, n_words
    Plane here, before   # the plane of the sweep and the one it came from
    Finds finds
    uint64_t* within     # the mask of one row
    uint64_t* empty      # a row without foreground, beside the first and the last
    int32_t* edges       # of the runs of one row: first column, column after the last, and so on
    char* row            # a row copied together, where its voxels lie apart in memory
    void* memory


cdef int allocate(Scan* scan, Py_ssize_t itemsize) noexcept nogil:
    """One block for all that does not grow: two planes of bits and run numbers, a few rows."""
    cdef Py_ssize_t row_words = scan.n_words + 1, words = 1 + scan.n_rows * row_words, columns = scan.n_columns
    cdef Py_ssize_t voxels = scan.n_rows * columns
    cdef char* at = <char*> malloc(
        (2 * words + 2 * row_words + 1) * sizeof(uint64_t) + columns * itemsize + 8
        + (2 * voxels + columns + 2) * sizeof(int32_t)
    )
    if at == NULL:
        return -1
    scan.memory = at
    memset(at, 0, (2 * words + row_words + 1) * sizeof(uint64_t))
    scan.here.words = <uint64_t*> at + 1
    scan.before.words = scan.here.words + words
    scan.empty = scan.before.words + words
    scan.within = scan.empty + row_words
    scan.row = <char*> (scan.within + row_words)
    scan.here.runs = <int32_t*> (scan.row + (columns * itemsize + 7) // 8 * 8)
    scan.before.runs = scan.here.runs + voxels
    scan.edges = scan.before.runs + voxels
    return 0


cdef int make_room(Scan* scan, Slab slab, Py_ssize_t n, Py_ssize_t rows_done) noexcept nogil:
    """Room for n more runs. Growing moves memory, so it looks ahead: the rest may well be like what has been seen."""
    cdef Py_ssize_t needed = slab.n_runs + n, room
    cdef Finds* finds = &scan.finds
    if needed <= finds.room:
        return 0
    room = <Py_ssize_t> (1.05 * needed * (slab.n_planes * scan.n_rows / <double> (rows_done + 1)))
    room = min(INT32_MAX, 64 + max(needed + needed // 2, min(room, LOOK_AHEAD * needed)))
    if needed > INT32_MAX or slab.make_room(0, room - slab.n_runs) < 0:
        return -1
    if (
        lc_grow(&finds.parent, room * sizeof(int32_t)) < 0
        or lc_grow(&finds.peak_key, room * sizeof(uint64_t)) < 0
        or lc_grow(&finds.peak_column, room * sizeof(int32_t)) < 0
    ):
        return -1
    finds.room = room
    return 0


cdef Py_ssize_t split_into_runs(Scan* scan, const uint64_t* words) noexcept nogil:
    """The edges of the runs of set bits; the number of runs."""
    cdef Py_ssize_t w, n = 0
    cdef uint64_t bits, changes, carried = 0
    for w in range(scan.n_words):
        bits = words[w]
        changes = bits ^ ((bits << 1) | carried)
        while changes:
            scan.edges[n] = <int32_t> (64 * w + lc_first_bit(changes))
            n += 1
            changes &= changes - 1
        carried = bits >> 63
    scan.edges[n] = <int32_t> (64 * scan.n_words)  # of a run that goes on to the end of a full last word
    return (n + 1) // 2


cdef inline void touch(int32_t* parent, int32_t a, int32_t b) noexcept nogil:
    """Two runs touch. Written without branches that noise could make unpredictable: one hop is always taken."""
    cdef int32_t root_a = parent[a], root_b = parent[b], older
    while parent[root_a] != root_a:
        root_a = parent[root_a]
    while parent[root_b] != root_b:
        root_b = parent[root_b]
    older = min(root_a, root_b)
    parent[max(root_a, root_b)] = older
    parent[a] = older
    parent[b] = older


cdef struct Row:         # of bits and run numbers, beside the one that is being swept
    const uint64_t* words
    const int32_t* runs


cdef inline Row row_of(Scan* scan, const Plane* plane, Py_ssize_t y) noexcept nogil:
    if 0 <= y < scan.n_rows:
        return Row(plane.words + y * (scan.n_words + 1), plane.runs + y * scan.n_columns)
    return Row(scan.empty, plane.runs)


cdef inline void join_word(
    int32_t* parent, const Row* mine, const Row* other, const uint64_t* cover_a, const uint64_t* cover_b, Py_ssize_t w,
    int reach,
) noexcept nogil:
    """Find each pair of touching runs of two rows exactly once, with bit arithmetic, in one word of columns.

    Where two runs overlap, the overlap begins at one column. Where they only meet at a corner, one ends in the
    column before the other starts. Neither case needs a search along the runs. Where a row that lies beside both covers
    the column of the other run, both have been joined with what covers it, and the pair is left out.
    """
    cdef const uint64_t* m = mine.words + w
    cdef const uint64_t* o = other.words + w
    cdef uint64_t both = m[0] & o[0], fresh = o[0] & ~(cover_a[w] | cover_b[w]), bits, corner = 0
    cdef Py_ssize_t x
    bits = both & ~((both << 1) | (((m - 1)[0] & (o - 1)[0]) >> 63)) & fresh
    if reach == SLANTED:  # the other run ends in the column before this one starts
        corner = m[0] & ~((m[0] << 1) | ((m - 1)[0] >> 63)) & ~o[0]
        corner &= (fresh << 1) | (((o - 1)[0] & ~(cover_a[w - 1] | cover_b[w - 1])) >> 63)
        bits |= corner
    while bits:
        x = lc_first_bit(bits)
        touch(parent, mine.runs[64 * w + x], other.runs[64 * w + x - <Py_ssize_t> ((corner >> x) & 1)])
        bits &= bits - 1
    if reach == SLANTED:  # the other run starts in the column after this one ends
        bits = m[0] & ~((m[0] >> 1) | (m[1] << 63)) & ~o[0]
        bits &= (fresh >> 1) | ((o[1] & ~(cover_a[w + 1] | cover_b[w + 1])) << 63)
        while bits:
            x = 64 * w + lc_first_bit(bits)
            touch(parent, mine.runs[x], other.runs[x + 1])
            bits &= bits - 1


cdef void join_neighbours(Scan* scan, Py_ssize_t y) noexcept nogil:
    """Join the runs of a row with those of the (up to four) rows that the sweep has passed beside it.

    The same row of the plane before comes first: it lies beside all three others, and covers most of what they add.
    """
    cdef Row mine = row_of(scan, &scan.here, y)
    cdef Row above = row_of(scan, &scan.here, y - 1)
    cdef Row behind = row_of(scan, &scan.before, y)
    cdef Row behind_above = row_of(scan, &scan.before, y - 1)
    cdef Row behind_below = row_of(scan, &scan.before, y + 1)
    cdef const uint64_t* none = scan.empty
    cdef int32_t* parent = scan.finds.parent
    cdef Reach reach = scan.reach
    cdef Py_ssize_t w
    for w in range(scan.n_words):
        if mine.words[w] == 0:
            continue
        join_word(parent, &mine, &behind, none, none, w, reach.next_plane)
        if reach.diagonal == APART:  # then no row lies beside two others, and none covers
            join_word(parent, &mine, &above, none, none, w, reach.same_plane)
        else:
            join_word(parent, &mine, &above, behind.words, none, w, reach.same_plane)
            join_word(parent, &mine, &behind_below, behind.words, none, w, reach.diagonal)
            join_word(parent, &mine, &behind_above, behind.words, above.words, w, reach.diagonal)


cdef void look_for_shades(Scan* scan, Slab slab, const void* rows, Py_ssize_t n, const uint64_t* within) noexcept nogil:
    """Whether the map has values between 0 and 1 at all, and below one half: looked for until found."""
    cdef const lc_keys* keys = &scan.keys
    if not slab.has_gray:
        slab.has_gray = scan.ops.any_between(rows, n * scan.n_columns, keys.base, keys.zero, keys.one, within)
    if slab.has_gray:
        slab.has_soft = scan.ops.any_between(rows, n * scan.n_columns, keys.base, keys.zero, keys.half, within)


cdef inline const uint64_t* mask_of_row(Scan* scan, const Py_buffer* mask, Py_ssize_t z, Py_ssize_t y) noexcept nogil:
    """The mask of one row as words; NULL where there is no mask."""
    if mask.buf == NULL:
        return NULL
    lc_mask_words(
        <const char*> mask.buf + z * mask.strides[0] + y * mask.strides[1], mask.strides[2], scan.n_columns, scan.within
    )
    return scan.within


cdef int sweep_row(
    Scan* scan, Slab slab, const void* row, const uint64_t* within, bint is_suspect, Py_ssize_t z, Py_ssize_t y
) noexcept nogil:
    """A row that may have foreground: its runs, their peaks, and what they touch."""
    cdef uint64_t* words = scan.here.words + y * (scan.n_words + 1)
    cdef int32_t* runs = scan.here.runs + y * scan.n_columns
    cdef int64_t row_start = ((slab.first_plane + z) * scan.n_rows + y) * scan.n_columns
    cdef Py_ssize_t n, i, w
    cdef int32_t first, end, run, x
    cdef Finds finds
    cdef Run* kept
    if is_suspect and scan.ops.any_bad(row, scan.n_columns, &scan.keys, within):
        slab.has_bad = True
        return 0
    if not slab.has_soft:
        look_for_shades(scan, slab, row, 1, within)
    scan.ops.foreground(row, scan.n_columns, &scan.keys, words)
    if within != NULL:
        for w in range(scan.n_words):
            words[w] &= scan.within[w]
    n = split_into_runs(scan, words)
    if n == 0:
        return 0
    if make_room(scan, slab, n, z * scan.n_rows + y) < 0:
        return -1
    if slab.keeps_keys:
        if slab.make_key_room(scan.n_columns) < 0:
            return -1
        slab.n_keys = scan.ops.keep(row, n, scan.edges, &scan.keys, slab.keys + slab.n_keys) - slab.keys
    finds, kept, run = scan.finds, slab.runs, <int32_t> slab.n_runs
    scan.ops.peaks(row, n, scan.edges, scan.keys.base, finds.peak_key + run, finds.peak_column + run)
    for i in range(n):
        first, end = scan.edges[2 * i], scan.edges[2 * i + 1]
        finds.parent[run] = run
        kept[run].start = row_start + first
        kept[run].length = end - first
        for x in range(first, end):
            runs[x] = run
        run += 1
    slab.n_runs += n
    join_neighbours(scan, y)
    return 0


cdef int gather_regions(Scan* scan, Slab slab) noexcept nogil:
    """Add up the runs of each region. Regions are numbered by their first run."""
    cdef Finds finds = scan.finds
    cdef Py_ssize_t run, n_regions = 0, n_columns = scan.n_columns
    cdef int64_t row = -1, row_end = 0, row_at = 0, z = 0, y = 0, start, n, peak_at
    cdef int64_t weight = scan.weights[2]
    cdef int32_t region, first, last
    cdef uint64_t peak_key, is_higher
    cdef Run* runs = slab.runs
    cdef Region* regions
    cdef Region* r
    for run in range(slab.n_runs):
        n_regions += finds.parent[run] == run
    if slab.make_room(n_regions + 1, 0) < 0:  # one more: room to prepare a next region that may not come
        return -1
    regions, n_regions = slab.regions, 0
    for run in range(slab.n_runs):
        start = runs[run].start
        if start >= row_end:
            row = start // n_columns
            row_end = (row + 1) * n_columns
            z, y = row // scan.n_rows, row % scan.n_rows
            row_at = z * scan.weights[0] + y * scan.weights[1]
        n = runs[run].length
        first = <int32_t> (start - row * n_columns)
        last = first + runs[run].length - 1
        peak_key, peak_at = finds.peak_key[run], row_at + finds.peak_column[run] * weight
        # No branches for "new or known?" and "a higher peak?": in noise they would be coin tosses. A new region starts
        # out empty, and choices are made by masks.
        clear(&regions[n_regions])
        runs[run].region = <int32_t> n_regions
        region = runs[finds.parent[run]].region
        n_regions += finds.parent[run] == run
        runs[run].region = region
        r = &regions[region]
        is_higher = (peak_key > r.peak_key) | ((peak_key == r.peak_key) & (peak_at < r.peak_at))
        r.peak_key ^= (r.peak_key ^ peak_key) & (0 - is_higher)
        r.peak_at ^= (r.peak_at ^ peak_at) & <int64_t> (0 - is_higher)
        r.first_at = min(r.first_at, row_at + first * weight)
        r.n_voxels += n
        r.total[0] += n * z
        r.total[1] += n * y
        r.total[2] += n * (first + last) // 2
        r.low[0] = min(r.low[0], <int32_t> z)
        r.low[1] = min(r.low[1], <int32_t> y)
        r.low[2] = min(r.low[2], first)
        r.high[0] = max(r.high[0], <int32_t> z)
        r.high[1] = max(r.high[1], <int32_t> y)
        r.high[2] = max(r.high[2], last)
    slab.n_regions = n_regions
    for run in range(n_regions):
        slab.parent[run] = <int32_t> run
    return 0


cdef int sweep_planes(Scan* scan, Slab slab, const Py_buffer* voxels, const Py_buffer* mask) noexcept nogil:
    cdef Py_ssize_t rows = scan.n_rows, columns = scan.n_columns, size = voxels.itemsize
    cdef Py_ssize_t plane_stride = voxels.strides[0], row_stride = voxels.strides[1], stride = voxels.strides[2]
    cdef bint apart = stride != size and columns > 1
    cdef bint rows_adjoin = not apart and (rows == 1 or row_stride == columns * size)
    cdef bint planes_adjoin = rows_adjoin and plane_stride == rows * columns * size
    cdef Py_ssize_t block_rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (columns * size))) if rows_adjoin else 1
    cdef uint64_t largest[BLOCK_ROWS]
    cdef uint64_t overall, low = scan.keys.low, zero = scan.keys.zero
    cdef Py_ssize_t block = 0, block_end = 0  # rows are counted through all planes
    cdef Py_ssize_t z, y, at
    cdef bint quiet = False
    cdef const char* row
    cdef const uint64_t* within
    for z in range(slab.n_planes):
        scan.here, scan.before = scan.before, scan.here
        memset(scan.here.words, 0, rows * (scan.n_words + 1) * sizeof(uint64_t))
        slab.last_plane_begin = slab.n_runs
        y = 0
        while y < rows:
            at = z * rows + y
            row = <const char*> voxels.buf + z * plane_stride + y * row_stride
            if apart:
                scan.ops.gather(row, stride, columns, scan.row)
                row = scan.row
            if at >= block_end:
                block = at
                block_end = min(at + block_rows, slab.n_planes * rows if planes_adjoin else (z + 1) * rows)
                overall = scan.ops.largest(row, block_end - block, columns, &scan.keys, largest)
                quiet = overall <= low
            if quiet and (slab.has_soft or overall <= zero):
                y += block_end - at
            elif quiet and mask.buf == NULL:
                look_for_shades(scan, slab, row, block_end - at, NULL)
                y += block_end - at
            elif quiet or largest[at - block] <= low:
                if not slab.has_soft:
                    look_for_shades(scan, slab, row, 1, mask_of_row(scan, mask, z, y))
                y += 1
            else:
                within = mask_of_row(scan, mask, z, y)
                if sweep_row(scan, slab, row, within, largest[at - block] > scan.keys.high, z, y) < 0:
                    return -1
                if slab.has_bad:
                    return 0
                y += 1
        if z == 0:
            slab.first_plane_end = slab.n_runs
    return 0


def sweep(voxels, mask, *, tuple keys, bint is_signed, int neighbours, tuple weights, Py_ssize_t first_plane,
          bint keep_keys=False):
    """Find the regions of a range of planes.

    Parameters
    ----------
    voxels : 3-D buffer
        Planes × rows × columns of native integers or floats of 1, 2, 4 or 8 bytes, with any strides.
    mask : 3-D buffer of single bytes, or None
        Voxels where it is zero are left out.
    keys : tuple of int
        The fields of ``lc_keys``: what the stored bits mean.
    is_signed : bool
        Whether the keys are those of logits.
    neighbours : int
        Connectivity: how many axes a step to a neighbour may change.
    weights : tuple of int
        What a step along planes, rows and columns adds to a position in the caller's C order.
    first_plane : int
        The number of the first plane in the whole volume.
    keep_keys : bool
        Whether the slab keeps the keys of its voxels above the threshold, which a merge tree is made of.
    """
    cdef Py_buffer voxel_buffer, mask_buffer
    cdef Scan scan
    cdef Slab slab = Slab()
    cdef int status
    memset(&scan, 0, sizeof(Scan))
    mask_buffer.buf = NULL
    PyObject_GetBuffer(voxels, &voxel_buffer, PyBUF_STRIDES)
    try:
        if mask is not None:
            PyObject_GetBuffer(mask, &mask_buffer, PyBUF_STRIDES)
        slab.first_plane, slab.n_planes = first_plane, voxel_buffer.shape[0]
        slab.n_rows, slab.n_columns = voxel_buffer.shape[1], voxel_buffer.shape[2]
        slab.neighbours, slab.keeps_keys = neighbours, keep_keys
        scan.ops = lc_row_ops_for(<int> voxel_buffer.itemsize, is_signed, level)
        (
            scan.keys.base, scan.keys.low, scan.keys.high, scan.keys.benign_low, scan.keys.benign_high, scan.keys.zero,
            scan.keys.half, scan.keys.one,
        ) = keys
        scan.reach = reach_of(neighbours)
        scan.weights[0], scan.weights[1], scan.weights[2] = weights
        scan.n_rows, scan.n_columns, scan.n_words = slab.n_rows, slab.n_columns, (slab.n_columns + 63) // 64
        with nogil:
            status = allocate(&scan, voxel_buffer.itemsize)
            if status == 0:
                status = sweep_planes(&scan, slab, &voxel_buffer, &mask_buffer)
            if status == 0:
                status = gather_regions(&scan, slab)
        if status < 0:
            raise MemoryError("not enough memory for the regions of this map")
        return slab
    finally:
        free(scan.memory)
        free(scan.finds.parent)
        free(scan.finds.peak_key)
        free(scan.finds.peak_column)
        if mask_buffer.buf != NULL:
            PyBuffer_Release(&mask_buffer)
        PyBuffer_Release(&voxel_buffer)


def vectors():
    """The widest vectors that the kernels use on this machine: "avx512", "avx2" or "baseline", what every one has."""
    return lc_level_name(level).decode()
