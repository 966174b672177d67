package client

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/snapshot"
)

// TestNewestStays: a snapshot that a newer one overtook is not the latest, what comes ahead of the initial state is
// passed over, and a new offer's world is not shown before its first snapshot.
func TestNewestStays(t *testing.T) {
	o, conn, link := newOrigin(t), quietConn(), &wire{}
	d := ready(t, o, conn, link, SnapshotConfig[ball]{})
	in := d.inlet.(*snapshotInlet[ball])
	first := append([]byte(nil), o.message()...)
	second := append([]byte(nil), o.message()...)
	now := time.Now()
	must(t, conn.down.datagram(control.Down, second, now))
	acks := d.counted().Acks
	must(t, conn.down.datagram(control.Down, first, now))
	var latest Snapshot[ball]
	if !in.latest(&latest) || latest.Tick != 2 || d.counted().Messages != 2 {
		t.Errorf("the newest is of tick %d, counted %+v", latest.Tick, d.counted())
	}
	if got := d.counted().Acks; got != acks {
		t.Errorf("%d acks at once, want the second a sixtieth of a second later", got)
	}

	o = newOrigin(t)
	o.offer.Hash++ // another initial state
	must(t, deliver(t, conn, link, append([]byte{byte(control.Offer)}, o.offered()...)))
	before := d.counted()
	must(t, conn.down.datagram(control.Down, o.message(), now))
	if st := d.counted(); st.Datagrams != before.Datagrams || st.Late != before.Late || d.phase != awaiting {
		t.Errorf("phase %d, counted %+v", d.phase, st)
	}
	o = newOrigin(t) // the one that the client has
	must(t, deliver(t, conn, link, append([]byte{byte(control.Offer)}, o.offered()...)))
	if in.latest(&latest) || d.phase != taking {
		t.Errorf("shows tick %d of the world before, phase %d", latest.Tick, d.phase)
	}
	must(t, conn.down.datagram(control.Down, o.message(), now))
	if !in.latest(&latest) || latest.Tick != 1 {
		t.Errorf("the newest is of tick %d", latest.Tick)
	}
	if a := in.dec.Ack(); a != (snapshot.Ack{}) {
		t.Errorf("acks %+v, want the first snapshot alone", a)
	}
}
