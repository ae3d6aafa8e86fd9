#!/usr/bin/env bash
# Runs every fuzz target of the tree for the given time each. Finding none is a failure.
set -euo pipefail
time=${1:-10s}
count=0
while IFS=: read -r file target; do
	pkg=./$(dirname "$file")
	echo "== $pkg $target ($time)"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "$pkg"
	count=$((count + 1))
done < <(grep -rnoE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sed -E 's#^\./([^:]+):[0-9]+:func #\1:#' | sort)
test "$count" -gt 0 || { echo "no fuzz target found" >&2; exit 1; }
echo "$count fuzz targets, no failure"
