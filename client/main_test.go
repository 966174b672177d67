package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// settle lets virtual time pass.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newNetwork returns a network with a round-trip time of 50 ms.
func newNetwork(t *testing.T, loss float64, seed uint64) *uplinktest.Network {
	c := newLink(loss)
	c.Seed = seed
	return uplinktest.NewNetwork(t, c, c)
}

func newLink(loss float64) simnet.Config { return simnet.Config{Delay: 25 * ms, Loss: loss} }

// match is a server with the RPC Move, whose frames a journal checks, and a client that calls it.
// The server also has an RPC Turn, which does nothing.
type match struct {
	t       *testing.T
	network *uplinktest.Network
	journal *uplinktest.Journal
	srv     *uplinktest.Server
	conn    *client.Conn
	move    *client.Stream[uplinktest.Move]

	next         uint64 // number of the next call
	reconnecting int    // calls that returned ErrReconnecting
}

// newMatch starts the server on a network with that loss.
func newMatch(t *testing.T, loss float64, seed uint64, cfg ds.Config) *match {
	t.Helper()
	m := &match{t: t, network: newNetwork(t, loss, seed), journal: uplinktest.NewJournal(t, 1)}
	m.serve(cfg)
	return m
}

// dialMatch starts a server with default configuration, and connects and binds a client.
func dialMatch(t *testing.T, loss float64, seed uint64, cfg client.Config, bind ...client.BindConfig) *match {
	t.Helper()
	return newMatch(t, loss, seed, ds.Config{}).dial(cfg, bind...)
}

// serve starts the server, again after it was closed.
func (m *match) serve(cfg ds.Config) {
	m.t.Helper()
	m.srv = uplinktest.Serve(m.t, m.network, cfg, func(s *ds.Server) error {
		return errors.Join(ds.Handle(s, "Move", m.journal.Handle), handles[uplinktest.Move]("Turn")(s))
	})
}

// crash ends the server without informing the client.
func (m *match) crash() {
	m.t.Helper()
	m.network.Crash(m.t, uplinktest.Addr)
	if err := <-m.srv.Served; err == nil {
		m.t.Error("Serve returned no error after its socket was closed")
	}
}

// dial connects a client and binds Move.
func (m *match) dial(cfg client.Config, bind ...client.BindConfig) *match {
	m.t.Helper()
	m.conn = uplinktest.Dial(m.t, m.network, cfg)
	m.move = uplinktest.Bind(m.t, m.conn, "Move", bind...)
	return m
}

// setLinks changes both directions of the network.
func (m *match) setLinks(link simnet.Config) { uplinktest.Must(m.t, m.network.Set(link, link)) }

// try makes the next call.
func (m *match) try() error {
	v := uplinktest.MoveAt(1, m.next)
	seq, err := m.move.Send(&v)
	if err == nil {
		if seq != m.next { // the journal compares the value with the sequence number
			m.t.Errorf("call %d has the sequence number %d", m.next, seq)
		}
		m.next++
	}
	return err
}

// send makes the next call, which must succeed.
func (m *match) send() {
	m.t.Helper()
	uplinktest.Must(m.t, m.try())
}

// call makes 60 calls per second. After a reconnection it starts with number 0.
func (m *match) call(d time.Duration) {
	m.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
		switch err := m.try(); {
		case errors.Is(err, client.ErrReconnecting):
			m.next = 0
			m.reconnecting++
		case err != nil:
			m.t.Fatal(err)
		}
	}
}
