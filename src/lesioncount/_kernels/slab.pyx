"""A slab: a range of planes with the table of regions found in them. Neighbouring slabs add."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove


cdef extern from "grow.h" nogil:
    int lc_grow(void* table, size_t n_bytes)  # table: the address of a pointer


REGION_FIELDS = [
    ("peak_key", "u8"), ("peak_at", "i8"), ("first_at", "i8"), ("n_voxels", "i8"), ("total", "i8", 3), ("low", "i4", 3),
    ("high", "i4", 3),
]  # fmt: skip
RUN_FIELDS = [("start", "i8"), ("length", "i4"), ("region", "i4")]


cdef class Memory:
    """A block of C memory that numpy can read without a copy."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.n_bytes, 1, flags)

    def __dealloc__(self):
        free(self.data)


cdef class Slab:
    """Planes ``first_plane`` to ``first_plane + n_planes - 1`` of a volume, and the regions found in them.

    ``a + b`` is the slab of both when b starts where a ends. Addition is associative, so slabs may be found in any
    order, on any number of threads or machines, and folded.
    """

    def __cinit__(self):
        self.regions = NULL
        self.parent = NULL
        self.runs = NULL
        self.keys = NULL
        self.n_keys = 1

    def __dealloc__(self):
        free(self.regions)
        free(self.parent)
        free(self.runs)
        free(self.keys)

    cdef int make_room(self, Py_ssize_t regions, Py_ssize_t runs) noexcept nogil:
        cdef Py_ssize_t room
        if self.n_regions + regions > self.region_room:
            room = max(self.n_regions + regions, min(INT32_MAX, 2 * self.region_room))
            if room > INT32_MAX:
                return -1
            if lc_grow(&self.regions, room * sizeof(Region)) < 0 or lc_grow(&self.parent, room * sizeof(int32_t)) < 0:
                return -1
            self.region_room = room
        if self.n_runs + runs > self.run_room:
            room = max(self.n_runs + runs, 2 * self.run_room)
            if lc_grow(&self.runs, room * sizeof(Run)) < 0:
                return -1
            self.run_room = room
        return 0

    cdef int make_key_room(self, Py_ssize_t keys) noexcept nogil:
        cdef Py_ssize_t room
        if self.n_keys + keys > self.key_room:
            room = max(self.n_keys + keys, 2 * self.key_room)
            if lc_grow(&self.keys, room * sizeof(uint64_t)) < 0:
                return -1
            self.keys[0] = 0
            self.key_room = room
        return 0

    def copy(self):
        """An independent slab with the same content."""
        cdef Slab twin = Slab()
        twin.first_plane, twin.n_planes = self.first_plane, self.n_planes
        twin.n_rows, twin.n_columns, twin.neighbours = self.n_rows, self.n_columns, self.neighbours
        twin.has_bad, twin.has_soft, twin.has_gray = self.has_bad, self.has_soft, self.has_gray
        twin.first_plane_end, twin.last_plane_begin = self.first_plane_end, self.last_plane_begin
        if twin.make_room(self.n_regions, self.n_runs) < 0:
            raise MemoryError
        if self.n_regions:
            memcpy(twin.regions, self.regions, self.n_regions * sizeof(Region))
            memcpy(twin.parent, self.parent, self.n_regions * sizeof(int32_t))
        if self.n_runs:
            memcpy(twin.runs, self.runs, self.n_runs * sizeof(Run))
        twin.n_regions, twin.n_runs = self.n_regions, self.n_runs
        twin.keeps_keys = self.keeps_keys
        if self.n_keys > 1:
            if twin.make_key_room(self.n_keys - 1) < 0:
                raise MemoryError
            memcpy(twin.keys + 1, self.keys + 1, (self.n_keys - 1) * sizeof(uint64_t))
            twin.n_keys = self.n_keys
        return twin

    def __add__(self, Slab other):
        both = self.copy()
        both += other
        return both

    def __iadd__(self, Slab other):
        cdef Slab after = other
        if after.first_plane != self.first_plane + self.n_planes:
            raise ValueError(
                f"a slab that starts at plane {after.first_plane} cannot follow one that ends before plane "
                f"{self.first_plane + self.n_planes}"
            )
        if (after.n_rows, after.n_columns, after.neighbours) != (self.n_rows, self.n_columns, self.neighbours):
            raise ValueError("slabs of different planes or connectivity do not add")
        if self.keeps_keys != after.keeps_keys:
            raise ValueError("a slab that keeps its voxels and one that does not do not add")
        if self.make_room(after.n_regions, after.n_runs) < 0 or self.make_key_room(after.n_keys - 1) < 0:
            raise MemoryError
        with nogil:
            self.append(after)
            if self.n_regions > 2 * self.n_compact + 4096:  # a long stream must not keep what has been merged
                self.compact()
        return self

    cdef void append(self, Slab after) noexcept nogil:
        cdef int32_t shift = <int32_t> self.n_regions
        cdef Py_ssize_t seam_begin = self.last_plane_begin, seam_end = self.n_runs, i
        if after.n_regions:
            memcpy(self.regions + shift, after.regions, after.n_regions * sizeof(Region))
        for i in range(after.n_regions):
            self.parent[shift + i] = after.parent[i] + shift
        self.n_regions += after.n_regions
        for i in range(after.n_runs):
            self.runs[seam_end + i] = after.runs[i]
            self.runs[seam_end + i].region += shift
        self.n_runs += after.n_runs
        if after.n_keys > 1:
            memcpy(self.keys + self.n_keys, after.keys + 1, (after.n_keys - 1) * sizeof(uint64_t))
            self.n_keys += after.n_keys - 1

        if seam_begin < seam_end and after.first_plane_end > 0:
            self.join_planes(seam_begin, seam_end, after.first_plane_end)
        self.last_plane_begin = seam_end + after.last_plane_begin
        self.n_planes += after.n_planes
        self.has_bad = self.has_bad or after.has_bad
        self.has_soft = self.has_soft or after.has_soft
        self.has_gray = self.has_gray or after.has_gray

    cdef void join_planes(self, Py_ssize_t begin, Py_ssize_t middle, Py_ssize_t n_below) noexcept nogil:
        """Unite what touches across a seam: runs from ``begin`` lie in the last plane before it, and n after it."""
        cdef Run* above = self.runs + begin
        cdef Run* below = self.runs + middle
        cdef Reach reach = reach_of(self.neighbours)
        self.join_seam(above, middle - begin, below, n_below, 0, reach.next_plane)
        if reach.diagonal != APART:
            self.join_seam(above, middle - begin, below, n_below, -1, reach.diagonal)
            self.join_seam(above, middle - begin, below, n_below, 1, reach.diagonal)

    cdef void join_seam(
        self, Run* above, Py_ssize_t n_above, Run* below, Py_ssize_t n_below, int step, int reach
    ) noexcept nogil:
        """Unite runs of the last plane, moved by `step` rows, with runs of the next plane that they touch."""
        # Rows are laid end to end with a gap of two, so that a slanted reach cannot step over the end of a row.
        cdef int64_t width = self.n_columns, padded = self.n_columns + 2, plane = self.n_rows * width
        cdef int64_t at, a_first, a_last, b_first, b_last
        cdef Py_ssize_t a = 0, b = 0
        while a < n_above and b < n_below:
            at = above[a].start % plane
            a_first = (at // width + step) * padded + at % width
            a_last = a_first + above[a].length - 1
            at = below[b].start % plane
            b_first = at // width * padded + at % width
            b_last = b_first + below[b].length - 1
            if a_first <= b_last + reach and b_first <= a_last + reach:
                unite(self.parent, above[a].region, below[b].region)
            if a_last < b_last:
                a += 1
            else:
                b += 1

    def drop_inner_runs(self):
        """Forget all runs but those a neighbouring slab may touch; a label map can then no longer be made."""
        cdef Py_ssize_t kept = self.n_runs - self.last_plane_begin
        if self.last_plane_begin <= self.first_plane_end:
            return
        for i in range(kept):
            self.runs[self.first_plane_end + i] = self.runs[self.last_plane_begin + i]
        self.last_plane_begin = self.first_plane_end
        self.n_runs = self.first_plane_end + kept

    def take_complete(self):
        """Move all regions that do not reach the last plane into a slab of their own, which nothing can be added to.

        For a slab that nothing comes before: what is left is all that a next slab may touch.
        """
        cdef Slab done = Slab()
        done.first_plane, done.n_planes, done.keeps_keys = self.first_plane, self.n_planes, self.keeps_keys
        done.n_rows, done.n_columns, done.neighbours = self.n_rows, self.n_columns, self.neighbours
        if done.make_room(self.n_regions, self.n_runs) < 0 or done.make_key_room(self.n_keys - 1) < 0:
            raise MemoryError
        with nogil:
            self.compact()
            self.move_complete(done)
        return done

    cdef void move_complete(self, Slab done) noexcept nogil:
        cdef Py_ssize_t i, first_plane_end = self.first_plane_end, last_plane_begin = self.last_plane_begin
        cdef Py_ssize_t n_regions = self.n_regions, n_runs = self.n_runs, key = 1
        cdef int32_t* number = self.parent  # where a region goes: its number in `done`, or ~number if it stays
        cdef Run run
        for i in range(n_regions):
            number[i] = 0
        for i in range(last_plane_begin, n_runs):
            number[self.runs[i].region] = -1
        self.n_regions = self.n_runs = self.first_plane_end = self.last_plane_begin = 0
        for i in range(n_regions):
            if number[i] < 0:
                number[i] = <int32_t> ~self.n_regions
                self.regions[self.n_regions] = self.regions[i]
                self.n_regions += 1
            else:
                number[i] = <int32_t> done.n_regions
                done.regions[done.n_regions] = self.regions[i]
                done.parent[done.n_regions] = number[i]
                done.n_regions += 1
        self.n_keys = 1
        for i in range(n_runs):
            run = self.runs[i]
            run.region = number[run.region]
            if run.region < 0:
                run.region = ~run.region
                self.first_plane_end += i < first_plane_end
                self.last_plane_begin += i < last_plane_begin
                self.runs[self.n_runs] = run
                self.n_runs += 1
                memmove(self.keys + self.n_keys, self.keys + key, run.length * sizeof(uint64_t))
                self.n_keys += run.length
            else:
                done.runs[done.n_runs] = run
                done.n_runs += 1
                memcpy(done.keys + done.n_keys, self.keys + key, run.length * sizeof(uint64_t))
                done.n_keys += run.length
            key += run.length
        for i in range(self.n_regions):
            self.parent[i] = <int32_t> i
        self.n_compact = self.n_regions

    def finish(self):
        """Give up the content as two blocks of memory, REGION_FIELDS and RUN_FIELDS; the slab is empty after."""
        cdef Memory regions = Memory(), runs = Memory()
        with nogil:
            self.compact()
        regions.data, regions.n_bytes = self.regions, self.n_regions * sizeof(Region)
        runs.data, runs.n_bytes = self.runs, self.n_runs * sizeof(Run)
        self.regions, self.runs = NULL, NULL
        self.empty()
        return regions, runs

    cdef void empty(self) noexcept nogil:
        """Forget everything, once others have taken over what they need."""
        free(self.regions)
        free(self.runs)
        free(self.keys)
        self.regions, self.runs, self.keys, self.n_keys = NULL, NULL, NULL, 1
        self.n_regions = self.region_room = self.n_runs = self.run_room = self.key_room = 0
        self.first_plane_end = self.last_plane_begin = self.n_planes = 0

    def kept_keys(self):
        """The keys of all voxels, run after run, as bytes of uint64."""
        return (<char*> (self.keys + 1))[: (self.n_keys - 1) * sizeof(uint64_t)] if self.n_keys > 1 else b""

    cdef void compact(self) noexcept nogil:
        """Merge every region into the one it belongs to, and number those that are left from 0."""
        cdef Py_ssize_t i
        cdef int32_t kept = 0
        for i in range(self.n_regions - 1, -1, -1):  # children come after their parents
            if self.parent[i] != i:
                merge_into(&self.regions[self.parent[i]], &self.regions[i])
        for i in range(self.n_regions):
            if self.parent[i] == i:
                self.regions[kept] = self.regions[i]
                self.parent[i] = kept
                kept += 1
            else:
                self.parent[i] = self.parent[self.parent[i]]
        for i in range(self.n_runs):
            self.runs[i].region = self.parent[self.runs[i].region]
        self.n_regions = self.n_compact = kept
        for i in range(kept):
            self.parent[i] = <int32_t> i


def slab_of(
    const unsigned char[::1] regions, const unsigned char[::1] runs, const uint64_t[::1] keys, *,
    Py_ssize_t n_planes, Py_ssize_t n_rows, Py_ssize_t n_columns, int neighbours,
):
    """A slab of regions that are complete: nothing can be added to it, but peaks can be found in it.

    Parameters
    ----------
    regions, runs : bytes of REGION_FIELDS and RUN_FIELDS
        Runs are in the order of the sweep; those of a row may adjoin.
    keys : array of uint64
        Of their voxels, run after run.
    n_planes, n_rows, n_columns, neighbours
        Of the whole map.
    """
    cdef Slab slab = Slab()
    cdef Py_ssize_t i
    slab.n_planes, slab.n_rows, slab.n_columns = n_planes, n_rows, n_columns
    slab.neighbours, slab.keeps_keys = neighbours, True
    if slab.make_room(regions.shape[0] // sizeof(Region), runs.shape[0] // sizeof(Run)) < 0:
        raise MemoryError
    if slab.make_key_room(keys.shape[0]) < 0:
        raise MemoryError
    if regions.shape[0]:
        memcpy(slab.regions, &regions[0], regions.shape[0])
    if runs.shape[0]:
        memcpy(slab.runs, &runs[0], runs.shape[0])
    if keys.shape[0]:
        memcpy(slab.keys + 1, &keys[0], keys.shape[0] * sizeof(uint64_t))
    slab.n_regions = slab.n_compact = regions.shape[0] // sizeof(Region)
    slab.n_runs, slab.n_keys = runs.shape[0] // sizeof(Run), 1 + keys.shape[0]
    for i in range(slab.n_regions):
        slab.parent[i] = <int32_t> i
    return slab


def paint(const unsigned char[::1] runs, const int32_t[::1] labels, int32_t[::1] out):
    """Write the label of each run into its voxels; ``labels`` are those of the regions, ``out`` is in sweep order."""
    cdef const Run* table = <const Run*> &runs[0] if runs.shape[0] else NULL
    cdef Py_ssize_t i, n_runs = runs.shape[0] // sizeof(Run)
    cdef int64_t at
    cdef int32_t label
    with nogil:
        for i in range(n_runs):
            label = labels[table[i].region]
            for at in range(table[i].start, table[i].start + table[i].length):
                out[at] = label
