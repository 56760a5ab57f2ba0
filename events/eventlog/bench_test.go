package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

var sizes = map[string]int{"1KB": 700, "200KB": 200 << 10}

// BenchmarkAppend appends one entry after the other, fsynced; BenchmarkPublish
// is what a bare publish with an expectation costs.
func BenchmarkAppend(b *testing.B) {
	for name, pad := range sizes {
		b.Run(name, func(b *testing.B) {
			s := create(b, startServer(b, b.TempDir()).ClientURL(), Config{LedgerID: ledger, MaxBytes: 3 << 30})
			list := entries(b.N, "a", pad)
			b.SetBytes(int64(len(list[0].Body)))
			b.ReportAllocs()
			b.ResetTimer()
			for _, e := range list {
				if err := s.Append(b.Context(), e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	for name, pad := range sizes {
		b.Run(name, func(b *testing.B) {
			s := create(b, startServer(b, b.TempDir()).ClientURL(), Config{LedgerID: ledger, MaxBytes: 3 << 30})
			list := entries(b.N, "a", pad)
			b.SetBytes(int64(len(list[0].Body)))
			b.ReportAllocs()
			b.ResetTimer()
			for _, e := range list {
				if _, err := s.nc.RequestMsg(&nats.Msg{Subject: wire.LogSubject, Data: e.Body}, time.Minute); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTail is from the call of Append to the entry in the hands of another
// reader in the same process, one at a time.
func BenchmarkTail(b *testing.B) {
	for name, pad := range sizes {
		b.Run(name, func(b *testing.B) {
			srv := startServer(b, b.TempDir())
			s := create(b, srv.ClientURL(), Config{LedgerID: ledger, MaxBytes: 3 << 30})
			list := entries(b.N, "a", pad)
			seen := make(chan uint64)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() {
				done <- s.Tail(ctx, 1, events.ZeroDigest, func(e events.Stored) error { seen <- e.Seq; return nil })
			}()
			b.SetBytes(int64(len(list[0].Body)))
			b.ReportAllocs()
			b.ResetTimer()
			for _, e := range list {
				if err := s.Append(ctx, e); err != nil {
					b.Fatal(err)
				}
				<-seen
			}
			b.StopTimer()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkRead reads and decodes entries that this process has not seen.
func BenchmarkRead(b *testing.B) {
	for name, pad := range sizes {
		b.Run(name, func(b *testing.B) {
			url := startServer(b, b.TempDir()).ClientURL()
			list := entries(200, "a", pad)
			appendAll(b, create(b, url, Config{LedgerID: ledger, MaxBytes: 3 << 30}), list)
			s, err := Attach(b.Context(), connect(b, url), Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(list[0].Body)))
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				s.opener.cache = newCache()
				all, err := readAll(b.Context(), s, 0)
				if err != nil {
					b.Fatal(err)
				}
				n += len(all)
			}
		})
	}
}
