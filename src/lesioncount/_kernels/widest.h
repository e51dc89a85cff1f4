/* LC_WIDEST compiles a function once per instruction set; the machine picks the widest it has at load time. */
#ifndef LESIONCOUNT_WIDEST_H
#define LESIONCOUNT_WIDEST_H

#include <stddef.h>
#include <stdint.h> /* brings in __GLIBC__ where there is one */

/* Picking at load time needs the indirect functions of glibc. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define LC_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(__x86_64__) && defined(__GLIBC__) && (!defined(__clang__) || __clang_major__ >= 14)
#define LC_WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define LC_WIDEST
#endif

#endif
