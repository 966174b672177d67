package control

import (
	"fmt"
	"hash/fnv"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// BindRequest asks the DS to take frames of an RPC. The client sends it again
// until it is answered.
type BindRequest struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	// RPC is the number that the client chose for the headers.
	RPC msgpack.Byte
	// Name is the call's name, Fingerprint that of its schema, and Fields a short
	// hash of each field, by which the DS finds the first that differs.
	Name        string
	Fingerprint uint64
	Fields      []uint16
	// RateHz is how often a second the client means to call.
	RateHz float64
	// Ring is the capacity of the client's ring.
	Ring int
	// Codec is the name of the codec.
	Codec string
	// Reliable says that frames come over the reliable channel.
	Reliable bool
	// Frames is how many new frames of the RPC a datagram brings at most, up to
	// rpcdelta.MaxHeld; 0 counts as 1.
	Frames int
	// Prior is the hash of the prior that frames are to start from, with the codec
	// adaptive.
	Prior uint64
}

// BindAnswer is the DS's answer. Reason is empty if the RPC is bound.
type BindAnswer struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

	RPC uint8
	// Ring is the capacity of the DS's ring.
	Ring int
	// Reason says why the RPC is not bound.
	Reason Reason
	// Field is, for ReasonSchema, the number of the first field that differs, and
	// Theirs what the DS has there; empty if it has no such field.
	Field  int
	Theirs string
	// Known lists the names that the DS has, for ReasonUnknown, and the codecs, for
	// ReasonCodec.
	Known []string
	// Prior is the hash of the prior that is used: the one that was asked for, or
	// else the DS's built-in one.
	Prior uint64
}

// Reason says why an RPC is not bound.
type Reason uint8

// The reasons.
const (
	ReasonNone    Reason = iota
	ReasonUnknown        // no such RPC
	ReasonSchema         // another schema
	ReasonCodec          // no such codec
	ReasonNumber         // the number is taken by another RPC
	ReasonInvalid        // a rate, ring or number of frames that cannot be
)

// Append appends the request with its type.
func (r *BindRequest) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Bind)), r)
}

// ParseBindRequest reads what follows the type.
func ParseBindRequest(b []byte) (r BindRequest, err error) {
	if err = msgpack.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, nil
}

// Append appends the answer with its type.
func (a *BindAnswer) Append(dst []byte) ([]byte, error) {
	return msgpack.AppendMarshal(append(dst, byte(Bound)), a)
}

// ParseBindAnswer reads what follows the type.
func ParseBindAnswer(b []byte) (a BindAnswer, err error) {
	if err = msgpack.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return a, nil
}

// FieldHashes gives a short hash of each field of s.
func FieldHashes(s *schema.Schema) []uint16 {
	var hashes []uint16
	for _, f := range s.Fields() {
		h := fnv.New32a()
		h.Write([]byte(f.String()))
		sum := h.Sum32()
		hashes = append(hashes, uint16(sum^sum>>16))
	}
	return hashes
}

// Compare answers a request for the RPC of s: with ReasonNone if the schemas
// are equal, else with the first field that differs.
func Compare(s *schema.Schema, r *BindRequest) BindAnswer {
	a := BindAnswer{RPC: uint8(r.RPC)}
	if r.Fingerprint == s.Fingerprint() {
		return a
	}
	a.Reason = ReasonSchema
	ours := FieldHashes(s)
	for a.Field < min(len(ours), len(r.Fields)) && ours[a.Field] == r.Fields[a.Field] {
		a.Field++
	}
	if a.Field < len(ours) {
		a.Theirs = s.Fields()[a.Field].String()
	}
	return a
}

// Codecs lists the names of the codecs that can be bound.
func Codecs() (names []string) {
	for _, c := range rpcdelta.Codecs() {
		names = append(names, c.String())
	}
	return names
}
