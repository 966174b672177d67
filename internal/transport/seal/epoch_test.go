package seal

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// TestEpochs seals datagrams over several epochs, loses some and delivers the others out of order,
// with forged ones between them, and knows of each whether the opener still or already has its
// keys.
func TestEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		suite := rapid.SampledFrom(realSuites).Draw(t, "suite")
		s, o := NewSealer(suite, testSecrets.ToServer), NewOpener(suite, testSecrets.ToServer)
		type datagram struct {
			number uint64
			sealed []byte
		}
		var queue []datagram
		// model: the epoch of the opener, and whether it has the keys of the one before.
		epoch, previous := uint64(0), false
		number := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1: // send, near the end of an epoch or far on
				if number++; rapid.Bool().Draw(t, "leap") {
					number = max(number, (number>>EpochBits+1)<<EpochBits-3)
				} else {
					number += rapid.Uint64Range(0, 2000).Draw(t, "gap")
				}
				queue = append(queue, datagram{number, s.Seal(nil, nil, fmt.Append(nil, number), number)})
			case 2: // deliver any of those on the way
				if len(queue) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "which")
				d := queue[i]
				queue = append(queue[:i], queue[i+1:]...)
				of := d.number >> EpochBits
				want := of == epoch || of == epoch+1 || of+1 == epoch && previous
				got, ok := o.Open(nil, nil, d.sealed, d.number)
				if ok != want || ok && !bytes.Equal(got, fmt.Append(nil, d.number)) {
					t.Fatalf("number %#x in epoch %d: opened %x, %v; want %v", d.number, epoch, got, ok, want)
				}
				if want && of == epoch+1 {
					epoch, previous = of, true
				} else if want && of == epoch && d.number%(1<<EpochBits) >= WindowSize {
					previous = false
				}
			case 3: // forge
				forged := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "forged")
				at := max(number, 1<<EpochBits) + rapid.Uint64Range(0, 4<<EpochBits).Draw(t, "at") - 1<<EpochBits
				if got, ok := o.Open(nil, nil, forged, at); ok {
					t.Fatalf("forged datagram %#x opened: %x", at, got)
				}
			}
		}
	})
}

func TestEpochKeysGoWithTheWindow(t *testing.T) {
	s, o := NewSealer(AES128GCM, testSecrets.ToServer), NewOpener(AES128GCM, testSecrets.ToServer)
	const first = 1 << EpochBits
	last := s.Seal(nil, nil, nil, first-1)
	for _, step := range []struct {
		number uint64
		last   bool // number first-1 still opens after this
	}{{first, true}, {first + WindowSize - 1, true}, {first + WindowSize, false}} {
		if _, ok := o.Open(nil, nil, s.Seal(nil, nil, nil, step.number), step.number); !ok {
			t.Fatalf("number %#x does not open", step.number)
		}
		if _, ok := o.Open(nil, nil, last, first-1); ok != step.last {
			t.Errorf("after number %#x the last of the epoch before: %v, want %v", step.number, ok, step.last)
		}
	}
}

// TestForgeriesDeriveOnce: whoever sends garbage with numbers of the next epoch makes the opener
// find that epoch's keys once, not each time.
func TestForgeriesDeriveOnce(t *testing.T) {
	for _, suite := range realSuites {
		o := NewOpener(suite, testSecrets.ToServer)
		forged := make([]byte, 40)
		check.NoAllocs(t, func() { o.Open(forged[:0], nil, forged, 1<<EpochBits) })
		sealed := NewSealer(suite, testSecrets.ToServer).Seal(nil, nil, []byte("x"), 3)
		if _, ok := o.Open(nil, nil, sealed, 3); !ok {
			t.Errorf("%v: epoch 0 does not open after them", suite)
		}
	}
}

// TestRatchet: the chain keeps nothing from which the keys of an epoch could be found again.
func TestRatchet(t *testing.T) {
	c := newChain(AES128GCM, testSecrets.ToServer)
	c.next()
	if c.epoch != 1 || c.secret == testSecrets.ToServer {
		t.Errorf("after the keys of epoch 0 the chain is at epoch %d, with the secret %x", c.epoch, c.secret)
	}
}
