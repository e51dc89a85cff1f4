"""The merge trees of regions: as the threshold falls, components appear at peaks and join at saddles.

Voxels are ranked by their keys, equal ones by C order. Those without a higher neighbour are peaks. Regions that have one
are left as the sweep has found them. In the others, each voxel looks up to the highest of its neighbours, and lies in the
basin of the peak that the way up leads to. Components can join only where two basins meet. So no voxel has to be sorted but
those at which basins meet, few in a smooth map; from the highest down, they join what they touch.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from lesioncount._kernels.slab cimport Memory, Region, Run, Slab, find

cdef extern from "grow.h" nogil:
    int lc_grow(void* table, size_t n_bytes)  # table: the address of a pointer

PEAK_FIELDS = [
    ("key", "u8"), ("saddle_key", "u8"), ("at", "i8"), ("saddle_at", "i8"), ("parent", "i4"), ("into", "i4"),
    ("side", "i4"), ("died", "i4"), ("voxel", "i4"), ("region", "i4"),
]  # fmt: skip

cdef enum:
    MOST_NEIGHBOURS = 26
    FEWEST_VOXELS = 3    # of a region that can have two peaks
    SMALL_BOX = 1 << 15  # voxels: smaller regions are looked at as a whole, others three planes at a time
    FOR_PEAKS = 0        # what to look for
    UP = 1
    ACROSS = 2

cdef struct Part:        # of a window: one plane, or all of it
    int32_t* voxels
    Py_ssize_t begin, end  # its loud runs

cdef struct Window:      # a box around a region with a margin of one, or three of its planes that follow each other
    int32_t* memory      # the numbers of voxels by place; nothing but 0 between two regions
    bint is_whole
    Py_ssize_t width, size  # of a row and of a plane
    Py_ssize_t begin, end  # the loud runs of the region
    int32_t region
    int32_t plane, row, column  # the first of the region
    int look             # for what

cdef struct Steps:       # to the neighbours of a voxel, in the order of their positions
    Py_ssize_t n, n_earlier
    Py_ssize_t plane[MOST_NEIGHBOURS]
    Py_ssize_t row[MOST_NEIGHBOURS]
    Py_ssize_t column[MOST_NEIGHBOURS]
    Py_ssize_t to[MOST_NEIGHBOURS]  # all together, as the window lies in memory now


cdef void find_uneven(Tree* tree) noexcept nogil:
    """Call regions quiet that are too small for two peaks, or have no slope."""
    cdef Py_ssize_t i, k, voxel = 1
    cdef const Region* region
    cdef const Run* run
    cdef uint64_t differ
    memset(tree.quiet, 1, tree.n_regions)
    for i in range(tree.n_runs):
        run = &tree.runs[i]
        region, differ = &tree.regions[run.region], 0
        if region.n_voxels >= FEWEST_VOXELS:
            for k in range(run.length):
                differ |= tree.keys[voxel + k] ^ region.peak_key
            tree.quiet[run.region] &= differ == 0
        voxel += run.length


cdef Py_ssize_t count_loud(Tree* tree) noexcept nogil:
    """The number of loud runs; `loud_end` is where those of each region begin, and moves on as they are listed."""
    cdef Py_ssize_t i
    cdef int32_t n = 0, here
    memset(tree.loud_end, 0, tree.n_regions * sizeof(int32_t))
    for i in range(tree.n_runs):
        tree.loud_end[tree.runs[i].region] += not tree.quiet[tree.runs[i].region]
    for i in range(tree.n_regions):
        here = tree.loud_end[i]
        tree.loud_end[i] = n
        n += here
    return n


cdef void list_loud(Tree* tree) noexcept nogil:
    cdef Cursor cursor = Cursor(0, 0, 0, 0, 0)
    cdef const Run* run
    cdef Py_ssize_t i
    cdef int32_t voxel = 1, column
    for i in range(tree.n_runs):
        run = &tree.runs[i]
        if not tree.quiet[run.region]:
            column = <int32_t> column_of(&cursor, tree, run)
            tree.loud[tree.loud_end[run.region]] = Loud(
                voxel, run.length, <int32_t> cursor.plane, <int32_t> cursor.row, column
            )
            tree.loud_end[run.region] += 1
        voxel += run.length


cdef void set_steps(Steps* steps, const Tree* tree) noexcept nogil:
    """All steps that change at most so many axes, sorted by what they add to the position."""
    cdef int64_t added[MOST_NEIGHBOURS]
    cdef int64_t adds
    cdef Py_ssize_t z, y, x, i
    steps.n = steps.n_earlier = 0
    for z in range(-1, 2):
        for y in range(-1, 2):
            for x in range(-1, 2):
                if not 1 <= z * z + y * y + x * x <= tree.neighbours:
                    continue
                adds = z * tree.weights[0] + y * tree.weights[1] + x * tree.weights[2]
                i = steps.n
                while i > 0 and added[i - 1] > adds:
                    added[i], steps.plane[i] = added[i - 1], steps.plane[i - 1]
                    steps.row[i], steps.column[i] = steps.row[i - 1], steps.column[i - 1]
                    i -= 1
                added[i], steps.plane[i], steps.row[i], steps.column[i] = adds, z, y, x
                steps.n += 1
                steps.n_earlier += adds < 0


cdef void find_runs(Part* plane, Py_ssize_t begin, const Window* window, const Tree* tree) noexcept nogil:
    """The runs of the next plane."""
    plane.begin = plane.end = begin
    while plane.end < window.end and tree.loud[plane.end].plane == tree.loud[begin].plane:
        plane.end += 1


cdef inline Py_ssize_t place_of(const Loud* run, const Window* window) noexcept nogil:
    cdef Py_ssize_t place = (run.row - window.row + 1) * window.width + run.column - window.column + 1
    return place + (run.plane - window.plane + 1) * window.size if window.is_whole else place


cdef void fill(const Part* part, const Window* window, const Tree* tree, int32_t times) noexcept nogil:
    """Write the numbers of voxels to their places, or take them away (0 times)."""
    cdef const Loud* run
    cdef int32_t* place
    cdef Py_ssize_t i, k
    for i in range(part.begin, part.end):
        run = &tree.loud[i]
        place = part.voxels + place_of(run, window)
        for k in range(run.length):
            place[k] = times * <int32_t> (run.voxel + k)


cdef int add_peak(Tree* tree, int32_t voxel, int32_t region, int64_t at) noexcept nogil:
    if tree.n_peaks == tree.peak_room:
        tree.peak_room = 2 * tree.peak_room + 64
        if lc_grow(&tree.peaks, tree.peak_room * sizeof(Peak)) < 0:
            return -1
    tree.peaks[tree.n_peaks] = Peak(tree.keys[voxel], 0, at, -1, -1, -1, -1, -1, voxel, region)
    tree.n_peaks += 1
    return 0


cdef inline Py_ssize_t step_up(
    const Tree* tree, const Steps* steps, const int32_t* place, Py_ssize_t tried_first
) noexcept nogil:
    """A step from a voxel to a higher one; -1 if it is a peak. Places without a voxel hold 0, whose key is the lowest."""
    cdef uint64_t own = tree.keys[place[0]], key = tree.keys[place[steps.to[tried_first]]]
    cdef Py_ssize_t i
    if key > own:
        return tried_first
    for i in range(steps.n):
        key = tree.keys[place[steps.to[i]]]
        if key > own or (key == own and i < steps.n_earlier):
            return i
    return -1


cdef int find_peaks(
    Tree* tree, const Steps* steps, const int32_t* place, Py_ssize_t n, int32_t region, int64_t at
) noexcept nogil:
    """The peaks in a run of voxels."""
    cdef Py_ssize_t i, step, last = 0  # the way up is mostly that of the voxel before
    for i in range(n):
        step = step_up(tree, steps, place + i, last)
        if step >= 0:
            last = step
        elif add_peak(tree, place[i], region, at + i * tree.weights[2]) < 0:
            return -1
    return 0


cdef inline void look_up(Tree* tree, const Steps* steps, const int32_t* place) noexcept nogil:
    """Find the highest neighbour of a voxel, itself if it is a peak."""
    cdef int32_t voxel = place[0], top = voxel, other
    # Of equal voxels those with an earlier position are higher, and come first: at least as high is enough for them.
    cdef uint64_t most = tree.keys[voxel] - 1, key
    cdef Py_ssize_t i
    for i in range(steps.n_earlier):
        other = place[steps.to[i]]
        key = tree.keys[other]
        top = other if key > most else top
        most = key if key > most else most
    most = max(most, tree.keys[voxel])
    for i in range(steps.n_earlier, steps.n):
        other = place[steps.to[i]]
        key = tree.keys[other]
        top = other if key > most else top
        most = key if key > most else most
    tree.up[voxel] = top


cdef inline int look_across(Tree* tree, const Steps* steps, const int32_t* place, int64_t at) noexcept nogil:
    """Find the other basins that a voxel looks up into."""
    cdef int32_t voxel = place[0], own = tree.up[voxel], differ = 0
    cdef Py_ssize_t i
    tree.up[0] = own  # where there is no voxel, there is no other basin
    for i in range(steps.n):
        differ |= tree.up[place[steps.to[i]]] ^ own
    return 0 if differ == 0 else add_meetings(tree, steps, place, at)


cdef int add_meetings(Tree* tree, const Steps* steps, const int32_t* place, int64_t at) noexcept nogil:
    """Each basin once, those first that are met at the highest voxel."""
    cdef uint64_t highest[MOST_NEIGHBOURS]
    cdef int32_t basin[MOST_NEIGHBOURS]
    cdef int32_t voxel = place[0], other
    cdef uint64_t own = tree.keys[voxel], key
    cdef Py_ssize_t i, k, n = 0
    for i in range(steps.n):
        other = place[steps.to[i]]
        key = tree.keys[other]
        if tree.up[other] == tree.up[voxel] or key < own or (key == own and i >= steps.n_earlier):
            continue
        k = 0
        while k < n and basin[k] != tree.up[other]:
            k += 1
        if k == n:
            n += 1
        elif highest[k] >= key:
            continue
        while k > 0 and highest[k - 1] < key:
            highest[k], basin[k] = highest[k - 1], basin[k - 1]
            k -= 1
        highest[k], basin[k] = key, tree.up[other]
    if tree.n_meetings + n > tree.meeting_room:
        tree.meeting_room = 2 * tree.meeting_room + 64
        if lc_grow(&tree.meetings, tree.meeting_room * sizeof(Meeting)) < 0:
            return -1
    for k in range(n):
        tree.meetings[tree.n_meetings] = Meeting(at, voxel, ~basin[k])
        tree.n_meetings += 1
    return 0


cdef int visit_run(
    Tree* tree, const Steps* steps, const int32_t* place, const Loud* run, const Window* window
) noexcept nogil:
    cdef int64_t at = run.plane * tree.weights[0] + run.row * tree.weights[1] + run.column * tree.weights[2]
    cdef Py_ssize_t i
    if window.look == FOR_PEAKS:
        return find_peaks(tree, steps, place, run.length, window.region, at)
    for i in range(run.length):
        if window.look == UP:
            look_up(tree, steps, place + i)
        elif look_across(tree, steps, place + i, at + i * tree.weights[2]) < 0:
            return -1
    return 0


cdef int visit_part(Tree* tree, const Steps* steps, const Part* part, const Window* window) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(part.begin, part.end):
        if visit_run(tree, steps, part.voxels + place_of(&tree.loud[i], window), &tree.loud[i], window) < 0:
            return -1
    return 0


cdef void aim(Steps* steps, const Window* window, Py_ssize_t before, Py_ssize_t after) noexcept nogil:
    """Set where steps lead to, given those to the planes before and after."""
    cdef Py_ssize_t i, plane
    for i in range(steps.n):
        plane = 0 if steps.plane[i] == 0 else before if steps.plane[i] < 0 else after
        steps.to[i] = plane + steps.row[i] * window.width + steps.column[i]


cdef int visit(Tree* tree, Steps* steps, const Window* window) noexcept nogil:
    """Look for something from every voxel of a region, plane by plane unless it is in the window as a whole."""
    cdef Part before = Part(window.memory, 0, 0), here = Part(window.memory + window.size, 0, 0)
    cdef Part after = Part(window.memory + 2 * window.size, 0, 0)
    cdef Part whole = Part(window.memory, window.begin, window.end)
    cdef int status = 0
    if window.is_whole:
        return visit_part(tree, steps, &whole, window)
    find_runs(&here, window.begin, window, tree)
    fill(&here, window, tree, 1)
    while here.begin < here.end and status == 0:
        find_runs(&after, here.end, window, tree)
        fill(&after, window, tree, 1)
        aim(steps, window, before.voxels - here.voxels, after.voxels - here.voxels)
        status = visit_part(tree, steps, &here, window)
        fill(&before, window, tree, 0)
        before, here, after = here, after, before
    fill(&before, window, tree, 0)
    return status


cdef void find_basins(Tree* tree, const Window* window, Py_ssize_t first_peak) noexcept nogil:
    """Follow each way up to its peak, and make it short."""
    cdef int32_t* up = tree.up
    cdef int32_t voxel, v, peak, above
    cdef Py_ssize_t i
    for i in range(first_peak, tree.n_peaks):
        up[tree.peaks[i].voxel] = <int32_t> ~i
    for i in range(window.begin, window.end):
        for voxel in range(tree.loud[i].voxel, tree.loud[i].voxel + tree.loud[i].length):
            v = voxel
            while up[v] >= 0:
                v = up[v]
            peak, v = up[v], voxel
            while up[v] >= 0:
                above = up[v]
                up[v] = peak
                v = above


cdef inline uint64_t number_of(const Tree* tree, int32_t meeting, bint by_position) noexcept nogil:
    """What meetings are sorted by: position, or key from the highest on."""
    if by_position:
        return <uint64_t> tree.meetings[meeting].at
    return ~tree.keys[tree.meetings[meeting].voxel]


cdef void sort(const Tree* tree, int32_t** order, int32_t** other, bint by_position) noexcept nogil:
    """Sort meetings byte by byte, the lowest first; equal ones keep their order. Bytes that are all equal are free."""
    cdef uint64_t all_set = ~(<uint64_t> 0), any_set = 0, number
    cdef Py_ssize_t i, at, n, byte
    cdef Py_ssize_t starts[256]
    for i in range(tree.n_meetings):
        number = number_of(tree, <int32_t> i, by_position)
        all_set &= number
        any_set |= number
    for byte in range(0, 64, 8):
        if ((any_set ^ all_set) >> byte) & 255 == 0:
            continue
        memset(starts, 0, sizeof(starts))
        for i in range(tree.n_meetings):
            starts[(number_of(tree, <int32_t> i, by_position) >> byte) & 255] += 1
        at = 0
        for i in range(256):
            n = starts[i]
            starts[i] = at
            at += n
        for i in range(tree.n_meetings):
            number = (number_of(tree, order[0][i], by_position) >> byte) & 255
            other[0][starts[number]] = order[0][i]
            starts[number] += 1
        order[0], other[0] = other[0], order[0]


cdef bint is_in_c_order(const Tree* tree) noexcept nogil:
    """Whether the sweep meets the voxels of a region in the order of their positions."""
    if tree.n_rows == 1:
        return tree.weights[0] >= tree.weights[2]
    return tree.weights[0] >= tree.weights[1] >= tree.weights[2]


cdef inline bint is_higher(const Peak* p, const Peak* q) noexcept nogil:
    return p.key > q.key or (p.key == q.key and p.at < q.at)


cdef int join(Tree* tree) noexcept nogil:
    """Join components where they meet, from the highest meeting down: the lower peak of the two ends there."""
    cdef Py_ssize_t n = tree.n_meetings, i
    cdef int32_t* memory = <int32_t*> malloc((2 * n + tree.n_peaks) * sizeof(int32_t))
    cdef int32_t* order = memory
    cdef int32_t* other = memory + n
    cdef int32_t* parent = memory + 2 * n
    cdef int32_t own, across, a, b, turn = 0
    cdef Meeting* meeting
    cdef Peak* lower
    if memory == NULL:
        return -1
    for i in range(n):
        order[i] = <int32_t> i
    for i in range(tree.n_peaks):
        parent[i] = <int32_t> i
    if not is_in_c_order(tree):  # those of a region were found in the order of the sweep
        sort(tree, &order, &other, True)
    sort(tree, &order, &other, False)
    for i in range(n):
        meeting = &tree.meetings[order[i]]
        own, across = ~tree.up[meeting.voxel], meeting.across
        a, b = find(parent, own), find(parent, across)
        if a == b:
            continue
        if is_higher(&tree.peaks[a], &tree.peaks[b]):
            a, b, own, across = b, a, across, own
        lower = &tree.peaks[a]
        lower.saddle_key, lower.saddle_at = tree.keys[meeting.voxel], meeting.at
        lower.parent, lower.into, lower.side, lower.died = b, across, own, turn
        parent[a] = b
        turn += 1
    free(memory)
    return 0


cdef int build(Tree* tree) noexcept nogil:
    cdef Window window
    cdef Py_ssize_t n_loud
    cdef int status = 0
    memset(&window, 0, sizeof(Window))
    tree.quiet = <uint8_t*> malloc(tree.n_regions + 1)
    tree.loud_end = <int32_t*> malloc((tree.n_regions + 1) * sizeof(int32_t))
    if tree.quiet == NULL or tree.loud_end == NULL:
        return -1
    find_uneven(tree)
    n_loud = count_loud(tree)
    if n_loud > 0:
        tree.loud = <Loud*> malloc(n_loud * sizeof(Loud))
        tree.up = <int32_t*> malloc(tree.n_keys * sizeof(int32_t))  # touched only where there are several peaks
        window.memory = <int32_t*> calloc(largest_window(tree), sizeof(int32_t))
        status = -1 if tree.loud == NULL or tree.up == NULL or window.memory == NULL else build_all(tree, &window)
    free(window.memory)
    free(tree.loud)
    free(tree.meetings)
    return status


cdef Py_ssize_t place(Window* window, const Region* region) noexcept nogil:
    """Put the window around a region; its size in voxels."""
    cdef Py_ssize_t n_planes = region.high[0] - region.low[0] + 3
    window.plane, window.row, window.column = region.low[0], region.low[1], region.low[2]
    window.width = region.high[2] - region.low[2] + 3
    window.size = window.width * (region.high[1] - region.low[1] + 3)
    window.is_whole = n_planes * window.size <= SMALL_BOX
    return window.size * (n_planes if window.is_whole else 3)


cdef Py_ssize_t largest_window(const Tree* tree) noexcept nogil:
    cdef Window window
    cdef Py_ssize_t i, most = 0
    for i in range(tree.n_regions):
        if not tree.quiet[i]:
            most = max(most, place(&window, &tree.regions[i]))
    return most


cdef int build_all(Tree* tree, Window* window) noexcept nogil:
    cdef Steps steps
    cdef Part whole
    cdef Py_ssize_t i
    set_steps(&steps, tree)
    list_loud(tree)
    for i in range(tree.n_regions):
        if tree.quiet[i]:
            continue
        place(window, &tree.regions[i])
        window.begin, window.end, window.region = window.end, tree.loud_end[i], <int32_t> i
        whole = Part(window.memory, window.begin, window.end)
        if window.is_whole:
            aim(&steps, window, -window.size, window.size)
            fill(&whole, window, tree, 1)
        if build_region(tree, &steps, window) < 0:
            return -1
        if window.is_whole:
            fill(&whole, window, tree, 0)
    return 0 if tree.n_peaks == 0 else join(tree)


cdef int build_region(Tree* tree, Steps* steps, Window* window) noexcept nogil:
    cdef Py_ssize_t first_peak = tree.n_peaks
    window.look = FOR_PEAKS
    if visit(tree, steps, window) < 0:
        return -1
    if tree.n_peaks < first_peak + 2:
        tree.n_peaks, tree.quiet[window.region] = first_peak, 1
        return 0
    window.look = UP
    visit(tree, steps, window)
    find_basins(tree, window, first_peak)
    window.look = ACROSS
    return -1 if visit(tree, steps, window) < 0 or tree.n_meetings > INT32_MAX else 0


cdef class MergeTree:
    """Peaks and saddles in the regions of a slab, which holds them whole and has kept the keys of their voxels.

    Parameters
    ----------
    slab : Slab
        Must not change while the tree is in use.
    weights : tuple of int
        What a step along planes, rows and columns adds to a position in the caller's C order.

    Attributes
    ----------
    peaks : buffer of PEAK_FIELDS
        Those of regions that have several.
    """

    def __cinit__(self, Slab slab, tuple weights):
        cdef int status
        cdef Tree* tree = &self.tree
        self.slab, self.peaks = slab, Memory()
        if slab.n_keys > INT32_MAX:
            raise MemoryError("peaks are looked for in at most two billion voxels above the threshold at a time")
        tree.weights[0], tree.weights[1], tree.weights[2] = weights
        with nogil:
            slab.compact()
            tree.regions, tree.runs, tree.keys = slab.regions, slab.runs, slab.keys
            tree.n_regions, tree.n_runs, tree.n_keys = slab.n_regions, slab.n_runs, slab.n_keys
            tree.n_rows, tree.n_columns, tree.neighbours = slab.n_rows, slab.n_columns, slab.neighbours
            status = build(tree)
        self.peaks.data, self.peaks.n_bytes = tree.peaks, tree.n_peaks * sizeof(Peak)
        if status < 0:
            raise MemoryError("not enough memory for the peaks of this map")

    def __dealloc__(self):  # the peaks go with their memory
        free(self.tree.quiet)
        free(self.tree.loud_end)
        free(self.tree.up)
