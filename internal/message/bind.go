package message

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// BindRequest asks the DS to bind an RPC. The client repeats it until it receives an answer.
type BindRequest struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	RPC         uint8 // number of the RPC in headers, chosen by the client
	Name        string
	Fingerprint uint64   // fingerprint of the schema
	Fields      []uint16 // FieldHashes of the schema
	RateHz      float64  // declared number of calls per second
	Ring        int      // capacity of the client's ring
	Codec       string
	Reliable    bool   // frames use the reliable channel
	Frames      int    // maximum number of new frames in a datagram, up to rpcdelta.MaxHeld; 0 means 1
	Prior       uint64 // hash of the requested prior, for the adaptive codec
	Batch       int    // maximum number of later frames that a frame waits for
	Deadline    int    // maximum age in frames at which a lost payload is repeated; 0: never
	// PerTick holds the factor of each velocity of the schema, see [schema.Schema.PerTick].
	PerTick []int64
	// Described holds the descriptions of the fields that the DS requested with ReasonDescribe.
	Described []Described
}

// Described is the description of a field of a BindRequest.
type Described struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	Field       int // number of the field
	Description string
}

// BindAnswer is the answer to a BindRequest. It also explains the client's answer to the offer of a
// world. The asking end is the sender of the request or offer; the answering end is the other one.
type BindAnswer struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	RPC    uint8  // number of the RPC in the request, or of the world in the offer
	Ring   int    // capacity of the DS's ring
	Reason Reason // ReasonNone if the RPC is bound
	// Field is the number of the client's incompatible field for ReasonSchema, and Theirs the DS's
	// description of it; empty if no field of the two schemas has the same name. For ReasonNumber
	// and ReasonInvalid, and for offers, Theirs explains the reason.
	Field  int
	Theirs string
	Known  []string // names of the server's RPCs for ReasonUnknown, and of its codecs for ReasonCodec
	Prior  uint64   // hash of the prior in use: the requested one, or the DS's built-in one
	// LimitHz is the permitted rate for ReasonRate and ReasonFixedRate.
	LimitHz float64
	Ask     []int // numbers of the client's fields to describe, for ReasonDescribe
	// Asking and Answering are the fields of Differences, for ReasonNone.
	Asking    []string
	Answering []string
}

// Differences returns the differences that the answer reports.
func (a *BindAnswer) Differences() Differences { return Differences{a.Asking, a.Answering} }

// Report sets the differences in the answer.
func (a *BindAnswer) Report(d Differences) {
	a.Asking = d.Asking[:min(len(d.Asking), MaxDifferences)]
	a.Answering = d.Answering[:min(len(d.Answering), MaxDifferences)]
}

// Differences lists names that only one end has, at most MaxDifferences in each list. TYPE/FIELD is
// a field of a further type of objects, TYPE/ a whole type.
type Differences struct {
	Asking    []string // fields that only the asking end has; the answering end skips them
	Answering []string // fields that only the answering end has; they have no values
}

// MaxDifferences is the maximum number of names in each list of Differences.
const MaxDifferences = 32

// Any reports whether there are differences.
func (d *Differences) Any() bool { return len(d.Asking)+len(d.Answering) > 0 }

// Text describes the differences. asking and answering are the names of the two ends. Field names
// may be hostile.
func (d *Differences) Text(asking, answering string) string {
	var out []string
	for _, side := range []struct {
		end          string
		names, other []string
	}{{asking, d.Asking, d.Answering}, {answering, d.Answering, d.Asking}} {
		for _, name := range side.names {
			out = append(out, fmt.Sprintf(`only the %s has "%s"%s`, side.end, Printable(name, maxPrinted), Nearest(name, side.other)))
		}
	}
	return strings.Join(out, "; ")
}

// MaxCalls is the maximum number of a client's RPCs that a server can bind.
const MaxCalls = 32

// Reason is the reason why an RPC is not bound.
type Reason uint8

// Reasons of a BindAnswer.
const (
	ReasonNone      Reason = iota
	ReasonUnknown          // unknown RPC
	ReasonSchema           // incompatible schema
	ReasonCodec            // unknown codec
	ReasonNumber           // number in use by another RPC, or RPC bound already
	ReasonInvalid          // ring, number of frames or factor out of range
	ReasonRate             // the declared rate is above LimitHz, or next to 0
	ReasonFixedRate        // the declared rate is not LimitHz, the only one of the RPC
	ReasonReliable         // a jitter buffer cannot take reliable frames
	ReasonDescribe         // the DS needs descriptions of fields
)

var reasons = [...]string{
	"bound", "unknown RPC", "incompatible schema", "unknown codec", "number in use, or RPC bound already",
	"ring, frames or factors out of range", "rate out of range", "rate other than that of the RPC",
	"jitter buffer for reliable frames", "fields to describe",
}

// String describes the reason, for logs.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Append appends the request with its type.
func (r *BindRequest) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Bind)), r)
}

// ParseBindRequest parses a request without its type.
func ParseBindRequest(b []byte) (BindRequest, error) { return parse[BindRequest](b) }

// Append appends the answer with its type.
func (a *BindAnswer) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Bound)), a)
}

// ParseBindAnswer parses an answer without its type.
func ParseBindAnswer(b []byte) (a BindAnswer, err error) {
	if a, err = parse[BindAnswer](b); err == nil && max(len(a.Asking), len(a.Answering)) > MaxDifferences {
		err = fmt.Errorf("%w: %d and %d names of fields, want at most %d", ErrMalformed, len(a.Asking), len(a.Answering), MaxDifferences)
	}
	return a, err
}

// Fit appends the answer with its type in at most most bytes. To shorten it, Fit replaces the last
// names of the longest list by "...".
func (a BindAnswer) Fit(dst []byte, most int) ([]byte, error) {
	a.Theirs = a.Theirs[:min(len(a.Theirs), MaxTheirs)]
	lists := [...]struct {
		to    *[]string
		names []string
	}{{&a.Known, a.Known}, {&a.Asking, a.Asking}, {&a.Answering, a.Answering}}
	b, err := a.Append(dst)
	for err == nil && len(b)-len(dst) > most {
		longest := &lists[0]
		for i := range lists {
			if len(lists[i].names) > len(longest.names) {
				longest = &lists[i]
			}
		}
		n := len(longest.names)
		if n == 0 {
			break
		}
		longest.names = longest.names[:n/2]
		*longest.to = append(slices.Clone(longest.names), "...")
		b, err = a.Append(dst)
	}
	return b, err
}

// MaxTheirs is the maximum number of bytes of BindAnswer.Theirs.
const MaxTheirs = 512

func parse[T any](b []byte) (v T, err error) {
	if err = msgpack.Unmarshal(b, &v); err != nil {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return v, err
}

// FieldHashes returns a short hash of the description of each field of s.
func FieldHashes(s *schema.Schema) []uint16 {
	hashes := make([]uint16, 0, len(s.Fields()))
	for _, f := range s.Fields() {
		hashes = append(hashes, fieldHash(f.String()))
	}
	return hashes
}

func fieldHash(description string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(description))
	sum := h.Sum32()
	return uint16(sum ^ sum>>16)
}

// Descriptions returns the descriptions of the client's fields: from s for fields with the same
// hash, otherwise from the request. ask lists the numbers of fields without a description.
func (r *BindRequest) Descriptions(s *schema.Schema) (fields []string, ask []int) {
	known := map[uint16]string{}
	for _, f := range s.Fields() {
		d := f.String()
		known[fieldHash(d)] = d
	}
	fields = make([]string, len(r.Fields))
	for i, h := range r.Fields {
		fields[i] = known[h]
	}
	for _, d := range r.Described {
		if d.Field >= 0 && d.Field < len(fields) {
			fields[d.Field] = d.Description
		}
	}
	for i, d := range fields {
		if d == "" {
			ask = append(ask, i)
		}
	}
	return fields, ask
}

// Codecs returns the names of the codecs that can be bound.
func Codecs() (names []string) {
	for _, c := range rpcdelta.Codecs() {
		names = append(names, c.String())
	}
	return names
}
