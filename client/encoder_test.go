package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// TestSetRedundancy changes the redundancy while a client calls over a lossy link. It applies to
// bound RPCs, to those that are bound later, and after a reconnection.
func TestSetRedundancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0.3, 5, client.Config{Redundancy: rpcdelta.RedundancyOff, Timeout: 3 * time.Second})
		conn := m.conn
		// expect checks the share of frames that do not arrive within 20 s.
		expect := func(what string, redundancy int, lo, hi float64) {
			t.Helper()
			before := m.srv.Stats().RPCs[0]
			m.call(20 * time.Second)
			after := m.srv.Stats().RPCs[0]
			lost, came := float64(after.Missed-before.Missed), float64(after.Frames()-before.Frames())
			if share := lost / (lost + came); share < lo || share > hi {
				t.Errorf("%s: %.3f of the frames are missed, want %v to %v", what, share, lo, hi)
			}
			if got := m.move.Stats().Redundancy; got != redundancy {
				t.Errorf("%s: redundancy %d, want %d", what, got, redundancy)
			}
		}
		expect("off", 0, 0.25, 0.35)
		uplinktest.Must(t, conn.SetRedundancy(3))
		expect("3", 3, 0, 0.03)
		uplinktest.Must(t, conn.SetRedundancy(2))
		m.setLinks(newLink(1))
		m.call(10 * time.Second)
		m.setLinks(newLink(0.3))
		m.call(20 * time.Second)
		expect("2, connected again", 2, 0, 0.05)
		second := uplinktest.Bind(t, conn, "Move")
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("an RPC that is bound later has redundancy %d", got)
		}
		if err := conn.SetRedundancy(8); err == nil || !strings.HasPrefix(err.Error(), "client: SetRedundancy: ") {
			t.Errorf("8: %v", err)
		}
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("after an error: redundancy %d", got)
		}
	})
}

// movePrior returns a prior that is trained on the moves of other players.
func movePrior(t *testing.T, salt uint64) *prior.Prior {
	t.Helper()
	typ, err := schema.Compile[uplinktest.Move]("Move", 0)
	uplinktest.Must(t, err)
	r := prior.Recording{Schema: typ.Schema(), Frames: make([]schema.Frame, 600)}
	for i := range r.Frames {
		r.Frames[i] = *typ.Schema().NewFrame()
		m := uplinktest.MoveAt(salt, uint64(i))
		uplinktest.Must(t, typ.Quantize(&r.Frames[i], &m))
	}
	p, err := prior.Train(context.Background(), []prior.Recording{r}, prior.TrainConfig{})
	uplinktest.Must(t, err)
	return p
}

// logged returns a logger and its text.
func logged() (*slog.Logger, *bytes.Buffer) {
	b := &bytes.Buffer{}
	return slog.New(slog.NewTextHandler(b, nil)), b
}

// TestPriors binds with priors that the server has and with others, over a bad link.
func TestPriors(t *testing.T) {
	mine, other := movePrior(t, 2), movePrior(t, 3)
	bits := map[string]uint64{}
	for _, c := range []struct {
		name   string
		client *prior.Prior
		server []*prior.Prior
		falls  uint64
		codec  rpcdelta.Codec
	}{
		{"neither", nil, nil, 0, rpcdelta.Adaptive},
		{"both", mine, []*prior.Prior{other, mine}, 0, rpcdelta.Adaptive},
		{"server", nil, []*prior.Prior{mine}, 0, rpcdelta.Adaptive},
		{"client", mine, []*prior.Prior{other}, 1, rpcdelta.Adaptive},
		{"named", prior.Generic(), nil, 0, rpcdelta.Adaptive},
		{"unused", mine, []*prior.Prior{other}, 0, rpcdelta.RLE},
	} {
		synctest.Test(t, func(t *testing.T) {
			serverLog, serverText := logged()
			clientLog, clientText := logged()
			m := newMatch(t, 0.1, 5, ds.Config{Priors: c.server, Logger: serverLog}).dial(client.Config{
				Codec: c.codec, Prior: c.client, Redundancy: rpcdelta.RedundancyOff, Logger: clientLog,
			})
			m.call(5 * time.Second)
			settle(time.Second)
			if n := m.journal.Only().Frames(); n < 250 {
				t.Errorf("%s: %d frames arrived", c.name, n)
			}
			st, there := m.move.Stats(), m.srv.Stats().RPCs[0]
			if st.PriorFallbacks != c.falls || there.PriorFallbacks != c.falls || there.Drops[ds.Desync] != 0 {
				t.Errorf("%s: %d fallbacks here, %d there, %d desyncs", c.name, st.PriorFallbacks, there.PriorFallbacks, there.Drops[ds.Desync])
			}
			bits[c.name] = st.PayloadBits
			for _, text := range []string{clientText.String(), serverText.String()} {
				if n := strings.Count(text, "prior not known"); n != int(c.falls) {
					t.Errorf("%s: %d lines, want %d:\n%s", c.name, n, c.falls, text)
				}
				if c.falls > 0 && (!strings.Contains(text, "prior="+mine.String()) || !strings.Contains(text, "used="+prior.Generic().String())) {
					t.Errorf("%s: no hashes in\n%s", c.name, text)
				}
			}
		})
	}
	if bits["both"] > bits["neither"]*9/10 {
		t.Errorf("%d bits with the prior, %d without", bits["both"], bits["neither"])
	}
}
