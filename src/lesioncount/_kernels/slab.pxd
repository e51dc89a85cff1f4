"""What the sweep and the sum of slabs share: the table of regions, its union-find, and the slab's layout."""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t

cdef struct Region:
    uint64_t peak_key
    int64_t peak_at      # position in the caller's C order, as are all `_at`
    int64_t first_at
    int64_t n_voxels
    int64_t total[3]     # sums of plane, row and column numbers: integers, so that slabs add without rounding
    int32_t low[3]
    int32_t high[3]      # inclusive

cdef struct Run:
    int64_t start        # (plane * n_rows + row) * n_columns + column, in sweep order
    int32_t length
    int32_t region

# How far a neighbouring row reaches along the columns: not at all, straight across, or one column to either side.
cdef enum:
    APART = -1
    STRAIGHT = 0
    SLANTED = 1

cdef struct Reach:
    int same_plane       # row above in the same plane
    int next_plane       # same row in the plane before
    int diagonal         # rows above and below in the plane before


cdef inline Reach reach_of(int neighbours) noexcept nogil:
    """Connectivity by the number of axes a step may change: 1 faces, 2 edges, 3 corners."""
    if neighbours == 1:
        return Reach(STRAIGHT, STRAIGHT, APART)
    if neighbours == 2:
        return Reach(SLANTED, SLANTED, STRAIGHT)
    return Reach(SLANTED, SLANTED, SLANTED)


cdef inline int32_t find(int32_t* parent, int32_t region) noexcept nogil:
    while parent[region] != region:
        parent[region] = parent[parent[region]]
        region = parent[region]
    return region


cdef inline int32_t unite(int32_t* parent, int32_t a, int32_t b) noexcept nogil:
    """Make one region of two; the older one wins, so that parents always come before their children."""
    a = find(parent, a)
    b = find(parent, b)
    if a < b:
        parent[b] = a
        return a
    parent[a] = b
    return b


cdef inline void clear(Region* r) noexcept nogil:
    r.peak_key, r.peak_at, r.first_at, r.n_voxels = 0, INT64_MAX, INT64_MAX, 0
    r.total[0], r.total[1], r.total[2] = 0, 0, 0
    r.low[0], r.low[1], r.low[2] = INT32_MAX, INT32_MAX, INT32_MAX
    r.high[0], r.high[1], r.high[2] = -1, -1, -1


cdef inline void merge_into(Region* kept, const Region* gone) noexcept nogil:
    cdef int axis
    if gone.peak_key > kept.peak_key or (gone.peak_key == kept.peak_key and gone.peak_at < kept.peak_at):
        kept.peak_key = gone.peak_key
        kept.peak_at = gone.peak_at
    kept.first_at = min(kept.first_at, gone.first_at)
    kept.n_voxels += gone.n_voxels
    for axis in range(3):
        kept.total[axis] += gone.total[axis]
        kept.low[axis] = min(kept.low[axis], gone.low[axis])
        kept.high[axis] = max(kept.high[axis], gone.high[axis])


cdef class Memory:
    cdef void* data
    cdef Py_ssize_t n_bytes


cdef class Slab:
    cdef Region* regions
    cdef int32_t* parent
    cdef Run* runs
    cdef uint64_t* keys        # of all voxels, run after run, if they are kept; from 1 on: 0 is that of no voxel
    cdef Py_ssize_t n_regions, region_room, n_runs, run_room, key_room
    cdef readonly Py_ssize_t n_keys
    cdef readonly bint keeps_keys
    cdef Py_ssize_t n_compact  # number of regions when they were last compacted
    cdef Py_ssize_t first_plane_end, last_plane_begin  # the runs of the first and last plane: [:end] and [begin:]
    cdef readonly Py_ssize_t first_plane, n_planes, n_rows, n_columns
    cdef readonly int neighbours
    cdef readonly bint has_bad      # voxels that are not probabilities
    cdef readonly bint has_soft     # voxels strictly between 0 and 0.5
    cdef readonly bint has_gray     # voxels strictly between 0 and 1

    cdef int make_room(self, Py_ssize_t regions, Py_ssize_t runs) noexcept nogil
    cdef int make_key_room(self, Py_ssize_t keys) noexcept nogil
    cdef void append(self, Slab after) noexcept nogil
    cdef void move_complete(self, Slab done) noexcept nogil
    cdef void join_planes(self, Py_ssize_t begin, Py_ssize_t middle, Py_ssize_t n_below) noexcept nogil
    cdef void join_seam(
        self, Run* above, Py_ssize_t n_above, Run* below, Py_ssize_t n_below, int step, int reach
    ) noexcept nogil
    cdef void empty(self) noexcept nogil
    cdef void compact(self) noexcept nogil
