// Package snapbench measures the size of snapshots of recorded worlds, packed and adaptive.
package snapbench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// Distance is the distance to the baseline in frames, and the index of the first measured frame.
const Distance = 6

// Row is the result of one codec or packing.
type Row struct {
	Form string `json:"form"`
	// Frames is the number of measured frames, Delivered the number of those that arrived.
	Frames    int `json:"frames"`
	Delivered int `json:"delivered"`
	// Bytes is the mean size of a frame, each rounded up to whole bytes. Kbits is its bandwidth at
	// 60 Hz in kbit/s.
	Bytes float64 `json:"bytes"`
	Kbits float64 `json:"kbits"`
	// EncodeUs and DecodeUs are mean times in microseconds, 0 if not measured. Encoding includes
	// the learning of the world.
	EncodeUs float64 `json:"encode_us"`
	DecodeUs float64 `json:"decode_us"`
	// Wrong is the number of frames that were decoded to other values.
	Wrong int `json:"wrong"`
}

func (r *Row) finish(bytes int) *Row {
	r.Bytes = float64(bytes) / float64(max(1, r.Frames))
	r.Kbits = r.Bytes * 8 * 60 / 1000
	return r
}

// Link is a simulated link. Times are in frames of 1/60 s.
type Link struct {
	// Loss is the loss of snapshots and acks, 0 to 1.
	Loss float64
	// Down and Up are the delays of snapshots and acks.
	Down, Up int
	// Seed is the random seed.
	Seed uint64
}

// Adaptive measures encoder and decoder over a link. Frames before the first measured one are
// always delivered. clock returns the time since some start.
func Adaptive(form string, sets []*snapshot.Set, link Link, clock func() time.Duration) (*Row, error) {
	random := rand.New(rand.NewPCG(link.Seed, 1))
	s := cubeset.Schema()
	world := snapshot.NewHistory(s, sets[0])
	var enc snapshot.Encoder
	dec := snapshot.NewDecoder(s, sets[0])
	var receipts snapshot.Receipts
	r, bytes := &Row{Form: form}, 0
	var encode, decode []time.Duration
	payloads := make([][]byte, len(sets))
	acks := make([]snapshot.Ack, len(sets)+link.Down)
	for now := 0; now < len(sets)+link.Down; now++ {
		if n := now - link.Up; n >= 0 && (n < Distance || random.Float64() >= link.Loss) {
			if _, err := receipts.Ack(acks[n]); err != nil {
				return nil, err
			}
		}
		if now < len(sets) {
			start := clock()
			set := world.Begin()
			began := clock() - start
			set.CopyFrom(sets[now])
			start = clock()
			b := receipts.Baseline(uint64(now))
			out, _, err := enc.Append(nil, world, b, 1<<20)
			receipts.Sent(uint64(now), b)
			encode = append(encode, clock()-start+began)
			if err != nil {
				return nil, err
			}
			payloads[now] = out
			if now >= Distance {
				r.Frames++
				bytes += len(out)
			}
		}
		acks[now] = dec.Ack()
		n := now - link.Down
		if n < 0 || n >= Distance && random.Float64() < link.Loss {
			continue
		}
		start := clock()
		_, got, err := dec.Decode(payloads[n])
		decode = append(decode, clock()-start)
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		if !got.Equal(sets[n]) {
			r.Wrong++
		}
		if n >= Distance {
			r.Delivered++
		}
		acks[now] = dec.Ack()
	}
	r.EncodeUs, r.DecodeUs = mean(encode), mean(decode)
	return r.finish(bytes), nil
}

// mean returns the mean in microseconds, 0 if there are no values.
func mean(t []time.Duration) float64 {
	sum := time.Duration(0)
	for _, d := range t {
		sum += d
	}
	return float64(sum) / float64(max(1, len(t))) / 1e3
}
