package projector

import (
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// BenchmarkApply applies and stores 64 entries of 99 events: 33 effects, each
// prepared, permitted and admitted.
func BenchmarkApply(b *testing.B) {
	w := newWorld(b)
	setup := len(w.entries)
	w.fill(64, 33)
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		b.StopTimer()
		p := open(b, b.TempDir(), nil)
		apply(b, p, w.entries[:setup]...)
		b.StartTimer()
		apply(b, p, w.entries[setup:]...)
		p.drain()
		b.StopTimer()
		shut(b, p)
		events += 64 * 99
		b.StartTimer()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// fill appends entries that prepare and admit a number of effects each.
func (w *world) fill(entries, effects int) {
	for range entries {
		commands := make([]aggregate.Command, effects)
		for i := range commands {
			commands[i] = w.prepare(producer, "charge", "root", "r1", true)
		}
		w.must(commands...)
	}
}

// BenchmarkList reads pages of 50 of 2,000 effects.
func BenchmarkList(b *testing.B) {
	w := newWorld(b)
	w.fill(20, 100)
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
	w.fill(20, 100)
	dir := b.TempDir()
	p := open(b, dir, nil)
	apply(b, p, w.entries...)
	shut(b, p)
	for b.Loop() {
		shut(b, open(b, dir, nil))
	}
}
