#!/usr/bin/env python3
"""What hedged requests give: point lookups on S3 where a few requests are slow, hedging off and on.

  bench/hedge.py [--lake DIR]     the lake of bench/run.py, prepared files (about a minute)
  bench/hedge.py --tiny           seconds; what ctest runs

Every request is held for --delay-ms, one in --slow-every for --slow-ms more. Prints a table.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

import run
import seaweed


def lookups(args, table, index_root, proxy, keys, hedge_after_us):
    env = dict(os.environ, AWS_ENDPOINT_URL_S3=proxy.endpoint, AWS_REGION="us-east-1",
               AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY, AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY)
    proxy.take()
    out = subprocess.run(
        [args.grebe, "bench", "lookup", table, "--index-root", index_root, "--name", "user_id",
         "--keys-from", keys, "--warmup", "20", "--page-cache", "0",
         "--hedge-after-us", str(hedge_after_us)],
        env=env, check=True, stdout=subprocess.PIPE).stdout
    facts = json.loads(out)
    # What the store was asked for, hedges and those whose answer nobody waited for among them.
    facts["sent"] = sum(1 for request in proxy.take() if request[2] == "GET")
    return facts


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slow-every", type=int, default=100)
    parser.add_argument("--slow-ms", type=int, default=250)
    parser.add_argument("--lookups", type=int, default=1000)
    known, rest = parser.parse_known_args(argv)
    args = run.arguments([*rest, "--peers", "grebe", "--store", "s3"])
    if args.tiny:
        known.lookups, known.slow_ms = 40, 50
    with tempfile.TemporaryDirectory(prefix="grebe-hedge-") as folder:
        args.lake = args.lake or (os.path.join(folder, "lake") if args.tiny else
                                  os.path.join(run.HERE, "lake"))
        bench = run.Bench(args)
        keys = os.path.join(folder, "keys.jsonl")
        with open(os.path.join(bench.lake, "keys.jsonl")) as source, open(keys, "w") as few:
            few.writelines(itertools.islice(source, 20 + known.lookups))
        store = seaweed.SeaweedFS(os.path.join(folder, "weed"))
        try:
            proxy = seaweed.DelayProxy(os.path.join(args.bin_dir, "delay_proxy"), store.port, 0)
            store.upload(os.path.join(bench.lake, "prepared"), "bench/prepared")
            index_root = bench.build_index(
                "prepared", table="s3://bench/prepared", label="s3-hedge",
                env=dict(os.environ, AWS_ENDPOINT_URL_S3=store.endpoint, AWS_REGION="us-east-1",
                         AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY,
                         AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY))
            proxy.set_delay(args.delay_ms * 1000)
            proxy.set_slow(known.slow_every, known.slow_ms * 1000)
            print(f"{known.lookups} lookups; every request held {args.delay_ms} ms, one in "
                  f"{known.slow_every} for {known.slow_ms} ms more\n")
            print("| hedge after | p50 ms | p99 ms | requests sent a lookup |\n|---|---|---|---|")
            for times in (0, 1.5, 2, 4):
                after_us = int(times * args.delay_ms * 1000)
                facts = lookups(args, "s3://bench/prepared", index_root, proxy, keys, after_us)
                print(f"| {f'{after_us / 1000:g} ms' if after_us else 'never'} "
                      f"| {facts['p50_us'] / 1000:.1f} | {facts['p99_us'] / 1000:.1f} "
                      f"| {facts['sent'] / (20 + facts['lookups']):.2f} |", flush=True)
        finally:
            store.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
