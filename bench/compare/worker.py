"""Holds another program for kvik's benchmarks: one JSON object a line in, one out.

The memory is what the benchmark itself reads into: anonymous and private, begun at a multiple of 2 MiB, with huge pages
asked for, touched, and then used from the place within a page that a question names. Bytes are checked after the clock
has stopped, by an implementation of the benchmark's pattern of its own. What a worker does stands below.
"""

import gc
import json
import mmap
import os
import platform
import resource
import sys
import time

# Whatever libraries print must not come between the answers. No setting of the user's must come between the defaults, and
# no proxy between a guest and the server.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for variable in list(os.environ):
    if variable.startswith(("KVIKIO_", "AWS_")) or variable.lower().endswith("_proxy"):
        del os.environ[variable]
# Packages that this Python does not have itself.
sys.path[:0] = sys.argv[1:]

import numpy as np

PAGE = 4096
WORDS = PAGE // 8
HUGE = 2 << 20
STEP = 4 << 20


def words(seed, index):
    """The words of the pattern `seed` at these positions: splitmix64, as in src/pattern.rs."""
    z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def pattern(seed, offset, size):
    """The bytes of the pattern from `offset`, a multiple of 8."""
    first = offset // 8
    count = -(-size // 8)
    return words(seed, np.arange(first, first + count)).view(np.uint8)[:size]


def first_difference(array, seed, start=0):
    """The position of the first byte that is not the pattern's, or None."""
    for at in range(0, array.size, STEP):
        piece = array[at : at + STEP]
        differs = piece != pattern(seed, start + at, piece.size)
        if differs.any():
            return start + at + int(differs.argmax())
    return None


class Memory:
    def __init__(self, size):
        self.mapping = mmap.mmap(-1, size + HUGE + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole = np.frombuffer(self.mapping, dtype=np.uint8)
        skip = -whole.ctypes.data % HUGE
        try:
            # Asked for before a page exists, as the benchmark does; without huge pages in the kernel it is an error.
            self.mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass
        self.array = whole[skip : skip + size + PAGE]
        self.array.fill(1)

    def at(self, page_offset, size):
        view = self.array[page_offset : page_offset + size]
        # A slice that reaches beyond its array is a shorter one, and less would be read and compared.
        assert view.size == size, f"{size} bytes of memory were asked for, and {self.array.size} are there"
        assert view.ctypes.data % PAGE == page_offset % PAGE
        return view


def whole(count, wanted):
    if count != wanted:
        raise RuntimeError(f"moved {count} of {wanted} bytes")


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def answer(question, hello, job):
    what = question.pop("do")
    if what == "hello":
        return hello(question)
    if what == "cpu":
        return {"cpu_seconds": cpu_seconds()}
    if what in ("prepare", "turn", "check", "prove"):
        return getattr(job(question), what)() or {}
    raise ValueError(f"no such question: {what}")


def main(hello, job):
    """Answers the first question by `hello`, and those about a case by the method of a `job` that is named like it."""
    gc.disable()
    for line in sys.stdin:
        try:
            said = answer(json.loads(line), hello, job)
        except Exception as error:  # The benchmark decides what an error means.
            said = {"error": f"{type(error).__name__}: {error}"}
        ANSWERS.write(json.dumps(said) + "\n")
        ANSWERS.flush()
