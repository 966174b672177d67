// Package browser opens pages in a real browser for tests.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

const patience = 2 * time.Minute

// Browser is a browser with one page. The test fails if the page logs an error or requests anything
// from hosts other than those of the pages that the test opens.
type Browser struct {
	t     testing.TB
	ctx   context.Context
	quiet bool // errors are expected

	mu         sync.Mutex
	hosts      map[string]bool
	complaints []string
}

// Start starts a browser, and stops it at the end of the test. It skips the test if there is no
// browser (see [tool.Find]), and with -short, because it takes seconds.
func Start(t testing.TB, more ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	path := tool.Find(t, "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience))
	options = append(options, more...)
	b := &Browser{t: t, hosts: map[string]bool{}}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	b.ctx, stop = chromedp.NewContext(ctx, chromedp.WithListener(b.hear))
	t.Cleanup(func() {
		defer stop()
		if err := chromedp.Cancel(b.ctx); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Error(c)
		}
	})
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	}), "network.enable")
	return b
}

// WebGL makes a browser render WebGL in software.
func WebGL(a *chromedp.ExecAllocator) {
	for _, o := range []chromedp.ExecAllocatorOption{
		chromedp.Flag("disable-gpu", false), chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("enable-unsafe-swiftshader", true),
	} {
		o(a)
	}
}

func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var complaint string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprintf("console: %v", e.Type)
		for _, a := range e.Args {
			complaint += fmt.Sprintf(" %s %s", a.Value, a.Description)
		}
	case *log.EventEntryAdded:
		complaint = fmt.Sprintf("log: %v %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme == "http" && b.hosts[u.Host] || u.Scheme == "about" {
			return
		}
		b.complaints = append(b.complaints, "request to elsewhere: "+e.Request.URL)
		return
	default:
		return
	}
	if !b.quiet {
		b.complaints = append(b.complaints, complaint)
	}
}

// Quiet ignores errors from now on, for example because the server is closed.
func (b *Browser) Quiet(quiet bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = quiet
}

func (b *Browser) do(a chromedp.Action[chromedp.Void], what string) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, a); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
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
	b.do(chromedp.Navigate(page), page)
}

// Await waits until an expression is true, also across page loads.
func (b *Browser) Await(js string) {
	b.t.Helper()
	for {
		err := chromedp.Do(b.ctx, chromedp.Poll[chromedp.Void](js, chromedp.WithPollingTimeout(patience)))
		switch {
		case err == nil:
			return
		case gone(err):
		default:
			b.t.Fatalf("%s: %v", js, err)
		}
	}
}

// Blank leaves the page.
func (b *Browser) Blank() {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), "about:blank")
}

// Run runs a script.
func (b *Browser) Run(js string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](js), js)
}

// Value returns the value of an expression.
func Value[T any](b *Browser, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// Key types keys, including those of package kb of chromedp.
func (b *Browser) Key(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys), "a key")
}

// Resize changes the size of the page.
func (b *Browser) Resize(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), "resize")
}

// Prefer sets a preference of the user, for example "prefers-color-scheme" to "dark".
func (b *Browser) Prefer(feature, value string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	}); err != nil {
		b.t.Fatalf("%s: %v", feature, err)
	}
}

// Picture returns a screenshot of the whole page as PNG.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatalf("picture: %v", err)
	}
	return png
}

// gone reports whether another page was loaded in the meantime.
func gone(err error) bool {
	return strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated or closed")
}
