package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// TestAttemptsError verifies that the error of several attempts names each cause once, on one line,
// and wraps all of them.
func TestAttemptsError(t *testing.T) {
	refused := fmt.Errorf("client: %w: it was issued 3s before", token.ErrUsed)
	err := attemptsFailed([]error{refused, errNoAnswer, refused, context.Canceled})
	want := fmt.Sprintf("client: no server was reached: %v: it was issued 3s before (2 times); ", token.ErrUsed) +
		"timed out: no answer within 5s; check that the server runs and that its UDP port can be reached; context canceled"
	if got := err.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, cause := range []error{token.ErrUsed, transport.ErrTimeout, context.Canceled} {
		if !errors.Is(err, cause) {
			t.Errorf("it is not %v", cause)
		}
	}
	if err := attemptsFailed([]error{refused}); !errors.Is(err, refused) || err.Error() != refused.Error() {
		t.Errorf("one attempt: %v", err)
	}
}
