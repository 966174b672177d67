package natsstore_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/token"
)

// BenchmarkJoins measures how many joins a cluster of three NATS servers in this process handles:
// what BenchmarkJoin does, by many clients at the same time over four connections.
func BenchmarkJoins(b *testing.B) {
	c := newCluster(b, 3)
	stores := []*natsstore.Store{c.store(), c.store(), c.store(), c.store()}
	var clients atomic.Uint64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			client := clients.Add(1)
			if err := join(b.Context(), stores[client%uint64(len(stores))], client); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "joins/s")
}

// BenchmarkJoin measures what the store does for a join, against one NATS server in this process:
// the use of a token, and the begin and end of a session.
func BenchmarkJoin(b *testing.B) {
	s := newCluster(b, 1).store()
	client := uint64(0)
	for b.Loop() {
		client++
		if err := join(b.Context(), s, client); err != nil {
			b.Fatal(err)
		}
	}
}

// join makes the calls for a player who joins and leaves.
func join(ctx context.Context, s *natsstore.Store, client uint64) error {
	var id token.ID
	_, _ = rand.Read(id[:])
	session := fleet.Session{Client: client, Server: "a", ID: client, Issued: time.Now()}
	if err := s.Use(ctx, fleet.Use{Token: id, Expires: time.Now().Add(time.Minute)}); err != nil {
		return err
	}
	if err := s.Begin(ctx, session); err != nil {
		return err
	}
	return s.End(ctx, session)
}
