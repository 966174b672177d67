//go:build linux && field

package field

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/transport"
)

// The tests of addresses run in the namespace of clients, whose interface to that of servers is c0.
// The namespace of servers has two addresses of each family, besides a link-local one. Unless a
// program selects the source of a datagram, the kernel takes one of them.
const (
	server1, server2     = "10.77.0.1", "10.77.0.2"
	server1v6, server2v6 = "fd77::1", "fd77::2"
	serverLinkLocal      = "fe80::77%c0"
)

// Addresses of a network with a router, and a name of the second server address of both families.
const (
	routed1, routed2     = "10.88.1.1", "10.88.1.2"
	routed1v6, routed2v6 = "fd88:1::1", "fd88:1::2"
	routedName           = "dual.routed.example"
)

// hosts is the file of host names.
const hosts = "127.0.0.1 localhost\n" +
	server2 + " dual.example\n" + server2v6 + " dual.example\n" +
	routed2 + " " + routedName + "\n" + routed2v6 + " " + routedName + "\n"

// layout are the arguments of ip that lay out the network of the tests of addresses.
var layout = []string{
	"netns add servers",
	"link add c0 type veth peer name s0 netns servers",
	"link set lo up",
	"link set c0 up",
	"addr add 10.77.0.10/24 dev c0",
	"addr add fd77::10/64 dev c0 nodad",
	"addr add fe80::10/64 dev c0 nodad",
	"-n servers link set lo up",
	"-n servers link set s0 up",
	"-n servers addr add " + server1 + "/24 dev s0",
	"-n servers addr add " + server2 + "/24 dev s0",
	"-n servers addr add " + server1v6 + "/64 dev s0 nodad",
	"-n servers addr add " + server2v6 + "/64 dev s0 nodad",
	"-n servers addr add fe80::77/64 dev s0 nodad",
}

// routedLayout are the arguments of ip that connect the namespaces C and S by a router R, with
// links that carry 9,000 bytes.
var routedLayout = []string{
	"-n C link add c1 mtu 9000 type veth peer name r0 mtu 9000 netns R",
	"-n S link add s1 mtu 9000 type veth peer name r1 mtu 9000 netns R",
	"-n C link set c1 up",
	"-n S link set s1 up",
	"-n R link set r0 up",
	"-n R link set r1 up",
	"netns exec R sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
	"-n R addr add 10.88.0.254/24 dev r0",
	"-n R addr add fd88:0::ff/64 dev r0 nodad",
	"-n R addr add 10.88.1.254/24 dev r1",
	"-n R addr add fd88:1::ff/64 dev r1 nodad",
}

// tunLayout are the arguments of ip that give the namespaces C and S a TUN device each.
var tunLayout = []string{
	"-n C tuntap add dev c1 mode tun",
	"-n S tuntap add dev s1 mode tun",
	"-n C link set c1 up",
	"-n S link set s1 up",
}

// endLayout are the arguments of ip that give C and S their addresses.
var endLayout = []string{
	"-n C link set lo up",
	"-n S link set lo up",
	"-n C addr add 10.88.0.10/24 dev c1",
	"-n C addr add fd88:0::10/64 dev c1 nodad",
	"-n S addr add " + routed1 + "/24 dev s1",
	"-n S addr add " + routed2 + "/24 dev s1",
	"-n S addr add " + routed1v6 + "/64 dev s1 nodad",
	"-n S addr add " + routed2v6 + "/64 dev s1 nodad",
}

// routes are the arguments of ip that give C and S their routes, with a router or without.
var routes = map[bool][]string{
	true: {
		"-n C route add 10.88.1.0/24 via 10.88.0.254",
		"-n C route add fd88:1::/64 via fd88:0::ff",
		"-n S route add 10.88.0.0/24 via 10.88.1.254",
		"-n S route add fd88:0::/64 via fd88:1::ff",
	},
	false: {
		"-n C route add 10.88.1.0/24 dev c1",
		"-n C route add fd88:1::/64 dev c1",
		"-n S route add 10.88.0.0/24 dev s1",
		"-n S route add fd88:0::/64 dev s1",
	},
}

// servers is the namespace of servers of the tests of addresses.
const servers = namespace("servers")

// TestMain needs namespaces of its own for networks and mounts, in which nothing outlives it.
func TestMain(m *testing.M) {
	if err := layOut(); err != nil {
		fmt.Println(err)
		fmt.Println("run .ci/field: it starts these tests in namespaces of their own")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// programs is the directory of the programs uplink, player and uplink_world.
var programs = os.Getenv("UPLINK_FIELD")

func layOut() error {
	if programs == "" {
		return errors.New("UPLINK_FIELD is not set")
	}
	if err := command("mount", "-t", "tmpfs", "none", "/run"); err != nil { // of ip netns
		return err
	}
	if err := os.WriteFile("/run/hosts", []byte(hosts), 0o600); err != nil {
		return err
	}
	if err := command("mount", "--bind", "/run/hosts", "/etc/hosts"); err != nil {
		return err
	}
	return ip(layout, nil)
}

// ip runs the program ip with each line of arguments, in which names are replaced.
func ip(lines []string, names *strings.Replacer) error {
	for _, line := range lines {
		args := strings.Fields(line)
		for i := range args {
			if names != nil && len(args[i]) == 1 {
				args[i] = names.Replace(args[i])
			}
		}
		if err := command("ip", args...); err != nil {
			return err
		}
	}
	return nil
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// namespace is the name of a network namespace.
type namespace string

// do calls f on a thread in the namespace: the sockets that f opens stay there.
func (n namespace) do(f func() error) error {
	file, err := os.Open("/run/netns/" + string(n))
	if err != nil {
		return err
	}
	defer file.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// ListenPacket makes a namespace the network of a client.
func (n namespace) ListenPacket(addr string) (pc transport.PacketConn, err error) {
	err = n.do(func() error {
		pc, err = transport.UDP().ListenPacket(addr)
		return err
	})
	return pc, err
}

// command returns a program that runs in the namespace.
func (n namespace) command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", string(n), name}, args...)...)
}

// network connects a client to a server.
type network struct{ client, router, server namespace }

// newNetwork returns a network with a router between client and server, which ends with the test.
func newNetwork(t *testing.T) *network { return addNetwork(t, true) }

func addNetwork(t *testing.T, router bool) *network {
	t.Helper()
	name := strings.NewReplacer("/", "_", " ", "_", "=", "_").Replace(t.Name())
	n := &network{namespace(name + "_client"), namespace(name + "_router"), namespace(name + "_server")}
	for _, s := range []namespace{n.client, n.router, n.server} {
		run(t, "ip", "netns", "add", string(s))
		t.Cleanup(func() { run(t, "ip", "netns", "del", string(s)) })
	}
	names := strings.NewReplacer("C", string(n.client), "R", string(n.router), "S", string(n.server))
	between := tunLayout
	if router {
		between = routedLayout
	}
	must(t, ip(between, names))
	must(t, ip(endLayout, names))
	must(t, ip(routes[router], names))
	return n
}

// setMTU limits the IP packets that the router carries, in bytes, in both directions. With told, it
// reports larger packets by ICMP; otherwise they vanish.
func (n *network) setMTU(t *testing.T, mtu int, told bool) {
	t.Helper()
	device, route := mtu, 9000
	if told {
		device, route = 9000, mtu
	}
	for i, name := range []string{"r0", "r1"} {
		// An interface with less than 1,280 bytes loses its IPv6.
		run(t, "ip", "-n", string(n.router), "link", "set", name, "mtu", fmt.Sprint(device))
		run(t, "ip", "-n", string(n.router), "route", "replace", fmt.Sprintf("10.88.%d.0/24", i), "dev", name, "mtu", "lock", fmt.Sprint(route))
		if mtu >= 1280 {
			run(t, "ip", "-n", string(n.router), "addr", "replace", fmt.Sprintf("fd88:%d::ff/64", i), "dev", name, "nodad")
			run(t, "ip", "-n", string(n.router), "-6", "route", "replace", fmt.Sprintf("fd88:%d::/64", i), "dev", name, "proto", "kernel", "metric", "256", "mtu", "lock", fmt.Sprint(route))
		}
	}
}

// setRate makes the router carry so many kbit/s in each direction, with a queue of a number of
// milliseconds.
func (n *network) setRate(t *testing.T, kbits, queue int) {
	t.Helper()
	for _, name := range []string{"r0", "r1"} {
		run(t, "tc", "-n", string(n.router), "qdisc", "replace", "dev", name, "root", "tbf",
			"rate", fmt.Sprint(kbits, "kbit"), "burst", "16kb", "latency", fmt.Sprint(queue, "ms"))
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	must(t, command(name, args...))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
