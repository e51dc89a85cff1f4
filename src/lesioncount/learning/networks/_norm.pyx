"""Instance norm and leaky ReLU of features whose channels lie together, and their gradient: four passes over memory."""

from libc.math cimport sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memset


cdef extern from "_norm.h" nogil:
    ctypedef void (*Sums)(const void*, Py_ssize_t, Py_ssize_t, const float*, double*, double*, float*) noexcept nogil
    ctypedef void (*Apply)(
        const void*, void*, Py_ssize_t, Py_ssize_t, const float*, const float*, float) noexcept nogil
    ctypedef void (*GradientSums)(
        const void*, const void*, Py_ssize_t, Py_ssize_t, const float*, const float*, const float*, float, double*,
        double*, float*) noexcept nogil
    ctypedef void (*Gradient)(
        const void*, const void*, void*, Py_ssize_t, Py_ssize_t, const float*, const float*, const float*,
        const float*, float) noexcept nogil
    const Sums* lc_norm_sums_at
    const Apply* lc_norm_apply_at
    const GradientSums* lc_norm_gradient_sums_at
    const Gradient* lc_norm_gradient_at
    float lc_from_bfloat(unsigned short value)
    int lc_widest()


cdef int level = lc_widest()

cdef enum:
    LANES = 128  # at least so many to a row: a few of the widest vectors, so that what surrounds the loop does not count
    ROWS = 7     # of floats that a call needs room for: two to add up in, and five of numbers of channels


cdef struct Room:
    double* sums         # 2 · width
    float* rows          # ROWS · width
    Py_ssize_t width


cdef int make(Room* room, Py_ssize_t channels) noexcept nogil:
    room.width = channels * ((LANES + channels - 1) // channels)
    room.sums = <double*> malloc(2 * room.width * sizeof(double))
    room.rows = <float*> malloc(ROWS * room.width * sizeof(float))
    return 0 if room.sums != NULL and room.rows != NULL else -1


cdef double of_channel(const double* lanes, Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t width) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t j = channel
    while j < width:
        total += lanes[j]
        j += channels
    return total


cdef void repeat(float* row, Py_ssize_t channels, Py_ssize_t width) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(channels, width):
        row[j] = row[j - channels]


# All arrays are given by their addresses: memory views would be most of this module, and of its part of a wheel.
def normalise(
    size_t given, size_t out, bint half, Py_ssize_t n_images, Py_ssize_t n_voxels, Py_ssize_t channels, size_t weights,
    size_t biases, float eps, float slope, size_t means_, size_t per_deviations,
):
    """Write leaky(weight · (x - mean) / deviation + bias) to the address ``out``; keep mean and 1 / deviation.

    ``given`` and ``out`` are addresses of n_images · n_voxels · channels numbers, bfloat16 if ``half``, else float32;
    all others of float32: weight and bias of each channel, and of each image and channel what is kept.
    """
    cdef const float* weight = <const float*> weights
    cdef const float* bias = <const float*> biases
    cdef float* mean = <float*> means_
    cdef float* per_deviation = <float*> per_deviations
    cdef Py_ssize_t n = n_voxels * channels, i, c
    cdef size_t step = n * (2 if half else 4)
    cdef Room room
    cdef const void* x
    cdef float* first
    cdef float* shift
    cdef float* scales
    cdef double average, square
    cdef int status
    with nogil:
        status = make(&room, channels)
        if status == 0:
            first, scales, shift = room.rows + 2 * room.width, room.rows + 3 * room.width, room.rows + 4 * room.width
            for i in range(n_images):
                x = <const void*> (given + i * step)
                for c in range(channels):
                    first[c] = lc_from_bfloat((<const unsigned short*> x)[c]) if half else (<const float*> x)[c]
                repeat(first, channels, room.width)
                memset(room.sums, 0, 2 * room.width * sizeof(double))
                lc_norm_sums_at[2 * level + half](
                    x, n, room.width, first, room.sums, room.sums + room.width, room.rows)
                for c in range(channels):
                    average = of_channel(room.sums, c, channels, room.width) / n_voxels
                    square = of_channel(room.sums + room.width, c, channels, room.width) / n_voxels
                    mean[i * channels + c] = <float> (first[c] + average)
                    per_deviation[i * channels + c] = <float> (1 / sqrt(max(square - average * average, 0.0) + eps))
                    scales[c] = weight[c] * per_deviation[i * channels + c]
                    shift[c] = bias[c] - scales[c] * mean[i * channels + c]
                repeat(scales, channels, room.width)
                repeat(shift, channels, room.width)
                lc_norm_apply_at[2 * level + half](
                    x, <void*> (out + i * step), n, room.width, scales, shift, slope)
        free(room.sums)
        free(room.rows)
    if status < 0:
        raise MemoryError


def gradient(
    size_t given, size_t above, size_t out, bint half, Py_ssize_t n_images, Py_ssize_t n_voxels, Py_ssize_t channels,
    size_t weights, size_t biases, float slope, size_t kept_means, size_t per_deviations, size_t of_weights,
    size_t of_biases,
):
    """Write the gradient of the features to ``out``, and add those of weight and bias, given that ``above`` the output."""
    cdef const float* weight = <const float*> weights
    cdef const float* bias = <const float*> biases
    cdef const float* mean = <const float*> kept_means
    cdef const float* per_deviation = <const float*> per_deviations
    cdef float* of_weight = <float*> of_weights
    cdef float* of_bias = <float*> of_biases
    cdef Py_ssize_t n = n_voxels * channels, i, c
    cdef size_t step = n * (2 if half else 4)
    cdef Room room
    cdef float* scales
    cdef float* shift
    cdef float* means
    cdef float* slant
    cdef float* flat
    cdef double sum_, product
    cdef int status
    with nogil:
        status = make(&room, channels)
        if status == 0:
            scales, shift = room.rows + 2 * room.width, room.rows + 3 * room.width
            means, slant, flat = room.rows + 4 * room.width, room.rows + 5 * room.width, room.rows + 6 * room.width
            for i in range(n_images):
                for c in range(channels):
                    scales[c], means[c] = weight[c] * per_deviation[i * channels + c], mean[i * channels + c]
                    shift[c] = bias[c] - scales[c] * mean[i * channels + c]
                repeat(scales, channels, room.width)
                repeat(means, channels, room.width)
                repeat(shift, channels, room.width)
                memset(room.sums, 0, 2 * room.width * sizeof(double))
                lc_norm_gradient_sums_at[2 * level + half](
                    <const void*> (given + i * step), <const void*> (above + i * step), n, room.width, scales, shift,
                    means, slope, room.sums, room.sums + room.width, room.rows)
                for c in range(channels):
                    sum_ = of_channel(room.sums, c, channels, room.width)
                    product = of_channel(room.sums + room.width, c, channels, room.width)
                    product *= per_deviation[i * channels + c]
                    of_weight[c] += <float> product
                    of_bias[c] += <float> sum_
                    slant[c] = <float> (-scales[c] * product * per_deviation[i * channels + c] / n_voxels)
                    flat[c] = <float> (-scales[c] * sum_ / n_voxels) - slant[c] * mean[i * channels + c]
                repeat(slant, channels, room.width)
                repeat(flat, channels, room.width)
                lc_norm_gradient_at[2 * level + half](
                    <const void*> (given + i * step), <const void*> (above + i * step), <void*> (out + i * step), n,
                    room.width, scales, shift, slant, flat, slope)
        free(room.sums)
        free(room.rows)
    if status < 0:
        raise MemoryError
