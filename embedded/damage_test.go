package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/projector/anchor"
)

// scene is a stopped ledger with more than one block of log, and what else a
// damage can be made of. It is copied, never changed.
type scene struct {
	dir     string
	earlier string // the same ledger, some effects before
	other   string // another ledger
	entries []events.Stored
	created time.Time // of the stream
	effects []events.EffectID
	service *service
}

func newScene(t *testing.T) *scene {
	s := newService(t)
	r := running(t, s)
	sc := &scene{dir: r.dir, service: s}
	for i := range 4 {
		sc.effects = append(sc.effects, r.submit("r", fmt.Sprint(i)).EffectID)
	}
	r.stop()
	sc.earlier = filepath.Join(t.TempDir(), "earlier")
	copyDir(t, r.dir, sc.earlier)
	r.start()
	p := r.as("producer")
	for i := range 160 { // more than the 8 MiB of one block
		big := charge("big", fmt.Sprint(i), 5)
		big.Payload = events.Raw(`{"account":"a","amount":5,"note":"` + strings.Repeat("n", 56<<10) + `"}`)
		if _, err := p.Prepare(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		sc.effects = append(sc.effects, r.submit("s", fmt.Sprint(i)).EffectID)
	}
	r.stop()
	sc.entries = r.stored()
	r.store(func(js jetstream.JetStream) {
		st, err := js.Stream(t.Context(), wire.LogStream)
		if err != nil {
			t.Fatal(err)
		}
		sc.created = st.CachedInfo().Created.UTC()
	})
	other := running(t, s)
	other.submit("r", "c")
	other.stop()
	sc.other = other.dir
	return sc
}

// copy is a data directory like the one of the scene.
func (sc *scene) copy(t *testing.T) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	copyDir(t, sc.dir, dir)
	r := &rig{TB: t, dir: dir, opts: embedded.Options{Data: dir, Listen: "127.0.0.1:0", Logger: logger()}}
	t.Cleanup(r.stop)
	return r
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// seq is the last entry.
func (sc *scene) seq() uint64 { return uint64(len(sc.entries)) }

// middle is an entry that no index and no anchor knows by itself.
func (sc *scene) middle() events.Stored { return sc.entries[len(sc.entries)-8] }

func (r *rig) streamDir() string {
	return filepath.Join(r.dir, "nats", "jetstream", "EFFECTD", "streams", wire.LogStream)
}

// remove removes files and directories below the data directory.
func (r *rig) remove(names ...string) {
	r.Helper()
	for _, name := range names {
		path := filepath.Join(r.dir, name)
		if _, err := os.Stat(path); err != nil {
			r.Fatal("nothing to damage: ", err)
		}
		if err := os.RemoveAll(path); err != nil {
			r.Fatal(err)
		}
	}
}

// replace puts a copy of another directory in the place of one.
func (r *rig) replace(name, by string) {
	r.Helper()
	r.remove(name)
	copyDir(r, by, filepath.Join(r.dir, name))
}

// block rewrites the block file that holds an entry.
func (r *rig) block(e events.Stored, change func(file []byte, at int) []byte) {
	r.Helper()
	names, err := filepath.Glob(filepath.Join(r.streamDir(), "msgs", "*.blk"))
	if err != nil || len(names) < 2 {
		r.Fatal("want more than one block: ", names, err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			r.Fatal(err)
		}
		if at := bytes.Index(file, e.Body); at >= 0 {
			if err := os.WriteFile(name, change(file, at), 0o600); err != nil {
				r.Fatal(err)
			}
			return
		}
	}
	r.Fatalf("entry %d is in no block", e.Seq)
}

// flip changes one bit of an entry's payload.
func (r *rig) flip(e events.Stored) {
	r.Helper()
	r.block(e, func(file []byte, at int) []byte {
		file[at+len(e.Body)/2] ^= 1
		return file
	})
}

// tear cuts the block off in the middle of an entry.
func (r *rig) tear(e events.Stored) {
	r.Helper()
	r.block(e, func(file []byte, at int) []byte { return file[:at+len(e.Body)/2] })
}

const (
	index      = "nats/jetstream/EFFECTD/streams/EFFECTS/msgs/index.db"
	firstBlock = "nats/jetstream/EFFECTD/streams/EFFECTS/msgs/1.blk"
	stream     = "nats/jetstream/EFFECTD/streams/EFFECTS"
)

// mark writes an anchor that a change of the true one makes.
func (r *rig) mark(change func(*anchor.Mark)) {
	r.Helper()
	a, err := anchor.Open(vfs.Default, r.home().AnchorDir())
	if err != nil {
		r.Fatal(err)
	}
	m := a.Load()
	_ = a.Close()
	change(&m)
	r.remove("anchor")
	if err := anchor.Create(vfs.Default, r.home().AnchorDir(), m); err != nil {
		r.Fatal(err)
	}
}

// before counts the effects that the log settles before an entry.
func (sc *scene) before(seq uint64) (n int) {
	for _, id := range sc.effects {
		n += count(sc.entries[:seq-1], events.TypeSettled, id)
	}
	return n
}

// untrusted checks a node that serves reads only, and that it changed nothing:
// neither now nor at the next start (SPEC 16). foreign is how many messages the
// damage itself added.
func (sc *scene) untrusted(t *testing.T, r *rig, readable int, foreign uint64, says ...string) {
	t.Helper()
	for range 2 {
		r.start()
		ready := r.node.Ready()
		if !ready.Ready || ready.Trusted {
			t.Fatalf("%+v", ready)
		}
		t.Log(ready.Reason)
		for _, want := range says {
			if !strings.Contains(ready.Reason, want) {
				t.Errorf("reason %q does not say %q", ready.Reason, want)
			}
		}
		sc.readsGoOn(t, r, ready, readable)
		for what, err := range map[string]error{"submit": sc.submit(t, r), "task.open": sc.openTask(t, r), "reload": r.node.Reload(t.Context())} {
			if codeOf(err) != wire.LedgerUntrusted && !(readable == 0 && codeOf(err) == wire.Forbidden) {
				t.Errorf("%s: %v", what, err)
			}
		}
		r.stop()
	}
	sc.nothingNew(t, r, foreign)
}

func (sc *scene) readsGoOn(t *testing.T, r *rig, ready embedded.Ready, readable int) {
	t.Helper()
	if readable == 0 { // nothing is known any more, users included
		return
	}
	status := r.status()
	if status.Trusted || status.Reason != ready.Reason || status.Dispatching {
		t.Errorf("%+v", status)
	}
	for i, id := range sc.effects[:readable] {
		if e := r.get(id); e.State != wire.StateSettled {
			t.Errorf("effect %d: %s", i, show(e))
		}
	}
	list, err := r.as("operator").List(t.Context(), wire.ListRequest{State: "settled"})
	if err != nil || len(list.Items) != readable {
		t.Errorf("%d effects are listed, want %d: %v", len(list.Items), readable, err)
	}
	if _, err := r.as("producer").TaskGet(t.Context(), wire.TaskGetRequest{TaskID: "shop"}); err != nil {
		t.Error(err)
	}
	if _, err := r.as("producer").Operations(t.Context()); err != nil {
		t.Error(err)
	}
}

func (sc *scene) submit(t *testing.T, r *rig) error {
	_, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("after", "c", 5)})
	return err
}

func (sc *scene) openTask(t *testing.T, r *rig) error {
	_, err := r.as("operator").TaskOpen(t.Context(), taskRequest("after", 1))
	return err
}

// nothingNew compares what the stream holds, if there is one, with what it held.
func (sc *scene) nothingNew(t *testing.T, r *rig, foreign uint64) {
	t.Helper()
	r.store(func(js jetstream.JetStream) {
		st, err := js.Stream(t.Context(), wire.LogStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		last := st.CachedInfo().State.LastSeq
		if last > sc.seq()+foreign {
			t.Fatalf("the stream went on to entry %d", last)
		}
		if st.CachedInfo().Created.UTC() != sc.created {
			return // a stream of another ledger
		}
		for seq := uint64(1); seq <= min(last, sc.seq()); seq++ {
			m, err := st.GetMsg(t.Context(), seq)
			if err == nil && !bytes.Equal(m.Data, sc.entries[seq-1].Body) {
				t.Fatalf("entry %d was written anew", seq)
			}
		}
	})
	if n, twice := sc.service.total(); len(twice) > 0 || n > len(sc.effects)+1 {
		t.Fatalf("%d sends at the service; more than once: %v", n, twice)
	}
}

// publish stores a message in the log, as nobody may.
func (r *rig) publish(body string) {
	r.Helper()
	r.store(func(js jetstream.JetStream) {
		if _, err := js.Publish(r.Context(), wire.LogSubject, []byte(body)); err != nil {
			r.Fatal(err)
		}
	})
}

// weaken changes the configuration of the stream.
func (r *rig) weaken(change func(*jetstream.StreamConfig)) {
	r.Helper()
	r.store(func(js jetstream.JetStream) {
		st, err := js.Stream(r.Context(), wire.LogStream)
		if err != nil {
			r.Fatal(err)
		}
		c := st.CachedInfo().Config
		change(&c)
		if _, err := js.UpdateStream(r.Context(), c); err != nil {
			r.Fatal(err)
		}
	})
}

// trusted checks a node that found nothing wrong, or what it may repair itself.
func (sc *scene) trusted(t *testing.T, r *rig) {
	t.Helper()
	r.start()
	if ready := r.node.Ready(); !ready.Trusted {
		t.Fatal(ready.Reason)
	}
	for i, id := range sc.effects {
		if e := r.get(id); e.State != wire.StateSettled {
			t.Errorf("effect %d: %s", i, show(e))
		}
	}
	if again := r.submit("r", "0"); again.EffectID != sc.effects[0] || !again.Repeat {
		t.Error(show(again))
	}
	r.stop()
	sameProjection(t, r)
}
