package embedded_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/ledger/peer"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/projector/anchor"
)

// outpost is a dispatcher that works for the ledger of another process.
type outpost struct {
	*peer.Remote
	conn   *nats.Conn
	self   events.Dispatcher
	anchor *anchor.Anchor
	ledger events.LedgerID
}

// Mark implements the dispatcher's anchor.
func (o *outpost) Mark(ctx context.Context, seq uint64, sha events.Digest) error {
	return o.anchor.Ensure(ctx, anchor.Mark{LedgerID: o.ledger, Fingerprint: events.ZeroDigest, Seq: seq, SHA256: sha})
}

// outpost follows the log and dispatches until the test ends.
func (x *external) outpost(id events.LedgerID, name string, timeout time.Duration) *outpost {
	x.Helper()
	js, log := x.connect(), x.log(id)
	o := &outpost{conn: js.Conn(), ledger: id, self: events.Dispatcher{Node: name, Incarnation: newIncarnation()}}
	o.Remote = peer.NewRemote(peer.Config{Timeout: timeout, Logger: logger()}, o.conn, log, folded(x, readAll(x, log)))
	dir := x.TempDir()
	if err := anchor.Create(vfs.Default, filepath.Join(dir, "anchor"), anchor.Mark{LedgerID: id, Fingerprint: events.ZeroDigest, SHA256: events.ZeroDigest}); err != nil {
		x.Fatal(err)
	}
	var err error
	if o.anchor, err = anchor.Open(vfs.Default, filepath.Join(dir, "anchor")); err != nil {
		x.Fatal(err)
	}
	sp, err := spool.Open(vfs.Default, filepath.Join(dir, "spool"), 1<<20)
	if err != nil {
		x.Fatal(err)
	}
	d := dispatcher.New(dispatcher.Config{Self: o.self, Now: time.Now, Entropy: rand.Reader, Logger: logger(), Retry: 10 * time.Millisecond,
		Adapters: map[string]dispatcher.Adapter{"http": dispatcher.HTTP{Now: time.Now}}}, o.Remote, o, sp)
	deliveries, err := log.Deliveries(x.Context(), name, 1)
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	dispatching, following := make(chan error, 1), make(chan error, 1)
	go func() { following <- o.Run(ctx) }()
	go func() { dispatching <- d.Run(ctx, deliveries) }()
	x.Cleanup(func() {
		stop()
		for _, over := range []chan error{dispatching, following} {
			if err := <-over; err != nil {
				x.Error(err)
			}
		}
		deliveries.Stop()
		if err := o.anchor.Close(); err != nil {
			x.Error(err)
		}
	})
	return o
}

// A dispatcher of another process claims and reports through the one that writes:
// both work, and each effect is claimed and sent once.
func TestPeerDispatches(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s, "concurrency: 32", "concurrency: 1", "timeout: 10s", "timeout: 60s")
	r.stop()
	x := r.external()
	r.start()
	o := x.outpost(r.home().LedgerID(), "outpost", 0)
	arrived, let := s.holds()
	const effects = 64
	for i := range effects {
		r.submitAndGo("r", fmt.Sprint(i))
	}
	take(t, "a send of one of them", arrived)
	take(t, "a send of the other", arrived) // each has one slot, which is taken
	claims := func() map[string]int {
		by := map[string]int{}
		for _, entry := range readAll(t, r.log()) {
			for _, ev := range entry.Events {
				if d, ok := ev.Data.(events.Dispatched); ok {
					by[d.Dispatcher.Node]++
				}
			}
		}
		return by
	}
	if by := claims(); len(by) != 2 || by["outpost"] != 1 {
		t.Fatalf("claims: %v", by)
	}
	close(let)
	eventually(t, "everything settles", func() bool { return count(readAll(t, r.log()), events.TypeSettled, "") == effects })
	entries := readAll(t, r.log())
	folded(t, entries).EachEffect(func(e *aggregate.Effect) bool {
		if n := count(entries, events.TypeDispatched, e.ID); n != 1 || e.Settled.Outcome != events.OutcomeSucceeded {
			t.Errorf("effect %s: %d claims, %+v", e.ID, n, e.Settled)
		}
		return true
	})
	s.served(t, effects)
	r.account(0, 5*effects, 0)
	claim := o.State().Head()
	if o.anchor.Load().Seq == 0 || o.anchor.Load().Seq > claim.Seq {
		t.Fatalf("the anchor of the outpost is at %d", o.anchor.Load().Seq)
	}
	t.Logf("claims: %v", claims())
}

// lossy answers the first claim too late.
type lossy struct {
	*ledger.Ledger
	lost atomic.Bool
	late chan struct{}
}

func (l *lossy) Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error) {
	o, err := l.Ledger.Do(ctx, who, c)
	if _, claim := c.(aggregate.ClaimEffect); claim && l.lost.CompareAndSwap(false, true) {
		<-l.late
	}
	return o, err
}

// A claim whose answer is lost is never fired, and that is proven and reported.
func TestPeerClaimNotAnswered(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	r.stop()
	x := r.external()
	id := r.home().LedgerID()
	p := x.party(id, "writer")
	w := &lossy{Ledger: p.Ledger, late: make(chan struct{})}
	peers, err := peer.Serve(t.Context(), x.connect().Conn(), id, w, logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := peers.Stop(); err != nil {
			t.Error(err)
		}
	})
	x.outpost(id, "outpost", 300*time.Millisecond)
	e := do(t, p.Ledger, producer.Actor(), prepare(t, producer, charge("r", "c", 5), true)).EffectID
	eventually(t, "it settles", func() bool { return p.State().Effect(e).State.Terminal() })
	close(w.late)
	if got := p.State().Effect(e).Settled; got.Outcome != events.OutcomeNoEffect || got.Reason != events.ReasonNotSent {
		t.Fatalf("%+v", got)
	}
	second := do(t, p.Ledger, producer.Actor(), prepare(t, producer, charge("r", "d", 5), true)).EffectID
	eventually(t, "the next one settles", func() bool { return p.State().Effect(second).State.Terminal() })
	s.served(t, 1)
}

// What is no request of this version and this ledger changes nothing.
func TestPeerRequests(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	r.stop()
	x := r.external()
	id := r.home().LedgerID()
	p := x.party(id, "writer")
	conn := x.connect().Conn()
	peers, err := peer.Serve(t.Context(), conn, id, p.Ledger, logger())
	if err != nil {
		t.Fatal(err)
	}
	before := p.State().Seq()
	for name, c := range map[string]struct {
		what, body string
		code       wire.Code
	}{
		"no JSON":        {wire.PeerClaim, `{`, wire.InvalidRequest},
		"unknown member": {wire.PeerClaim, `{"effect_id":"x","forged":true}`, wire.InvalidRequest},
		"no result":      {wire.PeerResult, `{"effect_id":"x","intent_sha256":"","nonce":"n","result":{"won":1}}`, wire.InvalidRequest},
		"no effect":      {wire.PeerClaim, `{"effect_id":"x","intent_sha256":"","dispatcher":{"node":"n","incarnation":"i"},"nonce_sha256":"","deadline_ms":1}`, ""},
		"nothing to end": {wire.PeerAbandon, `{"effect_id":"x","intent_sha256":"","detail":""}`, ""},
	} {
		m, err := conn.Request(wire.PeerSubject(id, c.what), []byte(c.body), patience)
		if err != nil {
			t.Fatal(name, err)
		}
		var reply wire.PeerReply
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			t.Fatal(name, err)
		}
		switch {
		case c.code == "" && (reply.Refusal == nil || reply.Refusal.Code != wire.UnknownEffect || reply.Claimed):
			t.Errorf("%s: %s", name, m.Data)
		case c.code != "" && (reply.Error == nil || reply.Error.Code != c.code):
			t.Errorf("%s: %s", name, m.Data)
		}
	}
	if _, err := conn.Request(wire.PeerSubject("01ARZ3NDEKTSV4RRFFQ69G5FAV", wire.PeerClaim), []byte(`{}`), patience); err == nil {
		t.Error("another ledger's request was answered")
	}
	if err := peers.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Request(wire.PeerSubject(id, wire.PeerClaim), []byte(`{}`), patience); err == nil {
		t.Error("answered after the stop")
	}
	if p.State().Seq() != before {
		t.Error("something was written")
	}
}
