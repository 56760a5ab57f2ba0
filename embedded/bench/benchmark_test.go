package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// The two sides alone, for profiles: go test -bench Settled/64 -cpuprofile FILE.
// cpu-µs/op is the processor time of everything in the process, producers too;
// unlike the rate it says something on a machine that does other work.

var inFlights = []int{1, 64, 512}

func BenchmarkSettled(b *testing.B) {
	for _, n := range inFlights {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, err := openReal(b.Context(), b.TempDir(), func(events.EffectID) {})
			if err != nil {
				b.Fatal(err)
			}
			measure(b, r, n)
		})
	}
}

func BenchmarkBare(b *testing.B) {
	r, err := openReal(b.Context(), b.TempDir(), func(events.EffectID) {})
	if err != nil {
		b.Fatal(err)
	}
	s, err := learn(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.close(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, n := range inFlights {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, err := openBare(b.Context(), b.TempDir(), s)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, p, n)
		})
	}
}

// measure has b.N effects settled, so many at a time.
func measure(b *testing.B, s side, inFlight int) {
	defer func() {
		if err := s.close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	before, err := s.used(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	l := load{clients: s.clients(), inFlight: inFlight, wait: wire.WaitTerminal, name: "b"}
	var group errgroup.Group
	var taken atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime(b)
	for w := range inFlight {
		group.Go(func() error {
			for n := 0; taken.Add(1) <= int64(b.N); n++ {
				e, err := l.clients[w%len(l.clients)].Submit(b.Context(), l.request(w, n))
				if err == nil {
					err = l.check(&e)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	spent := processorTime(b) - began
	b.StopTimer()
	if err := s.settled(b.Context(), b.N); err != nil {
		b.Fatal(err)
	}
	after, err := s.used(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(after.entries-before.entries)/float64(b.N), "entries/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "effects/s")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
