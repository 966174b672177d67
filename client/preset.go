package client

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// DelayPolicy limits how long the frames of an RPC may wait for later ones, to share a payload with
// them, and how long they are of use to the server. Frames do not wait if a bits or bool field
// changed, or any field in a way that the codec did not expect; the tag option urgent selects other
// fields.
type DelayPolicy struct {
	// MaxBatchDelay is the maximum time from Send until a frame leaves. It is rounded to frames:
	// 33 ms are 2 later frames at 60 Hz and 1 at 30 Hz. At most 7 frames.
	MaxBatchDelay time.Duration
	// Tolerance is the maximum delay of the next Send, compared to the expected time, for which
	// held frames wait; default one interval of BindConfig.RateHz.
	Tolerance time.Duration
	// Deadline is the time from Send after which a frame is of no more use to the server, in
	// addition to the one-way delay; redundant copies leave by then. It applies from 60 frames a
	// second on, and is longer for rarer frames. 0 means that there is no deadline.
	Deadline time.Duration
	// Delivery is the share of frames that are to arrive by the deadline; default
	// Config.Tuning.Delivery.
	Delivery float64
	// UrgentLoss is the accepted probability that all copies of an urgent frame are lost which
	// leave in consecutive ticks; default 1.5 %. It determines their number. Further copies leave
	// with later frames.
	UrgentLoss float64
	// Repair repeats lost payloads when their acks are overdue, where round-trip time and Deadline
	// permit, instead of repeating all frames. The server then holds back the frames after a lost
	// one until the lost frame arrives or its deadline passes.
	Repair bool
}

// Preset is a choice between delay and bandwidth, see Config.Preset.
type Preset struct {
	// Name is the name on the command line.
	Name string
	// DelayPolicy is the default of BindConfig.Delay.
	DelayPolicy
	// Suite is the preferred cipher suite.
	Suite transport.Suite
}

// presetDelivery is the Delivery of all presets. It leaves a margin to 99.9 %.
const presetDelivery = 0.9993

// The presets.
var (
	// LowLatency sends every frame at once.
	LowLatency = Preset{
		"low-latency",
		DelayPolicy{Deadline: 55 * time.Millisecond, Delivery: presetDelivery},
		transport.AES128GCM,
	}
	// Balanced lets frames wait for up to 33 ms: 2 frames at 60 Hz, 1 at 30 Hz.
	Balanced = Preset{
		"balanced",
		DelayPolicy{MaxBatchDelay: time.Second / 30, Deadline: 120 * time.Millisecond, Delivery: presetDelivery, Repair: true},
		transport.AES128GCM,
	}
	// LowBandwidth lets frames wait for up to 50 ms, which are 3 frames at 60 Hz, and prefers the
	// compact suite, which the server must permit.
	LowBandwidth = Preset{
		"low-bandwidth",
		DelayPolicy{
			MaxBatchDelay: time.Second / 20, Deadline: 220 * time.Millisecond, Delivery: presetDelivery,
			UrgentLoss: 0.15, Repair: true,
		},
		transport.AES128CTRHMAC8,
	}
)

// deadlineRate is the rate in Hz below which deadlines are longer.
const deadlineRate = 60

// DeadlineAt returns the deadline of frames at a rate in Hz.
func (p *DelayPolicy) DeadlineAt(rateHz float64) time.Duration {
	return time.Duration(float64(p.Deadline) * max(1, deadlineRate/rateHz))
}

// FramesAt returns MaxBatchDelay, rounded to nearest, and the deadline, rounded down, in frames at
// a rate in Hz.
func (p *DelayPolicy) FramesAt(rateHz float64) (batch, deadline int) {
	const tolerance = 0.01 // in frames: rates such as 66.67 Hz are rounded themselves
	batch = int(math.Floor(p.MaxBatchDelay.Seconds()*rateHz + 0.5 + tolerance))
	return batch, int(math.Floor(p.DeadlineAt(rateHz).Seconds()*rateHz + tolerance))
}

// check returns an error that names an invalid field for frames at a rate in Hz. cfg is the rest of
// the binding's settings.
func (p *DelayPolicy) check(cfg *BindConfig, rateHz float64, codec rpcdelta.Codec) error {
	switch batch, deadline := p.FramesAt(rateHz); {
	case *p == DelayPolicy{}:
		return nil
	case cfg.Reliable:
		return errors.New("BindConfig.Delay: a reliable RPC sends each frame at once")
	case codec != rpcdelta.Adaptive:
		return fmt.Errorf("BindConfig.Delay: codec %v has one frame per payload, use %v", codec, rpcdelta.Adaptive)
	case p.MaxBatchDelay < 0 || batch >= rpcdelta.MaxHeld:
		return fmt.Errorf("BindConfig.Delay.MaxBatchDelay is %v, %d frames at %v Hz, want 0 to %d frames", p.MaxBatchDelay, batch, rateHz, rpcdelta.MaxHeld-1)
	case p.Deadline < 0 || p.Deadline > 0 && deadline < batch:
		return fmt.Errorf("BindConfig.Delay.Deadline is %v, want at least MaxBatchDelay, %v, or 0", p.Deadline, p.MaxBatchDelay)
	case p.Tolerance < 0:
		return fmt.Errorf("BindConfig.Delay.Tolerance is %v, want at least 0", p.Tolerance)
	}
	return rpcdelta.EncoderConfig{Delivery: p.Delivery, UrgentLoss: p.UrgentLoss}.Check()
}
