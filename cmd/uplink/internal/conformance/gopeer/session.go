package gopeer

import (
	"context"
	"strconv"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// patience limits the time of requests that wait for the server.
const patience = 20 * time.Second

func (p *peer) connect(words []string) (string, error) {
	suite, err := protocol.ParseSuite(words[2])
	if err != nil {
		return "", err
	}
	codec, err := rpcdelta.ParseCodec(words[3])
	if err != nil {
		return "", err
	}
	t, err := token.Parse(words[4])
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	conn, err := client.Dial(ctx, words[1], client.Config{Token: t, Transport: client.Transport{Suites: []transport.Suite{suite}}, Tuning: client.Tuning{Codec: codec}, NoReconnect: true})
	if err != nil {
		return "", err
	}
	p.clients[words[0]] = &session{conn: conn, streams: map[string]rpcStream{}}
	return "", nil
}

func (p *peer) bind(words []string) (string, error) {
	c, err := get(p.clients, words[0], "session")
	if err != nil {
		return "", err
	}
	s, err := p.compiled(words[1])
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	stream, err := client.BindSchema(ctx, c.conn, s, client.BindConfig{Reliable: words[2] == "reliable"})
	if err != nil {
		return "", err
	}
	rpc := strconv.Itoa(len(c.streams))
	c.streams[rpc] = rpcStream{stream, s}
	return rpc, nil
}

func (p *peer) send(words []string) (string, error) {
	c, err := get(p.clients, words[0], "session")
	if err != nil {
		return "", err
	}
	stream, err := get(c.streams, words[1], "RPC")
	if err != nil {
		return "", err
	}
	f, err := protocol.ParseFrame(stream.schema, words[2])
	if err != nil {
		return "", err
	}
	seq, err := stream.Send(f)
	if p.fault == "session" {
		seq++
	}
	return strconv.FormatUint(seq, 10), err
}

func (p *peer) closeSession(words []string) (string, error) {
	c, err := get(p.clients, words[0], "session")
	if err != nil {
		return "", err
	}
	delete(p.clients, words[0])
	return "", c.conn.Close()
}
