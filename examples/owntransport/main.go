// Owntransport: Encoder and Decoder over the game's own transport, here a pair of UDP sockets where
// 10 % of all payloads and acks are lost.
//
// A transport must drop a payload that arrives after more than 64 newer ones, for example by packet
// numbers. Loopback keeps the order, so this example needs none.
//
// Presets belong to the client, which is not used here: the defaults of rpcdelta.EncoderConfig send
// each call at once.
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

// Move contains the arguments of the RPC.
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

		// The server: receive, decode, handle, acknowledge.
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
			continue // 20 acks per second, of which some are lost
		}
		if _, err := server.WriteToUDPAddrPort(dec.AppendAck(buf[:0]), from); err != nil {
			return err
		}

		// The client: apply the ack.
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
	fmt.Printf("%d frames sent, %d delivered, %d missed; payloads without your transport's headers have %.0f bits a frame, bit-packed %.0f\n",
		stats.Frames(), delivered, missed, float64(stats.HeaderBits+stats.PayloadBits)/n, float64(stats.FullBits)/n)
	return nil
}
