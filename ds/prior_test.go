package ds_test

import (
	"context"
	"testing"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// buttonsPrior is trained on a few buttons.
func buttonsPrior(t *testing.T, frames int) *prior.Prior {
	t.Helper()
	s := buttonsSchema(t)
	r := prior.Recording{Schema: s}
	for i := range frames {
		f := s.NewFrame()
		f.Ints[0] = int32(i / 9 % 4)
		r.Frames = append(r.Frames, *f)
	}
	p, err := prior.Train(context.Background(), []prior.Recording{r}, prior.TrainConfig{})
	uplinktest.Must(t, err)
	return p
}

// TestPriorOfAnswer verifies that the answer names the prior that is used, also if the request is
// repeated.
func TestPriorOfAnswer(t *testing.T) {
	old, now := buttonsPrior(t, 100), buttonsPrior(t, 200)
	generic := prior.Generic().Hash()
	besides(t, ds.Config{Priors: []*prior.Prior{now, old}}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		for n, c := range []struct {
			codec       string
			asks, wants uint64
		}{
			{"adaptive", old.Hash(), old.Hash()},
			{"adaptive", now.Hash(), now.Hash()},
			{"adaptive", generic, generic},
			{"adaptive", 0, generic},
			{"adaptive", 12345, generic},
			{"rle", 12345, 0},
			{"rle", old.Hash(), 0},
		} {
			req := request(n, buttons, false)
			req.Codec, req.Prior = c.codec, c.asks
			if a := r.bind(req); a.Reason != 0 || a.Prior != c.wants {
				t.Errorf("%s, prior %x: %+v", c.codec, c.asks, a)
			}
			req.Prior = now.Hash() // it is bound by now
			if a := r.bind(req); a.Reason != 0 || a.Prior != c.wants {
				t.Errorf("%s, prior %x, asked again: %+v", c.codec, c.asks, a)
			}
		}
		for _, st := range srv.Stats().RPCs {
			want := uint64(0)
			if st.RPC == "Buttons" {
				want = 2
			}
			if st.PriorFallbacks != want {
				t.Errorf("%s: %d fallbacks, want %d", st.RPC, st.PriorFallbacks, want)
			}
		}
	})
}

func TestNilPrior(t *testing.T) {
	if _, err := ds.Listen("127.0.0.1:0", ds.Config{Priors: []*prior.Prior{nil}}); err == nil {
		t.Error("a nil among the priors was taken")
	}
}
