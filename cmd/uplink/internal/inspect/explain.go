package inspect

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
)

// Explained describes each bit of a datagram or message.
type Explained struct {
	Record  int     `json:"record"`
	Seconds float64 `json:"seconds"`
	Title   string  `json:"title"`
	Body    string  `json:"body,omitempty"` // in hexadecimal
	Lines   []Line  `json:"lines"`

	body []byte
}

// noBit is the position of parts that have none.
const noBit = -1

// Line describes one part.
type Line struct {
	// Bit is the position in the body: 8 times the byte plus the bit within it. Bits are counted as
	// in docs/spec, from the high bit down in a short header and from the low bit up elsewhere. It
	// is -1 if parts share bits.
	Bit int `json:"bit"`
	// Bits is the size in bits.
	Bits  float64 `json:"bits,omitempty"`
	Depth int     `json:"depth"`
	What  string  `json:"what"`
	Value string  `json:"value,omitempty"`
}

func (e *Explained) add(bit int, bits float64, depth int, what, format string, args ...any) {
	if e == nil {
		return
	}
	e.Lines = append(e.Lines, Line{Bit: bit, Bits: bits, Depth: depth, What: what, Value: fmt.Sprintf(format, args...)})
}

func (e *Explained) note(format string, args ...any) {
	e.add(noBit, 0, 1, "", format, args...)
}

func (x *inspection) ask(body record.Body) {
	e := &Explained{Record: x.at.Number, Seconds: x.at.At.Seconds()}
	x.asked, x.done = e, true
	switch b := body.(type) {
	case *record.Datagram:
		p := x.player(b.Player)
		e.Title = fmt.Sprintf("datagram %d %s player %d, %d bytes of UDP", b.Number, way(b.Sent), b.Player, b.Size)
		header := b.Size - len(b.Body) - p.seal
		e.note("on the wire %d bytes: header %d, body %d, AEAD tag %d, and %d of IPv4 and UDP", b.Size+endpoint.IPSize, header, len(b.Body), p.seal, endpoint.IPSize)
		e.carried(p, b.Body)
		x.done = b.Sent
	case *record.Message:
		e.Title = fmt.Sprintf("reliable message %s player %d, %d bytes", way(b.Sent), b.Player, len(b.Body))
		e.carried(x.player(b.Player), b.Body)
		x.done = b.Sent
	case *record.Schema:
		e.Title = fmt.Sprintf("schema %d", b.ID)
		e.note("%s", b.JSON)
	case *record.Prior:
		e.Title = fmt.Sprintf("prior, %d bytes", len(b.File))
	default:
		e.other(body)
	}
}

// other explains records that contain no wire format.
func (e *Explained) other(body record.Body) {
	var all []value
	switch b := body.(type) {
	case *record.Start:
		e.Title = fmt.Sprintf("start of file %d of the series", b.Index)
		all = []value{{"started at", b.Wall.Format(time.RFC3339Nano)}, {"series", fmt.Sprintf("%016x", b.Run)}}
	case *record.Opened:
		e.Title = fmt.Sprintf("player %d connected", b.Player)
		all = []value{
			{"in an earlier file", b.Again},
			{"session id", fmt.Sprintf("%016x", b.Session)},
			{"client id", b.Client},
			{"address", b.Addr},
			{"cipher suite", fmt.Sprintf("%s, %d bytes per datagram", b.Suite, b.AEADOverhead)},
		}
	case *record.Closed:
		e.Title = fmt.Sprintf("player %d disconnected", b.Player)
		all = []value{{"cause", cmp.Or(b.Cause, "closed by the server")}}
	case *record.Bound:
		e.Title = fmt.Sprintf("player %d bound RPC %d", b.Player, b.RPC)
		all = []value{
			{"in an earlier file", b.Again},
			{"schema", b.Schema},
			{"rate", fmt.Sprint(b.RateHz, " Hz")},
			{"codec", b.Codec},
			{"reliable", b.Reliable},
			{"client's ring", b.PeerRing},
			{"server's ring", b.Ring},
			{"frames in a datagram", b.Frames},
			{"late frames delivered", b.DeliverLate},
			{"lost frames repeated for", fmt.Sprint(b.Deadline, " frames")},
			{"later frames that a frame waits for", b.Batch},
			{"prior", fmt.Sprintf("%016x", b.Prior)},
			{"factors of velocities", fmt.Sprint(b.PerTick)},
		}
	case *record.Decoded:
		e.Title = fmt.Sprintf("payload of player %d, RPC %d, decoded", b.Player, b.RPC)
		all = []value{{"newest frame", b.Seq}, {"frames", b.Frames}, {"kind", b.Kind}, {"hash", fmt.Sprintf("%08x", b.Hash)}}
	case *record.Dropped:
		e.Title = fmt.Sprintf("payload or datagram of player %d dropped", b.Player)
		if b.RPC != record.NoRPC {
			all = append(all, value{"RPC", b.RPC})
		}
		all = append(all, value{"reason", b.Reason}, value{"by the decoder", b.Decoder})
	case *record.Withheld:
		e.Title = fmt.Sprintf("frame %d of player %d, RPC %d, not delivered", b.Seq, b.Player, b.RPC)
		all = []value{{"reason", b.Reason}}
	case *record.Lost:
		e.Title = fmt.Sprintf("%d records not written: the writer was too slow", b.Records)
	case *record.Counts:
		e.Title = "datagrams dropped so far"
		for _, c := range b.Drops {
			all = append(all, value{c.Reason, c.N})
		}
	case *record.End:
		e.Title = "end of the series"
		if b.More {
			e.Title = "end of the file; the series has a next one"
		}
	}
	e.values(all)
}

func way(sent bool) string {
	if sent {
		return "to"
	}
	return "from"
}

// carried explains everything except payloads. Payloads are explained with the server's result.
func (e *Explained) carried(p *player, b []byte) {
	e.body = bytes.Clone(b)
	e.Body = hex.EncodeToString(b)
	t, body, err := message.Split(b)
	for ; err == nil && t == message.DownAck; t, body, err = message.Split(b) {
		at := len(e.body) - len(b)
		ack, message := message.CutDownAck(body)
		e.add(8*at, 8, 0, "message type", "%s", typeText(t, b[0]))
		e.add(8*at+8, float64(8*len(ack)), 0, "number and ack", "%x", ack)
		if b = message; len(b) == 0 {
			return
		}
	}
	if err != nil {
		e.note("%v", err)
		return
	}
	if t == message.Frame {
		return
	}
	e.add(8*(len(e.body)-len(b)), 8, 0, "message type", "%s", typeText(t, b[0]))
	switch t {
	case message.Acks:
		e.acks(p, body, 8)
	case message.Slack:
		e.slack(p, body)
	case message.Bind:
		e.bind(body)
	case message.Bound:
		e.answer(body)
	case message.Message:
		e.add(8, float64(8*len(body)), 0, "the game's own", "%s", clip(strconv.QuoteToASCII(string(body))))
	case message.Request:
		e.request(body)
	case message.Bundle:
		e.bundle(len(e.body) - len(b))
	default:
	}
}

var typeTexts = map[message.Type]string{
	message.Acks:    "acks",
	message.Bind:    "a request to bind an RPC",
	message.Bound:   "the answer to one",
	message.Message: "a message of the game's own",
	message.Leaving: "the server is about to shut down",
	message.Offer:   "a world is offered",
	message.Reply:   "the answer to an offer",
	message.Piece:   "a piece of a world's initial state",
	message.Stop:    "a world is not sent any more",
	message.DownAck: "an ack of a world's messages",
	message.Slack:   "how jitter buffers stand, and acks",
	message.Request: "a request, or the answer to one",
}

func typeText(t message.Type, first byte) string {
	text := typeTexts[t]
	switch t {
	case message.DownFragment:
		text = fmt.Sprintf("a fragment of a message of world %d", first&15)
	case message.Down:
		text = fmt.Sprintf("a message of world %d", first&15)
	case message.Bundle:
		text = fmt.Sprintf("a bundle of %d payloads", first&15+2)
	default:
		if text == "" {
			return fmt.Sprintf("%#x", first)
		}
	}
	return fmt.Sprintf("%#x, %s", first, text)
}

// clip truncates text that is too long for a line.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// bundle explains a bundle at an offset of the message.
func (e *Explained) bundle(at int) {
	at++
	for i, p := range payloads(e.body) {
		if n := p.offset - at; n > 0 {
			e.add(8*at, float64(8*n), 0, lengthOfPayload+strconv.Itoa(i+1), "%d bytes", len(p.b))
		}
		at = p.offset + len(p.b)
	}
}

const lengthOfPayload = "length of payload "

// sortPayloads moves the length of each payload of a bundle directly before the payload, which is
// explained only when it is decoded.
func (e *Explained) sortPayloads() {
	var sorted, lengths []Line
	for _, l := range e.Lines {
		switch {
		case strings.HasPrefix(l.What, lengthOfPayload):
			lengths = append(lengths, l)
			continue
		case l.Depth == 0 && len(lengths) > 0 && l.Bit > lengths[0].Bit:
			sorted, lengths = append(sorted, lengths[0]), lengths[1:]
		}
		sorted = append(sorted, l)
	}
	e.Lines = append(sorted, lengths...)
}

func (e *Explained) bind(b []byte) {
	r, err := message.ParseBindRequest(b)
	e.msgpack(b, err, []value{
		{"number", r.RPC},
		{"name", strconv.Quote(r.Name)},
		{"fingerprint", fmt.Sprintf("%016x", r.Fingerprint)},
		{"field hashes", fmt.Sprintf("%04x", r.Fields)},
		{"rate", fmt.Sprint(r.RateHz, " Hz")},
		{"ring", r.Ring},
		{"codec", strconv.Quote(r.Codec)},
		{"reliable", r.Reliable},
		{"frames in a datagram", r.Frames},
		{"prior", fmt.Sprintf("%016x", r.Prior)},
		{"batch", r.Batch},
		{"deadline", r.Deadline},
		{"factors of velocities", fmt.Sprint(r.PerTick)},
		{"described fields", described(r.Described)},
	})
}

func (e *Explained) answer(b []byte) {
	a, err := message.ParseBindAnswer(b)
	e.msgpack(b, err, []value{
		{"number", a.RPC},
		{"ring", a.Ring},
		{"reason", fmt.Sprintf("%d, %v", uint8(a.Reason), a.Reason)},
		{"field", a.Field},
		{"theirs", strconv.Quote(a.Theirs)},
		{"known", fmt.Sprintf("%q", a.Known)},
		{"prior", fmt.Sprintf("%016x", a.Prior)},
		{"limit", fmt.Sprint(a.LimitHz, " Hz")},
		{"fields to describe", fmt.Sprint(a.Ask)},
		{"only the asking end has", fmt.Sprintf("%q", a.Asking)},
		{"only the answering end has", fmt.Sprintf("%q", a.Answering)},
	})
}

// request explains a request or the answer to one, without the type.
func (e *Explained) request(b []byte) {
	k, id, body, err := message.ParseRequest(b)
	if err != nil {
		e.note("%v", err)
		return
	}
	e.add(8, 8, 0, "kind", "%d, %v", uint8(k), k)
	e.add(16, 32, 0, "id", "%d", id)
	e.add(48, float64(8*len(body)), 0, "the game's own", "%s", clip(strconv.QuoteToASCII(string(body))))
}

// described returns the descriptions of fields, each preceded by the field's number.
func described(fields []message.Described) string {
	var all []string
	for _, d := range fields {
		all = append(all, fmt.Sprintf("%d %q", d.Field, d.Description))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

type value struct {
	what string
	is   any
}

// msgpack explains an array of values, or why it cannot be parsed.
func (e *Explained) msgpack(b []byte, err error, all []value) {
	if err != nil {
		e.note("%v", err)
		return
	}
	e.add(8, float64(8*len(b)), 0, "msgpack", "an array of these:")
	e.values(all)
}

func (e *Explained) values(all []value) {
	for _, v := range all {
		e.add(noBit, 0, 1, v.what, "%v", v.is)
	}
}
