package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
)

var update = flag.Bool("update", false, "write the pictures of the dashboard in docs/ anew, which takes two minutes")

// TestDashboardOfDemo opens the page of a demo in a real browser, at two widths.
func TestDashboardOfDemo(t *testing.T) {
	b := browser.Start(t)
	seconds := 3
	if *update {
		seconds = 100
	}
	p := start(t, "demo") // as the README has it
	url := p.await(&p.stdout, `Dashboard: (\S+)\n`)[1]
	b.Prefer("prefers-color-scheme", "light")
	b.Resize(1280, 900)
	b.Open(url)
	b.Await(fmt.Sprintf(`document.querySelectorAll("#rpcs tbody tr").length === 3 && Number(document.querySelector("#tile-calls .value span").textContent) > 0 &&
		document.querySelectorAll("#players tbody tr").length === 8 && document.querySelector("#players-note").textContent.startsWith("8 of 8") &&
		document.querySelectorAll("#treemap .cell").length > 5 && performance.now() > %d`, 1000*seconds))
	for _, width := range []int64{1280, 400} {
		b.Resize(width, 900)
		b.Await(fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= %[1]d && document.querySelector("#chart-bits canvas").clientWidth < %[1]d`, width))
		if *update {
			b.Await(`new Promise((done) => setTimeout(() => done(true), 3000))`) // for charts to be drawn with new figures
			keep(t, fmt.Sprintf("dashboard-%d.png", width), b.Picture())
		}
	}
	b.Blank() // it would complain when the server ends
	p.interrupt()
	if code := p.wait(); code != 0 {
		t.Errorf("code %d: %s", code, p.stderr.String())
	}
}

func keep(t *testing.T, name string, picture []byte) {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	must(t, err)
	counts := map[color.RGBA]int{}
	size := from.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for _, c := range most[:min(256, len(most))] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(size, palette)
	draw.Draw(to, size, from, image.Point{}, draw.Src)
	var out bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	must(t, os.WriteFile(filepath.Join("..", "..", "docs", name), out.Bytes(), 0o644))
}

// TestDashboardOfServer: a public address has a dashboard for those with the token. Without players
// the page explains how to connect.
func TestDashboardOfServer(t *testing.T) {
	const schema = "../../testdata/traces/portal2_coop_60hz.schema.json"
	p := start(t, "ds", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0", "--schema", schema)
	url := p.await(&p.stderr, `msg=dashboard url="?([^"\s]+)`)[1]
	addr := p.await(&p.stderr, `msg=listening addr=(\S+)\n`)[1]
	b := browser.Start(t)
	b.Open(url)
	b.Await(`document.querySelector("#status")?.textContent === "Live, read-only" && location.search === ""`)
	b.Await(`!document.querySelector("#welcome").hidden`)
	if text := browser.Value[string](b, `document.querySelector("#hint").textContent`); text != "uplink bots --players 8 --to "+addr+" TRACE.csv.gz" {
		t.Errorf("the hint is %q", text)
	}
	b.Blank() // it would complain when the server ends
	p.interrupt()
	p.wait()
}

// TestDashboardOfWorlds checks what the page of a game shows of its worlds, its jitter buffers, its
// player and the events.
func TestDashboardOfWorlds(t *testing.T) {
	b := browser.Start(t)
	b.Resize(1280, 900)
	b.Open(gameServer(t) + "/dashboard/")
	b.Await(`document.querySelectorAll("#worlds tbody tr").length === 2`)
	// cell returns the text of a cell by the name of the row and of the column.
	b.Run(`window.cell = (table, row, column) => {
		const at = [...table.querySelectorAll("thead th")].findIndex((th) => th.textContent === column);
		return [...table.querySelectorAll("tbody tr")].find((tr) => tr.firstChild.textContent.includes(row))?.children[at]?.textContent;
	}`)
	for _, c := range []struct{ table, row, column, want string }{
		{"#worlds", "seen", "Players", "1"},
		{"#worlds", "seen", "Objects per player", "1"},
		{"#worlds", "seen", "Players per encoding", "1.0"},
		{"#worlds", "simulated", "Waiting objects", "0"},
		{"#players", "client", "Objects", "2"},
		{"#players", "client", "Sharing", "1.0"},
	} {
		b.Await(fmt.Sprintf(`cell(document.querySelector(%q), %q, %q) === %q`, c.table, c.row, c.column, c.want))
	}
	for _, c := range []struct{ table, row, column, want string }{
		{"#worlds", "seen", "Encodings per tick", `^[01]\.\d\d$`},
		{"#worlds", "seen", "Oldest baseline", `^[1-9]\d* ms$`},
		{"#jitter", "GameMove", "Released", `^\d[\d.]*\/s$`},
		{"#jitter", "GameMove", "Target", `^\d[\d.]* ms$`},
		{"#players", "client", "Up", `bit\/s$`},
		{"#players", "client", "Down", `bit\/s$`},
	} {
		b.Await(fmt.Sprintf(`/%s/.test(cell(document.querySelector(%q), %q, %q))`, c.want, c.table, c.row, c.column))
	}
	b.Await(`[...document.querySelectorAll("#happened tbody td:nth-child(2)")].some(e => e.textContent === "joined")`)
	b.Run(`{ const e = document.querySelector("#players-world"); e.value = "simulated"; e.dispatchEvent(new Event("change")); }`)
	b.Await(`cell(document.querySelector("#players"), "client", "Objects") === "1"`)
	b.Run(`document.querySelector("#players tbody button").click()`)
	b.Await(`document.querySelectorAll("#player canvas").length === 6 && /tick/.test(cell(document.querySelector("#player table"), "seen", "Last ack"))`)
	for _, width := range []int64{1280, 400} {
		b.Resize(width, 900)
		b.Await(fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= %[1]d`, width))
	}
	b.Blank() // it would complain when the server ends
}
