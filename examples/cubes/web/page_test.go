package web_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/web"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
)

var pictures = flag.Bool("pictures", false, "update the pictures in docs")

// serve runs a world with a page until the test ends.
func serve(t *testing.T, s web.Settings) (*web.Live, string) {
	t.Helper()
	l, err := web.NewLive(t.Context(), world.Default(), 1, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	web := httptest.NewServer(web.NewPage(l))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, web.URL
}

const figure = `+(document.querySelector("[data-name=%s]")?.textContent ?? "NaN")`

// TestPage checks views, figures and settings in a browser, at two widths and color schemes.
func TestPage(t *testing.T) {
	b := browser.StartWebGL(t)
	l, url := serve(t, web.DefaultSettings())
	b.Resize(1280, 1100)
	b.Open(url)
	b.Await(`document.querySelector("#status").dataset.state === "live"`)
	b.Await(fmt.Sprintf(figure, "kbits") + " > 5")
	b.Await(fmt.Sprintf(figure, "moving") + " >= 1")

	b.Run(`document.querySelector("input[value=full]").click()`)
	b.Await(fmt.Sprintf(figure, "kbits") + " > 1000")
	await(t, l, func(s web.Settings) bool { return s.Mode == "full" && s.Rate == 10 })
	b.Run(`const loss = document.querySelector("[name=loss]"); loss.value = 0; loss.dispatchEvent(new Event("input"))`)
	b.Run(`document.querySelector("input[value=snapshots]").click()`)
	b.Await(fmt.Sprintf(figure, "kbits") + " < 400")
	await(t, l, func(s web.Settings) bool { return s.Loss == 0 && s.Mode == "snapshots" })

	b.Run(`const sight = document.querySelector("[name=sight]"); sight.value = 1; sight.dispatchEvent(new Event("input"))`)
	b.Await(fmt.Sprintf(figure, "updates") + " > 1 && " + fmt.Sprintf(figure, "updates") + " < 30000")
	await(t, l, func(s web.Settings) bool { return s.Sight == 6 })
	if !sightShown(b) {
		t.Error("no slider for what the client sees")
	}

	b.Run(`document.querySelector("input[value=state]").click()`)
	b.Await(`!document.querySelector(".parts").hidden`)
	b.Await(fmt.Sprintf(figure, "updates") + " > 1 && " + fmt.Sprintf(figure, "updates") + " < 20000")
	b.Run(`document.querySelector("[name=smooth]").click()`)

	b.Run(`dispatchEvent(new KeyboardEvent("keydown", {code: "ArrowRight"}))`)
	b.Await(`!document.querySelector("#auto").checked && document.querySelector("[data-key='2']").ariaPressed === "true"`)
	b.Run(`dispatchEvent(new KeyboardEvent("keyup", {code: "ArrowRight"}))`)
	await(t, l, func(s web.Settings) bool { return s.Mode == "state" && !s.Smooth })
	if sightShown(b) {
		t.Error("a slider for what the client sees")
	}
	b.Run(`document.querySelector("[name=smooth]").click()`)
	b.Run(`document.querySelector("#auto").click()`)
	b.Run(`document.querySelector("#restart").click()`)
	b.Await(fmt.Sprintf(figure, "moving") + " > 10 && " + fmt.Sprintf(figure, "error") + " < 10")

	for _, scheme := range []string{"light", "dark"} {
		b.Prefer("prefers-color-scheme", scheme)
		for _, width := range []int64{400, 1280} {
			b.Resize(width, 1000)
			b.Await(fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= %[1]d`, width))
			shot(t, b, scheme, width)
		}
	}
	b.Blank() // the page would report an error when the server stops
}

// await waits until the server has the settings that were chosen in the page.
func await(t *testing.T, l *web.Live, are func(web.Settings) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !are(l.Settings()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", l.Settings())
		}
	}
}

// sightShown reports whether the page shows the slider for what the client sees.
func sightShown(b *browser.Browser) bool {
	return browser.Value[bool](b, `document.querySelector("[name=sight]").checkVisibility()`)
}

// shot checks on a screenshot that both views are drawn: that they have many colors.
func shot(t *testing.T, b *browser.Browser, scheme string, width int64) {
	t.Helper()
	if *pictures { // of a busy world
		b.Await(fmt.Sprintf(figure, "moving") + " > 40")
	}
	b.Run(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
	shot := b.Picture()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"server", "client"} {
		box := browser.Value[struct{ X, Y, Width, Height float64 }](b,
			fmt.Sprintf(`(({x, y, width, height}) => ({X: x, Y: y + scrollY, Width: width, Height: height}))(document.getElementById(%q).getBoundingClientRect())`, id))
		colors := map[[3]uint32]bool{}
		for y := box.Y; y < box.Y+box.Height; y += 2 {
			for x := box.X; x < box.X+box.Width; x += 2 {
				r, g, b, _ := img.At(int(x), int(y)).RGBA()
				colors[[3]uint32{r, g, b}] = true
			}
		}
		if len(colors) < 50 {
			t.Errorf("%s at %d: %d colors", id, width, len(colors))
		}
	}
	if *pictures && (scheme == "light") == (width == 1280) {
		if err := os.WriteFile(fmt.Sprintf("../../../docs/cubes-%d.png", width), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
