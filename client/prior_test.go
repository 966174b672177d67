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

// movePrior is trained on the moves of other players.
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

// logged is a logger whose text can be read once all is quiet.
func logged() (*slog.Logger, *bytes.Buffer) {
	b := &bytes.Buffer{}
	return slog.New(slog.NewTextHandler(b, nil)), b
}

// TestPriors binds with priors that the server has and has not, over a bad link:
// every frame is right either way.
func TestPriors(t *testing.T) {
	mine, other := movePrior(t, 2), movePrior(t, 3)
	list := func(p ...*prior.Prior) []*prior.Prior { return p }
	bits := map[string]uint64{}
	for _, c := range []struct {
		name   string
		client *prior.Prior
		server []*prior.Prior
		falls  uint64
	}{
		{"neither", nil, nil, 0},
		{"both", mine, list(other, mine), 0},
		{"server", nil, list(mine), 0},
		{"client", mine, list(other), 1},
		{"named", prior.Generic(), nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0.1, 5)
			journal := uplinktest.NewJournal(t, 1)
			serverLog, serverText := logged()
			clientLog, clientText := logged()
			srv := uplinktest.Serve(t, network, ds.Config{Priors: c.server, Logger: serverLog}, func(s *ds.Server) error {
				return ds.Handle(s, "Move", journal.Handle)
			})
			conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, Prior: c.client, Redundancy: rpcdelta.RedundancyOff, Logger: clientLog})
			calls := caller{stream: uplinktest.Bind(t, conn, "Move")}
			calls.call(t, 1, 5*time.Second)
			settle(time.Second)
			if n := journal.Only().Frames(); n < 250 {
				t.Errorf("%s: %d frames came", c.name, n)
			}
			st, there := calls.stream.Stats(), srv.Stats().RPCs[0]
			if st.PriorFallbacks != c.falls || there.PriorFallbacks != c.falls || there.Drops[ds.Desync] != 0 {
				t.Errorf("%s: %d fallbacks here, %d there, %d desyncs", c.name, st.PriorFallbacks, there.PriorFallbacks, there.Drops[ds.Desync])
			}
			bits[c.name] = st.PayloadBits
			for _, text := range []string{clientText.String(), serverText.String()} {
				want := int(c.falls)
				if n := strings.Count(text, "prior not known"); n != want {
					t.Errorf("%s: %d lines, want %d:\n%s", c.name, n, want, text)
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

// TestPriorsAfterRestart has the server come back without the prior.
func TestPriorsAfterRestart(t *testing.T) {
	trained := movePrior(t, 2)
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.05, 6)
		journal := uplinktest.NewJournal(t, 1)
		up := func(priors ...*prior.Prior) *uplinktest.Server {
			return uplinktest.Serve(t, network, ds.Config{Priors: priors}, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
		}
		srv := up(trained)
		conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, Prior: trained})
		c := caller{stream: uplinktest.Bind(t, conn, "Move")}
		c.call(t, 1, 2*time.Second)
		network.Crash(t, uplinktest.Addr)
		<-srv.Served
		srv = up()
		c.call(t, 1, 10*time.Second)
		settle(time.Second)
		if logs := journal.Logs(); len(logs) != 2 || logs[1].Frames() < 200 {
			t.Errorf("%d players", len(logs))
		}
		if st := c.stream.Stats(); st.PriorFallbacks != 1 || srv.Stats().RPCs[0].PriorFallbacks != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestPriorOfRLE asks for none: the codec reads none.
func TestPriorOfRLE(t *testing.T) {
	trained := movePrior(t, 2)
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 7)
		srv := serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.RLE, Prior: trained})
		if st := uplinktest.Bind(t, conn, "Move").Stats(); st.PriorFallbacks != 0 || srv.Stats().RPCs[0].PriorFallbacks != 0 {
			t.Errorf("%+v", st)
		}
	})
}
