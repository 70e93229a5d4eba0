"""`grebe get` and `grebe count` on a table that has no index: the same answers as with one."""

import json
import math
import subprocess

import pyarrow as pa
import pytest

from common import grebe_cli


def get(lake, *args):
    out = subprocess.run([grebe_cli.GREBE, "get", lake.data, *map(str, args)],
                         capture_output=True, text=True)
    return out.returncode, [json.loads(line) for line in out.stdout.splitlines()], out.stderr


@pytest.fixture
def plays(lake):
    for i in range(4):
        rows = range(i * 500, i * 500 + 500)
        lake.write(pa.table({
            "user": pa.array([r * 7 % 300 if r % 50 else None for r in rows], pa.int64()),
            "name": [f"n{r * 7 % 40}" for r in rows],
            "score": pa.array([math.nan if r % 9 == 0 else -0.0 if r % 9 == 1 else r / 2
                               for r in rows]),
            "row": rows}), f"day=2026-01-0{i + 1}/f.parquet", row_group_size=100)
    return lake


def test_it_says_so_and_counts_its_waves(plays):
    code, rows, err = get(plays, "user=14", "--explain")
    assert code == 0 and "no index of user: scanning the table" in err
    assert "waves" in err and len(rows) > 0
    explain = json.loads(grebe_cli.run(["get", plays.data, "user=14", "--explain", "--format",
                                        "json"]))
    assert explain["waves"] >= 3 and explain["fragments_probed"] == 0
    assert explain["rows"] == len(rows)


@pytest.mark.parametrize("args", [
    ["user=14"], ["user=9999"], ["--null", "user"], ["score=nan"], ["score=0"], ["score=7.0"],
    ["name=n7"], ["user=14", "name=n18"], ["day=2026-01-02", "user=14"], ["day=2026-01-02"],
    ["name=n7", "--limit", "5", "--offset", "3"], ["user=14", "--columns", "row"],
    ["score=nan", "--null", "user"],
])
def test_the_same_answers_as_an_index(plays, tmp_path, args):
    names = [a.split("=")[0] for a in args if "=" in a]
    names += [args[i + 1] for i, a in enumerate(args) if a == "--null"]
    _, without, err = get(plays, *args)
    assert "scanning" in err
    counted = grebe_cli.run(["count", plays.data, *[a for a in args if "=" in a],
                             *sum([["--null", args[i + 1]] for i, a in enumerate(args)
                                   if a == "--null"], []), "--format", "jsonl"])
    root = tmp_path / "index"
    grebe_cli.create(plays.data, names, root)
    _, with_index, err = get(plays, *args, "--index-root", root)
    assert err == ""
    assert without == with_index
    if "--limit" not in args:
        assert json.loads(counted)["count"] == len(with_index)


@pytest.mark.parametrize("text", [
    "".join(json.dumps({"user": u}) + "\n" for u in (14, 21, 14, None, 5000, 0)),
    "name,user\n" + "".join(f"n{u * 3 % 40},{u}\n" for u in range(400)),
])
def test_many_keys(plays, tmp_path, text):
    keys = tmp_path / "keys"
    keys.write_text(text)
    limits = ["--limit", "4", "--offset", "1"]
    _, without, err = get(plays, "--keys-from", keys, *limits)
    assert "scanning" in err
    names = ["user"] if text.startswith("{") else ["name", "user"]
    root = tmp_path / "index"
    grebe_cli.create(plays.data, names, root)
    _, with_index, _ = get(plays, "--keys-from", keys, "--index-root", root, *limits)
    assert without == with_index and len(without) > 0


def test_a_name_that_is_absent_stays_an_error(plays):
    code, _, err = get(plays, "user=14", "--name", "nosuch")
    assert code == 2 and "NotFound" in err


def test_types_that_do_not_compare(plays):
    code, _, err = get(plays, "user=abc")
    assert code == 2 and "user" in err
    code, _, err = get(plays, "nosuch=1")
    assert code == 2 and "nosuch" in err
