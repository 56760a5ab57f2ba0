package projector

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

func TestCatchUpShowsProgress(t *testing.T) {
	w := newWorld(t)
	w.settled()
	p := fresh(t)
	var last, total uint64
	if err := p.CatchUp(context.Background(), w.log, func(d, n uint64) { last, total = d, n }); err != nil {
		t.Fatal(err)
	}
	if want := uint64(len(w.entries)); last != want || total != want || p.State().Seq() != want {
		t.Errorf("%d of %d, at %d", last, total, p.State().Seq())
	}
	if digest(t, p) != rebuilt(t, w, last) {
		t.Error("not the rows of a rebuilt projection")
	}
}

// runs starts Run; stop ends it and returns what it said.
func runs(p *Projection, l log) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, l) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// Run applies what comes, ends with its context, and goes on from there.
func TestRunFollows(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	for range 2 {
		stop := runs(p, w.log)
		w.settled()
		at := events.Position{Seq: uint64(len(w.entries))}
		if err := p.AwaitPosition(context.Background(), at); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if p.State().Digest() != w.state.Digest() {
		t.Error("not the fold")
	}
}

// P5: what is wrong with the log stops the projection where it is, and it is read
// all the same.
func TestDistrust(t *testing.T) {
	for name, damage := range map[string]func(*world){
		"missing":   func(w *world) { w.log.Damage(7, nil) },
		"corrupt":   func(w *world) { w.log.Damage(7, append([]byte(" "), w.entries[6].Body...)) },
		"unchained": func(w *world) { w.log.Damage(7, other(w.entries[6]).Body) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.settled()
			w.settled()
			damage(w)
			p := fresh(t)
			var d *eventlog.Distrust
			if err := p.CatchUp(context.Background(), w.log, nil); !errors.As(err, &d) || d.Seq != 7 {
				t.Fatal(err)
			}
			if err := p.Run(context.Background(), w.log); !errors.As(err, &d) || d.Seq != 7 {
				t.Fatal(err)
			}
			v, err := p.Await(context.Background(), seenAt(id, 6), terminal)
			if err != nil || v.Position.Seq != 6 || p.State().Seq() != 6 {
				t.Error(v, err)
			}
		})
	}
}

// P5: a log that is behind the projection, or holds another entry where it
// stands, is not caught up with.
func TestLogBehindTheProjection(t *testing.T) {
	w := newWorld(t)
	w.settled()
	p := fresh(t)
	apply(t, p, w.entries...)
	last := uint64(len(w.entries))
	twin := w.entries[last-1].Entry
	twin.Writer = "01OTHER"
	for _, damage := range []func(){
		func() { w.log.Damage(last, events.Seal(twin).Body) },
		func() { w.log.Damage(last, other(w.entries[last-1]).Body) },
		func() { w.log.Truncate(last - 1) },
		func() { w.log.Truncate(0) },
	} {
		damage()
		if err := p.CatchUp(context.Background(), w.log, nil); !errors.Is(err, eventlog.ErrUntrusted) {
			t.Error(err)
		}
	}
	if p.State().Seq() != last {
		t.Error("it went back")
	}
}

// P6: a store that fails while it is in use leaves the state, the lists and the
// waits; what only the rows know is refused.
func TestStoreFails(t *testing.T) {
	w := newWorld(t)
	files := vfs.NewMem()
	p := open(t, "p", files)
	apply(t, p, w.entries...)
	stop := runs(p, w.log)
	q := queries(p, w)
	p.fault.set(errors.New("no more"))
	id := w.settled()
	v, err := p.Await(context.Background(), seenAt(id, len(w.entries)), terminal)
	if err != nil || v.State != wire.StateSettled {
		t.Fatal(v, err)
	}
	if p.State().Digest() != w.state.Digest() || p.Fault() == nil {
		t.Error("the state is not the fold")
	}
	if list := ask[*wire.List[*wire.Effect]](t, q, producer, wire.EffectList, `{}`); len(list.Items) != 1 || list.Items[0].EffectID != id {
		t.Errorf("%+v", list)
	}
	if refusal := refused(t, q, producer, wire.EffectHistory, `{"effect_id":"`+string(id)+`"}`); refusal.Code != wire.LedgerUnavailable {
		t.Error(refusal)
	}
	if _, err := p.Digest(); err == nil {
		t.Error("a digest of what is not there")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	_ = p.Close()
	p = open(t, "p", files)
	defer shut(t, p)
	if err := p.CatchUp(context.Background(), w.log, nil); err != nil || digest(t, p) != rebuilt(t, w, uint64(len(w.entries))) {
		t.Error("it does not resume", err)
	}
}
