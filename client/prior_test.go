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

// TestPriorsAfterRestart restarts the server without the prior.
func TestPriorsAfterRestart(t *testing.T) {
	trained := movePrior(t, 2)
	synctest.Test(t, func(t *testing.T) {
		m := newMatch(t, 0.05, 6, ds.Config{Priors: []*prior.Prior{trained}}).dial(client.Config{Codec: rpcdelta.Adaptive, Prior: trained})
		m.call(2 * time.Second)
		m.crash()
		m.serve(ds.Config{})
		m.call(10 * time.Second)
		settle(time.Second)
		if logs := m.journal.Logs(); len(logs) != 2 || logs[1].Frames() < 200 {
			t.Errorf("%d players", len(logs))
		}
		if st := m.move.Stats(); st.PriorFallbacks != 1 || m.srv.Stats().RPCs[0].PriorFallbacks != 1 {
			t.Errorf("%+v", st)
		}
	})
}
