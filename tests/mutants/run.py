"""Plants each bug of mutants.py into a copy of the tree and proves that the suite catches it.

For each mutant: the unchanged test programs pass, the changed ones fail (or crash). A mutant whose
line is no longer there, or which survives, fails the run.

usage: run.py [--only NAME ...] [--folder DIR] [--jobs N]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ["CMakeLists.txt", "cmake", "include", "src", "testing", "tests", "cli", "docs"]


def copy_changed(source, target):
    """Copies what differs, with the time of now: an older time would hide it from ninja."""
    if not os.path.exists(target) or pathlib.Path(source).read_bytes() != pathlib.Path(
            target).read_bytes():
        shutil.copy(source, target)


def copy_tree(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source, target = ROOT / part, folder / part
        if not source.exists():
            continue
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True,
                            copy_function=copy_changed)
        else:
            copy_changed(source, target)
    if (ROOT / ".venv").exists() and not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(ROOT / ".venv")


def build(folder, jobs, tests):
    command = ["ninja", "-C", str(folder / "build" / "release"), f"-j{jobs}", *tests]
    # As the Makefile, and in a folder of the same depth: unchanged files compile from the cache.
    env = dict(os.environ, CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
    return subprocess.run(command, capture_output=True, text=True, env=env)


def program(folder, name):
    found = [p for p in (folder / "build" / "release").rglob(name)
             if p.is_file() and os.access(p, os.X_OK)]
    assert len(found) == 1, (name, found)
    return found[0]


def passes(folder, name):
    """Whether a test program passes; with what it said at the end."""
    env = dict(os.environ, GREBE_REAL_FILES="/nonexistent")
    try:
        done = subprocess.run([program(folder, name)], capture_output=True, text=True, env=env,
                              cwd=folder, timeout=300, errors="replace")
    except subprocess.TimeoutExpired:
        return False, "timed out"
    failed = [line for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
    return done.returncode == 0, failed[0] if failed else f"exit {done.returncode}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--folder", default=str(ROOT / "build" / "mutants"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if not args.only or m["name"] in args.only]
    tests = sorted({test for m in chosen for test in m["test"].split()})
    folder = pathlib.Path(args.folder)
    copy_tree(folder)
    subprocess.run(["cmake", "-S", folder, "-B", folder / "build" / "release", "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -g1 -DNDEBUG",
                    "-DGREBE_BUILD_BENCH=OFF"], check=True, capture_output=True)
    built = build(folder, args.jobs, tests)
    assert built.returncode == 0, built.stdout[-2000:]
    for test in tests:
        ok, said = passes(folder, test)
        assert ok, f"{test} fails without a mutant: {said}"

    survived = []
    for mutant in chosen:
        path = folder / mutant["file"]
        clean = path.read_text()
        if clean.count(mutant["find"]) != 1:
            print(f"{mutant['name']}: its line is not in {mutant['file']} exactly once")
            survived.append(mutant["name"])
            continue
        path.write_text(clean.replace(mutant["find"], mutant["put"]))
        built = build(folder, args.jobs, mutant["test"].split())
        caught = None
        if built.returncode != 0:
            print(f"{mutant['name']}: does not compile: {built.stdout[-500:]}")
        else:
            for test in mutant["test"].split():
                ok, said = passes(folder, test)
                if not ok:
                    caught = f"{test}: {said}"
                    break
        path.write_text(clean)
        print(f"{mutant['name']}: {'caught by ' + caught if caught else 'SURVIVED'}"
              f"  ({mutant['why']})", flush=True)
        if not caught:
            survived.append(mutant["name"])
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
