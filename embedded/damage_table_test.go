package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/projector/anchor"
)

// TestDamage is the table of silent damages, and of lost and wrong witnesses. A
// node that cannot trust its store serves reads, says why and where, and leaves
// everything as it is (SPEC 16, 18).
func TestDamage(t *testing.T) {
	sc := newScene(t)
	at := func(seq uint64) string { return fmt.Sprintf("entry %d", seq) }
	last, all, middle := sc.entries[sc.seq()-1], len(sc.effects), sc.middle()
	swap := func(what, by string) func(*rig) { return func(r *rig) { r.replace(what, filepath.Join(by, what)) } }
	lose := func(what ...string) func(*rig) { return func(r *rig) { r.remove(what...) } }
	mark := func(change func(*anchor.Mark)) func(*rig) { return func(r *rig) { r.mark(change) } }
	weaken := func(change func(*jetstream.StreamConfig)) func(*rig) { return func(r *rig) { r.weaken(change) } }
	for name, c := range map[string]struct {
		damage   func(*rig)
		readable int // effects
		foreign  uint64
		says     string
	}{
		"flipped bit at the end":                  {func(r *rig) { r.flip(last) }, all, 0, at(last.Seq)},
		"flipped bit behind the projection":       {func(r *rig) { r.flip(middle); r.remove("projection") }, sc.before(middle.Seq), 0, at(middle.Seq)},
		"flipped bit without index":               {func(r *rig) { r.flip(middle); r.remove(index) }, all, 0, at(middle.Seq)},
		"flipped bit, index and projection gone":  {func(r *rig) { r.flip(middle); r.remove(index, "projection") }, sc.before(middle.Seq), 0, at(middle.Seq)},
		"torn tail":                               {func(r *rig) { r.tear(last) }, all, 0, "entry"},
		"torn tail without index":                 {func(r *rig) { r.tear(last); r.remove(index) }, all, 0, at(last.Seq)},
		"torn further back":                       {func(r *rig) { r.tear(middle); r.remove(index) }, all, 0, at(middle.Seq)},
		"missing block":                           {lose(firstBlock), all, 0, "entry"},
		"missing block without index":             {lose(firstBlock, index), all, 0, "entry"},
		"missing block and projection":            {lose(firstBlock, "projection"), 0, 0, "entry"},
		"missing stream":                          {lose(stream), all, 0, at(last.Seq)},
		"missing stream and projection":           {lose(stream, "projection"), 0, 0, at(last.Seq)},
		"empty store":                             {lose("nats/jetstream"), all, 0, at(last.Seq)},
		"no store":                                {lose("nats"), all, 0, at(last.Seq)},
		"no anchor":                               {lose("anchor"), all, 0, "the anchor is missing"},
		"no anchor and no stream":                 {lose("anchor", stream), all, 0, "missing"},
		"damaged anchor":                          {func(r *rig) { r.write("anchor/anchor", "nonsense") }, all, 0, "the anchor is damaged"},
		"anchor of another ledger":                {swap("anchor", sc.other), all, 0, "another ledger"},
		"anchor of another store":                 {mark(func(m *anchor.Mark) { m.Fingerprint = events.ZeroDigest }), all, 0, "fingerprint"},
		"anchor ahead of the log":                 {mark(func(m *anchor.Mark) { m.Seq += 5 }), all, 0, at(last.Seq + 1)},
		"another entry at the anchor's place":     {mark(func(m *anchor.Mark) { m.SHA256 = events.ZeroDigest }), all, 0, at(last.Seq)},
		"stream of another ledger":                {swap("nats", sc.other), all, 0, "fingerprint"},
		"stream of another ledger, no projection": {func(r *rig) { swap("nats", sc.other)(r); r.remove("projection") }, 0, 0, "fingerprint"},
		"stream rolled back":                      {swap("nats", sc.earlier), all, 0, "entry"},
		"stream and projection rolled back":       {func(r *rig) { swap("nats", sc.earlier)(r); swap("projection", sc.earlier)(r) }, 4, 0, "entry"},
		"a foreign message":                       {func(r *rig) { r.publish(`{"forged":true}`) }, all, 1, at(last.Seq + 1)},
		"the last entry twice":                    {func(r *rig) { r.publish(string(last.Body)) }, all, 1, at(last.Seq + 1)},
		"a limit of messages":                     {weaken(func(c *jetstream.StreamConfig) { c.MaxMsgs = 1_000_000 }), all, 0, "limits the number of messages"},
		"a limit of age":                          {weaken(func(c *jetstream.StreamConfig) { c.MaxAge = 1000 * time.Hour }), all, 0, "limits the age"},
		"a limit of age, no projection": {func(r *rig) {
			weaken(func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour })(r)
			r.remove("projection")
		}, 0, 0, "limits the age"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sc.copy(t)
			c.damage(r)
			sc.untrusted(t, r, c.readable, c.foreign, c.says)
		})
	}
	t.Run("repaired", func(t *testing.T) { sc.repairs(t) })
	t.Run("forked", func(t *testing.T) { sc.forked(t) })
	t.Run("far behind", func(t *testing.T) { sc.farBehind(t) })
}

// repairs is what can be made again, and is: the projection alone, and one of the
// anchor's two slots.
func (sc *scene) repairs(t *testing.T) {
	garble := func(pattern string) func(*rig) {
		return func(r *rig) {
			names, err := filepath.Glob(filepath.Join(r.dir, "projection", pattern))
			if err != nil || len(names) == 0 {
				r.Fatal("nothing to damage: ", pattern, err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					r.Fatal(err)
				}
				for i := len(b) / 3; i < len(b); i += 97 {
					b[i] ^= 0x55
				}
				if err := os.WriteFile(name, b, 0o600); err != nil {
					r.Fatal(err)
				}
			}
		}
	}
	for name, damage := range map[string]func(*rig){
		"nothing":                      func(*rig) {},
		"projection lost":              func(r *rig) { r.remove("projection") },
		"projection garbled":           garble("*.sst"),
		"manifest garbled":             garble("MANIFEST-*"),
		"table lost":                   func(r *rig) { r.removeAll("projection/*.sst") },
		"projection older":             func(r *rig) { r.replace("projection", filepath.Join(sc.earlier, "projection")) },
		"projection of another ledger": func(r *rig) { r.replace("projection", filepath.Join(sc.other, "projection")) },
		"index of the stream lost":     func(r *rig) { r.remove(index) },
		"first slot of the anchor":     func(r *rig) { r.slot(0) },
		"second slot of the anchor":    func(r *rig) { r.slot(1) },
		"anchor behind":                func(r *rig) { r.replace("anchor", filepath.Join(sc.earlier, "anchor")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sc.copy(t)
			damage(r)
			sc.trusted(t, r)
		})
	}
}

func (r *rig) removeAll(pattern string) {
	r.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, pattern))
	if err != nil || len(names) == 0 {
		r.Fatal("nothing to damage: ", pattern, err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			r.Fatal(err)
		}
	}
}

// slot damages one of the two slots of the anchor.
func (r *rig) slot(n int) {
	r.Helper()
	file := filepath.Join(r.dir, "anchor", "anchor")
	b, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	b[len(b)/2*n+100] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		r.Fatal(err)
	}
}

// forked: a copy of the ledger from earlier went on by itself. The anchor of the
// true one tells, however long the other has become.
func (sc *scene) forked(t *testing.T) {
	r := sc.copy(t)
	dir := filepath.Join(t.TempDir(), "fork")
	copyDir(t, sc.earlier, dir)
	fork := &rig{TB: t, dir: dir, opts: r.opts}
	fork.opts.Data = dir
	t.Cleanup(fork.stop)
	fork.start()
	for i := 0; fork.last() <= sc.seq(); i++ {
		fork.openTask(events.TaskID(fmt.Sprint("fork-", i)), 1)
	}
	fork.stop()
	r.replace("nats", filepath.Join(dir, "nats"))
	r.replace("projection", filepath.Join(dir, "projection"))
	r.start()
	if ready, want := r.node.Ready(), fmt.Sprintf("entry %d", sc.seq()); ready.Trusted || ready.Reason == "" {
		t.Fatalf("%+v, want %s", ready, want)
	} else {
		t.Log(ready.Reason)
	}
	if e := r.get(sc.effects[0]); e.EffectID != sc.effects[0] {
		t.Error(show(e))
	}
}

// farBehind: a bit that flipped long ago, where no start looks, is named by
// whoever reads the log.
func (sc *scene) farBehind(t *testing.T) {
	r := sc.copy(t)
	r.flip(sc.middle())
	r.start()
	_, err := readTo(context.Background(), r.log(), sc.seq())
	var distrust *eventlog.Distrust
	if !errors.As(err, &distrust) || distrust.Seq != sc.middle().Seq {
		t.Fatalf("%v, want entry %d", err, sc.middle().Seq)
	}
}
