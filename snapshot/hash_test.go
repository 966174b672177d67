package snapshot_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// TestHashSeesAllOfAState flips a bit in each byte of a model state.
func TestHashSeesAllOfAState(t *testing.T) {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Burning", Class: schema.ClassInteger, N: 1, Hi: 1},
		snapshot.Field{Name: "Name", Class: schema.ClassBytes, N: snapshot.BytesComponents(8), Hi: 8},
	)
	must(t, err)
	if unseen, all := snapshot.FlipStateBytes(s); unseen > all/1000 || all < 1000 { // of 65,536 hashes one is the same
		t.Errorf("the hash does not see %d of %d bytes", unseen, all)
	}
}
