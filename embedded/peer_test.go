package embedded_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger/peer"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/projector/anchor"
)

// line is a connection to the writer on which a test meddles with the answers.
type line struct {
	*nats.Conn
	mu     sync.Mutex
	meddle func(subject string, reply *nats.Msg) (*nats.Msg, error) // nil: not at all
}

func (l *line) RequestWithContext(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	m, err := l.Conn.RequestWithContext(ctx, subject, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.meddle == nil {
		return m, err
	}
	return l.meddle(subject, m)
}

// outpost is a dispatcher in its own right, that asks the node for its claims.
type outpost struct {
	*peer.Remote
	line   *line
	log    *eventlog.Stream
	self   events.Dispatcher
	spool  *spool.Spool
	anchor *anchor.Anchor
}

// Mark implements what a dispatcher wants of an anchor.
func (o *outpost) Mark(ctx context.Context, seq uint64, sha events.Digest) error {
	head := o.State().Head()
	return o.anchor.Ensure(ctx, anchor.Mark{LedgerID: head.LedgerID, Fingerprint: head.Fingerprint, Seq: seq, SHA256: sha, Time: events.InstantOf(time.Now())})
}

// outpost connects, and folds the log until the test ends. A zero timeout is the
// default.
func (x *external) outpost(id events.LedgerID, timeout time.Duration) *outpost {
	x.Helper()
	js := x.connect()
	o := &outpost{line: &line{Conn: js.Conn()}, self: events.Dispatcher{Node: "outpost", Incarnation: newIncarnation()}}
	var err error
	if o.log, err = eventlog.Attach(x.Context(), js, eventlog.Config{LedgerID: id}); err != nil {
		x.Fatal(err)
	}
	state := folded(x, readAll(x, o.log))
	head := state.Head()
	dir := x.TempDir()
	if err := anchor.Create(vfs.Default, dir, anchor.Mark{LedgerID: id, Fingerprint: head.Fingerprint, Seq: head.Seq, SHA256: head.SHA256}); err != nil {
		x.Fatal(err)
	}
	if o.anchor, err = anchor.Open(vfs.Default, dir); err != nil {
		x.Fatal(err)
	}
	if o.spool, err = spool.Open(vfs.Default, filepath.Join(x.TempDir(), "spool"), 1<<20); err != nil {
		x.Fatal(err)
	}
	o.Remote = peer.NewRemote(peer.Config{Timeout: timeout, Logger: logger()}, o.line, o.log, state)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- o.Run(ctx) }()
	x.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			x.Error(err)
		}
		_ = o.anchor.Close()
	})
	return o
}

// dispatches runs the dispatcher until the test ends.
func (o *outpost) dispatches(t testing.TB) {
	t.Helper()
	d := dispatcher.New(dispatcher.Config{Self: o.self, Now: time.Now, Entropy: rand.Reader, Retry: 20 * time.Millisecond, Logger: logger(),
		Adapters: map[string]dispatcher.Adapter{"http": dispatcher.HTTP{Now: time.Now}}}, o, o, o.spool)
	deliveries, err := o.log.Deliveries(t.Context(), "dispatch-outpost", 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx, deliveries) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		deliveries.Stop()
	})
}

// beside is a node on a server of its own, with eight slots, and an outpost beside it.
func beside(t *testing.T, s *service) (*rig, *external, *outpost) {
	r := running(t, s, "concurrency: 32", "concurrency: 8", "timeout: 10s", "timeout: 60s")
	r.stop()
	x := r.external()
	r.start()
	t.Cleanup(r.stop) // while the server is there
	o := x.outpost(r.home().LedgerID(), 0)
	eventually(t, "the node answers peers", func() bool {
		_, err := o.Do(t.Context(), events.SystemActor, aggregate.Abandon{EffectID: "none", IntentSHA256: events.ZeroDigest})
		return err == nil
	})
	return r, x, o
}

// claimsOf counts the claims of each node.
func claimsOf(entries []events.Stored) map[string]int {
	claims := map[string]int{}
	for _, entry := range entries {
		for _, ev := range entry.Events {
			if d, ok := ev.Data.(events.Dispatched); ok {
				claims[d.Dispatcher.Node]++
			}
		}
	}
	return claims
}

// A dispatcher in another process than the writer's claims over effects.node.>, and
// reports there: of many effects each is sent once, by one of both (SPEC 6, 8).
func TestDispatchFromAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r, x, o := beside(t, s)
	results, err := x.connect().Conn().SubscribeSync(wire.NodeSubject(r.home().LedgerID(), wire.NodeResult))
	if err == nil {
		err = results.SetPendingLimits(-1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	arrived, let := s.holds()
	o.dispatches(t)
	for i := range 64 {
		r.submitAndGo("r", fmt.Sprint(i))
	}
	// The node has slots for eight: whatever is sent beyond is the outpost's.
	for range 16 {
		take(t, "both have their slots full", arrived)
	}
	close(let)
	log := x.log(r.home().LedgerID())
	eventually(t, "everything settles", func() bool { return count(readAll(t, log), events.TypeSettled, "") == 64 })
	s.served(t, 64)
	entries := readAll(t, log)
	folded(t, entries).EachEffect(func(e *aggregate.Effect) bool {
		if e.Settled.Outcome != events.OutcomeSucceeded || e.Settled.AuditIncomplete || count(entries, events.TypeDispatched, e.ID) != 1 {
			t.Errorf("effect %s: %+v, %d claims", e.ID, e.Settled, count(entries, events.TypeDispatched, e.ID))
		}
		return true
	})
	claims := claimsOf(entries)
	t.Logf("claims: %v", claims)
	won := claims[o.self.Node]
	if won < 8 || 64-won < 8 {
		t.Fatalf("claims: %v", claims)
	}
	eventually(t, "each result came over the wire", func() bool {
		n, _, err := results.Pending()
		return err == nil && n == won
	})
	if o.spool.Len() != 0 || o.Distrusted() != "" || o.anchor.Load().Seq == 0 {
		t.Fatal(o.spool.Len(), o.Distrusted(), o.anchor.Load())
	}
	r.account(0, 64*5, 0)
}

// A claim whose answer is lost is won in the log and never fired: its winner proves
// that nothing was sent. Meanwhile nobody else fires it.
func TestLostAnswerToAClaim(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r, x, o := beside(t, s)
	lost := map[events.EffectID]bool{}
	o.line.meddle = func(subject string, m *nats.Msg) (*nats.Msg, error) {
		reply, refusal := wire.Decode[wire.DecisionReply](m.Data)
		if refusal == nil && reply.Claimed && len(lost) < 4 {
			lost[reply.EffectID] = true
			return nil, nats.ErrConnectionClosed
		}
		return m, nil
	}
	arrived, let := s.holds()
	o.dispatches(t)
	for i := range 32 {
		r.submitAndGo("r", fmt.Sprint(i))
	}
	for range 16 {
		take(t, "both have their slots full", arrived)
	}
	close(let)
	log := x.log(r.home().LedgerID())
	eventually(t, "everything settles", func() bool { return count(readAll(t, log), events.TypeSettled, "") == 32 })
	s.served(t, 28)
	o.line.mu.Lock()
	defer o.line.mu.Unlock()
	if len(lost) != 4 {
		t.Fatalf("%d answers lost", len(lost))
	}
	entries := readAll(t, log)
	state := folded(t, entries)
	for id := range lost {
		e := state.Effect(id)
		if e.Settled.Outcome != events.OutcomeNoEffect || e.Settled.Reason != events.ReasonNotSent || e.Claim.Dispatcher != o.self || count(entries, events.TypeDispatched, id) != 1 {
			t.Errorf("%+v %+v", e.Settled, e.Claim)
		}
	}
	r.account(0, 28*5, 0)
}

// answers serves peers until the test ends, or it does not trust the log.
func (p *party) answers(x *external) (over chan struct{}) {
	conn := x.connect().Conn()
	ctx, cancel := context.WithCancel(context.Background())
	over = make(chan struct{})
	go func() {
		defer close(over)
		if err := peer.Serve(ctx, conn, p.Ledger, logger()); err != nil {
			x.Error(err)
		}
	}()
	x.Cleanup(func() { cancel(); <-over })
	return over
}

// A writer that does not trust the log says so, and is asked no more. What it says
// is no distrust of the one that asks.
func TestDistrustedWriter(t *testing.T) {
	t.Parallel()
	r, x, o := beside(t, newService(t))
	r.stop()
	p := x.party(r.home().LedgerID(), "writer")
	over := p.answers(x)
	ask := func() wire.Code {
		_, err := o.Do(t.Context(), events.SystemActor, aggregate.Abandon{EffectID: "none", IntentSHA256: events.ZeroDigest})
		return codeOf(err)
	}
	eventually(t, "the writer answers", func() bool { return ask() == "" })
	p.Distrust("a test says so")
	if code := ask(); code != wire.LedgerUntrusted {
		t.Fatal(code)
	}
	take(t, "it serves no more", over)
	if code := ask(); code != wire.LedgerUnavailable || o.Distrusted() != "" {
		t.Fatal(code, o.Distrusted())
	}
}

// The writer's process may go and come back: a result waits in the spool of the one
// that sent, and the send is not repeated.
func TestWriterComesBack(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r, x, o := beside(t, s)
	arrived, let := s.holds()
	o.dispatches(t)
	for i := range 16 {
		r.submitAndGo("r", fmt.Sprint(i))
	}
	for range 16 {
		take(t, "both have their slots full", arrived)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	log := x.log(r.home().LedgerID())
	eventually(t, "the node answers no peer", func() bool {
		_, err := o.Do(t.Context(), events.SystemActor, aggregate.Abandon{EffectID: "none", IntentSHA256: events.ZeroDigest})
		return codeOf(err) == wire.LedgerUnavailable
	})
	close(let)
	eventually(t, "the results are spooled", func() bool { return o.spool.Len() == 8 })
	take(t, "the node stops", stopped)
	r.start()
	eventually(t, "everything settles", func() bool { return count(readAll(t, log), events.TypeSettled, "") == 16 })
	s.served(t, 16)
	folded(t, readAll(t, log)).EachEffect(func(e *aggregate.Effect) bool {
		if e.Settled.Outcome != events.OutcomeSucceeded || e.Settled.AuditIncomplete != (e.Claim.Dispatcher == o.self) {
			t.Errorf("%+v %+v", e.Settled, e.Claim)
		}
		return true
	})
	eventually(t, "the spool is empty", func() bool { return o.spool.Len() == 0 })
}

// A decision that the log does not show as the writer told it is distrusted, and
// nothing is sent for it.
func TestLyingWriter(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(*wire.DecisionReply){
		"another entry":   func(r *wire.DecisionReply) { r.SHA256 = events.ZeroDigest },
		"another's claim": func(r *wire.DecisionReply) { r.Claimed = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, x, o := beside(t, newService(t))
			r.stop() // no dispatcher takes it
			p := x.party(r.home().LedgerID(), "writer")
			p.answers(x)
			e := do(t, p.Ledger, producer.Actor(), prepare(t, producer, charge("r", "c", 5), true)).EffectID
			claim := func(nonce string) aggregate.ClaimEffect {
				return aggregate.ClaimEffect{EffectID: e, IntentSHA256: p.State().Effect(e).IntentSHA256(), Dispatcher: o.self,
					NonceSHA256: aggregate.DigestNonce(nonce), DeadlineMS: 1000}
			}
			do(t, p.Ledger, events.SystemActor, claim("another's"))
			eventually(t, "the writer answers", func() bool {
				c, err := o.Do(t.Context(), events.SystemActor, claim("ours"))
				if err == nil && (c.Claimed || !c.Repeat || c.State.Effect(e).Claim == nil) {
					t.Fatalf("%+v", c)
				}
				return err == nil
			})
			o.line.mu.Lock()
			o.line.meddle = func(_ string, m *nats.Msg) (*nats.Msg, error) {
				reply, refusal := wire.Decode[wire.DecisionReply](m.Data)
				if refusal != nil {
					return nil, refusal
				}
				lie(&reply)
				return &nats.Msg{Data: events.CanonicalOf(reply)}, nil
			}
			o.line.mu.Unlock()
			for range 2 {
				_, err := o.Do(t.Context(), events.SystemActor, claim("ours"))
				refusedWith(t, err, wire.LedgerUntrusted)
			}
		})
	}
}

// What is malformed, of another ledger, or not for peers is refused, and nothing is
// written.
func TestRefusedPeers(t *testing.T) {
	t.Parallel()
	r, x, o := beside(t, newService(t))
	id := r.home().LedgerID()
	e := r.submit("r", "c")
	before := r.last()
	conn := x.connect().Conn()
	about := fmt.Sprintf(`"v":1,"ledger_id":%q,"effect_id":%q,"intent_sha256":%q`, id, e.EffectID, e.IntentSHA256)
	claim := `{` + about + `,"dispatcher":{"node":"n","incarnation":"i"},"nonce_sha256":"` + string(events.ZeroDigest) + `","deadline_ms":1000`
	result := `{` + about + `,"nonce":"guessed","result":{"outcome":"failed","reason":"classified","evidence":{"source":"adapter"}`
	for _, ask := range []struct {
		verb  wire.NodeVerb
		body  string
		code  wire.Code
		field string
	}{
		{wire.NodeClaim, `{`, wire.InvalidPayload, ""},
		{wire.NodeClaim, `[]`, wire.InvalidRequest, ""},
		{wire.NodeClaim, ``, wire.InvalidRequest, "deadline_ms"},
		{wire.NodeClaim, claim + `,"more":1}`, wire.InvalidRequest, "more"},
		{wire.NodeClaim, claim + `,"v":1}`, wire.InvalidPayload, "v"},
		{wire.NodeClaim, strings.Replace(claim, `"v":1`, `"v":2`, 1) + `}`, wire.InvalidRequest, "v"},
		{wire.NodeClaim, strings.Replace(claim, string(id), "01ANOTHER", 1) + `}`, wire.InvalidRequest, "ledger_id"},
		{wire.NodeClaim, strings.Replace(claim, `"deadline_ms":1000`, `"deadline_ms":-1`, 1) + `}`, wire.InvalidRequest, "deadline_ms"},
		{wire.NodeClaim, strings.Replace(claim, string(events.ZeroDigest), "0", 1) + `}`, wire.InvalidRequest, "nonce_sha256"},
		{wire.NodeResult, result + `,"more":1}}`, wire.InvalidRequest, "result.more"},
		{wire.NodeResult, strings.Replace(result, "failed", "lost", 1) + `}}`, wire.InvalidRequest, "result.outcome"},
		{wire.NodeResult, strings.Replace(result, string(id), "01ANOTHER", 1) + `}}`, wire.InvalidRequest, "ledger_id"},
		{wire.NodeAbandon, `{` + about + `,"detail":1}`, wire.InvalidRequest, "detail"},
		{wire.NodeAbandon, strings.Replace(`{`+about+`,"detail":"d"}`, string(id), "01ANOTHER", 1), wire.InvalidRequest, "ledger_id"},
	} {
		m, err := conn.Request(wire.NodeSubject(id, ask.verb), []byte(ask.body), patience)
		if err != nil {
			t.Fatal(err)
		}
		var reply wire.ErrorReply
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Error == nil {
			t.Errorf("%s %s: %s", ask.verb, ask.body, m.Data)
		} else if reply.Error.Code != ask.code || reply.Error.Field != ask.field || m.Header.Get(wire.HeaderError) != string(ask.code) {
			t.Errorf("%s %s: %v, want %s about %q", ask.verb, ask.body, reply.Error, ask.code, ask.field)
		}
	}
	// On the subject of another ledger nobody listens, and nobody answers into the log.
	if _, err := conn.Request(wire.NodeSubject("01ANOTHER", wire.NodeClaim), []byte(claim+`}`), patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Error(err)
	}
	if err := conn.PublishRequest(wire.NodeSubject(id, wire.NodeClaim), wire.LogSubject, []byte(claim+`}`)); err != nil {
		t.Fatal(err)
	}
	for range 8 { // what it had set off would be over
		if m, err := conn.Request(wire.NodeSubject(id, wire.NodeClaim), []byte(claim+`}`), patience); err != nil || m.Header.Get(wire.HeaderError) != "" {
			t.Error(m, err)
		}
	}
	// The law refuses who guesses a nonce, and answers a claim that is taken.
	o2, err := o.Do(t.Context(), events.SystemActor, aggregate.Report{EffectID: e.EffectID, IntentSHA256: e.IntentSHA256, Nonce: "guessed",
		Result: aggregate.Result{Outcome: events.OutcomeFailed, Reason: events.ReasonClassified, Evidence: events.Evidence{Source: "adapter"}}})
	if err != nil || o2.Refusal == nil || o2.Refusal.Code != wire.Forbidden {
		t.Error(o2.Refusal, err)
	}
	// Commands of others cannot be asked at all.
	for who, c := range map[events.Actor]aggregate.Command{
		producer.Actor():   aggregate.Abandon{EffectID: e.EffectID, IntentSHA256: e.IntentSHA256},
		events.SystemActor: aggregate.Orphaned{EffectID: e.EffectID},
	} {
		if _, err := o.Do(t.Context(), who, c); err == nil {
			t.Errorf("%T of %s was asked", c, who)
		}
	}
	if after := r.last(); after != before {
		t.Errorf("%d entries were written", after-before)
	}
	settledAs(t, r.get(e.EffectID), events.OutcomeSucceeded)
}
