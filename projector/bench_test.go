package projector

import (
	"context"
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// BenchmarkApply applies entries of about 100 events: 33 effects, each prepared,
// permitted and admitted.
func BenchmarkApply(b *testing.B) {
	w := newWorld(b)
	setup := len(w.entries)
	for range 64 {
		commands := make([]aggregate.Command, 33)
		for i := range commands {
			commands[i] = w.prepare(producer, "charge", "root", "r1", true)
		}
		w.must(commands...)
	}
	b.ReportAllocs()
	events := 0
	for done := 0; ; {
		p := open(b, b.TempDir(), nil)
		apply(b, p, w.entries[:setup]...)
		b.ResetTimer()
		for _, e := range w.entries[setup:] {
			if done == b.N {
				break
			}
			if err := p.Apply(context.Background(), e); err != nil {
				b.Fatal(err)
			}
			events += len(e.Events)
			done++
		}
		b.StopTimer()
		shut(b, p)
		if done == b.N {
			b.ReportMetric(float64(events)/float64(done), "events/entry")
			return
		}
	}
}

// BenchmarkList reads pages of 50 of 2,000 effects.
func BenchmarkList(b *testing.B) {
	w := newWorld(b)
	for range 20 {
		commands := make([]aggregate.Command, 100)
		for i := range commands {
			commands[i] = w.prepare(producer, "charge", "root", "r1", true)
		}
		w.must(commands...)
	}
	p := open(b, b.TempDir(), nil)
	defer shut(b, p)
	apply(b, p, w.entries...)
	q := queries(p, w)
	for _, who := range []aggregate.Caller{producer, operator} {
		b.Run(string(who.Principal), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask[*wire.List[*wire.Effect]](b, q, who, wire.EffectList, `{"state":"admitted"}`)
			}
		})
	}
}

// BenchmarkOpen loads 2,000 effects.
func BenchmarkOpen(b *testing.B) {
	w := newWorld(b)
	for range 20 {
		commands := make([]aggregate.Command, 100)
		for i := range commands {
			commands[i] = w.prepare(producer, "charge", "root", "r1", true)
		}
		w.must(commands...)
	}
	dir := b.TempDir()
	p := open(b, dir, nil)
	apply(b, p, w.entries...)
	shut(b, p)
	for b.Loop() {
		shut(b, open(b, dir, nil))
	}
}
