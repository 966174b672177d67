// Package table writes tables of text.
package table

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Row formats the cells of a row. format has the formats of the cells, with | between them.
func Row(format string, args ...any) []string {
	cells := strings.Split(format, "|")
	for i, cell := range cells {
		n := strings.Count(strings.ReplaceAll(cell, "%%", ""), "%")
		cells[i], args = fmt.Sprintf(cell, args[:n]...), args[n:]
	}
	return cells
}

// Write writes rows with equal numbers of cells. The first column is aligned to the left, the
// others to the right.
func Write(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
