package embedded_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// external is a NATS server in its own right on the store of a ledger, configured
// by the text that effectd prints for it.
type external struct {
	testing.TB
	options *server.Options
	server  *server.Server
	keyFile string
}

// external moves the streams of a stopped node to a server of their own, and the
// node to that server.
func (r *rig) external() *external {
	r.Helper()
	x := newExternal(r, r.home(), r.home().NATSDir())
	r.write("effectd.yaml", "replicas: 1\n")
	r.opts.NATSURL, r.opts.NKeyFile = x.server.ClientURL(), x.keyFile
	return x
}

// newExternal runs a server that knows the keys of a ledger, until the test ends.
func newExternal(t testing.TB, h *home.Home, store string) *external {
	t.Helper()
	x := &external{TB: t, options: &server.Options{}}
	var err error
	if x.keyFile, err = h.LedgerKeyFile(); err != nil {
		t.Fatal(err)
	}
	text, err := h.ServerConfig(x.keyFile, store)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.options.ProcessConfigString(text); err != nil {
		t.Fatal(err)
	}
	x.options.Host, x.options.Port = "127.0.0.1", server.RANDOM_PORT
	x.options.NoSigs, x.options.NoLog = true, true
	t.Cleanup(x.stop)
	x.start()
	return x
}

// start runs the server, at the second time on the port that it had.
func (x *external) start() {
	x.Helper()
	var err error
	if x.server, err = server.NewServer(x.options.Clone()); err != nil {
		x.Fatal(err)
	}
	x.server.Start()
	if !x.server.ReadyForConnections(patience) {
		x.Fatal("the server is not ready")
	}
	var port int
	if _, err := fmt.Sscanf(x.server.Addr().String(), "127.0.0.1:%d", &port); err != nil {
		x.Fatal(err)
	}
	x.options.Port = port
}

func (x *external) stop() {
	if x.server != nil {
		x.server.Shutdown()
		x.server.WaitForShutdown()
		x.server = nil
	}
}

// connect reaches the streams as the ledger does.
func (x *external) connect() jetstream.JetStream {
	x.Helper()
	keys, err := home.LoadServiceKeys(x.keyFile)
	if err != nil {
		x.Fatal(err)
	}
	conn, err := natsserver.Dial(x.Context(), x.server.ClientURL(), natsserver.Ledger, keys[natsserver.Ledger], logger())
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		x.Fatal(err)
	}
	return js
}

// log attaches to the log on a connection of its own.
func (x *external) log(id events.LedgerID) *eventlog.Stream {
	x.Helper()
	log, err := eventlog.Attach(x.Context(), x.connect(), eventlog.Config{LedgerID: id})
	if err != nil {
		x.Fatal(err)
	}
	return log
}

// party is one writer with a dispatcher of its own, on a shared log.
type party struct {
	*ledger.Ledger
	log  *eventlog.Stream
	self events.Dispatcher
}

func systemClock() ledger.Reading {
	t := time.Now()
	return ledger.Reading{Wall: events.InstantOf(t), Mono: t.Sub(began)}
}

var began = time.Now()

// party joins the log.
func (x *external) party(id events.LedgerID, name string) *party {
	x.Helper()
	p := &party{log: x.log(id), self: events.Dispatcher{Node: name, Incarnation: newIncarnation()}}
	p.Ledger = write(x, ledger.Config{Read: systemClock, Shared: true}, p.log)
	return p
}

// dispatches runs a dispatcher until the test ends.
func (p *party) dispatches(t testing.TB, name string) {
	t.Helper()
	sp, err := spool.Open(vfs.Default, filepath.Join(t.TempDir(), "spool"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	d := dispatcher.New(dispatcher.Config{Self: p.self, Now: time.Now, Entropy: rand.Reader, Logger: logger(),
		Adapters: map[string]dispatcher.Adapter{"http": dispatcher.HTTP{Now: time.Now}}}, p.Ledger, unmarked{}, sp)
	deliveries, err := p.log.Deliveries(t.Context(), name, 1)
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

// unmarked has no anchor.
type unmarked struct{}

func (unmarked) Mark(context.Context, uint64, events.Digest) error { return nil }

// Two writers on one log can slow each other, never disagree: one effect that is
// admitted through both at once is admitted once, claimed once and sent once; many
// effects through both are all there (SPEC 2, 7, 19).
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	held, err := r.as("producer").Prepare(t.Context(), charge("r", "held", 5))
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	x := r.external()
	id := r.home().LedgerID()
	parties := []*party{x.party(id, "a"), x.party(id, "b")}
	for i, p := range parties {
		p.dispatches(t, fmt.Sprintf("dispatch-%d", i))
	}
	var won atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		p := parties[i%2]
		group.Go(func() {
			<-begin
			o, err := p.Do(t.Context(), producer.Actor(), aggregate.Admit{Caller: producer,
				Request: wire.AdmitRequest{EffectID: held.EffectID, BindingDigest: held.BindingDigest, SealedContext: sealed("r", "held")}})
			if err != nil || o.Refusal != nil {
				t.Error(err, o.Refusal)
			} else if e := o.State.Effect(held.EffectID); e.Admission == nil {
				t.Error("answered with a state before the admission")
			} else if !o.Repeat {
				won.Add(1)
			}
		})
		other := prepare(t, producer, charge("r", fmt.Sprint(i), 5), true)
		group.Go(func() {
			<-begin
			if o, err := p.Do(t.Context(), producer.Actor(), other); err != nil || o.Refusal != nil {
				t.Error(err, o.Refusal)
			}
		})
		same := prepare(t, producer, charge("r", fmt.Sprint(i/2), 5), true)
		group.Go(func() {
			<-begin
			if o, err := p.Do(t.Context(), producer.Actor(), same); err != nil || o.Refusal != nil {
				t.Error(err, o.Refusal)
			}
		})
	}
	close(begin)
	group.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d admissions won", won.Load())
	}
	log := x.log(id)
	eventually(t, "everything settles", func() bool {
		return count(readAll(t, log), events.TypeSettled, "") == 65
	})
	entries := readAll(t, log)
	state := folded(t, entries)
	state.EachEffect(func(e *aggregate.Effect) bool {
		for _, typ := range []events.Type{events.TypePrepared, events.TypeAdmitted, events.TypeDispatched, events.TypeSettled} {
			if n := count(entries, typ, e.ID); n != 1 {
				t.Errorf("effect %s: %d events %s", e.ID, n, typ)
			}
		}
		return true
	})
	s.served(t, 65)
	writers, claims := map[events.Incarnation]int{}, map[string]int{}
	for _, entry := range entries {
		writers[entry.Writer]++
		for _, ev := range entry.Events {
			if d, ok := ev.Data.(events.Dispatched); ok {
				claims[d.Dispatcher.Node]++
			}
		}
	}
	t.Logf("entries per writer: %v; claims: %v", writers, claims)
	// Whatever each of them knows is what the log says.
	for _, p := range parties {
		do(t, p.Ledger, producer.Actor(), prepare(t, producer, charge("r", "0", 5), true))
		if got := p.State().Digest(); got != state.Digest() {
			t.Error("a writer's state is not the fold of the log")
		}
	}
}

// Two dispatchers that ask for one claim at once: one gets it.
func TestTwoClaims(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	r.stop()
	x := r.external()
	id := r.home().LedgerID()
	parties := []*party{x.party(id, "a"), x.party(id, "b")}
	for n := range 16 {
		o := do(t, parties[n%2].Ledger, producer.Actor(), prepare(t, producer, charge("r", fmt.Sprint(n), 5), true))
		intent := o.State.Effect(o.EffectID).IntentSHA256()
		var won, known atomic.Int64
		var group sync.WaitGroup
		for i := range 8 {
			p := parties[i%2]
			group.Go(func() {
				c, err := p.Do(t.Context(), events.SystemActor, aggregate.ClaimEffect{EffectID: o.EffectID, IntentSHA256: intent, Dispatcher: p.self,
					NonceSHA256: aggregate.DigestNonce(fmt.Sprint(i)), DeadlineMS: 60_000})
				switch {
				case err != nil:
					t.Error(err)
				case c.Claimed:
					won.Add(1)
				case c.Refusal != nil: // a refusal is decided on the end of the log
					t.Error(c.Refusal)
				default:
					known.Add(1)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 || known.Load() != 7 {
			t.Fatalf("%d claims of effect %d won, %d saw it", won.Load(), n, known.Load())
		}
	}
	entries := readAll(t, x.log(id))
	if n := count(entries, events.TypeDispatched, ""); n != 16 {
		t.Fatal(n)
	}
	folded(t, entries)
}

// A whole node on an external server.
func TestExternalServer(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	first := r.submit("r", "embedded")
	r.stop()
	x := r.external()
	r.start()
	if ready := r.node.Ready(); !ready.Trusted || ready.NATSURL != x.server.ClientURL() {
		t.Fatalf("%+v", ready)
	}
	second := r.submit("r", "external")
	settledAs(t, second, events.OutcomeSucceeded)
	if second.Receipt.StoreFingerprint != first.Receipt.StoreFingerprint {
		t.Error("another fingerprint")
	}
	// The server goes and comes back; the node goes on.
	x.stop()
	x.start()
	eventually(t, "the node is back", func() bool {
		e, err := r.another("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "after", 5), Wait: wire.WaitTerminal})
		return err == nil && e.State == wire.StateSettled
	})
	s.served(t, 3)
	r.account(0, 15, 0)
	folded(t, readAll(t, r.log()))
	r.stop()
	x.stop()
	r.opts.NATSURL, r.opts.NKeyFile = "", "" // and home again
	r.start()
	settledAs(t, r.submit("r", "home"), events.OutcomeSucceeded)
	s.served(t, 4)
	r.stop()
	sameProjection(t, r)
}
