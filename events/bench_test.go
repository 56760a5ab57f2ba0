package events

import "testing"

var sink Stored

// One effect's five events: what the hot path encodes and decodes.
func BenchmarkSeal(b *testing.B) {
	e := usualEntry()
	b.SetBytes(int64(len(Seal(e).Body)))
	b.ReportAllocs()
	for b.Loop() {
		sink = Seal(e)
	}
}

func BenchmarkOpen(b *testing.B) {
	body := Seal(usualEntry()).Body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(body)
		if err != nil {
			b.Fatal(err)
		}
		sink = s
	}
}

func BenchmarkCanonicalize(b *testing.B) {
	raw := []byte(`{ "task_id": "invoices-march", "operation": "charge", "payload": {"amount": 1999, "account": "acct_1041", "note": "Grüße 😀"},
		"run_id": "run-2026-03-14-0017", "causal_id": "invoice-9931/charge", "service": "billing", "wait": "terminal", "timeout_ms": 2000}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonicalize(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigestOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		DigestOf(&sampleBinding)
	}
}
