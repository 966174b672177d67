// Package gopeer is a peer of the conformance protocol that uses this project's own packages. To
// test the tests, it can be started with a fault, which violates the specification in one layer.
package gopeer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

// Faults are the names of all faults. Each is the name of the row of a report that detects it.
var Faults = []string{
	"values", "rle encode", "rle decode", "adaptive encode", "adaptive decode", "acks", "session", "snapshots", "areas", "state",
}

// errDrop is the reason for an input that the specification requires to be rejected.
type errDrop string

func (e errDrop) Error() string { return strings.TrimSpace("drop " + string(e)) }

// dropped returns the error of a decoder as an errDrop if it has a reason.
func dropped(err error) error {
	if reason := protocol.Reason(err); reason != "" {
		return errDrop(reason)
	}
	return err
}

type peer struct {
	ctx   context.Context
	fault string

	schemas   map[string]*draft
	encoders  map[string]*encoder
	decoders  map[string]*rpcdelta.Decoder
	clients   map[string]*session
	objects   map[string]*snapshot.Schema
	snapshots map[string]*snapshot.Decoder
	views     map[string]*view
	states    map[string]*statesync.Receiver
}

// draft is a schema under construction: it is built once all its fields are known.
type draft struct {
	rpc    string
	rate   float64
	fields []schema.Field
	built  *schema.Schema
}

type session struct {
	conn    *client.Conn
	streams map[string]rpcStream // by number
}

type rpcStream struct {
	*client.Stream[schema.Frame]
	schema *schema.Schema
}

// Serve answers requests until r ends. fault is one of [Faults], or "" for none.
func Serve(ctx context.Context, r io.Reader, w io.Writer, fault string) (err error) {
	p := &peer{
		ctx: ctx, fault: fault,
		schemas: map[string]*draft{}, encoders: map[string]*encoder{}, decoders: map[string]*rpcdelta.Decoder{}, clients: map[string]*session{},
		objects: map[string]*snapshot.Schema{}, snapshots: map[string]*snapshot.Decoder{}, views: map[string]*view{}, states: map[string]*statesync.Receiver{},
	}
	defer func() {
		for _, c := range p.clients {
			err = errors.Join(err, c.conn.Close())
		}
	}()
	in := bufio.NewScanner(r)
	in.Buffer(nil, protocol.Max)
	for in.Scan() {
		words := strings.Split(in.Text(), " ")
		if _, err := fmt.Fprintln(w, p.answer(words[0], words[1:])); err != nil {
			return err
		}
	}
	return in.Err()
}

// request is a kind of request, with the minimum number of its words.
type request struct {
	words  int
	handle func(p *peer, words []string) (string, error)
}

var requests = map[string]request{
	"hello":     {1, (*peer).hello},
	"free":      {1, (*peer).free},
	"schema":    {3, (*peer).schema},
	"field":     {3, (*peer).field},
	"compile":   {1, (*peer).compile},
	"factors":   {2, (*peer).factors},
	"quantize":  {2, (*peer).quantize},
	"restore":   {2, (*peer).restore},
	"encoder":   {6, (*peer).encoder},
	"encode":    {2, (*peer).encode},
	"ack":       {2, (*peer).ack},
	"decoder":   {5, (*peer).decoder},
	"decode":    {2, (*peer).decode},
	"acks":      {1, (*peer).acks},
	"parseack":  {1, (*peer).parseAck},
	"connect":   {5, (*peer).connect},
	"bind":      {3, (*peer).bind},
	"send":      {3, (*peer).send},
	"close":     {1, (*peer).closeSession},
	"objects":   {2, (*peer).describe},
	"snapshots": {2, (*peer).snapshotDecoder},
	"areas":     {2, (*peer).areas},
	"state":     {2, (*peer).stateReceiver},
	"receive":   {2, (*peer).receive},
}

func (p *peer) answer(name string, words []string) string {
	r, ok := requests[name]
	if !ok {
		return "unsupported"
	}
	if len(words) < r.words {
		return fmt.Sprintf("error %s has %d words, want at least %d", name, len(words), r.words)
	}
	result, err := r.handle(p, words)
	if drop, ok := errors.AsType[errDrop](err); ok {
		return drop.Error()
	}
	if err != nil {
		return "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return strings.TrimSpace("ok " + result)
}

func (p *peer) hello(words []string) (string, error) {
	if words[0] != strconv.Itoa(protocol.Version) {
		return "", fmt.Errorf("version %s, want %d", words[0], protocol.Version)
	}
	return "go " + strings.Join(protocol.Layers(), " "), nil
}

func (p *peer) free(words []string) (string, error) {
	h := words[0]
	delete(p.schemas, h)
	delete(p.encoders, h)
	delete(p.decoders, h)
	delete(p.objects, h)
	delete(p.snapshots, h)
	delete(p.views, h)
	delete(p.states, h)
	return "", nil
}

// get returns the value of a handle.
func get[T any](all map[string]T, handle, what string) (T, error) {
	v, ok := all[handle]
	if !ok {
		return v, fmt.Errorf("handle %s is no %s", handle, what)
	}
	return v, nil
}

func (p *peer) schema(words []string) (string, error) {
	rate, err := strconv.ParseFloat(words[2], 64)
	p.schemas[words[0]] = &draft{rpc: words[1], rate: rate}
	return "", err
}

func (p *peer) field(words []string) (string, error) {
	d, err := get(p.schemas, words[0], "schema")
	if err != nil {
		return "", err
	}
	f, err := protocol.ParseField(words[1:])
	d.fields = append(d.fields, f)
	return "", err
}

func (p *peer) compile(words []string) (_ string, err error) {
	d, err := get(p.schemas, words[0], "schema")
	if err != nil {
		return "", err
	}
	if d.built, err = schema.New(d.rpc, d.rate, d.fields); err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x %s", d.built.Fingerprint(), protocol.Ints(d.built.PerTick())), nil
}

// compiled returns the schema of a handle.
func (p *peer) compiled(handle string) (*schema.Schema, error) {
	d, err := get(p.schemas, handle, "schema")
	if err != nil {
		return nil, err
	}
	if d.built == nil {
		return nil, fmt.Errorf("schema %s is not compiled", handle)
	}
	return d.built, nil
}

func (p *peer) factors(words []string) (string, error) {
	s, err := p.compiled(words[0])
	if err != nil {
		return "", err
	}
	factors, err := protocol.ParseInts[int64](words[1], 64)
	if err != nil {
		return "", err
	}
	p.schemas[words[0]].built, err = s.WithPerTick(s.RateHz(), factors)
	return "", err
}

func (p *peer) quantize(words []string) (string, error) {
	s, err := p.compiled(words[0])
	if err != nil {
		return "", err
	}
	f, err := protocol.Quantize(s, words[1])
	if _, ok := errors.AsType[*schema.RangeError](err); ok {
		return "", errDrop("")
	}
	if err != nil {
		return "", err
	}
	if p.fault == "values" {
		floor(s, f)
	}
	return protocol.Frame(f), nil
}

// floor moves each number one step down.
func floor(s *schema.Schema, f *schema.Frame) {
	for _, l := range s.Layouts() {
		for k := range l.N {
			if l.Class == schema.ClassNumber && l.Holds(k, f.Ints[l.At+k]-1) {
				f.Ints[l.At+k]--
			}
		}
	}
}

func (p *peer) restore(words []string) (string, error) {
	s, err := p.compiled(words[0])
	if err != nil {
		return "", err
	}
	f, err := protocol.ParseFrame(s, words[1])
	if err != nil {
		return "", err
	}
	return protocol.ValuesOf(s, f), nil
}
