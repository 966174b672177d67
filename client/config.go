package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// DefaultBindTimeout is the default of Config.BindTimeout.
const DefaultBindTimeout = 5 * time.Second

// Config sets up a [Conn]. The zero value of each field means its default.
type Config struct {
	// Token lets the client in, once; the game's backend issues it, see package
	// token. Without one, only loopback addresses are allowed.
	Token token.Token
	// Renew gives another token for each attempt to make a lost connection again,
	// since Token is used up. Without it a connection that needed one is not made again.
	// An error counts as an attempt. The context ends when the connection is closed. Dial
	// calls it, with its own context, if Token has been used before.
	Renew func(context.Context) (token.Token, error)
	// Suites are how datagrams may be sealed; default transport.AES128GCM.
	Suites []transport.Suite
	// Insecure allows the key that everybody has on other addresses than loopback,
	// and the suite None. It is for measurements.
	Insecure bool
	// Codec is how frames become bits; default rpcdelta.DefaultCodec.
	Codec rpcdelta.Codec
	// Redundancy is how many older payloads' frames ride along in each payload of an
	// unreliable RPC: rpcdelta.RedundancyAuto, the default, follows the loss.
	// [Conn.SetRedundancy] changes it later.
	Redundancy int
	// Delivery is the share of frames that rpcdelta.RedundancyAuto aims to have
	// delivered; default rpcdelta.DefaultDelivery.
	Delivery float64
	// RedundancyBytes is how long older frames may make a payload; default
	// rpcdelta.DefaultRedundancyBytes.
	RedundancyBytes int
	// Tick makes unreliable RPCs share datagrams: payloads are collected and sent once per Tick, by
	// [Conn.Flush], or when a datagram is full. At least 1 ms; at 0, the default, each payload is
	// sent at once in its own datagram.
	Tick time.Duration
	// FlushOnly makes unreliable RPCs share datagrams without a Tick: payloads are sent by
	// [Conn.Flush] or when a datagram is full. Tick must be 0.
	FlushOnly bool
	// Bandwidth is how many bits a second the connection may send in the mean, all
	// its datagrams with their headers down to IP counted, but for a few that look for
	// the path's largest datagram in the first seconds; 0, the default, is no limit. To stay below it, redundancy is taken back first, then calls of adaptive
	// RPCs leave in pairs and up to MaxSendEvery at once. That never drops a call:
	// what is above the limit after that is sent, and counted.
	Bandwidth int
	// Prior is what streams of the adaptive codec start from, if the server has it
	// too; if not, and if it is nil, that is the built-in one. RPCStats counts the
	// bindings that had to do without.
	Prior *prior.Prior
	// Ring is how many frames of each RPC are kept as baselines, 2 to
	// rpcdelta.MaxRing; default rpcdelta.DefaultRing.
	Ring int
	// NoReconnect has a connection that is lost end for good: [Conn.Err] then says
	// why, and so does what is called. Otherwise it is made again, as often as it takes,
	// unless the server throws the player out.
	NoReconnect bool
	// Timeout is how long the connection lives though nothing is heard from the
	// server; default transport.DefaultTimeout.
	Timeout time.Duration
	// BindTimeout limits how long [Bind], [SubscribeSnapshots] and [SubscribeState] wait for the
	// server if their context has no deadline; default DefaultBindTimeout.
	BindTimeout time.Duration
	// OnMessage, if set, gets the messages that the server sends with
	// ds.Player.SendReliable, in order. It runs on the goroutine that receives for the
	// connection, so it should be short, and must not call [Conn.Close]. The message is
	// valid while it runs. A panic ends the process; see the package's description.
	OnMessage func(message []byte)
	// KeyLog, if set, gets a line with the secrets of each session: it gives away all that is
	// sealed. It is for debugging; see transport.Config.
	KeyLog io.Writer
	// Network opens the socket; nil means UDP. Tests and demos put
	// transport/simnet here.
	Network transport.Network
	// Logger gets a record of what happens to the connection and its bindings;
	// nil means silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Codec = cmp.Or(c.Codec, rpcdelta.DefaultCodec)
	c.Ring = cmp.Or(c.Ring, rpcdelta.DefaultRing)
	c.BindTimeout = cmp.Or(c.BindTimeout, DefaultBindTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Ring < 2 || c.Ring > rpcdelta.MaxRing {
		return c, fmt.Errorf("client: Config.Ring is %d, want 2 to %d", c.Ring, rpcdelta.MaxRing)
	}
	if _, err := rpcdelta.ParseCodec(c.Codec.String()); err != nil {
		return c, fmt.Errorf("client: Config.Codec: %w", err)
	}
	sending := rpcdelta.EncoderConfig{Redundancy: c.Redundancy, Delivery: c.Delivery, RedundancyBytes: c.RedundancyBytes}
	if err := sending.Check(); err != nil {
		return c, fmt.Errorf("client: Config: %w", err)
	}
	if c.Tick != 0 && (c.Tick < time.Millisecond || c.FlushOnly) {
		return c, fmt.Errorf("client: Config.Tick is %v, want at least %v, or 0, and 0 with FlushOnly", c.Tick, time.Millisecond)
	}
	if c.Bandwidth < 0 {
		return c, fmt.Errorf("client: Config.Bandwidth is %d bits a second", c.Bandwidth)
	}
	if c.BindTimeout < 0 {
		return c, fmt.Errorf("client: Config.BindTimeout is %v", c.BindTimeout)
	}
	return c, nil
}

// coalesces reports whether payloads share datagrams.
func (c *Config) coalesces() bool { return c.Tick != 0 || c.FlushOnly }

func (c Config) transport(t token.Token) transport.Config {
	return transport.Config{
		Network: c.Network, Token: t, Suites: c.Suites, Insecure: c.Insecure,
		Timeout: c.Timeout, Tick: transport.OnWake, KeyLog: c.KeyLog, Logger: c.Logger,
	}
}
