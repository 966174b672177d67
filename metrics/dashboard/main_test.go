package dashboard

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }
