package ds_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

var errTenth = errors.New("every tenth is refused")

// TestValidate verifies that rejected frames are not delivered, and count as missed, without an
// effect on the codec.
func TestValidate(t *testing.T) {
	for _, poll := range []bool{false, true} {
		bubble(t, fmt.Sprintf("poll=%v", poll), func(t *testing.T) { checkValidate(t, poll) })
	}
}

func checkValidate(t *testing.T, poll bool) {
	const frames = 1200
	network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 20 * ms, Seed: 50})
	journal := uplinktest.NewJournal(t, 1)
	var player *ds.Player
	refused := uint64(0)
	srv := uplinktest.Serve(t, network, ds.Config{Poll: poll}, func(s *ds.Server) error {
		return errors.Join(ds.Handle(s, "Move", journal.Handle), ds.Validate(s, "Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) error {
			player = p
			if f.Seq%10 == 3 {
				refused++
				return errTenth
			}
			return nil
		}))
	})
	move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff}), "Move")
	for i := range uint64(frames) {
		play(t, move, 1, i, 1, 60)
		srv.Poll()
	}
	settle(time.Second)
	srv.Poll()
	log, got, sent := journal.Only(), srv.Stats().RPCs[0], move.Stats()
	if slices.ContainsFunc(log.Seen(), func(seq uint64) bool { return seq%10 == 3 }) || log.Frames() < frames*6/10 {
		t.Errorf("delivered %v", log.Seen())
	}
	if log.Frames()+log.Missed != log.Next { // the journal checks Missed of each frame
		t.Errorf("%d delivered and %d missed of %d", log.Frames(), log.Missed, log.Next)
	}
	if refused < frames/10*6/10 || got.Drops[ds.Rejected] != refused || player.Rejected() != refused || got.Frames() != log.Frames()+refused {
		t.Errorf("%d refused, counted %+v, of the player %d", refused, got, player.Rejected())
	}
	if got.Drops[ds.Desync]+got.Drops[ds.BaselineMissing] != 0 || sent.Delta < frames*9/10 {
		t.Errorf("the codec suffers: %+v, sent %+v", got, sent)
	}
}

// TestMaxRejected verifies that a session ends after too many rejected frames, with a reason, and
// that frames that wait for Poll are not delivered.
func TestMaxRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		delivered, left := 0, 0
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, MaxRejected: 3, Left: func(*ds.Player, error) { left++ }}, func(s *ds.Server) error {
			return errors.Join(
				ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { delivered++ }),
				ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
					if f.Seq >= 5 {
						return errTenth
					}
					return nil
				}))
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		play(t, move, 1, 0, 50, 60)
		srv.Poll()
		settle(time.Second)
		srv.Poll()
		m := uplinktest.MoveAt(1, 50)
		if err := move.Send(&m); !errors.Is(err, client.ErrKicked) || !strings.Contains(err.Error(), "too many rejected frames") {
			t.Errorf("the client is told %v", err)
		}
		if st := srv.Stats().RPCs[0]; delivered != 5 || left != 1 || st.Drops[ds.Rejected] != 3 {
			t.Errorf("%d delivered, left %d times, %+v", delivered, left, st)
		}
	})
}

// TestBadValidate verifies the errors of Validate.
func TestBadValidate(t *testing.T) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer srv.Close()
	uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[noField]) {}))
	buttons := buttonsSchema(t)
	uplinktest.Must(t, ds.HandleSchema(srv, buttons, func(*ds.Player, ds.Frame[*schema.Frame]) {}))
	for want, err := range map[string]error{
		"validate Fire: it is not handled":           ds.Validate(srv, "Fire", func(*ds.Player, ds.Frame[noField]) error { return nil }),
		"validate Move: it is handled, but not with": ds.Validate(srv, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) error { return nil }),
		"but not with *schema.Frame":                 ds.Validate(srv, "Move", func(*ds.Player, ds.Frame[*schema.Frame]) error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	uplinktest.Must(t, ds.Validate(srv, "Buttons", func(*ds.Player, ds.Frame[*schema.Frame]) error { return nil }))
}

// TestValidateLate verifies that a rejected late frame is not counted as missed again.
func TestValidateLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(60*ms, simnet.Config{Jitter: 40 * ms, Seed: 51})
		network := uplinktest.NewNetwork(t, up, down)
		inOrder, late, missed, refusedLate := uint64(0), uint64(0), uint64(0), uint64(0)
		srv := uplinktest.Serve(t, network, ds.Config{DeliverLate: true}, func(s *ds.Server) error {
			return errors.Join(ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
				missed += f.Missed
				if f.Late {
					late++
				} else {
					inOrder = f.Seq + 1
				}
			}), ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
				if f.Late && f.Seq%2 == 0 {
					refusedLate++
					return errTenth
				}
				return nil
			}))
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff}), "Move")
		play(t, move, 1, 0, 1200, 60)
		settle(time.Second)
		got := srv.Stats().RPCs[0]
		if delivered := got.Frames() - refusedLate; refusedLate < 50 || delivered-late+missed != inOrder || got.Drops[ds.Rejected] != refusedLate {
			t.Errorf("%d delivered, %d of them late, %d missed up to %d, %d refused: %+v", delivered, late, missed, inOrder, refusedLate, got)
		}
	})
}
