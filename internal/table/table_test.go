package table

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	var b strings.Builder
	Write(&b, [][]string{
		Row("|bits|"),
		{"what", "up", "down"},
		Row("%s|%.1f|", "größte", 1234.5),
		Row("µ|%d|%d %%", 7, 100),
	})
	const want = `
          bits
what        up   down
größte  1234.5
µ            7  100 %
`
	if "\n"+b.String() != want {
		t.Errorf("%s", b.String())
	}
}
