// Owntransport: Encoder and Decoder alone, over a connection that the game has
// already. Here that is a bare UDP socket pair which loses a tenth of what is
// sent. Payloads go up, acks come down, and both may be lost.
//
// Whatever carries payloads has to drop one that arrives after more than 64
// newer ones; packet numbers do that, and most transports have them. Loopback
// keeps the order, so this one needs none.
package main

import (
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Move is the RPC's arguments.
type Move struct {
	Location schema.Vec3    `uplink:"resolution=0.1"`
	View     schema.Rotator `uplink:"bits=16"`
	Flags    uint8
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer server.Close()
	conn, err := net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return err
	}
	defer conn.Close()

	move, err := schema.Compile[Move]("Move", 60)
	if err != nil {
		return err
	}
	enc, err := rpcdelta.NewEncoder(move.Schema(), rpcdelta.EncoderConfig{})
	if err != nil {
		return err
	}
	dec, err := rpcdelta.NewDecoder(move.Schema(), rpcdelta.DecoderConfig{})
	if err != nil {
		return err
	}
	lossy := rand.New(rand.NewPCG(1, 2))
	var stats rpcdelta.Stats
	var delivered, missed uint64
	frame, buf := move.Schema().NewFrame(), make([]byte, 2048)
	for i := range 600 {
		// The client: quantize, encode, send.
		t := float64(i) / 60
		v := Move{
			Location: schema.Vec3{X: 25000 + 300*math.Cos(t), Y: -61000 + 300*math.Sin(t)},
			View:     schema.Rotator{Pitch: 10 * math.Sin(2*t), Yaw: 40 * math.Sin(t)},
		}
		if err := move.Quantize(frame, &v); err != nil {
			return err
		}
		payload, info, err := enc.AppendFrame(buf[:0], frame)
		if err != nil {
			return err
		}
		stats.Count(&info)
		if lossy.Float64() < 0.1 {
			continue
		}
		if _, err := conn.Write(payload); err != nil {
			return err
		}

		// The server: receive, decode, use, and say what it has.
		n, from, err := server.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		frames, err := dec.Decode(buf[:n])
		if err != nil && !errors.Is(err, rpcdelta.ErrLate) {
			return err
		}
		for _, f := range frames {
			var got Move
			if err := move.Restore(&got, f.Frame); err != nil {
				return err
			}
			delivered++
			missed += f.Missed
		}
		if i%3 != 0 || lossy.Float64() < 0.1 {
			continue // acks 20 times a second, some of them lost
		}
		if _, err := server.WriteToUDPAddrPort(dec.AppendAck(buf[:0]), from); err != nil {
			return err
		}

		// The client: take the ack.
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if n, err = conn.Read(buf); err != nil {
			return err
		}
		ack, _, err := rpcdelta.ParseAck(buf[:n])
		if err != nil {
			return err
		}
		if err := enc.Ack(ack); err != nil {
			return err
		}
	}
	n := float64(stats.Frames())
	fmt.Printf("%d frames sent, %d delivered, %d missed; %.0f bits each in full, %.0f as sent\n",
		stats.Frames(), delivered, missed, float64(stats.FullBits)/n, float64(stats.HeaderBits+stats.PayloadBits)/n)
	return nil
}
