package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
)

// defaultAckHz is the default maximum number of datagrams per second with acks of a world alone.
const defaultAckHz = 30

// ErrNotOffered is returned if the server does not offer a world of that name in time.
var ErrNotOffered = errors.New("client: no such world is offered")

type view struct {
	conn *Conn
	sub  *replication.Subscription
}

// subscribe waits for the outcome. config names the configuration in errors.
func (c *Conn) subscribe(ctx context.Context, world string, r replication.Receiver, config string, ackHz float64) (view, error) {
	if ackHz == 0 {
		ackHz = defaultAckHz
	}
	if !(ackHz > 0 && ackHz <= 1000) {
		return view{}, fmt.Errorf("client: world %s: %s.AckHz is %v, want up to 1000", world, config, ackHz)
	}
	err := c.Err()
	v := view{conn: c}
	if err == nil {
		v.sub, err = c.worlds.Subscribe(world, r, ackHz, time.Now())
	}
	if err != nil {
		return view{}, fmt.Errorf("client: world %s: %w", world, err)
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

// notReady returns what the subscription still waits for after so much time.
func (v view) notReady(world string, waited time.Duration) error {
	if n, size := v.conn.worlds.Received(v.sub); size > 0 {
		return fmt.Errorf("client: world %s: %d of %d bytes of its initial state were received within %v", world, n, size, waited)
	}
	names := v.conn.worlds.Offered()
	if len(names) == 0 {
		return fmt.Errorf("%w: %s within %v, nor any other", ErrNotOffered, world, waited)
	}
	return fmt.Errorf("%w: %s within %v, but %s", ErrNotOffered, world, waited, shown(strings.Join(names, ", ")))
}

// Err returns why the client refused the server's world after a reconnection, or nil.
func (v view) Err() error { return v.sub.Err() }

// Stats returns the counts of the world since it was subscribed.
func (v view) Stats() ReplicationStats { return v.sub.Stats() }

// Close ends the subscription and tells the server. The client can subscribe to the world again.
// Close may be called more than once.
func (v view) Close() error {
	v.conn.worlds.Unsubscribe(v.sub, time.Now())
	return nil
}

// WorldError is returned if client and server describe the objects of a world differently.
type WorldError struct {
	World string
	Field int    // index of the first field that differs
	Here  string // the client's field, or "" if it has no such field
	There string // the server's field as received, any bytes, or "" if it has no such field
}

func (e *WorldError) Error() string {
	return fmt.Sprintf("client: world %s: field %d differs: here %s, at the server %s", e.World, e.Field, orNothing(e.Here), orNothing(e.There))
}

// compareOffer returns an error if the server offers a world by another codec or with other fields.
func compareOffer(world, codec string, fields []string, o *replication.Offer) error {
	if o.Codec != codec {
		return fmt.Errorf("client: world %s: the server sends it by codec \"%s\", want %q", world, shown(o.Codec), codec)
	}
	return compareFields(world, fields, o.Fields)
}

func compareFields(world string, here, there []string) error {
	for i := range max(len(here), len(there)) {
		e := &WorldError{World: world, Field: i}
		if i < len(here) {
			e.Here = here[i]
		}
		if i < len(there) {
			e.There = there[i]
		}
		if e.Here != e.There {
			return e
		}
	}
	return nil
}
