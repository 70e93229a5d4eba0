"""A SeaweedFS of our own on 127.0.0.1, and the delaying proxy before it."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time

ACCESS_KEY, SECRET_KEY = "benchkey", "benchsecret"


def free_port():
    """A port P with P + 10000 free as well: SeaweedFS puts gRPC there."""
    for _ in range(200):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if port + 10000 > 65535:
                continue
            try:
                second.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port
    raise RuntimeError("no free pair of ports")


def weed_path():
    beside = os.path.join(os.path.dirname(sys.executable), "weed")
    return beside if os.path.exists(beside) else shutil.which("weed")


class SeaweedFS:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        ports = {}
        for name in ("master", "volume", "filer", "s3", "iceberg", "lance"):
            port = free_port()
            while port in ports.values():
                port = free_port()
            ports[name] = port
        config = os.path.join(folder, "s3.json")
        with open(config, "w") as out:
            json.dump({"identities": [{
                "name": "bench", "actions": ["Admin", "Read", "Write", "List"],
                "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]}]}, out)
        self.port = ports["s3"]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = open(os.path.join(folder, "weed.log"), "w")
        self.process = subprocess.Popen(
            [weed_path(), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
             "-filer", "-s3", f"-s3.config={config}", "-master.telemetry=false",
             f"-master.port={ports['master']}", f"-volume.port={ports['volume']}",
             f"-filer.port={ports['filer']}", f"-s3.port={ports['s3']}",
             f"-s3.port.iceberg={ports['iceberg']}", f"-s3.port.lance={ports['lance']}",
             "-volume.max=100", "-master.volumeSizeLimitMB=1024"],
            stdout=self.log, stderr=subprocess.STDOUT)
        self._wait()

    def _wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.filesystem().create_dir("bench")
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.5)
        self.stop()
        raise RuntimeError(f"SeaweedFS did not start: see {self.log.name}")

    def filesystem(self):
        from pyarrow.fs import S3FileSystem
        return S3FileSystem(endpoint_override=self.endpoint, region="us-east-1",
                            access_key=ACCESS_KEY, secret_key=SECRET_KEY,
                            allow_bucket_creation=True)

    def upload(self, folder, prefix):
        from pyarrow.fs import LocalFileSystem, copy_files
        copy_files(folder, prefix, source_filesystem=LocalFileSystem(),
                   destination_filesystem=self.filesystem(), use_threads=True)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class DelayProxy:
    """delay_proxy.cc: delays every request, and logs it."""

    def __init__(self, program, store_port, delay_us):
        self.process = subprocess.Popen([program, str(store_port), str(delay_us)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def _ask(self, line):
        self.process.stdin.write(line + "\n")
        return json.loads(self.process.stdout.readline())

    def take(self):
        """The requests since the last take: [start_ns, end_ns, method, status, body_bytes]."""
        return self._ask("take")

    def set_delay(self, delay_us):
        self._ask(f"delay {delay_us}")

    def set_slow(self, every, extra_us):
        """From now on one request in `every` (0: none) is held so much longer."""
        self._ask(f"slow {every} {extra_us}")

    def one_get_us(self, path, count):
        """p50 of one ranged GET of 8 KiB on a connection that is kept alive, as the proxy sees it:
        without what a client adds."""
        from pyarrow.fs import S3FileSystem
        filesystem = S3FileSystem(endpoint_override=self.endpoint, region="us-east-1",
                                  access_key=ACCESS_KEY, secret_key=SECRET_KEY)
        with filesystem.open_input_file(path) as file:
            self.take()
            for _ in range(count):
                file.read_at(8192, 0)
        times = sorted(end - start for start, end, *_ in self.take())
        return times[len(times) // 2] / 1e3

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def waves(entries):
    """The longest chain of requests none of which began before the one before it had ended."""
    count, end = 0, -1
    for entry in sorted(entries, key=lambda e: e[1]):
        if entry[0] >= end:
            count, end = count + 1, entry[1]
    return count
