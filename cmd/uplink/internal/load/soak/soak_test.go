package soak

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

func soaking(t *testing.T, ctx context.Context, wrap func(transport.Network) transport.Network) ([]Phase, error) {
	t.Helper()
	network := wrap(uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{}))
	o := Options{Players: 5, Phase: MinPhase, For: time.Duration(2*len(conditions)) * MinPhase, Network: network}
	uplinktest.Must(t, o.Validate())
	var phases []Phase
	err := Run(ctx, []*trace.Trace{sample.Portal2()}, o, func(p Phase) {
		t.Log(p)
		phases = append(phases, p)
	})
	return phases, err
}

func plain(n transport.Network) transport.Network { return n }

// TestRun soaks for two rounds, in which the server ends four times.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phases, err := soaking(t, t.Context(), plain)
		if err != nil || len(phases) != 2*len(conditions) {
			t.Fatalf("%d phases: %v", len(phases), err)
		}
		last, sessions := phases[len(phases)-1], phases[len(phases)-1].Reconnections
		for _, p := range phases {
			sessions += p.Handovers
		}
		if sessions < 15 || last.Reconnections == 0 || last.SocketsChanged < 20 || last.Verified < 5*60*20 || last.Connected != 5 {
			t.Errorf("%d sessions more; %v", sessions, last)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*MinPhase)
		defer cancel()
		if phases, err := soaking(t, ctx, plain); !errors.Is(err, context.DeadlineExceeded) || len(phases) == 0 {
			t.Errorf("%d phases: %v", len(phases), err)
		}
	})
}

// once is a network in which an address can be had once.
type once struct {
	transport.Network
	had map[string]bool
}

var errHad = errors.New("somebody has it")

func (o *once) ListenPacket(addr string) (transport.PacketConn, error) {
	if !strings.HasSuffix(addr, ":0") { // the server's
		if o.had[addr] {
			return nil, errHad
		}
		o.had[addr] = true
	}
	return o.Network.ListenPacket(addr)
}

// TestAddressIsTaken checks a restart of the server while another socket occupies its address.
func TestAddressIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrap := func(n transport.Network) transport.Network { return &once{n, map[string]bool{}} }
		if phases, err := soaking(t, t.Context(), wrap); !errors.Is(err, errHad) || len(phases) != 2 {
			t.Errorf("%d phases: %v", len(phases), err)
		}
	})
}

func TestVerdict(t *testing.T) {
	good := Phase{Connected: 2, Players: 2, Frames: 10, Snapshots: 10, Handovers: 1, Verified: 10, settled: true}
	uplinktest.Must(t, good.verdict())
	for want, change := range map[string]func(*Phase){
		"1 of 11 frames are not what":  func(p *Phase) { p.Mismatched = 1 },
		"3 frames referred to another": func(p *Phase) { p.Desync = 3 },
		"no frame came":                func(p *Phase) { p.Frames = 0 },
		"no snapshot came":             func(p *Phase) { p.Snapshots = 0 },
		"nobody was handed over":       func(p *Phase) { p.Handovers = 0 },
		"1 of 2 players":               func(p *Phase) { p.Connected = 1 },
	} {
		p := good
		change(&p)
		if err := p.verdict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	busy := good
	busy.Connected, busy.settled = 1, false
	uplinktest.Must(t, busy.verdict())
}

func TestGrown(t *testing.T) {
	first := Usage{Goroutines: 100, Heap: 20e6, Files: 30}
	if what := first.grown(Usage{Goroutines: 104, Heap: 22e6, Files: 32}); what != nil {
		t.Errorf("%q", what)
	}
	what := strings.Join(first.grown(Usage{Goroutines: 150, Heap: 25e6, Files: 60}), ", ")
	if want := "goroutines from 100 to 150, file descriptors from 30 to 60, the heap from 20.0 to 25.0 MB"; what != want {
		t.Errorf("%q, want %q", what, want)
	}
}

// TestFrame plays from a row of its own, with frames missing, around the end of the trace.
func TestFrame(t *testing.T) {
	played := sample.Portal2()
	v := newVerifier([]*trace.Trace{played})
	frame := func(p *ds.Player, row int, seq uint64) {
		v.Frame(p, ds.Frame[*schema.Frame]{Value: played.At(row), Seq: seq})
	}
	expect := func(wantGood, wantBad uint64) {
		t.Helper()
		if good, bad := v.Counts(); good != wantGood || bad != wantBad {
			t.Errorf("%d good, %d bad, want %d and %d", good, bad, wantGood, wantBad)
		}
	}
	one, two := new(ds.Player), new(ds.Player)
	for i := range 2000 {
		frame(one, 3000+3*i, uint64(3*i))
		frame(two, 100+i, uint64(7+i))
	}
	expect(4000, 0)
	frame(one, 1, 6000) // a row that was not to come; whatever comes next is a new beginning
	expect(4000, 1)
	frame(one, 2, 6001)
	expect(4001, 1)
	altered := played.Schema.NewFrame()
	altered.CopyFrom(played.At(2100))
	altered.Ints[0]++
	v.Frame(two, ds.Frame[*schema.Frame]{Value: altered, Seq: 2007})
	expect(4001, 2)
	v.Left(one, nil)
	v.Left(two, errors.New("gone"))
	if len(v.players) != 0 {
		t.Errorf("%d players are kept", len(v.players))
	}
}
