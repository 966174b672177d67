package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/lab"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// page mounts the panel as the dashboard does, under the rules that it has for scripts and styles.
const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>demo</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="page.css"></head>
<body><main><section id="demo"></section></main><script type="module" src="page.js"></script></body></html>`

const script = `import { mount } from './demo/panel.js';
mount(document.getElementById('demo'), {});`

const style = `:root { color-scheme: light dark; --bg: #f6f7f9; --fg: #1b1f24; --muted: #5c6670; --card: #fff; --line: #d5dae0;
  --accent: #1f6feb; --accent-2: #b35900; --good: #1a7f37; --bad: #c0262d; }
@media (prefers-color-scheme: dark) { :root { --bg: #0f1216; --fg: #e6e9ed; --muted: #98a2ad; --card: #171b21; --line: #323a44;
  --accent: #58a6ff; --accent-2: #f0a13c; --good: #3fb950; --bad: #ff6b63; } }
body { margin: 0; background: var(--bg); color: var(--fg); font: 16px/1.4 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 12px; box-sizing: border-box; }`

func serve(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	d := playing(t, o)
	mux := http.NewServeMux()
	for path, file := range map[string][2]string{"/{$}": {"text/html", page}, "/page.js": {"text/javascript", script}, "/page.css": {"text/css", style}, "/favicon.ico": {"image/x-icon", ""}} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file[0])
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			_, _ = io.WriteString(w, file[1])
		})
	}
	mux.Handle("/demo/", lab.New(d, d.stage).Handler())
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		web.CloseClientConnections() // views do not end by themselves
		web.Close()
	})
	return web
}

type state struct {
	Settings struct {
		Loss              float64
		Codec, Redundancy string
	}
	Traffic lab.Traffic
}

// await asks for the state until it is as wanted.
func await(t *testing.T, web *httptest.Server, what string, ok func(*state) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		var s state
		r, err := http.Get(web.URL + "/demo/state")
		uplinktest.Must(t, err)
		err = json.NewDecoder(r.Body).Decode(&s)
		r.Body.Close()
		uplinktest.Must(t, err)
		if ok(&s) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: never; %+v", what, s)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestPanel operates the controls in a real browser.
func TestPanel(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	o := options()
	o.Codec, o.For = rpcdelta.Adaptive, 0
	web := serve(t, o)
	b := browser.Start(t)
	set := func(name, value string) {
		t.Helper()
		b.Run(fmt.Sprintf(`{ const e = document.getElementById('lab-%s'); e.value = %q;
			e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); }`, name, value))
	}
	const summary = `document.querySelector('.lab-summary').textContent`

	b.Open(web.URL)
	b.Await(`!document.getElementById('lab-loss').disabled`)
	set("redundancy", "off")
	set("loss", "0.5")
	await(t, web, "half of the calls get lost", func(s *state) bool {
		return s.Settings.Loss == 0.5 && s.Settings.Redundancy == "off" && s.Traffic.Delivered < 0.7
	})
	b.Await(`parseFloat(document.querySelector('.lab-figures dd').textContent) < 70`)
	b.Await(`/, 0 were recovered by redundancy, [1-9]\d* were lost/.test(` + summary + `)`)

	// By keyboard: one step down.
	b.Run(`document.getElementById('lab-loss').focus()`)
	b.Key(kb.ArrowLeft)
	b.Await(`document.querySelector('output').textContent === '49 %'`)
	await(t, web, "a key moves the slider", func(s *state) bool { return s.Settings.Loss == 0.49 })

	set("redundancy", "7")
	await(t, web, "redundancy repairs", func(s *state) bool { return s.Traffic.Redundancy == 7 && s.Traffic.Delivered > 0.9 })
	b.Await(`/, [1-9]\d* were recovered/.test(` + summary + `)`)

	set("loss", "0")
	set("codec", "rle")
	await(t, web, "all clients have another codec", func(s *state) bool {
		return s.Settings.Codec == "rle" && s.Traffic.Switched == s.Traffic.Clients && s.Traffic.Delivered == 1 && s.Traffic.Redundancy == 0
	})
	b.Await(`document.querySelector('.lab-status').textContent.startsWith('3 clients play')`)

	// Both views move.
	for view := range 2 {
		b.Await(fmt.Sprintf(`(window.pictures ??= []).push(document.querySelectorAll('.lab-view canvas')[%d].toDataURL())
			&& new Set(pictures).size > %d`, view, 3*(view+1)))
	}
	// Another player plays the other game, and loses nothing.
	set("actor", "1")
	b.Await(`/^Of the last [1-9]\d* calls .* 0 were recovered by redundancy, 0 were lost\.$/.test(` + summary + `)`)

	for _, width := range []int64{1280, 400} {
		b.Resize(width, 900)
		b.Await(fmt.Sprintf(`innerWidth === %d`, width))
		b.Await(`document.documentElement.scrollWidth <= innerWidth`)
	}
}
