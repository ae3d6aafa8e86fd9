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
# The page that `diff --format html` makes, where a browser without a window is at hand.
if command -v chromium-headless-shell >/dev/null; then
	cd "$work/gmctl-demo-ad-clicks"
	gmctl diff archive:naive.yaml partner.csv --format html > "$work/report.html" || test $? = 1
	chromium-headless-shell --no-sandbox --hide-scrollbars --window-size=1000,1120 --screenshot="$root/docs/pictures/report.png" "file://$work/report.html" 2>/dev/null
else
	echo "docs/pictures/report.png left as it is: no chromium-headless-shell (Debian has a package of that name)" >&2
fi
