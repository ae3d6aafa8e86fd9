#!/usr/bin/env bash
# The main job in one go, on a small generated trace: count and archive it, recompute it from the archive, reconcile, bill.
set -euo pipefail
gmctl=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=${TRY_DIR:-$(mktemp -d)/gateway}
run() { echo; echo "\$ gmctl $*"; "$gmctl" "$@"; }
run init "$dir" --story gateway
cd "$dir"
run stream
run recompute
run diff
run bill --by account
echo
echo "The folder stays: cd $dir && $gmctl --help"
