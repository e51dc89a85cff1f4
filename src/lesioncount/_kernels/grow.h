/* Tables that grow. */
#ifndef LESIONCOUNT_GROW_H
#define LESIONCOUNT_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if !defined(LC_PLAIN_C) && defined(__linux__)
#include <sys/mman.h>
#endif

/* Grow a table; 0 when it could be done. Large ones ask for large pages, as numpy does: in noise, first touches of fresh
 * memory would otherwise cost as much as the sweep. */
static inline int lc_grow(void *table, size_t n_bytes) {
    void **pointer = (void **)table;
    void *grown = realloc(*pointer, n_bytes);
    if (!grown) return -1;
#if !defined(LC_PLAIN_C) && defined(__linux__) && defined(MADV_HUGEPAGE)
    if (n_bytes >= (size_t)1 << 22) {
        uintptr_t begin = ((uintptr_t)grown + 4095) & ~(uintptr_t)4095;
        madvise((void *)begin, n_bytes - (begin - (uintptr_t)grown), MADV_HUGEPAGE);
    }
#endif
    *pointer = grown;
    return 0;
}

#endif
