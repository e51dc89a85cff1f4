"""A task may keep freed memory while it runs; nothing else changes."""

import sys

import numpy as np
import pytest

from lesioncount.runs import volume_sweep as module
from lesioncount.runs.volume_sweep import kept_memory


def page_faults():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def use_memory(n_times):
    for _ in range(n_times):
        np.empty(1 << 26, np.uint8)[::4096] = 1


@pytest.mark.skipif(sys.platform != "linux" or module._mallopt() is None, reason="needs glibc")
def test_memory_that_was_freed_is_used_again():
    with kept_memory():
        use_memory(1)
        before = page_faults()
        use_memory(8)
        kept = page_faults() - before
    before = page_faults()
    use_memory(8)
    given_back = page_faults() - before
    assert kept < 0.5 * given_back


def test_an_error_in_a_task_passes_through():
    with pytest.raises(ValueError, match="a bad chunk"), kept_memory():
        raise ValueError("a bad chunk")


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(module, "_mallopt", lambda: None)
    with kept_memory():
        use_memory(1)


@pytest.mark.parametrize(
    ("given", "trim", "mmap"), [("65536", 65536, 128 * 1024), ("many", 1 << 26, 1 << 25), (None, 1 << 26, 1 << 25)]
)
def test_what_dask_wanted_is_restored_and_else_what_glibc_comes_to_by_itself(monkeypatch, given, trim, mmap):
    if given is None:
        monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    else:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", given)
    set_to = []
    monkeypatch.setattr(module, "_mallopt", lambda: lambda name, value: set_to.append((name, value)) or 1)
    with kept_memory():
        pass
    assert set_to[-2:] == [(-1, trim), (-3, mmap)]
