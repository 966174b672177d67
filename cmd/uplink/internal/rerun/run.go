package rerun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Options configure a run.
type Options struct {
	To string
	// Speed is the speed of the replay relative to the recording.
	Speed float64
	// Token returns a token for a client id.
	Token    func(ctx context.Context, client uint64) (token.Token, error)
	Suites   []transport.Suite
	Insecure bool
	Network  transport.Network
	// Progress, if not nil, is called from time to time with the completed share, concurrently.
	Progress func(done float64)
}

// Report is the result of a run.
type Report struct {
	Sessions  int    `json:"sessions"`
	Failed    int    `json:"failed"` // sessions that could not connect or bind, or that the server ended
	Datagrams uint64 `json:"datagrams"`
	Messages  uint64 `json:"messages"`
	Skipped   uint64 `json:"skipped"`
	// Same and Different count payloads by comparison with the recording, Missing payloads without
	// a result. They are set by [PlaySelf].
	Same      uint64 `json:"same"`
	Different uint64 `json:"different"`
	Missing   uint64 `json:"missing"`
	First     string `json:"first,omitempty"` // description of the first difference
}

type run struct {
	plan    *Plan
	options Options
	begin   time.Time
	total   int // number of events

	done, datagrams, messages atomic.Uint64
}

// Play replays a plan to a server. If a session fails, it returns that error; the report is valid
// too.
func Play(ctx context.Context, plan *Plan, o Options) (Report, error) {
	r := &run{plan: plan, options: o, begin: time.Now()}
	for _, s := range plan.sessions {
		r.total += len(s.events)
	}
	errs := make([]error, len(plan.sessions))
	var all sync.WaitGroup
	for i, s := range plan.sessions {
		all.Go(func() { errs[i] = r.session(ctx, s) })
	}
	all.Wait()
	out := Report{Sessions: len(plan.sessions), Datagrams: r.datagrams.Load(), Messages: r.messages.Load(), Skipped: plan.Skipped}
	var first error
	for i, err := range slices.Backward(errs) {
		if err != nil {
			out.Failed++
			first = fmt.Errorf("player %d: %w", plan.sessions[i].player, err)
		}
	}
	return out, first
}

func (r *run) sleep(ctx context.Context, at time.Duration) error {
	wait := time.Until(r.begin.Add(time.Duration(float64(at) / r.options.Speed)))
	if wait <= 0 {
		return ctx.Err()
	}
	return sleep.For(ctx, wait)
}

func (r *run) session(ctx context.Context, s *replayed) (err error) {
	if len(s.events) == 0 {
		return nil
	}
	if err := r.sleep(ctx, s.events[0].at); err != nil {
		return err
	}
	cfg := endpoint.Config{Suites: r.options.Suites, Insecure: r.options.Insecure, Network: r.options.Network, Tick: endpoint.OnWake}
	if r.options.Token != nil {
		if cfg.Token, err = r.options.Token(ctx, s.player); err != nil {
			return err
		}
	}
	c := &answerer{answers: make(chan message.BindAnswer, 16)}
	conn, err := endpoint.Dial(ctx, r.options.To, cfg, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for i := range s.events {
		if err := r.event(ctx, conn, c, &s.events[i]); err != nil {
			return err
		}
		if done := r.done.Add(1); done%often == 0 && r.options.Progress != nil {
			r.options.Progress(float64(done) / float64(r.total))
		}
	}
	return drain(ctx, conn)
}

func (r *run) event(ctx context.Context, conn *endpoint.Conn, c *answerer, e *event) error {
	if err := r.sleep(ctx, e.at); err != nil {
		return err
	}
	switch {
	case e.bind != nil:
		return c.bind(ctx, conn, e.bind)
	case e.body == nil:
		return nil // the event that ends the session follows
	case e.reliable:
		r.messages.Add(1)
		return sendReliable(ctx, conn, e.body)
	}
	r.datagrams.Add(1)
	return conn.Send(e.body)
}

// often is the number of events between two calls of Options.Progress.
const often = 32

// Timeout and intervals of requests to a server.
const (
	patience = 5 * time.Second
	again    = 250 * time.Millisecond
	soon     = 5 * time.Millisecond
)

func sendReliable(ctx context.Context, conn *endpoint.Conn, b []byte) error {
	for {
		err := conn.SendReliable(b)
		if !errors.Is(err, transport.ErrBacklog) {
			return err
		}
		if err := sleep.For(ctx, soon); err != nil {
			return err
		}
	}
}

// drain waits until reliable messages are acknowledged.
func drain(ctx context.Context, conn *endpoint.Conn) error {
	for begin := time.Now(); conn.Unacked() > 0 && time.Since(begin) < patience; {
		if err := sleep.For(ctx, soon); err != nil {
			return err
		}
	}
	return nil
}

type answerer struct{ answers chan message.BindAnswer }

func (c *answerer) Opened(*endpoint.Conn)                     {}
func (c *answerer) Closed(*endpoint.Conn, error)              {}
func (c *answerer) Message(*endpoint.Conn, []byte, time.Time) {}
func (c *answerer) Tick(time.Time)                            {}

func (c *answerer) Datagram(_ *endpoint.Conn, b []byte, _ time.Time) {
	t, body, err := message.Split(b)
	if err != nil || t != message.Bound {
		return
	}
	if a, err := message.ParseBindAnswer(body); err == nil {
		select {
		case c.answers <- a:
		default:
		}
	}
}

// bind binds an RPC as a client does.
func (c *answerer) bind(ctx context.Context, conn *endpoint.Conn, r *message.BindRequest) error {
	b, err := r.Append(nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("bind %s: no answer within %v", r.Name, patience))
	defer cancel()
	resend := time.NewTicker(again)
	defer resend.Stop()
	if err := conn.Send(b); err != nil {
		return err
	}
	for {
		select {
		case a := <-c.answers:
			if int(a.RPC) == int(r.RPC) {
				return bound(r, &a)
			}
		case <-resend.C:
			if err := conn.Send(b); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func bound(r *message.BindRequest, a *message.BindAnswer) error {
	switch {
	case a.Reason != message.ReasonNone:
		return fmt.Errorf("bind %s: the server refuses it, reason %d of docs/spec/messages.md", r.Name, a.Reason)
	case a.Prior != r.Prior:
		return fmt.Errorf("bind %s: the server does not have the prior %016x", r.Name, r.Prior)
	}
	return nil
}
