"""Regions of two bricks that touch across their seam → one table, in which they are one."""

from libc.stdint cimport int32_t

from lesioncount._kernels.slab cimport Region, merge_into, unite


def join_regions(
    unsigned char[::1] table, const int32_t[::1] one, const int32_t[::1] other, int32_t[::1] number
):
    """Make one row of all that touch, and move the rows that are left to the front; how many these are.

    Parameters
    ----------
    table : bytes of REGION_FIELDS
        Changed.
    one, other : array of int32
        The rows that touch, pair by pair, in any order and as often as they do.
    number : array of int32
        Set to the row that each row is part of at the end; it has at least one element.
    """
    cdef Region* rows = <Region*> &table[0]
    cdef Py_ssize_t n = table.shape[0] // sizeof(Region), i
    cdef int32_t* parent = &number[0]
    cdef int32_t kept = 0
    with nogil:
        for i in range(n):
            parent[i] = <int32_t> i
        for i in range(one.shape[0]):
            unite(parent, one[i], other[i])
        for i in range(n - 1, -1, -1):  # children come after their parents
            if parent[i] != i:
                merge_into(&rows[parent[i]], &rows[i])
        for i in range(n):
            if parent[i] == i:
                rows[kept] = rows[i]
                parent[i] = kept
                kept += 1
            else:
                parent[i] = parent[parent[i]]
    return kept
