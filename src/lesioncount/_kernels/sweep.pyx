"""The region sweep: one pass over a range of planes → the slab of regions found in them."""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lesioncount._kernels.slab cimport APART, SLANTED, Reach, Region, Run, Slab, reach_of

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
        int (*any_between)(const void* row, size_t n, uint64_t base, uint64_t above, uint64_t below) noexcept nogil
        uint64_t (*peak)(const void* row, size_t first, size_t last, uint64_t base, size_t* at) noexcept nogil
        void (*gather)(const char* start, Py_ssize_t stride, size_t n, void* row) noexcept nogil

    const lc_row_ops* lc_row_ops_for(int itemsize, int is_signed)
    void lc_mask_words(const char* row, Py_ssize_t stride, size_t n, uint64_t* words)
    int lc_first_bit(uint64_t word)
    void* lc_grow(void* table, size_t n_bytes)


# Rows are looked at in blocks: 8 KiB stay in the first-level cache for the second look at those that are not quiet.
cdef enum:
    BLOCK_BYTES = 8192
    BLOCK_ROWS = 64
    LOOK_AHEAD = 64  # the most that room may grow at once: address space, not memory, is what it costs

cdef struct Plane:
    uint64_t* words      # a bit for each voxel, set in the foreground; every row is followed by one empty word
    int32_t* runs        # for foreground voxels only: the number of its run
    uint8_t* filled      # whether a row has foreground; words and runs of other rows are stale

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
    uint64_t* covered    # columns of one row whose neighbours are known to be joined already
    int32_t* first       # first and last columns of the runs of one row
    int32_t* last
    char* row            # a row copied together, where its voxels lie apart in memory
    void* memory


cdef int allocate(Scan* scan, Py_ssize_t itemsize) noexcept nogil:
    """One block for all that does not grow: two planes of bits and run numbers, a few rows."""
    cdef Py_ssize_t words = scan.n_rows * (scan.n_words + 1), columns = scan.n_columns, rows = scan.n_rows
    cdef Py_ssize_t voxels = rows * columns
    cdef char* at = <char*> malloc(
        2 * (words + scan.n_words + 1) * sizeof(uint64_t) + columns * itemsize + 8
        + 2 * (voxels + columns) * sizeof(int32_t) + 2 * rows
    )
    if at == NULL:
        return -1
    scan.memory = at
    scan.here.words = <uint64_t*> at
    scan.before.words = scan.here.words + words
    scan.within = scan.before.words + words
    scan.covered = scan.within + scan.n_words + 1
    scan.row = <char*> (scan.covered + scan.n_words + 1)
    scan.here.runs = <int32_t*> (scan.row + (columns * itemsize + 7) // 8 * 8)
    scan.before.runs = scan.here.runs + voxels
    scan.first = scan.before.runs + voxels
    scan.last = scan.first + columns
    scan.here.filled = <uint8_t*> (scan.last + columns)
    scan.before.filled = scan.here.filled + rows
    memset(scan.here.filled, 0, 2 * rows)
    scan.covered[scan.n_words] = 0
    return 0


cdef int make_room(Scan* scan, Slab slab, Py_ssize_t n, Py_ssize_t rows_done) noexcept nogil:
    """Room for n more runs. Growing moves memory, so it looks ahead: the rest may well be like what has been seen."""
    cdef Py_ssize_t needed = slab.n_runs + n, room
    cdef Finds* finds = &scan.finds
    cdef void* grown
    if needed <= finds.room:
        return 0
    room = <Py_ssize_t> (1.05 * needed * (slab.n_planes * scan.n_rows / <double> (rows_done + 1)))
    room = 64 + max(needed + needed // 2, min(room, LOOK_AHEAD * needed))
    if room > INT32_MAX or slab.make_room(0, room - slab.n_runs) < 0:
        return -1
    grown = lc_grow(finds.parent, room * sizeof(int32_t))
    if grown == NULL:
        return -1
    finds.parent = <int32_t*> grown
    grown = lc_grow(finds.peak_key, room * sizeof(uint64_t))
    if grown == NULL:
        return -1
    finds.peak_key = <uint64_t*> grown
    grown = lc_grow(finds.peak_column, room * sizeof(int32_t))
    if grown == NULL:
        return -1
    finds.peak_column = <int32_t*> grown
    finds.room = room
    return 0


cdef Py_ssize_t split_into_runs(Scan* scan, const uint64_t* words) noexcept nogil:
    """First and last columns of the runs of set bits; their number."""
    cdef Py_ssize_t w, n_first = 0, n_last = 0
    cdef uint64_t bits, edges, carried = 0
    for w in range(scan.n_words):
        bits = words[w]
        if bits == 0:
            carried = 0
            continue
        edges = bits & ~((bits << 1) | carried)
        while edges:
            scan.first[n_first] = <int32_t> (64 * w + lc_first_bit(edges))
            n_first += 1
            edges &= edges - 1
        edges = bits & ~((bits >> 1) | (words[w + 1] << 63))
        while edges:
            scan.last[n_last] = <int32_t> (64 * w + lc_first_bit(edges))
            n_last += 1
            edges &= edges - 1
        carried = bits >> 63
    return n_first


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


cdef void join_rows(
    Scan* scan, const uint64_t* mine, const int32_t* my_runs, const uint64_t* other, const int32_t* other_runs, int reach
) noexcept nogil:
    """Find each pair of touching runs of two rows exactly once, with bit arithmetic.

    Where two runs overlap, the overlap begins at one column. Where they only meet at a corner, one ends in the
    column before the other starts. Neither case needs a search along the runs. Where a third row between the two
    covers the column in the other row, both runs have been joined with its run before, and the pair is left out.
    """
    cdef uint64_t m, o, both, bits, corner, fresh, m_carried = 0, fresh_carried = 0, o_carried = 0, both_carried = 0
    cdef int32_t* parent = scan.finds.parent
    cdef Py_ssize_t w, x
    for w in range(scan.n_words):
        m, o = mine[w], other[w]
        fresh = o & ~scan.covered[w]
        if m == 0:
            both_carried, m_carried, o_carried, fresh_carried = 0, 0, o >> 63, fresh >> 63
            continue
        both = m & o
        bits = both & ~((both << 1) | both_carried) & fresh
        corner = 0
        if reach == SLANTED:  # the other run ends in the column before this one starts
            corner = m & ~((m << 1) | m_carried) & ((fresh << 1) | fresh_carried) & ~o
            bits |= corner
        while bits:
            x = lc_first_bit(bits)
            touch(parent, my_runs[64 * w + x], other_runs[64 * w + x - <Py_ssize_t> ((corner >> x) & 1)])
            bits &= bits - 1
        if reach == SLANTED:  # the other run starts in the column after this one ends
            bits = m & ~((m >> 1) | (mine[w + 1] << 63)) & ~o
            bits &= (fresh >> 1) | ((other[w + 1] & ~scan.covered[w + 1]) << 63)
            while bits:
                x = 64 * w + lc_first_bit(bits)
                touch(parent, my_runs[x], other_runs[x + 1])
                bits &= bits - 1
        both_carried, m_carried, o_carried, fresh_carried = both >> 63, m >> 63, o >> 63, fresh >> 63


cdef inline void join_row_of(Scan* scan, Py_ssize_t y, const Plane* plane, Py_ssize_t other, int reach) noexcept nogil:
    if reach != APART and 0 <= other < scan.n_rows and plane.filled[other]:
        join_rows(
            scan,
            scan.here.words + y * (scan.n_words + 1),
            scan.here.runs + y * scan.n_columns,
            plane.words + other * (scan.n_words + 1),
            plane.runs + other * scan.n_columns,
            reach,
        )


cdef inline void cover(Scan* scan, const Plane* plane, Py_ssize_t y) noexcept nogil:
    """From here on, what touches this row in the same column is joined already."""
    cdef Py_ssize_t w
    if scan.reach.diagonal != APART and 0 <= y < scan.n_rows and plane.filled[y]:
        for w in range(scan.n_words):
            scan.covered[w] |= plane.words[y * (scan.n_words + 1) + w]


cdef void join_neighbours(Scan* scan, Py_ssize_t y) noexcept nogil:
    """Join the runs of a row with those of the (up to four) rows that the sweep has passed beside it.

    The same row of the plane before comes first: it lies beside all three others, and covers most of what they add.
    """
    memset(scan.covered, 0, scan.n_words * sizeof(uint64_t))
    join_row_of(scan, y, &scan.before, y, scan.reach.next_plane)
    cover(scan, &scan.before, y)
    join_row_of(scan, y, &scan.here, y - 1, scan.reach.same_plane)
    join_row_of(scan, y, &scan.before, y + 1, scan.reach.diagonal)
    cover(scan, &scan.here, y - 1)
    join_row_of(scan, y, &scan.before, y - 1, scan.reach.diagonal)


cdef void look_for_shades(Scan* scan, Slab slab, const void* row) noexcept nogil:
    """Whether the map has values between 0 and 1 at all, and below one half: looked for until found."""
    cdef const lc_keys* keys = &scan.keys
    if not slab.has_gray:
        slab.has_gray = scan.ops.any_between(row, scan.n_columns, keys.base, keys.zero, keys.one)
    if not slab.has_soft:
        slab.has_soft = scan.ops.any_between(row, scan.n_columns, keys.base, keys.zero, keys.half)


cdef int sweep_row(
    Scan* scan, Slab slab, const void* row, const Py_buffer* mask, bint is_suspect, Py_ssize_t z, Py_ssize_t y
) noexcept nogil:
    """A row that may have foreground: its runs, their peaks, and what they touch."""
    cdef uint64_t* words = scan.here.words + y * (scan.n_words + 1)
    cdef int32_t* runs = scan.here.runs + y * scan.n_columns
    cdef int64_t row_start = ((slab.first_plane + z) * scan.n_rows + y) * scan.n_columns
    cdef Py_ssize_t n, i, w
    cdef int32_t first, last, run, x
    cdef size_t peak_column = 0
    cdef Finds finds
    cdef Run* kept
    if mask.buf != NULL:
        lc_mask_words(
            <const char*> mask.buf + z * mask.strides[0] + y * mask.strides[1], mask.strides[2], scan.n_columns,
            scan.within,
        )
    if is_suspect and scan.ops.any_bad(row, scan.n_columns, &scan.keys, scan.within if mask.buf != NULL else NULL):
        slab.has_bad = True
        return 0
    if not slab.has_soft:
        look_for_shades(scan, slab, row)
    scan.ops.foreground(row, scan.n_columns, &scan.keys, words)
    words[scan.n_words] = 0
    if mask.buf != NULL:
        for w in range(scan.n_words):
            words[w] &= scan.within[w]
    n = split_into_runs(scan, words)
    if n == 0:
        return 0
    if make_room(scan, slab, n, z * scan.n_rows + y) < 0:
        return -1
    scan.here.filled[y] = 1
    finds, kept, run = scan.finds, slab.runs, <int32_t> slab.n_runs
    for i in range(n):
        first, last = scan.first[i], scan.last[i]
        finds.parent[run] = run
        finds.peak_key[run] = scan.ops.peak(row, first, last, scan.keys.base, &peak_column)
        finds.peak_column[run] = <int32_t> peak_column
        kept[run].start = row_start + first
        kept[run].length = last - first + 1
        for x in range(first, last + 1):
            runs[x] = run
        run += 1
    slab.n_runs += n
    join_neighbours(scan, y)
    return 0


cdef inline void clear(Region* r) noexcept nogil:
    r.peak_key, r.peak_at, r.first_at, r.n_voxels = 0, INT64_MAX, INT64_MAX, 0
    r.total[0], r.total[1], r.total[2] = 0, 0, 0
    r.low[0], r.low[1], r.low[2] = INT32_MAX, INT32_MAX, INT32_MAX
    r.high[0], r.high[1], r.high[2] = -1, -1, -1


cdef int gather_regions(Scan* scan, Slab slab) noexcept nogil:
    """Add up the runs of each region. Regions are numbered by their first run."""
    cdef Finds finds = scan.finds
    cdef Py_ssize_t run, n_regions = 0, n_columns = scan.n_columns
    cdef int64_t row = -1, row_end = 0, row_at = 0, z = 0, y = 0, start, n, peak_at
    cdef int64_t weight = scan.weights[2]
    cdef int32_t region, first, last
    cdef uint64_t peak_key
    cdef bint is_new, is_higher
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
        # No branch for "new or known?": in noise it would be a coin toss. A new region starts out empty.
        clear(&regions[n_regions])
        is_new = finds.parent[run] == run
        region = <int32_t> n_regions if is_new else runs[finds.parent[run]].region
        n_regions += is_new
        runs[run].region = region
        r = &regions[region]
        is_higher = (peak_key > r.peak_key) | ((peak_key == r.peak_key) & (peak_at < r.peak_at))
        r.peak_key = peak_key if is_higher else r.peak_key
        r.peak_at = peak_at if is_higher else r.peak_at
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
    for z in range(slab.n_planes):
        scan.here, scan.before = scan.before, scan.here
        memset(scan.here.filled, 0, rows)
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
            if quiet:
                slab.has_soft = slab.has_soft or zero < overall
                y += block_end - at
            elif largest[at - block] <= low:
                slab.has_soft = slab.has_soft or zero < largest[at - block]
                y += 1
            else:
                if sweep_row(scan, slab, row, mask, largest[at - block] > scan.keys.high, z, y) < 0:
                    return -1
                if slab.has_bad:
                    return 0
                y += 1
        if z == 0:
            slab.first_plane_end = slab.n_runs
    slab.has_gray = slab.has_gray or slab.has_soft
    return 0


def sweep(voxels, mask, *, tuple keys, bint is_signed, int neighbours, tuple weights, Py_ssize_t first_plane):
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
        slab.neighbours = neighbours
        scan.ops = lc_row_ops_for(voxel_buffer.itemsize, is_signed)
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
