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

// The tests run in the namespace of clients, whose interface is c0. The namespace of servers has
// two addresses of each family, besides a link-local one. Unless a program selects the source of a
// datagram, the kernel takes one of them.
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
