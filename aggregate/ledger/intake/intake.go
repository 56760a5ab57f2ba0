package intake

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// ledger decides a submitted effect, and answers when the decision is durable.
type ledger interface {
	Accept(ctx context.Context, c aggregate.Caller, r wire.SubmitRequest) *wire.Error
}

// Intake takes requests from the work queue. Run is called once.
type Intake struct {
	js      jetstream.JetStream
	ledger  ledger
	denials *Denials
	log     *slog.Logger
	off     string // why it takes nothing

	mu    sync.Mutex
	lines map[aggregate.Caller]bool // known; true: it runs
	more  chan struct{}             // holds a token while a line does not run
}

// New attaches to the queue of a ledger, if there is one that is fit: see [Intake.Off].
func New(ctx context.Context, js jetstream.JetStream, c Config, l ledger, d *Denials, log *slog.Logger) *Intake {
	i := &Intake{js: js, ledger: l, denials: d, log: log, lines: map[aggregate.Caller]bool{}, more: make(chan struct{}, 1)}
	if i.off = d.Off(); i.off == "" {
		i.off = attach(ctx, js, c.RequestStream(), log)
	}
	return i
}

// Off says why nothing is taken from the queue; empty if it is.
func (i *Intake) Off() string { return i.off }

// Waiting is how many requests wait.
func (i *Intake) Waiting(ctx context.Context) (uint64, error) {
	stream, err := i.js.Stream(ctx, wire.RequestStream)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}

// Serve makes sure that each producer has its line.
func (i *Intake) Serve(users []events.User) {
	for _, u := range users {
		if u.Role == events.RoleProducer {
			i.add(aggregate.Caller{Tenant: u.Tenant, Principal: u.Principal})
		}
	}
}

func (i *Intake) add(c aggregate.Caller) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.lines[c]; known {
		return
	}
	i.lines[c] = false
	select {
	case i.more <- struct{}{}:
	default:
	}
}

// Run takes requests until ctx ends, and returns when none is being decided.
func (i *Intake) Run(ctx context.Context) {
	if i.off != "" {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { i.addWaiting(ctx) })
	for {
		for _, c := range i.begin() {
			running.Go(func() { (&line{Intake: i, caller: c}).run(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-i.more:
		}
	}
}

// begin returns the lines that do not run yet, and counts them as running.
func (i *Intake) begin() (fresh []aggregate.Caller) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for c, runs := range i.lines {
		if !runs {
			i.lines[c] = true
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// addWaiting gives a line to everybody whose requests wait: who is no producer any
// more is denied, and the queue rid of it.
func (i *Intake) addWaiting(ctx context.Context) {
	for n := 0; ; n++ {
		subjects, err := i.subjects(ctx)
		if err != nil {
			if pause(ctx, n) != nil {
				return
			}
			continue
		}
		for subject := range subjects {
			if c, ok := requester(subject); ok {
				i.add(c)
			}
		}
		return
	}
}

// subjects are the subjects of the requests that wait.
func (i *Intake) subjects(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	stream, err := i.js.Stream(ctx, wire.RequestStream)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(wire.RequestPrefix+">"))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// requester reads from a subject who asks; the NATS server enforced it (I6).
func requester(subject string) (aggregate.Caller, bool) {
	tenant, principal, ok := strings.Cut(strings.TrimPrefix(subject, wire.RequestPrefix), ".")
	return aggregate.Caller{Tenant: events.Tenant(tenant), Principal: events.Principal(principal)},
		ok && events.ValidToken(tenant) && events.ValidToken(principal)
}
