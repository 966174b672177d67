package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
)

// dialWait is the time for which the client tries one address of another server.
const dialWait = 5 * time.Second

// searchWait is the time after which a search requests the assignment of another server. On long
// paths it is two round trips, because the first hello to a server or the answer may have been
// lost. After the first answer of a server, which is then known to run, it is twice as long.
const searchWait = 200 * time.Millisecond

// soonAttempts is the number of attempts at the interval searchWait. From then on the interval
// doubles.
const soonAttempts = 4

// search is a search for a server that answers. The assigned server may be down too, so the search
// requests others while none has answered. It continues the earlier attempts, because a server may
// be slow or its answer lost. The first server that answers ends the attempts at all others. These
// have not seen the token, so at most one session begins.
type search struct {
	c    *Conn
	move *move

	mu       sync.Mutex
	attempts []*attempt
	answered time.Time // time at which a server last answered for the first time
}

func newSearch(c *Conn, m *move) *search { return &search{c: c, move: m} }

// attempt is an attempt to connect to one server. search.mu guards the fields after cancel.
type attempt struct {
	*search
	cancel   context.CancelFunc
	server   string // address and route id, while it is being tried
	answered bool
}

// dial connects to a server that is assigned to the client.
func (s *search) dial(ctx context.Context, a *attempt) error {
	addr, t, err := s.c.assigned(ctx)
	if err != nil {
		return err
	}
	if !a.begin(addr + string(t.Route())) {
		return errTried
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	next := newLink(s.c, addr)
	next.onAnswer = a.answer
	if _, err := endpoint.Dial(ctx, addr, s.c.cfg.transport(t), next); err != nil {
		return err
	}
	return s.c.prepare(s.move, next, nil)
}

// run connects to a server. It calls dial until one call succeeds. It returns an error if none
// does, or if the current server answers again.
func (s *search) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
	}()
	done := make(chan error)
	try := func() {
		trying, a := s.add(ctx)
		all.Go(func() {
			defer a.cancel()
			err := s.dial(trying, a)
			a.end()
			select {
			case done <- err:
			case <-ctx.Done():
			}
		})
	}
	try()
	wait := max(searchWait, 2*s.c.RTT())
	var errs []error
	for next := time.After(wait); ; {
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, context.DeadlineExceeded) {
				cause = errNoAnswer
			}
			return attemptsFailed(append(errs, cause))
		case err := <-done:
			if err == nil {
				return nil
			}
			if !errors.Is(err, errTried) { // the attempt that continues reports the cause
				errs = append(errs, err)
			}
		case now := <-next:
			if s.hears(now) {
				return attemptsFailed(append(errs, errAnswersAgain))
			}
			if now.Sub(s.lastAnswer()) >= 2*wait {
				if try(); s.count() >= soonAttempts {
					wait *= 2
				}
			}
			next = time.After(wait)
		}
	}
}

var (
	errAnswersAgain = errors.New("client: the current server answers again")
	errNoAnswer     = fmt.Errorf("client: %w: no answer within %v; check that the server runs and that its UDP port can be reached", transport.ErrTimeout, dialWait)
)

// hears reports whether the current server has answered recently.
func (s *search) hears(now time.Time) bool {
	link := s.c.link()
	return link != nil && link.own.Silence(now) < maxSilence
}

func (s *search) add(ctx context.Context) (context.Context, *attempt) {
	ctx, cancel := context.WithCancel(ctx)
	a := &attempt{search: s, cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, a)
	return ctx, a
}

// errTried means that another attempt at the same server continues: a second session of the client
// would replace that one's.
var errTried = errors.New("client: the server is being tried already")

// begin records that an attempt tries a server, unless another one does: then it reports false.
func (a *attempt) begin(server string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.attempts {
		if o.server == server {
			return false
		}
	}
	a.server = server
	return true
}

// end lets other attempts try the server again.
func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = ""
}

// answer is called when the server answers. It ends the attempts at servers that have not answered.
func (a *attempt) answer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return
	}
	a.answered, a.search.answered = true, time.Now()
	for _, o := range a.attempts {
		if !o.answered {
			o.cancel()
		}
	}
}

func (s *search) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.attempts)
}

func (s *search) lastAnswer() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}
