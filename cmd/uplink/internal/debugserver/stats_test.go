package debugserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

func TestStats(t *testing.T) {
	move := ds.RPCStats{RPC: "Move", Stats: rpcdelta.Stats{Delta: 7}, Missed: 2}
	move.Drops[ds.Late] = 3
	st := ds.Stats{RPCs: []ds.RPCStats{move}, Acks: ds.AckStats{Messages: 4}}
	st.Drops[ds.Malformed] = 5
	text, err := json.Marshal(Stats(st))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"RPC":"Move"`, `"Delta":7`, `"late":3`, `"Missed":2`, `"Messages":4`, `"malformed":5`, `"DatagramsReceived":0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
