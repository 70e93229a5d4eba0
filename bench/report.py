"""From measurements to a table that a person reads."""
import datetime
import json
import os
import platform

import harness
import seaweed


def machine():
    def first(path, prefix):
        with open(path) as file:
            for line in file:
                if line.startswith(prefix):
                    return line.split(":", 1)[1].strip()
        return ""

    return {"cpu": first("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory_gib": round(int(first("/proc/meminfo", "MemTotal").split()[0]) / 2**20),
            "kernel": platform.release(), "load": round(os.getloadavg()[0], 2),
            "date": datetime.date.today().isoformat()}


def row_of(peer, entries):
    """What one peer did in one table. entries: the proxy's log, or None."""
    times = [(end - start) / 1e3 for start, end, _ in peer.lookups]
    row = {"peer": peer.title, "version": peer.version, "lookups": len(times),
           "rows_mean": sum(rows for *_, rows in peer.lookups) / len(times),
           "p50_us": harness.percentile(times, 0.5), "p99_us": harness.percentile(times, 0.99),
           "open_seconds": peer.open_seconds, "peak_rss_bytes": peer.peak_rss_bytes}
    if entries is not None:
        seen = [[e for e in entries if start <= e[0] < end] for start, end, _ in peer.lookups]
        row["requests_p50"] = harness.percentile([len(s) for s in seen], 0.5)
        row["bytes_mean"] = sum(e[4] for s in seen for e in s) / len(seen)
        row["waves_p50"] = harness.percentile([seaweed.waves(s) for s in seen], 0.5)
        row["waves_max"] = max(seaweed.waves(s) for s in seen)
    if peer.explains:
        row["explain"] = merge_explains(peer.explains)
    return row


def merge_explains(explains):
    merged = {"waves_max": max(e["waves_max"] for e in explains)}
    for name in explains[0]:
        if name not in ("waves_max", "stage_us_mean"):
            merged[name] = sum(e[name] for e in explains) / len(explains)
    merged["stage_us_mean"] = {
        stage: sum(e["stage_us_mean"][stage] for e in explains) / len(explains)
        for stage in explains[0]["stage_us_mean"]}
    return merged


def ms(us):
    return f"{us / 1e3:,.3f}" if us < 10_000 else f"{us / 1e3:,.1f}"


def mb(size):
    return f"{size / 1e6:,.2f}" if size < 10e6 else f"{size / 1e6:,.0f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def lookups_table(part):
    ours = next((r for r in part["rows"] if r["peer"] == "Grebe"), None)
    remote = part["store"] == "s3"
    header = ["", "p50 ms", "p99 ms", "x ours (p50)"]
    header += ["requests", "waves", "MB a lookup"] if remote else []
    header += ["peak memory MB", "lookups"]
    rows = []
    for r in part["rows"]:
        ratio = f"{r['p50_us'] / ours['p50_us']:.1f}" if ours else "-"
        cells = [f"{r['peer']} {r['version']}", ms(r["p50_us"]), ms(r["p99_us"]), ratio]
        if remote:
            cells += [r["requests_p50"], f"{r['waves_p50']} (max {r['waves_max']})",
                      mb(r["bytes_mean"])]
        rows.append(cells + [mb(r["peak_rss_bytes"]), r["lookups"]])
    where = "S3, every request delayed" if remote else "local, warm"
    lines = [f"### {part['kind']}, {where}", "",
             f"{part['checked_keys']} keys checked: every peer gave the same rows (checksum "
             f"{part['checksum']}).", ""] + table(header, rows)
    for r in part["rows"]:
        if "explain" not in r:
            continue
        e = r["explain"]
        stages = ", ".join(f"{k} {v:,.0f}" for k, v in e["stage_us_mean"].items())
        lines += [f"{r['peer']}, explain record, means: waves at most {e['waves_max']}, requests "
                  f"{e['requests_mean']:.1f}, bytes {e['bytes_mean']:,.0f}, pages "
                  f"{e['pages_mean']:.1f}, dictionary pages {e['dictionary_pages_mean']:.1f}, "
                  f"cache hits {e['cache_hits_mean']:.1f}; us: {stages}.", ""]
    return lines


def builds_table(results):
    rows = []
    total = results["lake"]["rows"]
    for name, facts in results["builds"].items():
        copy, build = facts.get("copy"), facts.get("build")
        index_bytes = build["bytes"] - (copy["bytes"] if copy else 0) if build else None
        rows.append([name, f"{copy['seconds']:.2f}" if copy else "none",
                     mb(copy["bytes"]) if copy else "0",
                     f"{build['seconds']:.2f}" if build else "-",
                     f"{build['cpu_seconds']:.2f}" if build and "cpu_seconds" in build else "-",
                     f"{index_bytes / total:.2f}" if build else "-",
                     mb(max(f["peak_rss_bytes"] for f in (copy, build) if f))])
    return table(["", "copy s", "copy MB", "index build s", "of it CPU s", "index bytes a row",
                  "peak memory MB"], rows)


def floors_table(results):
    rows = []
    for kind, f in results["floors"].items():
        rows.append([kind, f"{f['pyarrow_decode_seconds']:.3f}", f"{f['decode_seconds']:.3f}",
                     f"{ms(f['pages']['p50_us'])} ({f['pages']['pages_mean']:.0f} pages, "
                     f"{mb(f['pages']['bytes_mean'])} MB)",
                     f"{ms(f['pages_dictionaries_cached']['p50_us'])} "
                     f"({f['pages_dictionaries_cached']['pages_mean']:.0f} pages, "
                     f"{mb(f['pages_dictionaries_cached']['bytes_mean'])} MB)",
                     ms(f["one_delayed_get_us"]) if "one_delayed_get_us" in f else "-"])
    return table(["", "decode of the key column, pyarrow, 1 thread, CPU s",
                  "the same, libparquet, CPU s",
                  "each needed page once, 1 thread, ms", "the same, dictionaries cached, ms",
                  "one delayed GET, ms"], rows)


def goals(results):
    """The goals of the project that this run can judge, met or not."""
    by = {(t["store"], t["kind"]): {r["peer"].removesuffix(", B-tree"): r for r in t["rows"]}
          for t in results["tables"]}
    dictionaries = "Grebe, all dictionaries cached, pages not"
    out = []

    def judge(text, value, limit, unit):
        verdict = "met" if value <= limit else f"missed by {value / limit:.2f}x"
        out.append([text, f"{value:,.3g} {unit}", f"{limit:,.3g} {unit}", verdict])

    for kind, limit in (("plain", 2.0), ("prepared", 0.2)):
        peers = by.get(("local", kind), {})
        if "Grebe" not in peers:
            continue
        ours = peers["Grebe"]["p50_us"] / 1e3
        judge(f"local, {kind}: p50", ours, limit, "ms")
        if kind == "plain":
            judge("local, plain: p50, dictionaries cached", peers[dictionaries]["p50_us"] / 1e3,
                  limit, "ms")
            cold = peers["Grebe, nothing cached"]["p50_us"] / 1e3
            judge("local, plain: p50, nothing cached", cold, 9.0, "ms")
        for rival, factor in ((("Lance", 1),) if kind == "plain" else
                              (("DataFusion", 7), ("DuckDB", 15))):
            if rival in peers:
                judge(f"local, {kind}: p50 against {rival} / {factor}", ours,
                      peers[rival]["p50_us"] / 1e3 / factor, "ms")
    for kind, factor in (("plain", 1.3), ("prepared", 1.1)):
        # Not the default's budget: with it a warm lookup may need no request at all.
        row = by.get(("s3", kind), {}).get(dictionaries)
        if row:
            get = results["floors"][kind]["one_delayed_get_us"] / 1e3
            judge(f"S3, {kind}: p50 against {factor} delayed GETs", row["p50_us"] / 1e3,
                  factor * get, "ms")
            judge(f"S3, {kind}: waves", row["waves_p50"], 1, "")
    for kind in ("plain", "prepared"):
        build = results["builds"].get(f"Grebe, {kind}", {}).get("build")
        floor = results["floors"].get(kind, {})
        if build and floor:
            judge(f"build, {kind}: against 3 decodes of the key column", build["seconds"],
                  3 * floor["pyarrow_decode_seconds"], "s")
            judge(f"build, {kind}: peak memory", build["peak_rss_bytes"] / 1e6, 512 * 1.048576,
                  "MB")
    return table(["goal", "measured", "limit", ""], out)


def write_out(out, name, results, text):
    """OUT/NAME.json and OUT/NAME.md, and the text on stdout."""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump(results, file, indent=1)
    with open(os.path.join(out, name + ".md"), "w") as file:
        file.write(text)
    print(text)


def machine_line(m):
    return (f"Machine: {m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Linux {m['kernel']}, "
            f"{m['date']}, load at the start {m['load']}.")


def markdown(results):
    lake = results["lake"]
    lines = ["# Point lookups: Grebe and its rivals", "",
             machine_line(results["machine"]),
             f"Lake: {lake['rows']:,} rows, {lake['files']} files in {lake['days']} day folders, "
             f"plain {mb(lake['plain_bytes'])} MB, prepared {mb(lake['prepared_bytes'])} MB "
             f"(bench/make_lake.py, seed {lake['seed']}).",
             f"Command: `{results['command'].strip()}`.",
             "Query: all eight columns of all rows of one user; each peer one warm process, the "
             "same fresh keys, in interleaved rounds; slow peers answer fewer keys.", ""]
    for name, why in results["left_out"].items():
        lines.append(f"Left out: {name} ({why}).")
    lines += [""] if results["left_out"] else []
    # On a tiny lake starting the programs is all that takes time.
    if lake["rows"] >= 1_000_000:
        lines += ["## Goals", ""] + goals(results)
    lines += ["## Lookups", ""]
    for part in results["tables"]:
        lines += lookups_table(part)
    lines += ["## Building", ""] + builds_table(results)
    lines += ["## Floors, same run", ""] + floors_table(results)
    return "\n".join(lines)
