package client

import (
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// TestOtherVersion has a server answer with a built-in prior that this version
// does not know: going on would be taken for a desync again and again.
func TestOtherVersion(t *testing.T) {
	move, err := schema.New("Move", 60, []schema.Field{{Name: "X", Kind: schema.KindScalar, Resolution: 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{conn: &Conn{cfg: Config{Codec: rpcdelta.Adaptive}}, schema: move}
	generic := prior.Generic()
	if p, fallback, err := s.agreed(&control.BindAnswer{Prior: generic.Hash()}); p != generic || fallback || err != nil {
		t.Errorf("%v, %v, %v", p, fallback, err)
	}
	_, _, err = s.agreed(&control.BindAnswer{Prior: 0xabc})
	if err == nil || !strings.Contains(err.Error(), "bind Move: the server's built-in prior is 0000000000000abc, this one's "+generic.String()) {
		t.Errorf("%v", err)
	}
}
