//go:build native

// Package wasm runs the codec, built with Emscripten, in a browser. native/ci builds it.
package wasm

import (
	"embed"
	"flag"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
)

//go:embed page.html module.html
var pages embed.FS

var build = flag.String("build", "../../build/wasm", "build directory of the library")

// The tests of the codec pass in a browser, and a script calls the functions of uplink.h.
func TestBrowser(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(*build)))
	mux.Handle("/test/codec/page.html", http.StripPrefix("/test/codec", http.FileServerFS(pages)))
	mux.Handle("/test/codec/module.html", http.StripPrefix("/test/codec", http.FileServerFS(pages)))
	server := httptest.NewServer(mux)
	defer server.Close()
	b := browser.Start(t)
	for _, page := range []string{"module.html", "page.html?codec_test.js", "page.html?codec_c.js"} {
		b.Open(server.URL + "/test/codec/" + page)
		b.Await(`document.title !== "running"`)
		if code := browser.Value[string](b, "document.title"); code != "0" {
			t.Errorf("%s: %s\n%s", page, code, browser.Value[string](b, `document.getElementById("output").textContent`))
		}
	}
}
