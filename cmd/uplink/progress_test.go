package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: nothing for two seconds, nothing without a terminal, and logs above the line.
func TestProgress(t *testing.T) {
	for _, live := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			out, seen := &output{changed: make(chan struct{})}, 0
			expect := func(want string) {
				t.Helper()
				synctest.Wait()
				if !live && want != "log\n" {
					want = ""
				}
				text := out.String()
				if text[seen:] != want {
					t.Errorf("%q, want %q", text[seen:], want)
				}
				seen = len(text)
			}
			l := &line{w: out, live: live}
			stop := l.tick(func(elapsed time.Duration) string { return fmt.Sprintf("since %v", elapsed) })
			time.Sleep(1500 * time.Millisecond)
			expect("")
			time.Sleep(time.Second)
			expect("\r\x1b[Ksince 2s")
			fmt.Fprintln(l, "log")
			if live {
				expect("\r\x1b[Klog\n")
			} else {
				expect("log\n")
			}
			time.Sleep(time.Second)
			expect("\r\x1b[Ksince 3s")
			stop()
			stop()
			expect("\r\x1b[K")

			p := &progress{line: l, start: time.Now()}
			p.show("training", 0.1)
			expect("")
			time.Sleep(2 * time.Second)
			p.show("training", 0.5)
			expect("\r\x1b[Ktraining 50 %")
			p.clear()
			expect("\r\x1b[K")
		})
	}
}
