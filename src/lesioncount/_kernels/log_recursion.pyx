"""The recursion on logarithms, cut off at a number of bins, and its gradient: for training."""

from libc.math cimport INFINITY, exp, log1p


cdef inline double log_add(double a, double b) noexcept nogil:
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a if b == -INFINITY else a + log1p(exp(b - a))


cdef inline double log_sigmoid(double x) noexcept nogil:
    return -log1p(exp(-x)) if x > 0 else x - log1p(exp(x))


cdef inline double share(double part, double whole) noexcept nogil:
    """e^part as a share of e^whole; 0 of nothing."""
    return exp(part - whole) if whole > -INFINITY else 0.0


def forward(const double[:, ::1] logits, double[:, :, ::1] steps):
    """Write the distribution after 0, 1, … k trials into ``steps``: (batch, k + 1, bins), logarithms.

    The last bin holds all counts from there on. A logit of -inf is a trial that is not there.
    """
    cdef Py_ssize_t n_items = logits.shape[0], k = logits.shape[1], last = steps.shape[2] - 1, item, i, j
    cdef double log_p, log_q
    with nogil:
        for item in range(n_items):
            steps[item, 0, 0] = 0.0
            for j in range(1, last + 1):
                steps[item, 0, j] = -INFINITY
            for i in range(k):
                log_p, log_q = log_sigmoid(logits[item, i]), log_sigmoid(-logits[item, i])
                if last == 0:
                    steps[item, i + 1, 0] = 0.0
                    continue
                steps[item, i + 1, 0] = steps[item, i, 0] + log_q
                for j in range(1, last):
                    steps[item, i + 1, j] = log_add(steps[item, i, j] + log_q, steps[item, i, j - 1] + log_p)
                steps[item, i + 1, last] = log_add(steps[item, i, last], steps[item, i, last - 1] + log_p)


def backward(
    const double[:, ::1] logits, const double[:, :, ::1] steps, double[:, ::1] above, double[:, ::1] gradient
):
    """Write the gradient with respect to the logits, given ``above``, that with respect to the bins (it is used up).

    Going back over the trials: each bin came from "stays" and "one more", in shares that are probabilities.
    """
    cdef Py_ssize_t n_items = logits.shape[0], k = logits.shape[1], last = steps.shape[2] - 1, item, i, j
    cdef double log_p, log_q, d_p, d_q, stays, moves, carried, here
    with nogil:
        for item in range(n_items):
            for i in range(k - 1, -1, -1):
                log_p, log_q = log_sigmoid(logits[item, i]), log_sigmoid(-logits[item, i])
                d_p = d_q = carried = 0.0
                for j in range(last, -1, -1):
                    here = above[item, j]
                    if j == last:  # once there, always there
                        stays = share(steps[item, i, j], steps[item, i + 1, j]) * here
                    else:
                        stays = share(steps[item, i, j] + log_q, steps[item, i + 1, j]) * here
                        d_q += stays
                    moves = share(steps[item, i, j - 1] + log_p, steps[item, i + 1, j]) * here if j > 0 else 0.0
                    d_p += moves
                    above[item, j] = stays + carried
                    carried = moves
                gradient[item, i] = d_p * exp(log_q) - d_q * exp(log_p)
