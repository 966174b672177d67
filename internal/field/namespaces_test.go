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
)

// The tests run in the namespace of clients, whose interface to that of servers is c0. The
// namespace of servers has two addresses of each family, besides a link-local one. Unless a program
// selects the source of a datagram, the kernel takes one of them.
const (
	server1, server2     = "10.77.0.1", "10.77.0.2"
	server1v6, server2v6 = "fd77::1", "fd77::2"
	serverLinkLocal      = "fe80::77%c0"
)

// layout are the arguments of ip that lay out the network.
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

	// A second network with a router.
	"netns add router",
	"link add c1 mtu 9000 type veth peer name r0 mtu 9000 netns router",
	"-n servers link add s1 mtu 9000 type veth peer name r1 mtu 9000 netns router",
	"-n router link set r0 up",
	"-n router link set r1 up",
	"link set c1 up",
	"-n servers link set s1 up",
	"netns exec router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
	"addr add 10.88.0.10/24 dev c1",
	"addr add fd88:0::10/64 dev c1 nodad",
	"-n router addr add 10.88.0.254/24 dev r0",
	"-n router addr add fd88:0::ff/64 dev r0 nodad",
	"-n router addr add 10.88.1.254/24 dev r1",
	"-n router addr add fd88:1::ff/64 dev r1 nodad",
	"-n servers addr add 10.88.1.1/24 dev s1",
	"-n servers addr add fd88:1::1/64 dev s1 nodad",
	"route add 10.88.1.0/24 via 10.88.0.254",
	"route add fd88:1::/64 via fd88:0::ff",
	"-n servers route add 10.88.0.0/24 via 10.88.1.254",
	"-n servers route add fd88:0::/64 via fd88:1::ff",
}

// servers is the namespace of servers.
var servers *os.File

// TestMain needs namespaces of its own for networks and mounts, in which nothing outlives it.
func TestMain(m *testing.M) {
	if err := layOut(); err != nil {
		fmt.Println(err)
		fmt.Println("run .ci/field: it starts these tests in namespaces of their own")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func layOut() error {
	if os.Getenv("UPLINK_FIELD") == "" {
		return errors.New("UPLINK_FIELD is not set")
	}
	if err := command("mount", "-t", "tmpfs", "none", "/run"); err != nil { // of ip netns
		return err
	}
	for _, line := range layout {
		if err := command("ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	var err error
	servers, err = os.Open("/run/netns/servers")
	return err
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// inServers calls f on a thread in the namespace of servers: the sockets that f opens stay there.
func inServers(t *testing.T, f func() error) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		err := unix.Setns(int(servers.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		result <- err
	}()
	must(t, <-result)
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
