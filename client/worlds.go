package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// defaultAckHz is the default maximum number of datagrams per second that contain only acks of a
// world.
const defaultAckHz = 30

// ErrNotOffered means that the server did not offer a world with this name in time.
var ErrNotOffered = errors.New("client: no such world is offered")

type view struct {
	conn *Conn
	sub  *replication.Subscription
}

// subscribe waits for the outcome. config names the configuration in errors.
func subscribe(ctx context.Context, c *Conn, world string, shown replication.View, config string, ackHz float64) (view, error) {
	if ackHz == 0 {
		ackHz = defaultAckHz
	}
	if !(ackHz > 0 && ackHz <= 1000) {
		return view{}, fmt.Errorf("client: world %s: %s.AckHz is %v, want up to 1000", world, config, ackHz)
	}
	err := c.Err()
	v := view{conn: c}
	if err == nil {
		err = c.guarded(func() (err error) {
			v.sub, err = c.subscriptions.Subscribe(world, shown, ackHz, time.Now())
			return err
		})
	}
	if err != nil {
		return view{}, &opError{"world " + world, err}
	}
	if err := v.await(ctx, world); err != nil {
		_ = v.Close() // always nil
		return view{}, err
	}
	return v, nil
}

// await waits for the outcome of the server's offer.
func (v view) await(ctx context.Context, world string) error {
	start := time.Now()
	ctx, cancel := v.conn.cfg.withBindTimeout(ctx)
	defer cancel()
	select {
	case err := <-v.sub.Outcome():
		return err
	case <-v.conn.closed:
		return fmt.Errorf("client: world %s: %w", world, net.ErrClosed)
	case <-ctx.Done():
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("client: world %s: %w", world, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", v.notReady(world, time.Since(start).Round(time.Millisecond)), context.Cause(ctx))
}

// notReady returns an error that describes what the subscription waits for. waited is the time so
// far.
func (v view) notReady(world string, waited time.Duration) error {
	if n, size := v.conn.subscriptions.Received(v.sub); size > 0 {
		return fmt.Errorf("client: world %s: %d of %d bytes of its initial state were received within %v", world, n, size, waited)
	}
	return &MismatchError{World: world, notOffered: true, waited: waited, offered: v.conn.subscriptions.Offered()}
}

// Ticks is a client's clock in ticks of a world's server: for prediction, jitter buffers and
// interpolation alike.
type Ticks struct {
	// Server is the tick that the server is simulating now, with the part of it that has passed.
	Server float64
	// Hz is the nominal number of ticks per second, and Rate the rate of the server's ticks as
	// measured over the last seconds: 1 if there are Hz of them in a second.
	Hz, Rate float64
	// OneWay is the shortest one-way delay of the path: half of the lowest round-trip time.
	OneWay time.Duration
	// RTT is the smoothed round-trip time.
	RTT time.Duration
}

// Input returns the tick of the server in which it will use a call that is sent now, after the path
// and the RPC's jitter buffer ([Stream.Pace]). The difference to Server is the time by which the
// client predicts.
func (t Ticks) Input(p Pace) float64 { return t.Server + t.in(t.RTT/2+p.Target) }

// Shown returns the tick that interpolation with a delay shows now (interpolate.Config.Delay).
func (t Ticks) Shown(delay time.Duration) float64 {
	return t.Server - t.in(t.OneWay) - delay.Seconds()*t.Hz
}

// in returns the number of ticks in a time.
func (t Ticks) in(d time.Duration) float64 { return d.Seconds() * t.Hz * t.Rate }

// Ticks returns the clock at now. It follows the messages that had the shortest delay, and the rate
// of the server's ticks, from a quarter to twice Hz. Server runs up to 5 % faster or slower while
// the estimate changes, up to half if it is more than 12.5 ms off, and jumps ahead over more than
// 250 ms. Over the calls of a session it does not decrease, unless the server stood still for more
// than 250 ms. It reports false before the first message of a session.
func (v view) Ticks(now time.Time) (t Ticks, ok bool) {
	lowest, rtt := v.conn.rtts()
	t.OneWay, t.RTT = lowest/2, rtt
	t.Server, t.Hz, t.Rate, ok = v.sub.Tick(now, t.OneWay)
	return t, ok
}

// Err returns why the client refused the server's world after a reconnection, or nil.
func (v view) Err() error { return v.sub.Err() }

// Stats returns the counts of the world since it was subscribed.
func (v view) Stats() ReplicationStats { return v.sub.Stats() }

// Close ends the subscription and informs the server. The client can subscribe to the world again.
// Close may be called more than once.
func (v view) Close() error {
	v.conn.subscriptions.Unsubscribe(v.sub, time.Now())
	return nil
}

// checkCodec returns an error if the server offers a world by another codec.
func checkCodec(world, codec string, o *replication.Offer) error {
	if o.Codec != codec {
		return &replication.RefusedError{Reason: message.ReasonCodec, Err: fmt.Errorf("client: world %s: the server sends it by codec \"%s\", want %q", world, shown(o.Codec), codec)}
	}
	return nil
}

// malformedFields returns the error for descriptions that cannot be parsed.
func malformedFields(world string, err error) error {
	return fmt.Errorf("%w: client: world %s: %s", message.ErrMalformed, world, shown(err.Error()))
}

// versionOf returns the type that restores a T from a server's objects.
func versionOf[T any](own *snapshot.Type[T], world string, there *schema.Schema) (*snapshot.Type[T], error) {
	here := own.Source()
	if slices.Equal(versions.Descriptions(here), versions.Descriptions(there)) {
		return own, nil
	}
	if !slices.ContainsFunc(here.Fields(), func(f schema.Field) bool { return hasField(there, f.Name) }) {
		return nil, incompatible(&FieldError{of: "world " + world, Field: here.Fields()[0].Name, Here: here.Fields()[0].String(), nearest: message.NearestName(here.Fields()[0].Name, namesOf(there))})
	}
	typ, err := own.From(there)
	if e, ok := errors.AsType[*versions.FieldError](err); ok {
		return nil, incompatible(&FieldError{of: "world " + world, Field: e.Name, Here: e.To, There: e.From})
	}
	if err != nil {
		return nil, malformedFields(world, err)
	}
	return typ, nil
}

// incompatible returns the error of an offer with fields that cannot be converted.
func incompatible(e *FieldError) error {
	return &replication.RefusedError{Reason: message.ReasonSchema, Err: e}
}

func hasField(s *schema.Schema, name string) bool {
	return slices.ContainsFunc(s.Fields(), func(f schema.Field) bool { return f.Name == name })
}
