package natsstore_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/uplink-rpc/uplink/fleet/natsstore"
)

// cluster is a cluster of NATS servers with JetStream in this process.
type cluster struct {
	t       testing.TB
	options []*server.Options
	servers []*server.Server // nil: killed
	clients []*link          // to the servers, for clients; nil: there are none
	routes  [][]*link        // from each server to each of the others
}

// newCluster starts a cluster of n servers on free ports of loopback.
func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	return startCluster(t, n, false)
}

// newLinkedCluster starts a cluster whose servers and clients are connected by links, which can be
// cut.
func newLinkedCluster(t testing.TB, n int) *cluster {
	t.Helper()
	return startCluster(t, n, true)
}

// nowhere is the address that servers tell others about themselves: these use their links instead.
const nowhere = "127.0.0.1:1"

func startCluster(t testing.TB, n int, linked bool) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: make([]*server.Server, n)}
	ports := freePorts(t, 2*n)
	for i := range n {
		routes := make([]string, n)
		for k := range n {
			routes[k] = fmt.Sprintf("127.0.0.1:%d", ports[k])
		}
		if linked {
			links := make([]*link, n)
			for k := range n {
				links[k] = newLink(t, routes[k])
				routes[k] = links[k].addr()
			}
			c.routes = append(c.routes, links)
			c.clients = append(c.clients, newLink(t, fmt.Sprintf("127.0.0.1:%d", ports[n+i])))
		}
		o := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: ports[n+i], NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]}
			if linked {
				o.Cluster.Advertise, o.ClientAdvertise = nowhere, c.clients[i].addr()
			}
			for k, r := range routes {
				if k != i {
					o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
				}
			}
		}
		c.options = append(c.options, o)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.kill(i)
		}
	})
	return c
}

// freePorts returns ports of loopback that were free a moment ago. They are below those that Linux
// gives to sockets that ask for none: a link or a connection could take one of these before its
// server listens.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for tries := 0; len(ports) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err != nil && tries < 1000 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (c *cluster) start(i int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

// kill ends a server without a word to its clients' subscriptions or the other servers.
func (c *cluster) kill(i int) {
	if c.servers[i] != nil {
		c.servers[i].Shutdown()
		c.servers[i].WaitForShutdown()
		c.servers[i] = nil
	}
}

// isolate cuts a server off from the others, or connects it again.
func (c *cluster) isolate(server int, cut bool) {
	for i, links := range c.routes {
		for k, l := range links {
			if i == server || k == server {
				l.set(cut)
			}
		}
	}
}

// leader returns the leader of the stream of used tokens; -1 if there is none.
func (c *cluster) leader() int {
	return slices.IndexFunc(c.servers, func(s *server.Server) bool { return s.JetStreamIsStreamLeader("$G", "KV_uplink-tokens") })
}

// store returns a store of a client of its own.
func (c *cluster) store() *natsstore.Store {
	c.t.Helper()
	var urls []string
	for i, o := range c.options {
		if c.clients != nil {
			urls = append(urls, "nats://"+c.clients[i].addr())
		} else {
			urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
		}
	}
	return c.storeAt(urls...)
}

// storeAt returns a store of a client that connects to these URLs alone.
func (c *cluster) storeAt(urls ...string) *natsstore.Store {
	c.t.Helper()
	s, err := natsstore.New(strings.Join(urls, ","), natsstore.Config{Replicas: len(c.servers), Options: []nats.Option{nats.IgnoreDiscoveredServers()}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(s.Close)
	eventually(c.t, "the store works", func() bool { return s.Check() == nil })
	return s
}

// eventually waits until f reports true, for a minute at most.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
