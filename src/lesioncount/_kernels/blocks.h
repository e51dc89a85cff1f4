/* Rows of voxels, tested a block at a time.
 *
 * Every stored voxel type is read as an unsigned integer "key" that grows with the probability it encodes
 * (voxels.py says how), so that one comparison of integers answers "above the threshold?" and "not a
 * probability at all?". The loops below have no branches inside, so that compilers make vectors of them.
 */
#ifndef LESIONCOUNT_BLOCKS_H
#define LESIONCOUNT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "widest.h"

#if !defined(LC_PLAIN_C) && (defined(__SSE2__) || defined(_M_X64)) /* MSVC does not say that every x64 has it */
#define LC_HAS_SSE2 1
#include <emmintrin.h>
#else
#define LC_HAS_SSE2 0
#endif

/* The number of the lowest bit that is set. */
#if !defined(LC_PLAIN_C) && defined(__GNUC__)
static inline int lc_first_bit(uint64_t word) { return __builtin_ctzll(word); }
#elif !defined(LC_PLAIN_C) && (defined(_M_X64) || defined(_M_ARM64))
#include <intrin.h>
static inline int lc_first_bit(uint64_t word) {
    unsigned long at;
    _BitScanForward64(&at, word);
    return (int)at;
}
#else
static inline int lc_first_bit(uint64_t word) {
    int at = 0;
    for (int half = 32; half > 0; half /= 2) {
        if (word & ((UINT64_C(1) << half) - 1)) continue; /* it is in the lower half */
        word >>= half;
        at += half;
    }
    return at;
}
#endif

/* What a key means; `suspect` keys are outside [0, 1] and bad unless they lie in [benign_low, benign_high]. */
typedef struct {
    uint64_t base;        /* subtracted, so that the smallest valid value has key 0 and smaller ones wrap to the top */
    uint64_t low;         /* foreground: low < key <= high */
    uint64_t high;        /* suspect: key > high */
    uint64_t benign_low;  /* rounding noise just below 0 */
    uint64_t benign_high;
    uint64_t zero;        /* the largest key whose probability is 0 */
    uint64_t half;        /* the smallest key whose probability is at least 0.5 */
    uint64_t one;         /* the smallest key whose probability is 1 */
} lc_keys;

typedef struct {
    uint64_t (*largest)(const void *rows, size_t n_rows, size_t n_columns, const lc_keys *keys, uint64_t *of_row);
    void (*foreground)(const void *row, size_t n, const lc_keys *keys, uint64_t *words);
    int (*any_bad)(const void *row, size_t n, const lc_keys *keys, const uint64_t *within);
    int (*any_between)(const void *row, size_t n, uint64_t base, uint64_t above, uint64_t below,
                       const uint64_t *within);
    void (*peaks)(const void *row, size_t n, const int32_t *edges, uint64_t base, uint64_t *key, int32_t *column);
    void (*gather)(const char *from, ptrdiff_t stride, size_t n, void *row);
    uint64_t *(*keep)(const void *row, size_t n, const int32_t *edges, const lc_keys *keys, uint64_t *kept);
} lc_row_ops;

/* 64 bytes of 0 or 255 become the 64 bits of a word. */
static inline uint64_t lc_pack64(const uint8_t *flags) {
    uint64_t word = 0;
#if LC_HAS_SSE2
    for (int i = 0; i < 4; i++) {
        __m128i sixteen = _mm_loadu_si128((const __m128i *)(flags + 16 * i));
        word |= (uint64_t)(unsigned)_mm_movemask_epi8(sixteen) << (16 * i);
    }
#else
    for (int i = 0; i < 8; i++) {
        uint64_t eight = 0; /* the product moves the lowest bit of byte i to bit 56 + i */
        for (int k = 0; k < 8; k++) eight |= (uint64_t)(flags[8 * i + k] & 1) << (8 * k);
        word |= ((eight * UINT64_C(0x0102040810204080)) >> 56) << (8 * i);
    }
#endif
    return word;
}

/* A row of mask bytes becomes words: nonzero is inside. */
static inline void lc_mask_words(const char *row, ptrdiff_t stride, size_t n, uint64_t *words) {
    uint8_t flags[64];
    for (size_t done = 0; done < n; done += 64) {
        size_t here = n - done < 64 ? n - done : 64;
        memset(flags, 0, sizeof flags);
        for (size_t i = 0; i < here; i++, row += stride) flags[i] = *row ? 255 : 0;
        *words++ = lc_pack64(flags);
    }
}

/* Below this many columns, rows are first tested together: their ends would break up the vectors. */
#define LC_SHORT_ROW 64

#define LC_DEFINE_WIDE(NAME, U, KEY, LEVEL)                                                                          \
    LC_FOR_##LEVEL static uint64_t lc_largest_##NAME##_##LEVEL(const void *rows, size_t n_rows, size_t n_columns,    \
                                                               const lc_keys *keys, uint64_t *of_row) {              \
        const U *p = (const U *)rows;                                                                                \
        const U base = (U)keys->base;                                                                                \
        U most = 0, overall = 0;                                                                                     \
        if (n_columns < LC_SHORT_ROW) {                                                                              \
            for (size_t i = 0; i < n_rows * n_columns; i++) {                                                        \
                U key = KEY(p[i]);                                                                                   \
                most = key > most ? key : most;                                                                      \
            }                                                                                                        \
            if (most <= (U)keys->low) return most;                                                                   \
        }                                                                                                            \
        for (size_t row = 0; row < n_rows; row++, p += n_columns) {                                                  \
            most = 0;                                                                                                \
            for (size_t i = 0; i < n_columns; i++) {                                                                 \
                U key = KEY(p[i]);                                                                                   \
                most = key > most ? key : most;                                                                      \
            }                                                                                                        \
            of_row[row] = most;                                                                                      \
            overall = most > overall ? most : overall;                                                               \
        }                                                                                                            \
        return overall;                                                                                              \
    }                                                                                                                \
    LC_FOR_##LEVEL static void lc_foreground_##NAME##_##LEVEL(const void *row, size_t n, const lc_keys *keys,        \
                                                              uint64_t *words) {                                     \
        const U *p = (const U *)row;                                                                                 \
        const U base = (U)keys->base, first = (U)(keys->low + 1), width = (U)(keys->high - keys->low);               \
        uint8_t flags[64];                                                                                           \
        for (size_t done = 0; done < n; done += 64, p += 64) {                                                       \
            if (n - done >= 64) {                                                                                    \
                for (int i = 0; i < 64; i++) flags[i] = (U)(KEY(p[i]) - first) < width ? 255 : 0;                    \
            } else {                                                                                                 \
                memset(flags, 0, sizeof flags);                                                                      \
                for (size_t i = 0; i < n - done; i++) flags[i] = (U)(KEY(p[i]) - first) < width ? 255 : 0;           \
            }                                                                                                        \
            *words++ = lc_pack64(flags);                                                                             \
        }                                                                                                            \
    }                                                                                                                \
    LC_FOR_##LEVEL static int lc_any_between_##NAME##_##LEVEL(                                                       \
        const void *row, size_t n, uint64_t base64, uint64_t above64, uint64_t below64, const uint64_t *within) {    \
        const U *p = (const U *)row;                                                                                 \
        const U base = (U)base64, above = (U)above64, below = (U)below64;                                            \
        U found = 0;                                                                                                 \
        if (within) {                                                                                                \
            for (size_t i = 0; i < n; i++)                                                                           \
                found |= (U)((KEY(p[i]) > above) & (KEY(p[i]) < below) & ((within[i >> 6] >> (i & 63)) & 1));        \
        } else {                                                                                                     \
            for (size_t i = 0; i < n; i++) found |= (U)((KEY(p[i]) > above) & (KEY(p[i]) < below));                  \
        }                                                                                                            \
        return found != 0;                                                                                           \
    }

#define LC_DEFINE_OTHERS(NAME, U, KEY)                                                                               \
    static int lc_any_bad_##NAME(const void *row, size_t n, const lc_keys *keys, const uint64_t *within) {           \
        const U *p = (const U *)row;                                                                                 \
        const U base = (U)keys->base;                                                                                \
        for (size_t i = 0; i < n; i++) {                                                                             \
            U key = KEY(p[i]);                                                                                       \
            if (key <= keys->high || (key >= keys->benign_low && key <= keys->benign_high)) continue;                \
            if (!within || (within[i >> 6] >> (i & 63)) & 1) return 1;                                               \
        }                                                                                                            \
        return 0;                                                                                                    \
    }                                                                                                                \
    static void lc_peaks_##NAME(const void *row, size_t n, const int32_t *edges, uint64_t base64, uint64_t *key,     \
                                int32_t *column) {                                                                   \
        const U *p = (const U *)row;                                                                                 \
        const U base = (U)base64;                                                                                    \
        for (size_t run = 0; run < n; run++) {                                                                       \
            int32_t at = edges[2 * run], end = edges[2 * run + 1];                                                   \
            U most = KEY(p[at]);                                                                                     \
            for (int32_t i = at + 1; i < end; i++) {                                                                 \
                U here = KEY(p[i]);                                                                                  \
                at = here > most ? i : at;                                                                           \
                most = here > most ? here : most;                                                                    \
            }                                                                                                        \
            key[run] = most;                                                                                         \
            column[run] = at;                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    static void lc_gather_##NAME(const char *from, ptrdiff_t stride, size_t n, void *row) {                          \
        U *p = (U *)row;                                                                                             \
        for (size_t i = 0; i < n; i++, from += stride) memcpy(p + i, from, sizeof(U));                               \
    }                                                                                                                \
    static uint64_t *lc_keep_##NAME(const void *row, size_t n, const int32_t *edges, const lc_keys *keys,            \
                                    uint64_t *kept) {                                                                \
        const U *p = (const U *)row;                                                                                 \
        const U base = (U)keys->base, one = (U)keys->one;                                                            \
        for (size_t run = 0; run < n; run++) {                                                                       \
            for (int32_t i = edges[2 * run]; i < edges[2 * run + 1]; i++) {                                          \
                U key = KEY(p[i]);                                                                                   \
                *kept++ = key < one ? key : one; /* what rounding pushed above 1 is 1, and no peak on it */          \
            }                                                                                                        \
        }                                                                                                            \
        return kept;                                                                                                 \
    }

#define LC_OPS(NAME, LEVEL)                                                                                          \
    {lc_largest_##NAME##_##LEVEL, lc_foreground_##NAME##_##LEVEL, lc_any_bad_##NAME, lc_any_between_##NAME##_##LEVEL,\
     lc_peaks_##NAME, lc_gather_##NAME, lc_keep_##NAME}

/* For one kind of voxel: its table of functions at each level. */
#if LC_HAS_LEVELS
#define LC_DEFINE_ROW_OPS(NAME, U, KEY)                                                                              \
    LC_DEFINE_OTHERS(NAME, U, KEY)                                                                                   \
    LC_DEFINE_WIDE(NAME, U, KEY, BASELINE)                                                                           \
    LC_DEFINE_WIDE(NAME, U, KEY, AVX2)                                                                               \
    LC_DEFINE_WIDE(NAME, U, KEY, AVX512)                                                                             \
    static const lc_row_ops lc_ops_##NAME[] = {LC_OPS(NAME, BASELINE), LC_OPS(NAME, AVX2), LC_OPS(NAME, AVX512)};
#else
#define LC_DEFINE_ROW_OPS(NAME, U, KEY)                                                                              \
    LC_DEFINE_OTHERS(NAME, U, KEY)                                                                                   \
    LC_DEFINE_WIDE(NAME, U, KEY, BASELINE)                                                                           \
    static const lc_row_ops lc_ops_##NAME[] = {LC_OPS(NAME, BASELINE)};
#endif
/* Probabilities and scaled integers: the bits themselves, counted from the smallest valid value. */
#define LC_PLAIN(U, b) ((U)((b) - base))
#define LC_PLAIN8(b) LC_PLAIN(uint8_t, b)
#define LC_PLAIN16(b) LC_PLAIN(uint16_t, b)
#define LC_PLAIN32(b) LC_PLAIN(uint32_t, b)
#define LC_PLAIN64(b) LC_PLAIN(uint64_t, b)
LC_DEFINE_ROW_OPS(plain8, uint8_t, LC_PLAIN8)
LC_DEFINE_ROW_OPS(plain16, uint16_t, LC_PLAIN16)
LC_DEFINE_ROW_OPS(plain32, uint32_t, LC_PLAIN32)
LC_DEFINE_ROW_OPS(plain64, uint64_t, LC_PLAIN64)

/* Logits: negative floats have descending bits. Turned round first, they too are counted from the smallest
 * valid value, the most negative finite number; what is not finite wraps to the top. */
#define LC_SIGNED(U, S, BITS, b) ((U)(((b) ^ (U)((U)((S)(b) >> (BITS - 1)) | (U)((U)1 << (BITS - 1)))) - base))
#define LC_SIGNED16(b) LC_SIGNED(uint16_t, int16_t, 16, b)
#define LC_SIGNED32(b) LC_SIGNED(uint32_t, int32_t, 32, b)
#define LC_SIGNED64(b) LC_SIGNED(uint64_t, int64_t, 64, b)
LC_DEFINE_ROW_OPS(signed16, uint16_t, LC_SIGNED16)
LC_DEFINE_ROW_OPS(signed32, uint32_t, LC_SIGNED32)
LC_DEFINE_ROW_OPS(signed64, uint64_t, LC_SIGNED64)

static inline const lc_row_ops *lc_row_ops_for(int itemsize, int is_signed, int level) {
    switch (itemsize) {
        case 1: return &lc_ops_plain8[level];
        case 2: return is_signed ? &lc_ops_signed16[level] : &lc_ops_plain16[level];
        case 4: return is_signed ? &lc_ops_signed32[level] : &lc_ops_plain32[level];
        default: return is_signed ? &lc_ops_signed64[level] : &lc_ops_plain64[level];
    }
}

#endif
