package bench

import (
	"math"
	"slices"
	"time"
)

// Result is what was measured (SPEC 20).
type Result struct {
	// RawPublishPerS is durable publishes of 1 KiB, one at a time, each with its
	// expected last sequence.
	RawPublishPerS float64 `json:"raw_publish_per_s"`
	Rows           []Row   `json:"rows"`
}

// Row is one number of requests in flight.
type Row struct {
	InFlight             int       `json:"in_flight"`
	EffectsPerS          float64   `json:"effects_per_s"` // settled
	BarePerS             float64   `json:"bare_per_s"`
	Ratio                float64   `json:"ratio"` // effects_per_s by bare_per_s
	AdmittedMS           Quantiles `json:"admitted_ms"`
	SettledMS            Quantiles `json:"settled_ms"`
	EntriesPerEffect     float64   `json:"entries_per_effect"`
	BareEntriesPerEffect float64   `json:"bare_entries_per_effect"`
	LogBytesPerEffect    float64   `json:"log_bytes_per_effect"`
}

// Quantiles are latencies in milliseconds, from the request to its reply.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// quantilesOf takes the exact quantiles, by nearest rank; it sorts what it is
// given.
func quantilesOf(latencies []time.Duration) Quantiles {
	if len(latencies) == 0 {
		return Quantiles{}
	}
	slices.Sort(latencies)
	at := func(q float64) float64 {
		rank := int(math.Ceil(q * float64(len(latencies))))
		return rounded(latencies[rank-1].Seconds()*1000, 3)
	}
	return Quantiles{P50: at(0.50), P99: at(0.99)}
}

// rate is per second, and 0 of no time.
func rate(n int, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return rounded(float64(n)/elapsed.Seconds(), 1)
}

func quotient(a, b float64, digits int) float64 {
	if b == 0 {
		return 0
	}
	return rounded(a/b, digits)
}

func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
