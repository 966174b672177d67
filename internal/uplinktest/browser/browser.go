// Package browser opens pages in a real browser for tests.
package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

// Browser is a browser with one page. The test fails if the page logs an error or requests anything
// from hosts other than those of the pages that the test opens.
type Browser struct {
	t    testing.TB
	pipe *pipe

	mu         sync.Mutex
	quiet      bool // errors are expected
	hosts      map[string]bool
	complaints []string
	loaded     map[string]chan struct{} // by document, closed when it is loaded
}

// Start starts a browser, and stops it at the end of the test. It skips the test if there is no
// browser (see [tool.Find]), and with -short, because it takes seconds.
func Start(t testing.TB) *Browser {
	t.Helper()
	return start(t, "--disable-gpu")
}

// StartWebGL starts a browser that renders WebGL in software; see [Start].
func StartWebGL(t testing.TB) *Browser {
	t.Helper()
	return start(t, "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
}

func start(t testing.TB, flags ...string) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	path := tool.Find(t, "chromium", "chromium-browser", "google-chrome")
	b := &Browser{t: t, hosts: map[string]bool{}, loaded: map[string]chan struct{}{}}
	b.pipe = open(t, path, append(flags, "--user-data-dir="+t.TempDir()), b.hear)
	t.Cleanup(func() {
		b.pipe.close()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Error(c)
		}
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	b.pipe.session = attached.SessionID
	for _, domain := range []string{"Log", "Network", "Page", "Runtime"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Page.setLifecycleEventsEnabled", object{"enabled": true}, nil)
	return b
}

// call calls a method of the DevTools protocol. An error ends the test.
func (b *Browser) call(method string, params object, result any) {
	b.t.Helper()
	if err := b.pipe.call(method, params, result); err != nil {
		b.t.Fatalf("%s %v: %v", method, params, err)
	}
}

// remote is a JavaScript value of the page.
type remote struct {
	Value       json.RawMessage
	Description string
}

// exception is a JavaScript exception of the page.
type exception struct {
	Text      string
	Exception remote
}

// event is a DevTools event. It contains the members of all events that are used.
type event struct {
	ExceptionDetails exception
	Type             string
	Args             []remote
	Entry            struct{ Level, Text, URL string }
	Request          struct{ URL string }
	Name, LoaderID   string
}

func (b *Browser) hear(method string, e *event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var complaint string
	switch method {
	case "Runtime.exceptionThrown":
		complaint = fmt.Sprintf("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		complaint = "console: " + e.Type
		for _, a := range e.Args {
			complaint += fmt.Sprintf(" %s %s", a.Value, a.Description)
		}
	case "Log.entryAdded":
		complaint = fmt.Sprintf("log: %s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case "Network.requestWillBeSent":
		u, err := url.Parse(e.Request.URL)
		if err == nil && (u.Scheme != "http" || !b.hosts[u.Host]) && u.Scheme != "about" {
			b.complaints = append(b.complaints, "request to elsewhere: "+e.Request.URL)
		}
		return
	case "Page.lifecycleEvent":
		if e.Name == "load" {
			loaded := b.load(e.LoaderID)
			select {
			case <-loaded: // already closed: the event is repeated
			default:
				close(loaded)
			}
		}
		return
	default:
		return
	}
	if !b.quiet {
		b.complaints = append(b.complaints, complaint)
	}
}

// load returns the channel that is closed when a document is loaded. b.mu is held.
func (b *Browser) load(document string) chan struct{} {
	if b.loaded[document] == nil {
		b.loaded[document] = make(chan struct{})
	}
	return b.loaded[document]
}

// Quiet ignores errors from now on, for example because the server is closed.
func (b *Browser) Quiet(quiet bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = quiet
}

// Open opens a page.
func (b *Browser) Open(page string) {
	b.t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.hosts[u.Host] = true
	b.mu.Unlock()
	b.navigate(page)
}

// Blank leaves the page.
func (b *Browser) Blank() {
	b.t.Helper()
	b.navigate("about:blank")
}

func (b *Browser) navigate(page string) {
	b.t.Helper()
	var document struct{ LoaderID, ErrorText string }
	b.call("Page.navigate", object{"url": page}, &document)
	if document.ErrorText != "" {
		b.t.Fatalf("%s: %s", page, document.ErrorText)
	}
	if document.LoaderID == "" {
		return // only the fragment of the URL changes: the document stays
	}
	b.mu.Lock()
	loaded := b.load(document.LoaderID)
	b.mu.Unlock()
	select {
	case <-loaded:
	case <-b.pipe.ctx.Done():
		b.t.Fatalf("%s: it was not loaded", page)
	}
}

// evaluate evaluates an expression, and waits if its value is a promise.
func (b *Browser) evaluate(js string, result any) error {
	var got struct {
		Result           remote
		ExceptionDetails *exception
	}
	err := b.pipe.call("Runtime.evaluate", object{"expression": js, "returnByValue": result != nil, "awaitPromise": true}, &got)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return errors.New(got.ExceptionDetails.Text + " " + got.ExceptionDetails.Exception.Description)
	case result == nil:
		return nil
	}
	return json.Unmarshal(got.Result.Value, result)
}

// leaving contains parts of the errors that occur while another page is loaded.
var leaving = []string{"Cannot find context", "context was destroyed", "navigated or closed", "Promise was collected"}

// Await waits until an expression is true, also across page loads.
func (b *Browser) Await(js string) {
	b.t.Helper()
	const poll = `new Promise((done, failed) => {
		const check = async () => {
			try {
				if (await (%s)) done()
				else setTimeout(check, 10)
			} catch (e) { failed(e) }
		}
		check()
	})`
	for {
		err := b.evaluate(fmt.Sprintf(poll, js), nil)
		if err == nil {
			return
		}
		if !slices.ContainsFunc(leaving, func(text string) bool { return strings.Contains(err.Error(), text) }) {
			b.t.Fatalf("%s: %v", js, err)
		}
	}
}

// Run runs a script.
func (b *Browser) Run(js string) {
	b.t.Helper()
	if err := b.evaluate(js, nil); err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
}

// Value returns the value of an expression.
func Value[T any](b *Browser, js string) (v T) {
	b.t.Helper()
	if err := b.evaluate(js, &v); err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// Key is a key of the keyboard.
type Key struct {
	name, text string
	code       int
}

// The keys that tests press.
var (
	Enter     = Key{"Enter", "\r", 13}
	Tab       = Key{"Tab", "", 9}
	ArrowLeft = Key{"ArrowLeft", "", 37}
)

// Key presses a key and releases it.
func (b *Browser) Key(k Key) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", object{"type": kind, "key": k.name, "code": k.name, "text": k.text, "windowsVirtualKeyCode": k.code}, nil)
	}
}

// Resize changes the size of the page.
func (b *Browser) Resize(width, height int64) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Prefer sets a preference of the user, for example "prefers-color-scheme" to "dark".
func (b *Browser) Prefer(feature, value string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": feature, "value": value}}}, nil)
}

// Picture returns a screenshot of the whole page as PNG.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	var picture struct{ Data []byte }
	b.call("Page.captureScreenshot", object{"captureBeyondViewport": true}, &picture)
	return picture.Data
}
