#!/usr/bin/env bash
# Installs a build into a new folder, then builds and runs examples/consumer against it there.
#
#   tools/consumer_test.sh BUILD_FOLDER
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
# Nothing outside the prefix is used: the consumer's source is copied away from the tree.
cp -r "$source/examples/consumer" "$work/consumer"
cmake -S "$work/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/build"

# It must link and run: a usage message is exit 2.
status=0
"$work/build/consumer" >"$work/out.log" 2>&1 || status=$?
cat "$work/out.log"
[ $status = 2 ] && grep -q '^grebe [0-9]' "$work/out.log"

# The installed command runs without the build folder.
"$work/prefix/bin/grebe" --version

# And the two agree about a small table.
"$source/.venv/bin/python" "$source/tools/make_lake.py" "$work/lake" --files 2 --rows 1000
"$work/prefix/bin/grebe" index create "$work/lake" --key user_id
"$work/build/consumer" "$work/lake" user_id 7 | tee "$work/rows.log"
grep -q '^waves=1$' "$work/rows.log"
