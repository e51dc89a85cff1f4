"""The probability of the true count of a scan, and how it changes with that of each candidate: for calibration."""

from libc.math cimport exp, log
from libc.stdlib cimport free, realloc


# Smaller probabilities on the way are left out. A count that only they could reach is one that no fit believes in.
cdef double NEGLIGIBLE = 1e-20


cdef struct Work:        # memory of one scan, which grows as scans need it
    double* steps        # distributions after 0, 1, … k trials, one after the other
    Py_ssize_t n_steps
    Py_ssize_t* begin    # where each of them begins, and its first and last count: beside these it is negligible
    Py_ssize_t* low
    Py_ssize_t* high
    double* after        # probability of the true count, given how many were found so far
    double* extra        # negative binomial probabilities, and derivatives of their logarithms
    double* by_mean
    double* by_shape


cdef void negative_binomial(double mean, double shape, Py_ssize_t count, Work* work) noexcept nogil:
    """By the recursion P(j + 1) = P(j) · (j + shape) / (j + 1) · mean / (shape + mean)."""
    cdef double more = mean / (shape + mean), stays = log(shape / (shape + mean)), harmonic = 0.0
    cdef Py_ssize_t j
    work.extra[0] = exp(shape * stays)
    for j in range(count + 1):
        work.by_mean[j] = j / mean - (j + shape) / (shape + mean)
        work.by_shape[j] = harmonic + stays + 1 - (shape + j) / (shape + mean)
        harmonic += 1 / (shape + j)
        if j < count:
            work.extra[j + 1] = work.extra[j] * (j + shape) / (j + 1) * more


cdef inline void one_trial(const double* then, double* now, Py_ssize_t n, double p) noexcept nogil:
    """now[0 … n] from then[0 … n - 1]."""
    cdef double q = 1 - p
    cdef Py_ssize_t j
    now[0] = then[0] * q
    for j in range(1, n):
        now[j] = then[j] * q + then[j - 1] * p
    now[n] = then[n - 1] * p


cdef int forward(const double* p, Py_ssize_t k, Py_ssize_t top, Work* work) noexcept nogil:
    """The distribution after each trial, up to ``top`` successes."""
    cdef Py_ssize_t i, n, low, high
    cdef double* now
    work.begin[0] = work.low[0] = work.high[0] = 0
    work.steps[0] = 1.0
    for i in range(k):
        n = work.high[i] - work.low[i] + 1
        work.begin[i + 1] = work.begin[i] + n
        if work.begin[i + 1] + n + 1 > work.n_steps:
            work.n_steps = 2 * work.n_steps + n + 1
            now = <double*> realloc(work.steps, work.n_steps * sizeof(double))
            if now == NULL:
                return -1
            work.steps = now
        now = work.steps + work.begin[i + 1]
        one_trial(work.steps + work.begin[i], now, n, p[i])
        low, high = work.low[i], min(work.high[i] + 1, top)
        while high > low and now[high - work.low[i]] < NEGLIGIBLE:
            high -= 1
        while low < high and now[low - work.low[i]] < NEGLIGIBLE:
            low += 1
        work.begin[i + 1] += low - work.low[i]
        work.low[i + 1], work.high[i + 1] = low, high
    return 0


cdef inline double change_with(const double* then, double* after, Py_ssize_t n, double p) noexcept nogil:
    """Σ then[j] (after[j + 1] - after[j]); and ``after`` goes back over the trial."""
    cdef double sums[4]
    cdef double step
    cdef Py_ssize_t j, i
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0
    for j in range(0, n - 3, 4):
        for i in range(4):
            step = after[j + i + 1] - after[j + i]
            sums[i] += then[j + i] * step
            after[j + i] += p * step
    for j in range(n - n % 4, n):
        step = after[j + 1] - after[j]
        sums[0] += then[j] * step
        after[j] += p * step
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


cdef int reserve(Work* work, Py_ssize_t longest, Py_ssize_t most) noexcept nogil:
    work.n_steps = 1024
    work.steps = <double*> realloc(NULL, work.n_steps * sizeof(double))
    work.begin = <Py_ssize_t*> realloc(NULL, 3 * (longest + 1) * sizeof(Py_ssize_t))
    work.after = <double*> realloc(NULL, (4 * most + 8) * sizeof(double))
    if work.steps == NULL or work.begin == NULL or work.after == NULL:
        return -1
    work.low, work.high = work.begin + longest + 1, work.begin + 2 * (longest + 1)
    work.extra = work.after + most + 3
    work.by_mean, work.by_shape = work.extra + most + 1, work.extra + 2 * (most + 1)
    return 0


def probabilities_of_true_counts(
    const double[:, ::1] p, const Py_ssize_t[::1] begins, const Py_ssize_t[::1] counts,
    const double[:, ::1] extra_means, double shape,
    double[:, ::1] probabilities, double[:, ::1] by_p=None, double[:, ::1] by_mean=None, double[:, ::1] by_shape=None,
):
    """P(found + extra = count), with found Poisson-binomial and extra negative binomial, and its derivatives.

    Without places for the derivatives, only the probabilities: in less than half of the time.

    Parameters
    ----------
    p, by_p : shape (nodes, candidates of all scans)
        Probabilities of the candidates, and the derivative by each.
    begins : shape (scans + 1,)
        Where the candidates of each scan begin.
    counts : shape (scans,)
    extra_means, probabilities, by_mean, by_shape : shape (nodes, scans)
        All but the first are written to.
    """
    cdef Py_ssize_t n_scans = counts.shape[0], node, scan, k, top, count, i, j, most = 0, longest = 0
    cdef double found
    cdef Work work
    cdef const double* trials
    cdef int failed = 0
    cdef bint derives = by_p is not None
    for scan in range(n_scans):
        most, longest = max(most, counts[scan]), max(longest, begins[scan + 1] - begins[scan])
    work.steps, work.begin, work.after = NULL, NULL, NULL
    with nogil:
        failed = reserve(&work, longest, most)
        for scan in range(n_scans):
            if failed:
                break
            k, count = begins[scan + 1] - begins[scan], counts[scan]
            top = min(k, count)
            for node in range(p.shape[0]):
                trials = &p[node, begins[scan]] if k else NULL
                negative_binomial(extra_means[node, scan], shape, count, &work)
                failed = forward(trials, k, top, &work)
                if failed:
                    break
                for j in range(top + 2):
                    work.after[j] = work.extra[count - j] if j <= min(top, count) else 0.0
                probabilities[node, scan] = 0.0
                for j in range(work.low[k], work.high[k] + 1):
                    probabilities[node, scan] += work.steps[work.begin[k] + j - work.low[k]] * work.after[j]
                if not derives:
                    continue
                by_mean[node, scan] = by_shape[node, scan] = 0.0
                for j in range(work.low[k], work.high[k] + 1):
                    found = work.steps[work.begin[k] + j - work.low[k]] * work.after[j]
                    by_mean[node, scan] += found * work.by_mean[count - j]
                    by_shape[node, scan] += found * work.by_shape[count - j]
                for i in range(k - 1, -1, -1):
                    by_p[node, begins[scan] + i] = change_with(
                        work.steps + work.begin[i], work.after + work.low[i], work.high[i] - work.low[i] + 1, trials[i]
                    )
    free(work.steps)
    free(work.begin)
    free(work.after)
    if failed:
        raise MemoryError
