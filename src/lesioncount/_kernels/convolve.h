/* The inner loops of the Poisson-binomial recursion.
 *
 * Sums of products of positive numbers: no cancellation, so every value keeps its relative accuracy, however small.
 */
#ifndef LESIONCOUNT_CONVOLVE_H
#define LESIONCOUNT_CONVOLVE_H

#include "widest.h"

#if defined(_MSC_VER)
#define restrict __restrict
#endif

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

/* out[j] = in[j] c[0] + … + in[j - 8] c[8]: eight trials at once, because a pass over the window is bound by memory. */
LC_WIDEST static void lc_convolve_nine(const double *restrict in, double *restrict out, ptrdiff_t n,
                                       const double *restrict c) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] = LC_NINE_TERMS(in + j);
}

/* The same, added to what is there. */
LC_WIDEST static void lc_add_nine(const double *restrict in, double *restrict out, ptrdiff_t n,
                                  const double *restrict c) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] += LC_NINE_TERMS(in + j);
}

#endif
