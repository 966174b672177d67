package ds_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestBeforeHandoverData verifies that a client whose handover data has not arrived can bind, but
// that none of its frames and messages reach the game: they are held until it joins, which it does
// not.
func TestBeforeHandoverData(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		calls := 0
		f := newSquad(t, linkedBy(t, 20*ms, simnet.Config{}), 1, func(c *ds.Config) {
			c.Hooks.OnUnreliable = func(*ds.Player, []byte) { calls++ }
			c.OnMessage = func(*ds.Player, []byte) { calls++ }
			c.Hooks.OnRequest = func(*ds.Request) { calls++ }
		})
		tok := f.token(7, func(c *token.Claims) { c.Handover = sha256.Sum256([]byte("state")) })
		r := dialRawAt(t, f.members[0].addr, endpoint.Config{Network: f.network, Token: tok}, 100*ms)
		typ, err := schema.Compile[numbered]("Step", 0)
		uplinktest.Must(t, err)
		r.mustBind(request(0, typ.Schema(), false))
		enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{})
		uplinktest.Must(t, err)
		payload, _, err := enc.AppendFrame(nil, typ.Schema().NewFrame())
		uplinktest.Must(t, err)
		r.say(payload)
		r.say(message.AppendMessage(nil, []byte("early")))
		uplinktest.Must(t, r.SendReliable(message.AppendMessage(nil, letter(0))))
		uplinktest.Must(t, r.SendReliable(message.AppendRequest(nil, message.Ask, 1, nil)))
		settle(time.Minute)
		st := f.members[0].Stats()
		if st.RPCs[1].RPC != "Step" || st.RPCs[1].Frames() != 0 || calls != 0 {
			t.Errorf("%d frames and %d messages reach the game", st.RPCs[1].Frames(), calls)
		}
		if !errors.Is(r.closed, session.ErrProtocol) || len(f.ids()) != 0 {
			t.Errorf("the session ended with %v, %d joined", r.closed, len(f.ids()))
		}
	})
}
