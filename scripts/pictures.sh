#!/usr/bin/env bash
# Makes docs/pictures from real runs of bin/gmctl.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$root/bin/gmctl" "$work/gmctl"
export PATH="$work:$PATH"
cd "$work"
"$root/scripts/picture.sh" "$root/docs/pictures/demo-ad-clicks.svg" gmctl demo
"$root/scripts/picture.sh" "$root/docs/pictures/demo-gateway.svg" gmctl demo --story gateway
cd gmctl-demo-gateway
"$root/scripts/picture.sh" "$root/docs/pictures/explain.svg" gmctl explain stuck
"$root/scripts/picture.sh" "$root/docs/pictures/diff-complete.svg" gmctl diff --truth complete
