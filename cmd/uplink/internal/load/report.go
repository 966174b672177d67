package load

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/internal/endpoint"
)

// Report is the result of a run.
type Report struct {
	Players   PlayerCounts   `json:"players"`
	Rate      float64        `json:"rate_hz"`
	Codec     string         `json:"codec"`
	Link      string         `json:"link"`
	Seconds   float64        `json:"seconds"`
	Frames    FrameCounts    `json:"frames"`
	Datagrams DatagramCounts `json:"datagrams"`
	Bits      FrameBits      `json:"bits_per_frame"`
	// RTT is measured by heartbeats, once per second and bot.
	RTT meter.Summary `json:"rtt"`
	// Lateness is the delay of calls after their due time.
	Lateness meter.Summary `json:"lateness"`
	CPU      CPUUse        `json:"cpu"`
}

// PlayerCounts counts players. Asked, Handovers, Reconnections and Rebinds cover the run, the other
// fields its end.
type PlayerCounts struct {
	Asked         int    `json:"asked"`
	Connected     int    `json:"connected"`
	Reconnecting  int    `json:"reconnecting"`
	Failed        int    `json:"failed"`    // players who never connected
	Ended         int    `json:"ended"`     // closed by the server or by an error
	Handovers     uint64 `json:"handovers"` // to other servers
	Reconnections uint64 `json:"reconnections"`
	Rebinds       uint64 `json:"rebinds"` // number of rebinds of --rebind-every
}

// FrameCounts counts calls.
type FrameCounts struct {
	Sent      uint64  `json:"sent"`
	PerSecond float64 `json:"per_second"`
	// Delivered and Missed count frames by the acks received in that time, which also cover frames
	// sent shortly before. Frames in neither were lost with a connection.
	Delivered uint64 `json:"delivered"`
	Missed    uint64 `json:"missed"`
	// Reconnecting and Skipped count calls that were not made: for lack of a connection, or because
	// the bot was late by a whole period.
	Reconnecting uint64 `json:"reconnecting"`
	Skipped      uint64 `json:"skipped"`
}

// DatagramCounts counts datagrams of all kinds.
type DatagramCounts struct {
	Sent       uint64 `json:"sent"`
	Received   uint64 `json:"received"`
	SendFailed uint64 `json:"send_failed"`
	// LostUp counts datagrams with frames that did not reach the server in time. LostDown counts
	// datagrams of the server that did not arrive.
	LostUp   uint64 `json:"lost_up"`
	LostDown uint64 `json:"lost_down"`
}

// FrameBits contains mean sizes per call in bits.
type FrameBits struct {
	Full    float64 `json:"full"`    // frame as an engine packs it
	Payload float64 `json:"payload"` // payload with its header, without the header of the datagram
	Up      float64 `json:"up"`      // all uplink datagrams, UDP and IP included
	Down    float64 `json:"down"`    // all downlink datagrams, UDP and IP included
	// WireRatio is the sum of Up and Down relative to full frames in separate encrypted datagrams.
	WireRatio float64 `json:"wire_ratio"`
}

// CPUUse is the CPU time of this process.
type CPUUse struct {
	Seconds float64 `json:"seconds"`
	Cores   float64 `json:"cores"` // busy on average
	Micros  float64 `json:"us_per_frame"`
}

func (r *replay) report(begin, end observation) *Report {
	d := between(begin, end)
	seconds := max(end.at.Sub(begin.at).Seconds(), 1e-9)
	frames := float64(d.Sent.Frames())
	if frames == 0 {
		frames = math.Inf(1) // then sizes per frame are 0
	}
	link := "none"
	if !r.options.Link.Perfect() {
		link = r.options.Link.String()
	}
	failed, _ := r.Failures()
	report := &Report{
		Players: PlayerCounts{
			Asked: r.options.Players, Connected: d.connected, Reconnecting: d.joined - d.connected - d.ended,
			Failed: failed, Ended: d.ended, Handovers: d.Handovers, Reconnections: d.Reconnections, Rebinds: d.Rebinds,
		},
		Rate: r.options.Rate, Codec: r.options.Codec.String(), Link: link, Seconds: seconds,
		Frames: FrameCounts{
			Sent: d.Sent.Frames(), PerSecond: float64(d.Sent.Frames()) / seconds, Delivered: d.Fates.Delivered,
			Missed: d.Fates.Missed, Reconnecting: d.Reconnecting, Skipped: d.Skipped,
		},
		Datagrams: DatagramCounts{
			Sent: d.Link.DatagramsSent, Received: d.Link.DatagramsReceived, SendFailed: d.Link.SendFailed,
			LostUp: d.Fates.Lost, LostDown: d.Link.Lost,
		},
		Bits: FrameBits{
			Full: float64(d.Sent.FullBits) / frames, Payload: 8 * float64(d.Bytes) / frames,
			Up: onWire(d.Link.BytesSent, d.Link.DatagramsSent) / frames, Down: onWire(d.Link.BytesReceived, d.Link.DatagramsReceived) / frames,
		},
		RTT:      r.trips.Summary(),
		Lateness: r.late.Summary(),
		CPU:      CPUUse{Seconds: d.cpu.Seconds(), Cores: d.cpu.Seconds() / seconds, Micros: 1e6 * d.cpu.Seconds() / frames},
	}
	if b := &report.Bits; b.Full > 0 {
		b.WireRatio = (b.Up + b.Down) / (b.Full + 8*endpoint.FullOverhead)
	}
	return report
}

// onWire returns the size of datagrams with UDP and IP headers, in bits.
func onWire(bytes, datagrams uint64) float64 {
	return 8 * float64(bytes+endpoint.IPSize*datagrams)
}

// String formats the report.
func (r *Report) String() string {
	var b strings.Builder
	p, f, d := &r.Players, &r.Frames, &r.Datagrams
	fmt.Fprintf(&b, "%d of %d players at %g Hz for %.1f s; codec %s; link: %s\n", p.Connected, p.Asked, r.Rate, r.Seconds, r.Codec, r.Link)
	if p.Failed+p.Ended+p.Reconnecting > 0 || p.Reconnections > 0 {
		fmt.Fprintf(&b, "players      %d never connected, %d ended, %d reconnecting; %d reconnections\n", p.Failed, p.Ended, p.Reconnecting, p.Reconnections)
	}
	if p.Handovers > 0 {
		fmt.Fprintf(&b, "handovers    %d to other servers\n", p.Handovers)
	}
	if p.Rebinds > 0 {
		fmt.Fprintf(&b, "moves        %d sockets changed\n", p.Rebinds)
	}
	fmt.Fprintf(&b, "frames       %d sent, %.0f a second; of those acked %s delivered, %d missed\n", f.Sent, f.PerSecond, share(f.Delivered, f.Missed), f.Missed)
	if f.Reconnecting+f.Skipped > 0 {
		fmt.Fprintf(&b, "not sent     %d while reconnecting, %d skipped since they were a period late\n", f.Reconnecting, f.Skipped)
	}
	fmt.Fprintf(&b, "datagrams    %d up, %d down; lost %d up, %d down", d.Sent, d.Received, d.LostUp, d.LostDown)
	if d.SendFailed > 0 {
		fmt.Fprintf(&b, "; %d refused by the socket", d.SendFailed)
	}
	fmt.Fprintf(&b, "\nbits a frame %.0f up, %.0f down with all headers; wire ratio %.2f; payloads without headers %.0f, bit-packed %.0f\n",
		r.Bits.Up, r.Bits.Down, r.Bits.WireRatio, r.Bits.Payload, r.Bits.Full)
	fmt.Fprintf(&b, "RTT          %v\n", r.RTT)
	fmt.Fprintf(&b, "lateness     %v\n", r.Lateness)
	fmt.Fprintf(&b, "cpu          %.1f s, %.2f cores, %.1f us a frame\n", r.CPU.Seconds, r.CPU.Cores, r.CPU.Micros)
	if r.Starved() {
		b.WriteString("The bots themselves were late: this machine could not make the load that was asked for.\nFewer players, or bots on another machine, would tell more about the server.\n")
	}
	return b.String()
}

// Starved reports whether the bots could not produce the requested load: 1 % of calls were late by
// more than half a period, or 0.1 % were not made.
func (r *Report) Starved() bool {
	return r.Lateness.P99 > 500/r.Rate || r.Frames.Skipped > r.Frames.Sent/1000
}

// share returns n as a share of n plus others.
func share(n, others uint64) string {
	if n+others == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(n+others))
}

// Progress is the state of a run.
type Progress struct {
	Elapsed          time.Duration
	Connected, Asked int
	Failed           int
	// Reconnections and Rebinds count since the first observation.
	Reconnections, Rebinds uint64
	PerSecond              float64       // frames sent in the last second
	Delivered, Missed      uint64        // in the last second
	Cores                  float64       // in the last second
	RTT                    meter.Summary // in the last second
	Lateness               meter.Summary // in the last second
}

func (r *replay) progress(first, before, now observation) Progress {
	d, seconds := between(before, now), now.at.Sub(before.at).Seconds()
	failed, _ := r.Failures()
	return Progress{
		Reconnections: now.Reconnections - first.Reconnections, Rebinds: now.Rebinds - first.Rebinds,
		Elapsed: now.at.Sub(first.at), Connected: now.connected, Asked: r.options.Players, Failed: failed,
		PerSecond: float64(d.Sent.Frames()) / seconds, Delivered: d.Fates.Delivered, Missed: d.Fates.Missed,
		Cores: d.cpu.Seconds() / seconds, RTT: now.trips.Summary(), Lateness: now.late.Summary(),
	}
}

// String formats the progress in one short line.
func (p Progress) String() string {
	players := fmt.Sprintf("%d/%d players", p.Connected, p.Asked)
	if p.Failed > 0 {
		players += fmt.Sprintf(", %d failed", p.Failed)
	}
	return fmt.Sprintf("%.0f s: %s, %.0f/s, %s came, rtt %v, late %v ms, cpu %.2f",
		p.Elapsed.Seconds(), players, p.PerSecond, share(p.Delivered, p.Missed),
		meter.Ms(p.RTT.P99), meter.Ms(p.Lateness.P99), p.Cores)
}
