"""The worker that holds KvikIO or obstore for remote objects, one of them in a process."""

import asyncio
from collections import deque

MOST = 2000
CHUNK = 4 << 20


class KvikIO:
    """What its users write: `read` on the calling thread, or futures of `pread`."""

    def __init__(self, question):
        # Looked for once in a process, at the first object.
        os.environ["CURL_CA_BUNDLE"] = question["ca"]
        import kvikio
        import kvikio.defaults

        self.kvikio = kvikio
        names = ("num_threads", "task_size", "remote_io_backend")
        self.defaults = {name: kvikio.defaults.get(name) for name in names}
        self.current = dict(self.defaults)
        said = ", ".join(f"{name} {value}" for name, value in self.defaults.items())
        self.about = f"KvikIO {kvikio.__version__} by Python {platform.python_version()}; its defaults: {said}"
        self.files = {}

    def file(self, at):
        door = at["door"]
        if door not in self.files:
            remote = self.kvikio.RemoteFile
            if door == "s3":
                self.files[door] = remote.open_s3(
                    at["bucket"],
                    at["key"],
                    aws_region_name=at["region"],
                    aws_access_key_id=at["access_key"],
                    aws_secret_access_key=at["secret_key"],
                    aws_endpoint_url=at["endpoint"],
                )
            elif door == "webhdfs":
                self.files[door] = remote.open_webhdfs(at["url"])
            else:
                self.files[door] = remote.open_http(at["url"])
        return self.files[door]

    def set(self, way):
        wanted = dict(self.defaults)
        if way["threads"] is not None:
            wanted["num_threads"] = way["threads"]
        if way["reactor"]:
            backends = type(self.defaults["remote_io_backend"])
            wanted["remote_io_backend"] = backends.MULTI_POLL
        if wanted != self.current:
            self.kvikio.defaults.set(wanted)
            self.current = wanted

    def read_whole(self, at, way, target):
        whole(self.file(at).pread(target, target.size, 0).get(), target.size)

    def read_pieces(self, at, way, views, offsets):
        file, size, most = self.file(at), views[0].size, way["under_way"]
        if most == 1:
            read = file.read
            for view, offset in zip(views, offsets):
                read(view, size, offset)
            return
        pread, futures = file.pread, deque()
        for view, offset in zip(views, offsets):
            if len(futures) == most:
                whole(futures.popleft().get(), size)
            futures.append(pread(view, size, offset))
        while futures:
            whole(futures.popleft().get(), size)


class Obstore:
    """Ranges under way at the same time, copied to where they belong."""

    def __init__(self, question):
        os.environ["SSL_CERT_FILE"] = question["ca"]
        import obstore

        self.obstore = obstore
        self.about = f"obstore {obstore.__version__} by Python {platform.python_version()}"
        self.stores = {}
        self.loop = asyncio.new_event_loop()

    def set(self, way):
        pass

    def store(self, at):
        door = at["door"]
        if door == "webhdfs":
            raise ValueError("it has no store for WebHDFS")
        if door not in self.stores:
            from obstore.store import HTTPStore, S3Store

            if door == "s3":
                self.stores[door] = S3Store(
                    at["bucket"],
                    region=at["region"],
                    endpoint=at["endpoint"],
                    access_key_id=at["access_key"],
                    secret_access_key=at["secret_key"],
                    virtual_hosted_style_request=False,
                    client_options={"allow_http": True},
                )
            else:
                root = at["url"].rsplit("/", 1)[0]
                self.stores[door] = HTTPStore.from_url(root, client_options={"allow_http": True})
        return self.stores[door]

    def read_whole(self, at, way, target):
        starts = range(0, target.size, CHUNK)
        pieces = [(start, target[start : start + CHUNK]) for start in starts]
        self.loop.run_until_complete(self.fetch(at, pieces, way["under_way"]))

    def read_pieces(self, at, way, views, offsets):
        if way["under_way"] == 1:
            store, key, get = self.store(at), at["key"], self.obstore.get_range
            for view, offset in zip(views, offsets):
                view[:] = np.frombuffer(get(store, key, start=offset, length=view.size), np.uint8)
            return
        self.loop.run_until_complete(self.fetch(at, zip(offsets, views), way["under_way"]))

    async def fetch(self, at, pieces, under_way):
        store, key, get = self.store(at), at["key"], self.obstore.get_range_async
        pieces = iter(pieces)

        async def some():
            for offset, view in pieces:
                came = await get(store, key, start=offset, length=view.size)
                view[:] = np.frombuffer(came, np.uint8)

        await asyncio.gather(*(some() for _ in range(under_way)))


class Job:
    """One question about a case."""

    program = None
    memory = None
    offsets = []
    views = []

    def __init__(self, question):
        self.__dict__.update(question)
        self.program.set(self.way)

    def target(self):
        return Job.memory.at(self.page_offset, self.amount)

    def spoiled(self):
        """The word of each page that `prepare` spoils and a read must put right."""
        page = np.arange(self.amount // PAGE)
        return page * WORDS + (words(self.salt, page) % np.uint64(WORDS)).astype(np.int64)

    def prepare(self):
        if self.kind == "whole":
            at = self.spoiled()
            self.target()[: at.size * PAGE].view(np.uint64)[at] = ~words(self.seed, at)
            return
        places = words(self.salt, np.arange(self.amount)) % np.uint64(self.len // self.size)
        Job.offsets = (places.astype(np.int64) * self.size).tolist()
        memory = Job.memory.at(0, self.list * self.size)
        memory.fill(0)
        Job.views = [memory[i * self.size : (i + 1) * self.size] for i in range(self.list)]

    def move(self):
        """What is timed: the count of operations."""
        if self.kind == "whole":
            self.program.read_whole(self.at, self.way, self.target())
            return 1
        for begin in range(0, self.amount, self.list):
            offsets = Job.offsets[begin : begin + self.list]
            self.program.read_pieces(self.at, self.way, Job.views[: len(offsets)], offsets)
        return self.amount

    def turn(self):
        cpu, began = cpu_seconds(), time.perf_counter()
        operations = self.move()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        count = self.amount * (self.size if self.kind == "pieces" else 1)
        return {"seconds": seconds, "cpu_seconds": cpu, "bytes": count, "operations": operations}

    def check(self):
        if self.kind == "whole":
            at = self.spoiled()
            differs = self.target()[: at.size * PAGE].view(np.uint64)[at] != words(self.seed, at)
            return {"wrong": int(at[differs.argmax()]) * 8 if differs.any() else None}
        last = Job.offsets[(self.amount - 1) // self.list * self.list :]
        differences = (first_difference(v, self.seed, o) for v, o in zip(Job.views, last))
        return {"wrong": next((at for at in differences if at is not None), None)}

    def prove(self):
        if self.kind == "pieces":
            return {"wrong": None}
        self.target().fill(0)
        self.move()
        return {"wrong": first_difference(self.target(), self.seed)}


def hello(question):
    Job.program = {"KvikIO": KvikIO, "obstore": Obstore}[question["who"]](question)
    Job.memory = Memory(max(question["len"], MOST * PAGE))
    return {"about": Job.program.about + ", in one process for all turns"}
