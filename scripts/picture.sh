#!/usr/bin/env bash
# Draws the output of a command as an SVG picture of a terminal: scripts/picture.sh OUT.svg COMMAND...
# Every line is stretched to its number of columns, so that tables stand straight whatever font the viewer has.
set -euo pipefail
out=$1
shift
{ printf '$ %s\n' "$*"; "$@" 2>&1 || true; } | awk -v column=8.4 -v row=18 '
	{
		wide[NR] = length($0)
		match($0, /^ */); indent[NR] = RLENGTH; lines[NR] = substr($0, RLENGTH + 1)
		gsub(/&/, "\\&amp;", lines[NR]); gsub(/</, "\\&lt;", lines[NR]); gsub(/>/, "\\&gt;", lines[NR]); gsub(/  /, "\\&#160;\\&#160;", lines[NR])
		if (wide[NR] > widest) widest = wide[NR]
	}
	END {
		width = widest * column + 32; height = NR * row + 32
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height
		print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#10151c\"/>"
		print "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d7dde5\" xml:space=\"preserve\">"
		for (i = 1; i <= NR; i++) {
			if (lines[i] == "") continue
			fill = ""
			if (i == 1) fill = " fill=\"#7fd1a0\""
			else if (indent[i] == 0 && (lines[i] ~ /^[0-9]+\. / || lines[i] ~ /^Go on$/ || (i == 3 && lines[2] == ""))) fill = " fill=\"#f2c66d\""
			printf "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\"%s>%s</text>\n", 16 + indent[i] * column, i * row + 14, (wide[i] - indent[i]) * column, fill, lines[i]
		}
		print "</g></svg>"
	}' > "$out"
echo "$out"
