#!/usr/bin/env bash
# Writes tools/requirements*.txt anew from tools/requirements*.in, every file pinned by hash.
# Needed only when a version in a .in file changes. Uses pip-tools in a venv of its own.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet install 'pip-tools==7.6.2'
for name in requirements requirements-test requirements-bench requirements-bench-s3; do
  "$work/venv/bin/pip-compile" --quiet --generate-hashes --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
    --output-file "$work/$name.txt" "$name.in"
  { sed -n '/^#/p' "$name.in"; cat "$work/$name.txt"; } >"$name.txt"
done
