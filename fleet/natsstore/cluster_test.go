package natsstore_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
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
	routes  []*link          // to the servers, for each other
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

func startCluster(t testing.TB, n int, linked bool) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: make([]*server.Server, n)}
	ports := freePorts(t, 2*n)
	var routes []string
	for i := range n {
		addr := fmt.Sprintf("127.0.0.1:%d", ports[i])
		if linked {
			c.routes = append(c.routes, newLink(t, addr))
			c.clients = append(c.clients, newLink(t, fmt.Sprintf("127.0.0.1:%d", ports[n+i])))
			addr = c.routes[i].addr()
		}
		routes = append(routes, "nats://"+addr)
	}
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: ports[n+i], NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
		}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]}
			if linked {
				o.Cluster.Advertise, o.ClientAdvertise = c.routes[i].addr(), c.clients[i].addr()
			}
			for _, r := range routes {
				u, err := url.Parse(r)
				if err != nil {
					t.Fatal(err)
				}
				o.Routes = append(o.Routes, u)
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

// freePorts returns ports of loopback that were free a moment ago.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
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
	nc, err := nats.Connect(strings.Join(urls, ","), natsstore.Options()...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	s, err := natsstore.New(ctx, nc, natsstore.Config{Replicas: len(c.servers)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(s.Close)
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
