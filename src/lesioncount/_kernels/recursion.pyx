"""The Poisson-binomial recursion: probabilities of n independent trials → the distribution of their sum."""

from libc.float cimport DBL_MIN
from libc.math cimport ldexp
from libc.stdlib cimport calloc, free


cdef extern from "convolve.h" nogil:
    void lc_few_trials(const double* p, Py_ssize_t n, double* c)
    ctypedef void (*lc_nine)(const double* given, double* out, Py_ssize_t n, const double* c) noexcept nogil
    const lc_nine* lc_convolve_nine_at
    const lc_nine* lc_add_nine_at
    int lc_widest()


cdef int level = lc_widest()


# Probabilities are carried times 2^SCALE, and what falls below the smallest normal number is trimmed: in true units that
# is 2e-338, so that all that is lost on the way cannot be seen in a value above 1e-290, at any n that is feasible.
cdef enum:
    SCALE = 100
    PAD = 8              # zeros on both sides of a window, which the loops may read
    LONGEST = 12288       # trials; beyond, two halves and their convolution are faster than going on

cdef struct Window:      # the part of a distribution that is not negligible
    double* memory
    double* values       # values[low] … values[high], zeros beside them
    Py_ssize_t low, high
    Py_ssize_t offset    # values[j] is the probability of offset + j successes


cdef int allocate(Window* window, Py_ssize_t highest) noexcept nogil:
    window.memory = <double*> calloc(highest + 1 + 2 * PAD, sizeof(double))
    window.values = window.memory + PAD
    window.low = window.offset = 0
    window.high = highest
    return 0 if window.memory != NULL else -1


cdef void trim(Window* window) noexcept nogil:
    cdef double* values = window.values
    while window.low < window.high and values[window.low] < DBL_MIN:
        values[window.low] = 0.0
        window.low += 1
    while window.high > window.low and values[window.high] < DBL_MIN:
        values[window.high] = 0.0
        window.high -= 1


cdef int add_trials(const double* p, Py_ssize_t n, Window* window) noexcept nogil:
    """Trial after trial, eight at a time: O(n σ), as only the window is carried along."""
    cdef Window then
    cdef double c[PAD + 1]
    cdef Py_ssize_t i, j, highest
    if allocate(window, n) < 0 or allocate(&then, n) < 0:
        return -1
    window.values[0] = ldexp(1.0, SCALE)
    window.high = 0
    for i in range(0, n, 8):
        lc_few_trials(p + i, min(8, n - i), c)
        window.memory, then.memory = then.memory, window.memory
        window.values, then.values = then.values, window.values
        highest = window.high = min(window.high + 8, n)
        lc_convolve_nine_at[level](then.values + window.low, window.values + window.low, window.high - window.low + 1, c)
        for j in range(window.low - PAD, window.low):
            window.values[j] = 0.0
        trim(window)
        for j in range(window.high + 1, highest + 1):
            then.values[j] = 0.0
    free(then.memory)
    return 0


cdef int convolve(const Window* a, const Window* b, Window* both) noexcept nogil:
    """The sum of two independent numbers of successes. `a` is the longer window."""
    cdef Py_ssize_t n_a = a.high - a.low + 1, n_b = b.high - b.low + 1, i, j
    cdef double c[PAD + 1]
    if allocate(both, n_a + n_b + PAD) < 0:
        return -1
    for i in range(0, n_b, 9):
        for j in range(9):
            c[j] = b.values[b.low + i + j] if i + j < n_b else 0.0
        lc_add_nine_at[level](a.values + a.low, both.values + i, n_a + PAD, c)
    for j in range(both.high + 1):
        both.values[j] *= ldexp(1.0, -SCALE)  # the product of two was scaled twice
    both.offset = a.offset + a.low + b.offset + b.low
    trim(both)
    return 0


cdef int distribution(const double* p, Py_ssize_t n, Window* window) noexcept nogil:
    cdef Window left, right
    cdef int status
    if n <= LONGEST:
        return add_trials(p, n, window)
    left.memory = right.memory = NULL
    status = distribution(p, n // 2, &left)
    if status == 0:
        status = distribution(p + n // 2, n - n // 2, &right)
    if status == 0:
        if left.high - left.low > right.high - right.low:
            status = convolve(&left, &right, window)
        else:
            status = convolve(&right, &left, window)
    free(left.memory)
    free(right.memory)
    return status


def fill_pmf(const double[::1] p, double[::1] out):
    """Write P(0) … P(n) into ``out``, which holds n + 1 zeros."""
    cdef Py_ssize_t n = p.shape[0], j
    cdef Window window
    cdef int status
    if n == 0:
        out[0] = 1.0
        return
    with nogil:
        window.memory = NULL
        status = distribution(&p[0], n, &window)
        if status == 0:
            for j in range(window.low, window.high + 1):
                out[window.offset + j] = ldexp(window.values[j], -SCALE)
        free(window.memory)
    if status < 0:
        raise MemoryError


def fill_binned(const double[::1] p, double[::1] out):
    """Write P(0) … P(m - 1) and P(m or more) into ``out``, which holds m + 1 zeros: the recursion cut off at m."""
    cdef Py_ssize_t n = p.shape[0], m = out.shape[0] - 1, i, j
    with nogil:
        out[0] = 1.0
        for i in range(n if m > 0 else 0):
            out[m] += out[m - 1] * p[i]
            for j in range(m - 1, 0, -1):
                out[j] = out[j] * (1 - p[i]) + out[j - 1] * p[i]
            out[0] *= 1 - p[i]
