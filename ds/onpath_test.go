package ds_test

import (
	"bytes"
	"net/netip"
	"sync"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// flight is a datagram of a player's session that somebody on the way has seen.
type flight struct {
	from, to netip.AddrPort
	b        []byte
}

// sealed says whether a datagram belongs to the session of an honest player.
func (s *siege) sealed(from, to netip.AddrPort, b []byte) bool {
	return b[0]>>7 == 0 && (s.isPlayer(from) && to == siegeAddr || from == siegeAddr && s.isPlayer(to))
}

// eavesdrop calls f for each datagram of the players' sessions, before it leaves, until the
// function that it returns is called.
func (s *siege) eavesdrop(f func(flight)) (stop func()) {
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if s.sealed(from, to, b) {
			f(flight{from, to, bytes.Clone(b)})
		}
	})
	return func() { s.Watch(s.note) }
}

// sockets are those of the players and the server, to send from as if one were they. They
// are looked up before, since a network that is watched cannot be asked.
func (s *siege) sockets() map[netip.AddrPort]transport.PacketConn {
	all := map[netip.AddrPort]transport.PacketConn{siegeAddr: s.Socket(siegeAddr)}
	for _, addr := range s.addrs {
		all[addr] = s.Socket(addr)
	}
	return all
}

// alter has somebody on the way send, ahead of each datagram, what f makes of it: nothing if
// that is nil.
func alter(f func(*siege, flight) flight) func(*siege) {
	return func(s *siege) {
		sockets := s.sockets()
		var mu sync.Mutex
		stop := s.eavesdrop(func(d flight) {
			mu.Lock()
			defer mu.Unlock()
			if d = f(s, d); d.b != nil {
				s.throw(sockets[d.from], d.to, d.b)
			}
		})
		settle(siegeTime * 9 / 10)
		stop()
		settle(100 * ms)
	}
}

func truncate(s *siege, d flight) flight {
	d.b = d.b[:s.rng.IntN(len(d.b))]
	return d
}

func flip(s *siege, d flight) flight {
	// Not the bits of the form: another form is another attack.
	bit := 2 + s.rng.IntN(8*len(d.b)-2)
	d.b[bit/8] ^= 0x80 >> (bit % 8)
	return d
}

func reflect(_ *siege, d flight) flight {
	d.from, d.to = d.to, d.from
	return d
}

// cross sends datagrams of one player to the session of another one. A long header would name the session of the
// first one, so it is made a short one.
func cross(s *siege, d flight) flight {
	other := s.addrs[s.rng.IntN(len(s.addrs))]
	switch {
	case other == d.from || other == d.to:
		d.b = nil
	case d.from == siegeAddr:
		d.to = other
	default:
		d.from = other
		if d.b[0]>>6 == 1 { // a long header
			d.b = append([]byte{d.b[0] & 0x3f}, d.b[9:]...)
		}
	}
	return d
}

// double sends the very same, so that of the two only one is taken.
func double(_ *siege, d flight) flight { return d }

// sendAgain remembers what goes over the network in a second, and sends it all again, in
// another order, several times.
func sendAgain(s *siege) {
	var mu sync.Mutex
	var seen []flight
	stop := s.eavesdrop(func(d flight) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, d)
	})
	settle(siegeTime / 5)
	stop()
	settle(50 * ms) // what is on its way arrives before its copy
	sockets := s.sockets()
	s.rng.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
	for range 10 {
		for i, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
			if i%100 == 99 {
				settle(ms)
			}
		}
	}
	settle(100 * ms)
}

// racedCopies has somebody copy all that the players send and send it first, from an address of
// his own, and has the players name their sessions, as one does who has moved, by hints that
// look true.
func racedCopies(s *siege) {
	thief, server := s.from(place(0)), s.Socket(siegeAddr)
	var mu sync.Mutex
	stop := s.eavesdrop(func(d flight) {
		mu.Lock()
		defer mu.Unlock()
		if d.from == siegeAddr {
			return
		}
		s.throw(thief, siegeAddr, d.b)
		if d.b[0]>>6 == 0 { // a short header, of a datagram that is about to leave
			_, _ = server.WriteTo(append([]byte{unknownByte}, d.b[:3]...), d.from)
		}
	})
	settle(siegeTime * 9 / 10)
	stop()
	settle(100 * ms)
	uplinktest.Must(s.t, thief.Close())
}

// oldKeys has a client connect again from where it was, and sends it and the server what
// the session before was made of.
func oldKeys(s *siege) {
	home := place(0)
	var mu sync.Mutex
	var seen []flight
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if b[0]>>7 == 0 && (from == home || to == home) {
			seen = append(seen, flight{from, to, bytes.Clone(b)})
		}
	})
	const client = firstEnemy // no enemy, but not one of the players either
	connect := func() *raw {
		return dialRawAt(s.t, siegeAddr.String(), transport.Config{Network: at{s.Network, home.String()}, Token: s.issue(client, siegeAddr)}, 100*ms)
	}
	talk := func(c *raw, n int) {
		for range n {
			uplinktest.Must(s.t, c.Send([]byte{0xc0})) // which the server counts, as no message
			settle(5 * ms)
		}
	}
	first := connect()
	talk(first, 100)
	uplinktest.Must(s.t, first.Close())
	settle(100 * ms)
	s.Watch(s.note)
	second := connect()
	talk(second, 50)
	sockets := s.sockets()
	sockets[home] = s.Socket(home)
	dropped := second.Stats().Dropped.Total()
	for range 20 {
		for _, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
		}
		settle(10 * ms)
	}
	settle(100 * ms)
	s.elsewhere = map[string]uint64{"client": second.Stats().Dropped.Total() - dropped}
	talk(second, 1)
	s.tried += 151 // the messages
	if err := second.Send(nil); err != nil {
		s.t.Error(err)
	}
	s.tried++
}
