package conformance_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/gopeer"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// pipe is a peer in this process.
type pipe struct {
	in  io.Writer
	out *bufio.Reader
}

func (p *pipe) Ask(request string) (string, error) {
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		return "", err
	}
	response, err := p.out.ReadString('\n')
	return strings.TrimSuffix(response, "\n"), err
}

// start starts the Go peer.
func start(t *testing.T, fault string) *pipe {
	requests, in := io.Pipe()
	out, responses := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := gopeer.Serve(t.Context(), requests, responses, fault)
		served <- err
		responses.CloseWithError(io.EOF)
	}()
	t.Cleanup(func() {
		uplinktest.Must(t, in.Close())
		uplinktest.Must(t, <-served)
	})
	return &pipe{in, bufio.NewReader(out)}
}

// TestGoPeer verifies that this implementation conforms to itself in all layers.
func TestGoPeer(t *testing.T) {
	report, err := conformance.Run(t.Context(), start(t, ""), conformance.Options{Seed: 1, Frames: 120, Schemas: 6})
	uplinktest.Must(t, err)
	for _, row := range report.Rows {
		if row.Checks < 100 || row.Failures > 0 || row.Skipped != "" {
			t.Errorf("%+v", row)
		}
	}
	if len(report.Rows) != len(gopeer.Faults) {
		t.Errorf("%d rows, want %d", len(report.Rows), len(gopeer.Faults))
	}
}

// TestFaults verifies that the fault of each layer is found in its row, and in no other.
func TestFaults(t *testing.T) {
	for _, fault := range gopeer.Faults {
		t.Run(fault, func(t *testing.T) {
			report, err := conformance.Run(t.Context(), start(t, fault), conformance.Options{Seed: 2, Frames: 120, Schemas: 6, Layers: []string{strings.Fields(fault)[0]}})
			uplinktest.Must(t, err)
			for _, row := range report.Rows {
				if found := row.Failures > 0; found != (row.Name == fault) {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}
