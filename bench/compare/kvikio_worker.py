"""Holds KvikIO for kvik's benchmarks: one JSON object a line in, one out.

The memory is what the benchmark itself reads into: anonymous and private, begun at a multiple of 2 MiB, with huge pages
asked for, touched, and then used from the place within a page that a question names. Bytes are checked after the clock
has stopped, by an implementation of the benchmark's pattern of its own.
"""

import gc
import json
import mmap
import os
import platform
import resource
import sys
import time

# Whatever libraries print must not come between the answers, and no setting of the user's must come between the defaults.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for variable in [name for name in os.environ if name.startswith("KVIKIO_")]:
    del os.environ[variable]

import kvikio
import kvikio.defaults
import numpy as np

PAGE = 4096
WORDS = PAGE // 8
HUGE = 2 << 20
STEP = 4 << 20
LIST = 10_000


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
        assert view.ctypes.data % PAGE == page_offset % PAGE
        return view


class Job:
    """One question about a case, and how KvikIO is set for it."""

    memory = None
    defaults = {}
    current = {}
    files = {}
    kept = None
    offsets = []
    views = []

    def __init__(self, question):
        self.__dict__.update(question)
        self.set()
        mode = "r+" if self.kind == "write" else "r"
        key = (self.path, mode)
        if key not in Job.files:
            Job.files[key] = kvikio.CuFile(self.path, mode)
        self.file = Job.files[key]

    def set(self):
        wanted = dict(Job.defaults)
        if self.threads is not None:
            wanted["num_threads"] = self.threads
        if self.direct is not None:
            wanted["auto_direct_io_read"] = wanted["auto_direct_io_write"] = self.direct
        if wanted != Job.current:
            kvikio.defaults.set(wanted)
            Job.current = wanted

    def target(self):
        return Job.memory.at(self.page_offset, self.amount)

    def spoiled(self):
        """The word of each page that `prepare` spoils and a read must put right."""
        page = np.arange(self.amount // PAGE)
        return page * WORDS + (words(self.salt, page) % np.uint64(WORDS)).astype(np.int64)

    def prepare(self):
        Job.kept = None
        if self.kind == "read":
            at = self.spoiled()
            self.target()[: at.size * PAGE].view(np.uint64)[at] = ~words(self.seed, at)
        elif self.kind in ("small", "list"):
            places = words(self.salt, np.arange(self.amount)) % np.uint64(self.len // self.size)
            Job.offsets = (places.astype(np.int64) * self.size).tolist()
            size = self.size
            count = LIST if self.kind == "list" else 1
            whole = Job.memory.at(0, count * size)
            whole.fill(0)
            Job.views = [whole[i * size : (i + 1) * size] for i in range(count)]

    def move(self):
        """What is timed: the count of operations."""
        file, size = self.file, self.size
        if self.kind == "read":
            whole(file.pread(self.target(), self.amount, 0).get(), self.amount)
        elif self.kind == "fresh":
            Job.kept = np.empty(self.amount, dtype=np.uint8)
            whole(file.pread(Job.kept, self.amount, 0).get(), self.amount)
        elif self.kind == "write":
            whole(file.pwrite(self.target(), self.amount, 0).get(), self.amount)
            if self.sync:
                os.fdatasync(file.fileno())
        elif self.kind == "small":
            view, read = Job.views[0], file.read
            for offset in Job.offsets:
                read(view, size, offset)
            return self.amount
        elif self.kind == "list":
            pread = file.pread
            for begin in range(0, len(Job.offsets), LIST):
                futures = [
                    pread(view, size, offset)
                    for view, offset in zip(Job.views, Job.offsets[begin : begin + LIST])
                ]
                for future in futures:
                    whole(future.get(), size)
            return self.amount
        return 1

    def turn(self):
        cpu, began = cpu_seconds(), time.perf_counter()
        operations = self.move()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        count = self.amount * (self.size if self.kind in ("small", "list") else 1)
        return {"seconds": seconds, "cpu_seconds": cpu, "bytes": count, "operations": operations}

    def check(self):
        wrong = None
        if self.kind in ("read", "fresh"):
            # New memory is zero, and a target was spoiled at these words.
            array = self.target() if self.kind == "read" else Job.kept
            at = self.spoiled()
            differs = array[: at.size * PAGE].view(np.uint64)[at] != words(self.seed, at)
            wrong = int(at[differs.argmax()]) * 8 if differs.any() else None
        elif self.kind in ("small", "list"):
            last = Job.offsets[-len(Job.views) :]
            differences = (first_difference(v, self.seed, o) for v, o in zip(Job.views, last))
            wrong = next((at for at in differences if at is not None), None)
        Job.kept = None
        return {"wrong": wrong}

    def prove(self):
        wrong = None
        if self.kind == "read":
            self.target().fill(0)
            self.move()
            wrong = first_difference(self.target(), self.seed)
        elif self.kind == "fresh":
            self.move()
            wrong = first_difference(Job.kept, self.seed)
            Job.kept = None
        elif self.kind == "small":
            view = Job.views[0]
            for offset in Job.offsets[:2000]:
                view.fill(0)
                self.file.read(view, self.size, offset)
                wrong = first_difference(view, self.seed, offset)
                if wrong is not None:
                    break
        elif self.kind == "write":
            target = self.target()
            for at in range(0, self.amount, STEP):
                piece = target[at : at + STEP]
                piece[:] = pattern(self.salt, at, piece.size)
            self.move()
        return {"wrong": wrong}


def whole(count, wanted):
    if count != wanted:
        raise RuntimeError(f"KvikIO moved {count} of {wanted} bytes")


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def hello(question):
    Job.memory = Memory(max(question["len"], LIST * PAGE))
    names = ("num_threads", "auto_direct_io_read", "auto_direct_io_write")
    Job.defaults = {name: kvikio.defaults.get(name) for name in names}
    Job.current = dict(Job.defaults)
    said = {**Job.defaults, "task_size": kvikio.defaults.get("task_size")}
    said = ", ".join(f"{name} {value}" for name, value in said.items())
    return {
        "about": f"KvikIO {kvikio.__version__} by Python {platform.python_version()} and numpy {np.__version__}, in one"
        " process for all turns, into anonymous memory that was touched, with huge pages asked for, at the page offset"
        f" of the case; its defaults: {said}"
    }


def answer(question):
    what = question.pop("do")
    if what == "hello":
        return hello(question)
    if what == "cpu":
        return {"cpu_seconds": cpu_seconds()}
    job = Job(question)
    if what in ("prepare", "turn", "check", "prove"):
        return getattr(job, what)() or {}
    raise ValueError(f"no such question: {what}")


def main():
    gc.disable()
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # The benchmark decides what an error means.
            said = {"error": f"{type(error).__name__}: {error}"}
        ANSWERS.write(json.dumps(said) + "\n")
        ANSWERS.flush()


main()
