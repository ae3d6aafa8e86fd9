package oracle_test

import (
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
)

// TestTraces lets the oracle sit the exam; with -rewrite it blesses the traces.
func TestTraces(t *testing.T) {
	tracetest.Bless(t, "../testdata/traces", tracetest.OracleAnswer)
}
