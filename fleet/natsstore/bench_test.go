package natsstore_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// BenchmarkJoin measures what the store does for a join, against one NATS server in this process:
// the use of a token, and the begin and end of a session.
func BenchmarkJoin(b *testing.B) {
	s := newCluster(b, 1).store()
	var id token.ID
	client := uint64(0)
	for b.Loop() {
		client++
		_, _ = rand.Read(id[:])
		session := fleet.Session{Client: client, Server: "a", ID: client, Issued: time.Now()}
		if err := s.Use(b.Context(), fleet.Use{Token: id, Expires: time.Now().Add(time.Minute)}); err != nil {
			b.Fatal(err)
		}
		if err := s.Begin(b.Context(), session); err != nil {
			b.Fatal(err)
		}
		if err := s.End(b.Context(), session); err != nil {
			b.Fatal(err)
		}
	}
}
