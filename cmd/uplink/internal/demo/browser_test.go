package demo

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

// browser is a real one with one page. If the page complains about anything, the test fails.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := tool.Find(t, "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(2*time.Minute))
	b := &browser{}
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
	return b
}

// hear notes what the page writes to the console, and what it does not catch.
func (b *browser) hear(event any) {
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
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, complaint)
}

func (b *browser) do(t *testing.T, a chromedp.Action[chromedp.Void], what string) {
	t.Helper()
	if err := chromedp.Do(b.ctx, a); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (b *browser) open(t *testing.T, url string) {
	t.Helper()
	b.do(t, chromedp.Navigate(url), url)
}

// run runs a script.
func (b *browser) run(t *testing.T, js string) {
	t.Helper()
	b.do(t, chromedp.Evaluate[chromedp.Void](js), js)
}

// await waits until an expression holds.
func (b *browser) await(t *testing.T, js string) {
	t.Helper()
	b.do(t, chromedp.Poll[chromedp.Void](js, chromedp.WithPollingTimeout(2*time.Minute)), js)
}

func (b *browser) key(t *testing.T, keys string) {
	t.Helper()
	b.do(t, chromedp.KeyEvent(keys), "a key")
}

func (b *browser) resize(t *testing.T, width int64) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(width, 900), "resize")
}
