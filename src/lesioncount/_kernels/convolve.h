/* The inner loops of the Poisson-binomial recursion.
 *
 * Sums of products of positive numbers: no cancellation, so every value keeps its relative accuracy, however small.
 */
#ifndef LESIONCOUNT_CONVOLVE_H
#define LESIONCOUNT_CONVOLVE_H

#include <stddef.h>

#include "widest.h"

/* c[s] = P(s successes) in n ≤ 8 trials, s = 0 … 8. In more digits than a double has, where there are any: the error of
 * rounding 1 - p is the same for equal p, and would add up over many of them. */
static inline void lc_few_trials(const double *p, ptrdiff_t n, double *c) {
    long double exact[9] = {1};
    for (ptrdiff_t i = 0; i < n; i++) {
        const long double q = 1 - (long double)p[i];
        for (ptrdiff_t s = i + 1; s > 0; s--) exact[s] = exact[s] * q + exact[s - 1] * p[i];
        exact[0] *= q;
    }
    for (ptrdiff_t s = 0; s <= 8; s++) c[s] = (double)exact[s];
}

#define LC_NINE_TERMS(x)                                                                                       \
    ((((x)[0] * c[0] + (x)[-1] * c[1]) + ((x)[-2] * c[2] + (x)[-3] * c[3])) +                                  \
     (((x)[-4] * c[4] + (x)[-5] * c[5]) + ((x)[-6] * c[6] + ((x)[-7] * c[7] + (x)[-8] * c[8]))))

/* convolve: out[j] = in[j] c[0] + … + in[j - 8] c[8]: eight trials at once, because a pass over the window is bound by
 * memory. add: the same, added to what is there. */
#define LC_DEFINE_NINE(LEVEL)                                                                                  \
    LC_FOR_##LEVEL static void lc_convolve_nine_##LEVEL(const double *LC_RESTRICT in, double *LC_RESTRICT out, \
                                                        ptrdiff_t n, const double *LC_RESTRICT c) {            \
        for (ptrdiff_t j = 0; j < n; j++) out[j] = LC_NINE_TERMS(in + j);                                      \
    }                                                                                                          \
    LC_FOR_##LEVEL static void lc_add_nine_##LEVEL(const double *LC_RESTRICT in, double *LC_RESTRICT out,      \
                                                   ptrdiff_t n, const double *LC_RESTRICT c) {                 \
        for (ptrdiff_t j = 0; j < n; j++) out[j] += LC_NINE_TERMS(in + j);                                     \
    }

typedef void (*lc_nine)(const double *LC_RESTRICT in, double *LC_RESTRICT out, ptrdiff_t n,
                        const double *LC_RESTRICT c);

LC_DEFINE_NINE(BASELINE)
#if LC_HAS_LEVELS
LC_DEFINE_NINE(AVX2)
LC_DEFINE_NINE(AVX512)
static const lc_nine lc_convolve_nine_at[] = {lc_convolve_nine_BASELINE, lc_convolve_nine_AVX2,
                                              lc_convolve_nine_AVX512};
static const lc_nine lc_add_nine_at[] = {lc_add_nine_BASELINE, lc_add_nine_AVX2, lc_add_nine_AVX512};
#else
static const lc_nine lc_convolve_nine_at[] = {lc_convolve_nine_BASELINE};
static const lc_nine lc_add_nine_at[] = {lc_add_nine_BASELINE};
#endif

#endif
