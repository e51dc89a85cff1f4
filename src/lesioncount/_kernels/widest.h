/* Loops that gain from wide vectors are compiled once per level, and the widest that the machine has is used.
 *
 * Where a compiler cannot compile for other machines than its target (MSVC), or has nothing wider (arm64), there is one
 * level. Results are the same at every level: the loops compare integers, or add in an order that is written down.
 * LC_PLAIN_C leaves out all that is not in the C standard: what is left is what any compiler gets.
 */
#ifndef LESIONCOUNT_WIDEST_H
#define LESIONCOUNT_WIDEST_H

#include <stdlib.h>
#include <string.h>

#if defined(LC_PLAIN_C)
#define LC_RESTRICT
#elif defined(__GNUC__) || defined(_MSC_VER)
#define LC_RESTRICT __restrict
#else
#define LC_RESTRICT
#endif

enum { LC_BASELINE, LC_AVX2, LC_AVX512, LC_N_LEVELS };

#if !defined(LC_PLAIN_C) && defined(__GNUC__) && defined(__x86_64__)
#define LC_HAS_LEVELS 1
#define LC_FOR_BASELINE
#define LC_FOR_AVX2 __attribute__((target("avx2")))
#define LC_FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
static inline int lc_widest_there_is(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return LC_BASELINE;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? LC_AVX512
               : LC_AVX2;
}
#else
#define LC_HAS_LEVELS 0
#define LC_FOR_BASELINE
static inline int lc_widest_there_is(void) { return LC_BASELINE; }
#endif

static inline const char *lc_level_name(int level) {
    static const char *const names[LC_N_LEVELS] = {"baseline", "avx2", "avx512"};
    return names[level];
}

/* The level to use. LESIONCOUNT_VECTORS asks for a narrower one: to compare, or to avoid a machine's fault. */
static inline int lc_widest(void) {
    const char *asked = getenv("LESIONCOUNT_VECTORS");
    int level = lc_widest_there_is();
    for (int narrower = LC_BASELINE; asked && narrower < level; narrower++)
        if (strcmp(asked, lc_level_name(narrower)) == 0) level = narrower;
    return level;
}

#endif
