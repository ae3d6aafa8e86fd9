#!/usr/bin/env bash
# Benchmarks that check their answer: the rooms by themselves (go test -bench), then the whole job as real processes.
# SIZES=1000000,5000000 chooses the logs.
set -euo pipefail
echo "== rooms"
go test -run '^$' -bench . -benchtime 1s -benchmem ./schemas ./stream ./archive ./diff ./batch/duckdb ./run | grep -E '^(Benchmark|ok|FAIL|---|panic)' || exit 1
echo
echo "== the whole job"
go run ./internal/bench -gmctl bin/gmctl -sizes "${SIZES:-1000000,5000000}"
