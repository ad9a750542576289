"""The worker that holds KvikIO for files of the host and for memory of a device."""

from concurrent.futures import ThreadPoolExecutor

import kvikio
import kvikio.defaults

LIST = 10_000
LOOKERS = 8
# What reads into the memory that the worker keeps.
INTO_TARGET = ("read", "map", "map-once")


class DeviceMemory:
    """Memory of a device, looked at through pinned memory: copies alone, so that no kernel has to be compiled for it."""

    def __init__(self, size, device):
        import cupy

        self.runtime = cupy.cuda.runtime
        self.device = device
        self.runtime.setDevice(device)
        self.array = cupy.empty(size, dtype=np.uint8)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        pinned = cupy.cuda.alloc_pinned_memory(LOOKERS * STEP)
        self.windows = np.frombuffer(pinned, np.uint8, LOOKERS * STEP).reshape(LOOKERS, STEP)
        self.lookers = ThreadPoolExecutor(LOOKERS)
        self.about = f"CuPy {cupy.__version__}"

    def fill(self, byte, size):
        self.runtime.memset(self.array.data.ptr, byte, size)
        self.runtime.deviceSynchronize()

    def each(self, size, work):
        """What `work(at, window)` answers for each chunk of the first bytes, in order; `window` is pinned memory for it."""

        def chunks(looker):
            self.runtime.setDevice(self.device)
            window = self.windows[looker]
            return [work(at, window[: min(STEP, size - at)]) for at in range(looker * STEP, size, LOOKERS * STEP)]

        answers = self.lookers.map(chunks, range(LOOKERS))
        return [answer for answers_of_one in answers for answer in answers_of_one]

    def fetch(self, at, window):
        kind = self.runtime.memcpyDeviceToHost
        self.runtime.memcpy(window.ctypes.data, self.array.data.ptr + at, window.size, kind)

    def send(self, at, window):
        kind = self.runtime.memcpyHostToDevice
        self.runtime.memcpy(self.array.data.ptr + at, window.ctypes.data, window.size, kind)

    def write_pattern(self, seed, size):
        def work(at, window):
            window[:] = pattern(seed, at, window.size)
            self.send(at, window)

        self.each(size, work)

    def look(self, size, judge):
        """The least position that `judge(at, bytes)` calls wrong in any chunk, or None."""

        def work(at, window):
            self.fetch(at, window)
            return judge(at, window)

        return min((wrong for wrong in self.each(size, work) if wrong is not None), default=None)


class Job:
    """One question about a case, and how KvikIO is set for it."""

    memory = None
    on_device = None
    defaults = {}
    current = {}
    files = {}
    maps = {}
    kept = None
    offsets = []
    views = []

    def __init__(self, question):
        self.__dict__.update(question)
        self.set()
        if self.kind.startswith("map"):
            return
        mode = "r+" if self.kind in ("write", "device-write") else "r"
        # A file that was opened for buffered turns has no descriptor for direct ones.
        key = (self.path, mode, self.direct)
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

    def device_view(self, amount):
        return Job.on_device.array[:amount]

    def map(self):
        """The map that stays, or one for this turn."""
        if self.kind == "map-once":
            return kvikio.Mmap(self.path)
        if self.path not in Job.maps:
            Job.maps[self.path] = kvikio.Mmap(self.path)
        return Job.maps[self.path]

    def read_map(self):
        """By its pool if threads are named, else by the calling thread."""
        map = self.map()
        if self.threads is None:
            whole(map.read(self.target(), self.amount, 0), self.amount)
        else:
            whole(map.pread(self.target(), self.amount, 0).get(), self.amount)
        if self.kind == "map-once":
            map.close()

    def target(self):
        return Job.memory.at(self.page_offset, self.amount)

    def spoiled(self):
        """The word of each page that `prepare` spoils and a read must put right."""
        page = np.arange(self.amount // PAGE)
        return page * WORDS + (words(self.salt, page) % np.uint64(WORDS)).astype(np.int64)

    def prepare(self):
        Job.kept = None
        if self.kind in INTO_TARGET:
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
        elif self.kind in ("device-read", "device-stream"):
            Job.on_device.fill(self.salt % 256, self.amount)
        elif self.kind in ("device-small", "device-list"):
            places = words(self.salt, np.arange(self.amount)) % np.uint64(self.len // self.size)
            Job.offsets = (places.astype(np.int64) * self.size).tolist()
            if len(Job.views) != self.list or Job.views[0].size != self.size:
                array, size = Job.on_device.array, self.size
                Job.views = [array[i * size : (i + 1) * size] for i in range(self.list)]
            Job.on_device.fill(self.salt % 256, self.list * self.size)

    def move(self):
        """What is timed: the count of operations."""
        if self.kind.startswith("map"):
            self.read_map()
            return 1
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
        elif self.kind == "device-read":
            whole(file.pread(self.device_view(self.amount), self.amount, 0).get(), self.amount)
        elif self.kind == "device-stream":
            future = file.raw_read_async(self.device_view(self.amount), Job.on_device.stream.ptr, self.amount, 0)
            whole(future.check_bytes_done(), self.amount)
        elif self.kind == "device-write":
            whole(file.pwrite(self.device_view(self.amount), self.amount, 0).get(), self.amount)
        elif self.kind == "small":
            view, read = Job.views[0], file.read
            for offset in Job.offsets:
                read(view, size, offset)
            return self.amount
        elif self.kind == "device-small":
            read = file.read
            for begin in range(0, len(Job.offsets), self.list):
                for view, offset in zip(Job.views, Job.offsets[begin : begin + self.list]):
                    read(view, size, offset)
            return self.amount
        elif self.kind in ("list", "device-list"):
            pread = file.pread
            for begin in range(0, len(Job.offsets), self.list):
                futures = [
                    pread(view, size, offset)
                    for view, offset in zip(Job.views, Job.offsets[begin : begin + self.list])
                ]
                for future in futures:
                    whole(future.get(), size)
            return self.amount
        return 1

    def turn(self):
        cpu, began = cpu_seconds(), time.perf_counter()
        operations = self.move()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        pieces = self.kind.endswith(("small", "list"))
        count = self.amount * (self.size if pieces else 1)
        return {"seconds": seconds, "cpu_seconds": cpu, "bytes": count, "operations": operations}

    def check(self):
        wrong = None
        if self.kind in (*INTO_TARGET, "fresh"):
            # New memory is zero, and a target was spoiled at these words.
            array = Job.kept if self.kind == "fresh" else self.target()
            at = self.spoiled()
            differs = array[: at.size * PAGE].view(np.uint64)[at] != words(self.seed, at)
            wrong = int(at[differs.argmax()]) * 8 if differs.any() else None
        elif self.kind in ("small", "list"):
            last = Job.offsets[-len(Job.views) :]
            differences = (first_difference(v, self.seed, o) for v, o in zip(Job.views, last))
            wrong = next((at for at in differences if at is not None), None)
        elif self.kind in ("device-read", "device-stream"):
            wrong = Job.on_device.look(self.amount, self.one_word_a_page)
        elif self.kind in ("device-small", "device-list"):
            wrong = Job.on_device.look(self.list * self.size, self.first_words)
        Job.kept = None
        return {"wrong": wrong}

    def one_word_a_page(self, at, window):
        page = np.arange(at // PAGE, (at + window.size) // PAGE)
        index = page * WORDS + (words(self.salt, page) % np.uint64(WORDS)).astype(np.int64)
        differs = window.view(np.uint64)[index - at // 8] != words(self.seed, index)
        return int(index[differs.argmax()]) * 8 if differs.any() else None

    def first_words(self, at, window):
        """Of each piece of the last list, as far as it was filled."""
        last = np.array(Job.offsets[(len(Job.offsets) - 1) // self.list * self.list :])
        last = last[at // self.size : (at + window.size) // self.size]
        firsts = window.view(np.uint64)[:: self.size // 8][: last.size]
        differs = firsts != words(self.seed, last // 8)
        return int(last[differs.argmax()]) if differs.any() else None

    def prove(self):
        wrong = None
        if self.kind in ("device-read", "device-stream"):
            Job.on_device.fill(0, self.amount)
            self.move()
            wrong = Job.on_device.look(self.amount, self.every_byte)
        elif self.kind == "device-write":
            Job.on_device.write_pattern(self.salt, self.amount)
            self.move()
        if self.kind in INTO_TARGET:
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

    def every_byte(self, at, window):
        return first_difference(window, self.seed, at)


def hello(question):
    device = question["device"]
    if device is None:
        Job.memory = Memory(max(question["len"], LIST * PAGE))
        memory = (
            "into anonymous memory that was touched, with huge pages asked for, at the page offset of the case"
        )
    else:
        Job.on_device = DeviceMemory(question["len"], device)
        memory = f"into memory of the device by {Job.on_device.about}, in its compatible mode, which is its fastest way here"
        # Without it, it sends files through libcufile wherever there is one, also where that has no direct path.
        kvikio.defaults.set("compat_mode", kvikio.CompatMode.ON)
    names = ("num_threads", "auto_direct_io_read", "auto_direct_io_write")
    Job.defaults = {name: kvikio.defaults.get(name) for name in names}
    Job.current = dict(Job.defaults)
    said = {**Job.defaults, "task_size": kvikio.defaults.get("task_size")}
    said = ", ".join(f"{name} {value}" for name, value in said.items())
    return {
        "about": f"KvikIO {kvikio.__version__} by Python {platform.python_version()} and numpy {np.__version__}, in one"
        f" process for all turns, {memory}; its defaults: {said}"
    }
