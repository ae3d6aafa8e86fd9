#!/usr/bin/env bash
# Draws the output of a command as an SVG picture of a terminal: scripts/picture.sh OUT.svg COMMAND...
set -euo pipefail
out=$1
shift
{ printf '$ %s\n' "$*"; "$@" 2>&1 || true; } | awk '
	{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); lines[NR] = $0; if (length($0) > widest) widest = length($0) }
	END {
		width = widest * 8.4 + 32; height = NR * 18 + 32
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height
		print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#10151c\"/>"
		print "<g font-family=\"ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace\" font-size=\"14\" fill=\"#d7dde5\" xml:space=\"preserve\">"
		for (i = 1; i <= NR; i++) {
			fill = (i == 1) ? " fill=\"#7fd1a0\"" : (lines[i] ~ /^[0-9]+\. / ? " fill=\"#f2c66d\"" : "")
			printf "<text x=\"16\" y=\"%d\"%s>%s</text>\n", i * 18 + 14, fill, lines[i]
		}
		print "</g></svg>"
	}' > "$out"
echo "$out"
