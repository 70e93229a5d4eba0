#!/usr/bin/env bash
# Runs every fuzz program of a build for some seconds each, as many at once as there are cores.
#
#   fuzz/run.sh [SECONDS [BUILD_FOLDER]]      default: 60 build/fuzz
#
# The canary has a planted bug and must be caught; every other program must find nothing. What is
# found is left in BUILD_FOLDER/fuzz/finds/NAME: fix the bug and move the input to
# fuzz/regressions/NAME. New inputs of interest gather in BUILD_FOLDER/fuzz/grown/NAME.
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
build=${2:-build/fuzz}
programs=$build/fuzz
jobs=${JOBS:-$(nproc)}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

if [ ! -x "$programs/canary_fuzz" ]; then
  echo "fuzz: no $programs/canary_fuzz: run make fuzz" >&2
  exit 2
fi

# One program; its log is kept beside what it finds.
run_one() {
  local name=$1 limit=$2
  local finds=$programs/finds/$name grown=$programs/grown/$name
  mkdir -p "$finds" "$grown"
  local folders=("$grown") folder
  for folder in fuzz/corpus/$name fuzz/regressions/$name; do
    [ -d "$folder" ] && folders+=("$folder")
  done
  setarch -R "$programs/${name}_fuzz" -max_total_time="$limit" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$finds/" "${folders[@]}" \
    >"$programs/$name.log" 2>&1
}

run_one canary 60
if [ $? = 0 ] || ! grep -q 'ERROR: AddressSanitizer' "$programs/canary.log"; then
  echo "fuzz: FAILED: the canary's planted bug was not found, so nothing below can be trusted"
  tail -5 "$programs/canary.log"
  exit 1
fi
echo "fuzz: canary: caught, as it must be"

declare -A names
failed=0

# Waits for one running program and reports it.
reap() {
  local pid status name
  wait -n -p pid
  status=$?
  name=${names[$pid]}
  if [ $status = 0 ]; then
    echo "fuzz: $name: $(grep -m1 -o 'stat::number_of_executed_units:.*' "$programs/$name.log" |
      tr -s ' ' | cut -d' ' -f2) inputs, nothing found"
  else
    echo "fuzz: FAILED: $name (exit $status); inputs in $programs/finds/$name"
    grep -m3 -E 'ERROR|SUMMARY|runtime error' "$programs/$name.log"
    failed=1
  fi
}

running=0
for program in "$programs"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  [ "$name" = canary ] && continue
  if [ $running -ge "$jobs" ]; then
    reap
    running=$((running - 1))
  fi
  run_one "$name" "$seconds" &
  names[$!]=$name
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  reap
  running=$((running - 1))
done
exit $failed
