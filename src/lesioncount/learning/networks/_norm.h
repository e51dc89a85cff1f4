/* Instance norm and leaky ReLU in one pass, of features whose channels lie together (channels last).
 *
 * Memory is read as a stream in which channel follows channel: every number that belongs to a channel is repeated to a
 * row of `width` lanes, a multiple of the number of channels, so that the loops run over whole vectors whatever that is.
 */
#ifndef LESIONCOUNT_LEARNING_NORM_H
#define LESIONCOUNT_LEARNING_NORM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "widest.h"

/* Rows that are added in single precision before they are added to the double: few enough to keep its digits. */
#define LC_ROWS_AT_ONCE 64

static inline float lc_from_float(float value) { return value; }
static inline float lc_to_float(float value) { return value; }

/* bfloat16 is the upper half of a float; rounded to nearest, ties to even, and not-a-number stays what it is. */
static inline float lc_from_bfloat(uint16_t value) {
    const uint32_t bits = (uint32_t)value << 16;
    float found;
    memcpy(&found, &bits, sizeof found);
    return found;
}
static inline uint16_t lc_to_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

/* sums: of x - first and of its square, lane by lane; row is room for 2 · width floats.
 * apply: y = leaky(scale · x + shift).
 * gradient sums: of g and of g · x̂, where g = dy · leaky'(scale · x + shift) and x̂ = (x - mean) / deviation.
 * gradient: dx = scale · (g - a - b · x̂), with a and b the means of the two sums. */
#define LC_DEFINE_NORM(LEVEL, KIND, TYPE, READ, WRITE)                                                                 \
    LC_FOR_##LEVEL static void lc_norm_sums_##KIND##_##LEVEL(const void *given, ptrdiff_t n, ptrdiff_t width,          \
                                                             const float *LC_RESTRICT first, double *LC_RESTRICT sum,  \
                                                             double *LC_RESTRICT square, float *LC_RESTRICT row) {     \
        const TYPE *x = (const TYPE *)given;                                                                           \
        float *LC_RESTRICT s = row, *LC_RESTRICT q = row + width;                                                      \
        for (ptrdiff_t begin = 0; begin < n; begin += LC_ROWS_AT_ONCE * width) {                                       \
            const ptrdiff_t end = begin + LC_ROWS_AT_ONCE * width < n ? begin + LC_ROWS_AT_ONCE * width : n;           \
            for (ptrdiff_t j = 0; j < width; j++) s[j] = q[j] = 0;                                                     \
            for (ptrdiff_t i = begin; i < end; i += width) {                                                           \
                const ptrdiff_t m = end - i < width ? end - i : width;                                                 \
                const TYPE *LC_RESTRICT here = x + i;                                                                  \
                for (ptrdiff_t j = 0; j < m; j++) {                                                                    \
                    const float d = READ(here[j]) - first[j];                                                          \
                    s[j] += d;                                                                                         \
                    q[j] += d * d;                                                                                     \
                }                                                                                                      \
            }                                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) sum[j] += s[j], square[j] += q[j];                                   \
        }                                                                                                              \
    }                                                                                                                  \
    LC_FOR_##LEVEL static void lc_norm_apply_##KIND##_##LEVEL(                                                         \
        const void *given, void *out, ptrdiff_t n, ptrdiff_t width, const float *LC_RESTRICT scale,                    \
        const float *LC_RESTRICT shift, float slope) {                                                                 \
        for (ptrdiff_t i = 0; i < n; i += width) {                                                                     \
            const ptrdiff_t m = n - i < width ? n - i : width;                                                         \
            const TYPE *LC_RESTRICT x = (const TYPE *)given + i;                                                       \
            TYPE *LC_RESTRICT y = (TYPE *)out + i;                                                                     \
            for (ptrdiff_t j = 0; j < m; j++) {                                                                        \
                const float z = READ(x[j]) * scale[j] + shift[j];                                                      \
                y[j] = WRITE(z > 0 ? z : slope * z);                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    LC_FOR_##LEVEL static void lc_norm_gradient_sums_##KIND##_##LEVEL(                                                 \
        const void *given, const void *above, ptrdiff_t n, ptrdiff_t width, const float *LC_RESTRICT scale,            \
        const float *LC_RESTRICT shift, const float *LC_RESTRICT mean, float slope, double *LC_RESTRICT sum,           \
        double *LC_RESTRICT product, float *LC_RESTRICT row) {                                                         \
        float *LC_RESTRICT s = row, *LC_RESTRICT q = row + width;                                                      \
        for (ptrdiff_t begin = 0; begin < n; begin += LC_ROWS_AT_ONCE * width) {                                       \
            const ptrdiff_t end = begin + LC_ROWS_AT_ONCE * width < n ? begin + LC_ROWS_AT_ONCE * width : n;           \
            for (ptrdiff_t j = 0; j < width; j++) s[j] = q[j] = 0;                                                     \
            for (ptrdiff_t i = begin; i < end; i += width) {                                                           \
                const ptrdiff_t m = end - i < width ? end - i : width;                                                 \
                const TYPE *LC_RESTRICT x = (const TYPE *)given + i;                                                   \
                const TYPE *LC_RESTRICT dy = (const TYPE *)above + i;                                                  \
                for (ptrdiff_t j = 0; j < m; j++) {                                                                    \
                    const float value = READ(x[j]), z = value * scale[j] + shift[j];                                   \
                    const float g = READ(dy[j]) * (z > 0 ? 1.0f : slope);                                              \
                    s[j] += g;                                                                                         \
                    q[j] += g * (value - mean[j]);                                                                     \
                }                                                                                                      \
            }                                                                                                          \
            for (ptrdiff_t j = 0; j < width; j++) sum[j] += s[j], product[j] += q[j];                                  \
        }                                                                                                              \
    }                                                                                                                  \
    LC_FOR_##LEVEL static void lc_norm_gradient_##KIND##_##LEVEL(                                                      \
        const void *given, const void *above, void *out, ptrdiff_t n, ptrdiff_t width, const float *LC_RESTRICT scale, \
        const float *LC_RESTRICT shift, const float *LC_RESTRICT slant, const float *LC_RESTRICT level, float slope) { \
        for (ptrdiff_t i = 0; i < n; i += width) {                                                                     \
            const ptrdiff_t m = n - i < width ? n - i : width;                                                         \
            const TYPE *LC_RESTRICT x = (const TYPE *)given + i;                                                       \
            const TYPE *LC_RESTRICT dy = (const TYPE *)above + i;                                                      \
            TYPE *LC_RESTRICT dx = (TYPE *)out + i;                                                                    \
            for (ptrdiff_t j = 0; j < m; j++) {                                                                        \
                const float value = READ(x[j]), z = value * scale[j] + shift[j];                                       \
                const float g = READ(dy[j]) * (z > 0 ? 1.0f : slope);                                                  \
                dx[j] = WRITE(scale[j] * g + slant[j] * value + level[j]);                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

typedef void (*lc_norm_sums)(const void *, ptrdiff_t, ptrdiff_t, const float *, double *, double *, float *);
typedef void (*lc_norm_apply)(const void *, void *, ptrdiff_t, ptrdiff_t, const float *, const float *, float);
typedef void (*lc_norm_gradient_sums)(const void *, const void *, ptrdiff_t, ptrdiff_t, const float *, const float *,
                                      const float *, float, double *, double *, float *);
typedef void (*lc_norm_gradient)(const void *, const void *, void *, ptrdiff_t, ptrdiff_t, const float *, const float *,
                                 const float *, const float *, float);

#define LC_DEFINE_NORMS(LEVEL)                                                \
    LC_DEFINE_NORM(LEVEL, single, float, lc_from_float, lc_to_float)          \
    LC_DEFINE_NORM(LEVEL, half, uint16_t, lc_from_bfloat, lc_to_bfloat)

LC_DEFINE_NORMS(BASELINE)
#if LC_HAS_LEVELS
LC_DEFINE_NORMS(AVX2)
LC_DEFINE_NORMS(AVX512)
#define LC_NORM_LEVELS(NAME)                                                                     \
    {NAME##_single_BASELINE, NAME##_half_BASELINE, NAME##_single_AVX2, NAME##_half_AVX2,         \
     NAME##_single_AVX512, NAME##_half_AVX512}
#else
#define LC_NORM_LEVELS(NAME) {NAME##_single_BASELINE, NAME##_half_BASELINE}
#endif
/* At 2 · level for single precision, and the next one for bfloat16. */
static const lc_norm_sums lc_norm_sums_at[] = LC_NORM_LEVELS(lc_norm_sums);
static const lc_norm_apply lc_norm_apply_at[] = LC_NORM_LEVELS(lc_norm_apply);
static const lc_norm_gradient_sums lc_norm_gradient_sums_at[] = LC_NORM_LEVELS(lc_norm_gradient_sums);
static const lc_norm_gradient lc_norm_gradient_at[] = LC_NORM_LEVELS(lc_norm_gradient);

#endif
