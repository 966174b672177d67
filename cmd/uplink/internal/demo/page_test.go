package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demopanel"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
)

type state struct {
	Settings struct {
		Loss          float64
		Codec, Preset string
		Redundancy    string
	}
	Traffic demopanel.Traffic
}

// await asks for the state until it is as wanted.
func await(t *testing.T, url, what string, ok func(*state) bool) {
	t.Helper()
	var s state
	uplinktest.Await(t, what, func() bool {
		s = state{}
		r, err := http.Get(url + "demo/state")
		uplinktest.Must(t, err)
		err = json.NewDecoder(r.Body).Decode(&s)
		r.Body.Close()
		uplinktest.Must(t, err)
		return ok(&s)
	}, func() any { return fmt.Sprintf("%+v", s) })
}

// agree reports whether tiles, panel and the table of RPCs have the figures of the same series,
// which it sums up by itself.
const agree = `(() => {
	let [up, down, full, batched, seconds] = [0, 0, 0, 0, 0];
	for (const s of series.samples.toReversed()) {
		if (seconds >= 9.5) break;
		seconds += s.dt;
		down += s.ack_bits;
		for (const r of s.rpcs) {
			up += r.encoded + r.header + r.aead + r.headers;
			full += r.full + 8 * 47 * r.frames;
			batched += r.full + r.aead + r.headers;
		}
	}
	const text = (e) => e.textContent.replace(/\s+/g, '');
	const panel = [...document.querySelectorAll('.lab-figures dd')].map(text);
	const sums = [...document.querySelector('#rpcs tr.sum').children].map(text);
	const tile = (name) => text(document.querySelector('#tile-' + name + ' .value'));
	return full > 0 && tile('ratio') === ((up + down) / full).toFixed(2) && Math.abs(parseFloat(tile('up')) - up / seconds / 1000) < 0.06
		&& tile('ratio') === panel[0] && tile('up') === panel[1] && tile('down') === panel[2] && tile('full') === text(document.querySelector('.lab-bars .lab-value')) && tile('delivered') === panel[3]
		&& tile('ratio') === sums[2] && (batched / full).toFixed(2) === sums[3] && tile('up') === sums[4] && tile('down') === sums[5] && tile('full') === sums[6];
})()`

// TestFigures verifies that the figures of the page agree under every preset of the link and of the
// clients.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	o := options()
	o.Codec, o.For = rpcdelta.Adaptive, 0
	_, url := playing(t, o)
	b := browser.Start(t)
	b.Open(url)
	b.Await(`document.getElementById('lab-loss')?.disabled === false`)
	b.Run(`import('./assets/store.js').then((m) => { window.series = m.store; })`)
	b.Await(`window.series !== undefined`)
	for _, link := range []string{"Home", "Mobile", "Terrible"} {
		b.Run(fmt.Sprintf(`[...document.querySelectorAll('.lab-presets button')].find((e) => e.textContent === %q).click()`, link))
		for _, preset := range []string{"none", "low-latency", "balanced", "low-bandwidth"} {
			b.Run(fmt.Sprintf(`{ const e = document.getElementById('lab-preset'); e.value = %q; e.dispatchEvent(new Event('change')); }`, preset))
			b.Run(`window.before = series.samples.at(-1)?.t ?? 0`)
			b.Await(`series.samples.at(-1)?.t > before && ` + agree)
		}
	}
	b.Run(`document.querySelector('input[value=total]').click()`)
	b.Await(`/B$/.test(document.querySelectorAll('.lab-figures dd')[1].textContent) &&
		document.querySelector('#tile-ratio .value').textContent === document.querySelectorAll('.lab-figures dd')[0].textContent`)
	b.Blank() // it would complain when the server ends
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
		return s.Settings.Loss == 0.5 && s.Settings.Redundancy == "off"
	})
	const delivery = `parseFloat(document.querySelectorAll('.lab-figures dd')[3].textContent)`
	b.Await(delivery + ` < 70`)
	b.Await(`/, 0 were recovered by redundancy, [1-9]\d* were lost/.test(` + summary + `)`)

	// By keyboard: one step down.
	b.Run(`document.getElementById('lab-loss').focus()`)
	b.Key(browser.ArrowLeft)
	b.Await(`document.querySelector('output').textContent === '49 %'`)
	await(t, url, "a key moves the slider", func(s *state) bool { return s.Settings.Loss == 0.49 })

	set("redundancy", "7")
	await(t, url, "redundancy repairs", func(s *state) bool { return s.Traffic.Redundancy == 7 })
	b.Await(delivery + ` > 90`)
	b.Await(`/, [1-9]\d* were recovered/.test(` + summary + `)`)

	set("preset", "low-bandwidth")
	await(t, url, "all clients have another preset", func(s *state) bool {
		return s.Settings.Preset == "low-bandwidth" && s.Traffic.Switched == s.Traffic.Clients
	})
	set("loss", "0")
	set("codec", "rle")
	await(t, url, "all clients have another codec", func(s *state) bool {
		return s.Settings.Codec == "rle" && s.Traffic.Switched == s.Traffic.Clients && s.Traffic.Redundancy == 0
	})
	b.Await(delivery + ` === 100`)
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
