"""The merge trees of regions: as the threshold falls, components appear at peaks and join at saddles.

Voxels are ranked by their keys, equal ones by C order. Those without a higher neighbour are peaks. Regions that have one
are left as the sweep has found them. In the others, each voxel looks up to the highest of its neighbours, and lies in the
basin of the peak that the way up leads to. Components can join only where two basins meet. So no voxel has to be sorted but
those at which basins meet, few in a smooth map; from the highest down, they join what they touch.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from lesioncount._kernels.slab cimport Memory, Region, Run, Slab, clear, find

cdef extern from "blocks.h" nogil:
    int lc_grow(void* table, size_t n_bytes)  # table: the address of a pointer

PEAK_FIELDS = [
    ("key", "u8"), ("saddle_key", "u8"), ("at", "i8"), ("saddle_at", "i8"), ("parent", "i4"), ("into", "i4"),
    ("side", "i4"), ("died", "i4"), ("voxel", "i4"), ("region", "i4"),
]  # fmt: skip

SADDLE_FIELDS = [("key", "u8"), ("at", "i8"), ("parent", "i4"), ("into", "i4"), ("side", "i4"), ("died", "i4")]

cdef enum:
    MOST_NEIGHBOURS = 26
    FEWEST_VOXELS = 3    # of a region that can have two peaks
    FOR_PEAKS = 0        # what to look for
    UP = 1
    ACROSS = 2

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

cdef struct Saddle:      # of a row of the table; as of a peak, but with the numbers of rows
    uint64_t key
    int64_t at
    int32_t parent, into, side, died

cdef struct Meeting:     # a voxel at which two basins meet: its own, and one that it looks up into as well
    int64_t at
    int32_t voxel
    int32_t across

cdef struct Loud:        # a run of a region that is looked at
    int32_t run
    int32_t voxel        # its first

cdef struct Plane:       # the numbers of voxels by place, with a margin of one around the plane
    int32_t* voxels
    Py_ssize_t begin, end  # its loud runs

cdef struct Steps:       # to the neighbours of a voxel, in the order of their positions
    Py_ssize_t n, n_earlier
    Py_ssize_t plane[MOST_NEIGHBOURS]
    Py_ssize_t within[MOST_NEIGHBOURS]
    Py_ssize_t to[MOST_NEIGHBOURS]  # both together, as the three planes lie in memory now

cdef struct Tree:
    const Region* regions
    const Run* runs
    const uint64_t* keys
    Py_ssize_t n_regions, n_runs, n_keys, n_rows, n_columns
    int neighbours
    int64_t weights[3]
    uint8_t* quiet       # of each region: nothing to find in it
    Loud* loud           # the runs of all others
    Py_ssize_t n_loud
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
    if run.start >= cursor.row_end:
        row = run.start // tree.n_columns
        cursor.row_start = row * tree.n_columns
        cursor.row_end = cursor.row_start + tree.n_columns
        cursor.plane, cursor.row = row // tree.n_rows, row % tree.n_rows
        cursor.row_at = cursor.plane * tree.weights[0] + cursor.row * tree.weights[1]
    return run.start - cursor.row_start


cdef Py_ssize_t find_uneven(Tree* tree) noexcept nogil:
    """Call regions quiet that are too small for two peaks, or have no slope; the number of runs of the others."""
    cdef Py_ssize_t i, k, n = 0
    cdef const uint64_t* keys = tree.keys + 1
    cdef const Region* region
    cdef const Run* run
    cdef uint64_t differ
    memset(tree.quiet, 1, tree.n_regions)
    for i in range(tree.n_runs):
        run = &tree.runs[i]
        region, differ = &tree.regions[run.region], 0
        if region.n_voxels >= FEWEST_VOXELS:
            for k in range(run.length):
                differ |= keys[k] ^ region.peak_key
            tree.quiet[run.region] &= differ == 0
        keys += run.length
    for i in range(tree.n_runs):
        n += not tree.quiet[tree.runs[i].region]
    return n


cdef void list_loud(Tree* tree) noexcept nogil:
    cdef int32_t voxel = 1
    cdef Py_ssize_t i
    for i in range(tree.n_runs):
        if not tree.quiet[tree.runs[i].region]:
            tree.loud[tree.n_loud] = Loud(<int32_t> i, voxel)
            tree.n_loud += 1
        voxel += tree.runs[i].length


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
                    added[i], steps.plane[i], steps.within[i] = added[i - 1], steps.plane[i - 1], steps.within[i - 1]
                    i -= 1
                added[i], steps.plane[i], steps.within[i] = adds, z, y * (tree.n_columns + 2) + x
                steps.n += 1
                steps.n_earlier += adds < 0


cdef inline int64_t start_of(const Tree* tree, Py_ssize_t loud) noexcept nogil:
    return tree.runs[tree.loud[loud].run].start


cdef void find_runs(Plane* plane, const Plane* last, const Tree* tree) noexcept nogil:
    """The runs of the next plane that has some."""
    cdef int64_t size = tree.n_rows * tree.n_columns, end
    plane.begin = plane.end = last.end
    if plane.begin < tree.n_loud:
        end = (start_of(tree, plane.begin) // size + 1) * size
        while plane.end < tree.n_loud and start_of(tree, plane.end) < end:
            plane.end += 1


cdef bint is_next(const Plane* plane, const Plane* last, const Tree* tree) noexcept nogil:
    cdef int64_t size = tree.n_rows * tree.n_columns
    return plane.begin < plane.end and start_of(tree, plane.begin) // size == start_of(tree, last.begin) // size + 1


cdef void fill(const Plane* plane, const Tree* tree, int32_t times) noexcept nogil:
    """Write the numbers of voxels to their places, or take them away (0 times)."""
    cdef Cursor cursor = Cursor(0, 0, 0, 0, 0)
    cdef const Run* run
    cdef int32_t* place
    cdef Py_ssize_t i, k
    for i in range(plane.begin, plane.end):
        run = &tree.runs[tree.loud[i].run]
        k = column_of(&cursor, tree, run) + 1
        place = plane.voxels + (cursor.row + 1) * (tree.n_columns + 2) + k
        for k in range(run.length):
            place[k] = times * <int32_t> (tree.loud[i].voxel + k)


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
    Tree* tree, const Steps* steps, const int32_t* place, const Run* run, int64_t at, int look
) noexcept nogil:
    cdef Py_ssize_t i
    if look == FOR_PEAKS:
        return find_peaks(tree, steps, place, run.length, run.region, at)
    for i in range(run.length):
        if look == UP:
            look_up(tree, steps, place + i)
        elif look_across(tree, steps, place + i, at + i * tree.weights[2]) < 0:
            return -1
    return 0


cdef int visit_plane(Tree* tree, const Steps* steps, const Plane* here, int look) noexcept nogil:
    cdef Cursor cursor = Cursor(0, 0, 0, 0, 0)
    cdef const Run* run
    cdef int64_t column, at
    cdef Py_ssize_t i, place
    for i in range(here.begin, here.end):
        run = &tree.runs[tree.loud[i].run]
        column = column_of(&cursor, tree, run)
        place, at = (cursor.row + 1) * (tree.n_columns + 2) + column + 1, cursor.row_at + column * tree.weights[2]
        if visit_run(tree, steps, here.voxels + place, run, at, look) < 0:
            return -1
    return 0


cdef int visit(Tree* tree, Steps* steps, int32_t* window, int look) noexcept nogil:
    """Look for something from every voxel, through a window of three planes that moves over the slab."""
    cdef Py_ssize_t size = window_size(tree), i
    cdef Plane before = Plane(window, 0, 0), here = Plane(window + size, 0, 0)
    cdef Plane after = Plane(window + 2 * size, 0, 0)
    cdef int status = 0
    find_runs(&here, &before, tree)
    fill(&here, tree, 1)
    while here.begin < here.end and status == 0:
        find_runs(&after, &here, tree)
        if is_next(&after, &here, tree):
            fill(&after, tree, 1)
        for i in range(steps.n):
            steps.to[i] = steps.within[i]
            if steps.plane[i] != 0:
                steps.to[i] += (before.voxels if steps.plane[i] < 0 else after.voxels) - here.voxels
        status = visit_plane(tree, steps, &here, look)
        fill(&before, tree, 0)
        if not is_next(&after, &here, tree):
            fill(&here, tree, 0)
            fill(&after, tree, 1)
        before, here, after = here, after, before
    fill(&before, tree, 0)
    return status


cdef inline Py_ssize_t window_size(const Tree* tree) noexcept nogil:
    """Of one plane of it, with its margin."""
    return (tree.n_rows + 2) * (tree.n_columns + 2)


cdef void leave_out_single_peaks(Tree* tree) noexcept nogil:
    """Keep the peaks of regions that have several; the other regions are quiet from here on."""
    cdef uint8_t* missing = tree.quiet  # peaks until there are several
    cdef Py_ssize_t i, kept = 0
    cdef int32_t region
    memset(missing, 2, tree.n_regions)
    for i in range(tree.n_peaks):
        region = tree.peaks[i].region
        missing[region] -= missing[region] > 0
    for i in range(tree.n_peaks):
        if missing[tree.peaks[i].region] == 0:
            tree.peaks[kept] = tree.peaks[i]
            kept += 1
    tree.n_peaks, kept = kept, 0
    for i in range(tree.n_loud):
        if not tree.quiet[tree.runs[tree.loud[i].run].region]:
            tree.loud[kept] = tree.loud[i]
            kept += 1
    tree.n_loud = kept


cdef void find_basins(Tree* tree) noexcept nogil:
    """Follow each way up to its peak, and make it short."""
    cdef int32_t* up = tree.up
    cdef int32_t voxel, v, peak, above
    cdef Py_ssize_t i
    for i in range(tree.n_peaks):
        up[tree.peaks[i].voxel] = <int32_t> ~i
    for i in range(tree.n_loud):
        for voxel in range(tree.loud[i].voxel, tree.loud[i].voxel + tree.runs[tree.loud[i].run].length):
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


cdef bint are_in_order(const Tree* tree) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(1, tree.n_meetings):
        if tree.meetings[i].at < tree.meetings[i - 1].at:
            return False
    return True


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
    if not are_in_order(tree):  # they were found in the order of the sweep
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
    cdef int32_t* window
    cdef Py_ssize_t n_loud
    cdef int status = -1
    tree.quiet = <uint8_t*> malloc(tree.n_regions + 1)
    if tree.quiet == NULL:
        return -1
    n_loud = find_uneven(tree)
    if n_loud == 0:
        return 0
    window = <int32_t*> calloc(3 * window_size(tree), sizeof(int32_t))
    tree.loud = <Loud*> malloc(n_loud * sizeof(Loud))
    if window != NULL and tree.loud != NULL:
        list_loud(tree)
        status = build_in_window(tree, window)
    free(window)
    free(tree.loud)
    free(tree.meetings)
    return status


cdef int build_in_window(Tree* tree, int32_t* window) noexcept nogil:
    cdef Steps steps
    set_steps(&steps, tree)
    if visit(tree, &steps, window, FOR_PEAKS) < 0:
        return -1
    leave_out_single_peaks(tree)
    if tree.n_peaks == 0:
        return 0
    tree.up = <int32_t*> malloc(tree.n_keys * sizeof(int32_t))
    if tree.up == NULL or visit(tree, &steps, window, UP) < 0:
        return -1
    find_basins(tree)
    if visit(tree, &steps, window, ACROSS) < 0 or tree.n_meetings > INT32_MAX:
        return -1
    return join(tree)


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

    cdef Tree tree
    cdef Slab slab
    cdef readonly Memory peaks

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
        free(self.tree.up)

    def cut(self, const uint8_t[::1] left_out):
        """Cut regions into those of their peaks; what a peak that is left out had goes to the one across its saddle.

        Parameters
        ----------
        left_out : array of uint8
            Of each peak, whether it is. With a peak, all that have joined it higher up must be left out.

        Returns
        -------
        regions, saddles, runs : buffers of REGION_FIELDS, SADDLE_FIELDS and RUN_FIELDS
        """
        cdef Memory regions = Memory(), saddles = Memory(), runs = Memory()
        cdef Tree* tree = &self.tree
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
