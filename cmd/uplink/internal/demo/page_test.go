package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/lab"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

type state struct {
	Settings struct {
		Loss          float64
		Codec, Preset string
		Redundancy    string
	}
	Traffic lab.Traffic
}

// await asks for the state until it is as wanted.
func await(t *testing.T, url, what string, ok func(*state) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		var s state
		r, err := http.Get(url + "demo/state")
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
	_, url := playing(t, o)
	b := browser.Start(t)
	set := func(name, value string) {
		t.Helper()
		b.Run(fmt.Sprintf(`{ const e = document.getElementById('lab-%s'); e.value = %q;
			e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); }`, name, value))
	}
	const summary = `document.querySelector('.lab-summary').textContent`

	b.Open(url)
	b.Await(`document.getElementById('lab-loss')?.disabled === false`)
	set("redundancy", "off")
	set("loss", "0.5")
	await(t, url, "half of the calls get lost", func(s *state) bool {
		return s.Settings.Loss == 0.5 && s.Settings.Redundancy == "off" && s.Traffic.Delivered < 0.7
	})
	b.Await(`parseFloat(document.querySelector('.lab-figures dd').textContent) < 70`)
	b.Await(`/, 0 were recovered by redundancy, [1-9]\d* were lost/.test(` + summary + `)`)

	// By keyboard: one step down.
	b.Run(`document.getElementById('lab-loss').focus()`)
	b.Key(kb.ArrowLeft)
	b.Await(`document.querySelector('output').textContent === '49 %'`)
	await(t, url, "a key moves the slider", func(s *state) bool { return s.Settings.Loss == 0.49 })

	set("redundancy", "7")
	await(t, url, "redundancy repairs", func(s *state) bool { return s.Traffic.Redundancy == 7 && s.Traffic.Delivered > 0.9 })
	b.Await(`/, [1-9]\d* were recovered/.test(` + summary + `)`)

	set("preset", "low-bandwidth")
	await(t, url, "all clients have another preset", func(s *state) bool {
		return s.Settings.Preset == "low-bandwidth" && s.Traffic.Switched == s.Traffic.Clients
	})
	set("loss", "0")
	set("codec", "rle")
	await(t, url, "all clients have another codec", func(s *state) bool {
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
	b.Blank() // it would complain when the server ends
}
