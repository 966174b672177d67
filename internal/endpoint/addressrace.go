package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
)

// raceDelay is the time after which Dial tries the next address too (RFC 8305, section 5).
const raceDelay = 250 * time.Millisecond

// addressRace is an attempt to connect to one of several addresses. The first one that answers
// wins. Until then no listener has seen the token, so no two sessions begin.
type addressRace struct {
	cfg     Config
	handler Handler
	count   int              // number of different addresses
	remotes []netip.AddrPort // addresses in the order of the attempts; an address without a server may be appended again
	next    int              // index of the next address to try
	dialers []*dialer        // all dialers that were started
	running int              // number of dialers whose handshake is not over
	over    chan *dialer     // receives each dialer when its handshake has ended; never blocks
	winner  atomic.Uint32    // 1 plus the index of the address that answered first; 0: none has
	won     chan struct{}    // closed when there is a winner
	errs    []addressError   // the last error of each address that failed
}

// addressError is the error of one address.
type addressError struct {
	addr netip.AddrPort
	error
}

func (e addressError) Error() string { return fmt.Sprintf("%v: %v", e.addr, e.error) }

func (e addressError) Unwrap() error { return e.error }

// addressErrors are the errors of all addresses that were tried.
type addressErrors []addressError

func (e addressErrors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

func (e addressErrors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i].error
	}
	return all
}

func newAddressRace(cfg Config, remotes []netip.AddrPort, h Handler) *addressRace {
	return &addressRace{cfg: cfg, handler: h, count: len(remotes), remotes: remotes, over: make(chan *dialer, len(remotes)), won: make(chan struct{})}
}

// run returns the dialer whose connection has opened, or nil: then errs has the reasons. The others
// may still run.
func (r *addressRace) run(ctx context.Context) *dialer {
	won := r.won
	for r.start(ctx); r.running > 0; {
		var next <-chan time.Time
		if r.next < len(r.remotes) {
			next = time.After(raceDelay)
		}
		select {
		case <-next:
			r.start(ctx)
		case <-won:
			won, r.next = nil, len(r.remotes)
			for i, d := range r.dialers {
				if i+1 != int(r.winner.Load()) {
					d.stop()
				}
			}
		case d := <-r.over:
			r.running--
			err := d.outcome(ctx)
			if err == nil {
				return d
			}
			if !errors.Is(err, session.ErrOvertaken) && !errors.Is(err, session.ErrQuit) {
				r.failed(d.remote, err)
			}
			if errors.Is(err, session.ErrNoServer) && won != nil && len(r.errs) < r.count {
				// A server may start there while the other addresses are tried.
				r.remotes = append(r.remotes, d.remote)
			}
			if r.next < len(r.remotes) && !r.tried(r.remotes[r.next]) {
				r.start(ctx)
			}
		}
	}
	return nil
}

// failed records the error of an address. It replaces an earlier error of that address.
func (r *addressRace) failed(addr netip.AddrPort, err error) {
	i := slices.IndexFunc(r.errs, func(e addressError) bool { return e.addr == addr })
	if i < 0 {
		i = len(r.errs)
		r.errs = append(r.errs, addressError{})
	}
	r.errs[i] = addressError{addr, err}
}

// tried reports whether an address was tried before.
func (r *addressRace) tried(addr netip.AddrPort) bool {
	return slices.ContainsFunc(r.dialers, func(d *dialer) bool { return d.remote == addr })
}

// start tries the next address, unless there is no further address or a connection has opened.
func (r *addressRace) start(ctx context.Context) {
	for r.next < len(r.remotes) && r.winner.Load() == 0 && ctx.Err() == nil {
		remote, number := r.remotes[r.next], uint32(len(r.dialers)+1)
		r.next++
		d, err := r.cfg.dial(remote, r.handler, func() bool {
			if r.winner.CompareAndSwap(0, number) {
				close(r.won)
			}
			return r.winner.Load() == number
		})
		if err != nil {
			r.failed(remote, err)
			continue
		}
		r.dialers = append(r.dialers, d)
		r.running++
		go restartOnGoexit(d.serve)
		r.watch(ctx, d)
		return
	}
}

// watch reports when the handshake of a dialer has ended, and ends it when ctx is done.
func (r *addressRace) watch(ctx context.Context, d *dialer) {
	stop := context.AfterFunc(ctx, d.stop)
	go func() {
		select {
		case <-d.ready:
		case <-d.done:
		}
		stop()
		r.over <- d
	}()
}
