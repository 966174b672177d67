//go:build linux && field

package field

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

// newTunnel returns a network of two TUN devices, between which this process carries packets over
// simulated links with loss, delay, reordering and duplication. It prints the random seeds.
func newTunnel(t *testing.T, link simnet.Config) *network {
	t.Helper()
	n := addNetwork(t, false)
	client, server := openTUN(t, n.client, "c1"), openTUN(t, n.server, "s1")
	var running sync.WaitGroup
	for _, way := range []struct {
		name     string
		from, to *os.File
	}{{"up", client, server}, {"down", server, client}} {
		link.Seed = rand.Uint64()
		t.Logf("%slink: %+v", way.name, link)
		l, err := simnet.NewLink(link)
		must(t, err)
		running.Go(func() { carry(l, way.from, way.to) })
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		running.Wait()
	})
	return n
}

// openTUN returns the packets of a TUN device.
func openTUN(t *testing.T, in namespace, device string) (f *os.File) {
	t.Helper()
	must(t, in.do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		r, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
		f = os.NewFile(uintptr(fd), device) // a file is watched from then on
		return err
	}))
	return f
}

// carry sends the packets of one file over a link to another one, until one of them is closed.
func carry(l *simnet.Link, from, to *os.File) {
	start := time.Now()
	packets := make(chan []byte, 1024)
	go func() {
		defer close(packets)
		for {
			b := make([]byte, 9000)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			packets <- b[:n]
		}
	}()
	queue := simnet.NewQueue[[]byte](l)
	timer := time.NewTimer(0)
	for {
		select {
		case p, ok := <-packets:
			if !ok {
				return
			}
			queue.Push(time.Since(start), p, len(p))
		case <-timer.C:
		}
		for {
			p, _, ok := queue.Pop(time.Since(start))
			if !ok {
				break
			}
			_, _ = to.Write(p) // an error counts as loss
		}
		if at, ok := queue.Next(); ok {
			timer.Reset(at - time.Since(start))
		}
	}
}
