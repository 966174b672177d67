package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
)

var pictures = flag.Bool("pictures", false, "update the picture in docs")

// output receives the lines that the game prints.
type output chan string

func (o output) Write(b []byte) (int, error) {
	o <- string(b)
	return len(b), nil
}

// TestPage plays in a browser: a bot plays first, then keys and mouse do.
func TestPage(t *testing.T) {
	b := browser.StartWebGL(t)
	ctx, stop := context.WithCancel(t.Context())
	printed, done := make(output, 4), make(chan error)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	go func() {
		done <- run(ctx, &options{http: addr, bots: 11, link: link{RTT: 100, Loss: 0.05, Jitter: 20}}, printed)
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		t.Log(<-printed, <-printed)
	}()
	t.Log(<-printed)
	b.Resize(1280, 800)
	b.Open("http://" + addr)
	b.Await(`+(document.querySelector("[data-name=shots]")?.textContent ?? 0) > 10 && parseFloat(document.querySelector("[data-name=down]").textContent) > 10`)
	b.Await(`document.querySelectorAll("#scores li").length > 1`)
	if *pictures {
		b.Await(`+document.querySelector("[data-name=shots]").textContent > 300`)
		var best []byte
		for range 60 { // the one with the most in it
			if p := b.Picture(); len(p) > len(best) {
				best = p
			}
		}
		if err := os.WriteFile("../../docs/shooter.png", best, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.Run(`const rtt = document.querySelector("[name=rtt]"); rtt.value = 400; rtt.dispatchEvent(new Event("input"))`)
	b.Await(`parseFloat(document.querySelector("[data-name=rtt]").textContent) > 300`) // a busy machine only adds to it
	b.Run(`new EventSource("pictures").onmessage = e => {
		globalThis.last = JSON.parse(e.data);
		globalThis.fired ||= !document.querySelector("#auto").checked && last.shots?.some(s => s.Shooter === 1);
	}`)
	b.Await(`globalThis.last?.players.find(o => o.name === "you").armed`)
	b.Run(`document.querySelector("#view").dispatchEvent(new MouseEvent("mousedown"))`)
	b.Await(`!document.querySelector("#auto").checked && globalThis.fired`)
	b.Run(`globalThis.first = last.eye; document.querySelector("#view").dispatchEvent(new KeyboardEvent("keydown", {code: "KeyA"}))`)
	b.Await(`Math.hypot(last.eye[0] - first[0], last.eye[1] - first[1]) > 1`)
	b.Run(`document.querySelector("#view").dispatchEvent(new KeyboardEvent("keyup", {code: "KeyA"}))`)
	b.Resize(400, 800)
	b.Await(`innerWidth === 400 && document.documentElement.scrollWidth <= 400`)
	b.Open("http://" + addr + "/dashboard/")
	b.Await(`document.body.textContent.includes("bot 3")`)
	b.Blank() // the page would report an error when the server stops
	if page := read(t, "http://"+addr+"/metrics"); !strings.Contains(page, "uplink_ds_players 12") || !strings.Contains(page, "uplink_client_") {
		t.Errorf("metrics: %s", page)
	}
}

func read(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
