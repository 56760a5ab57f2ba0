package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// tailer is the log as Remote needs it.
type tailer interface {
	Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error
}

// Config of a Remote. Zero values mean the defaults.
type Config struct {
	Timeout time.Duration // until a request counts as not answered (10 s)
	Logger  *slog.Logger
}

// Remote is the ledger of another process, as a dispatcher of this one needs it.
type Remote struct {
	cfg  Config
	conn *nats.Conn // must not buffer while it reconnects: nothing may be asked late
	log  tailer

	mu       sync.Mutex
	state    *aggregate.State // folded; replaced with each entry
	grown    chan struct{}    // closed with the next entry
	distrust string
}

// NewRemote starts from a state that is folded from the log; Run keeps it up.
func NewRemote(cfg Config, conn *nats.Conn, log tailer, state *aggregate.State) *Remote {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Remote{cfg: cfg, conn: conn, log: log, state: state, grown: make(chan struct{})}
}

// Run folds the log until ctx ends, and then returns nil. Any other error is why
// the log cannot be followed, or not be trusted, any more.
func (r *Remote) Run(ctx context.Context) error {
	head := r.State().Head()
	err := r.log.Tail(ctx, head.Seq+1, head.SHA256, r.fold)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	r.Distrust(err.Error())
	return err
}

func (r *Remote) fold(e events.Stored) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.state.Branch()
	if err := aggregate.Follows(state, &e); err != nil {
		return &eventlog.Distrust{Reason: err.Error(), Seq: e.Seq}
	}
	state.Apply(&e)
	state.ClearTouched()
	r.state = state
	close(r.grown)
	r.grown = make(chan struct{})
	return nil
}

// State is the state of the last entry seen. Read only.
func (r *Remote) State() *aggregate.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Distrust stops all asking for good; the first reason stays.
func (r *Remote) Distrust(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.distrust == "" {
		r.distrust = reason
		r.cfg.Logger.Error("the ledger is not trusted: nothing more is dispatched", "reason", reason)
	}
}

// Do asks the process that writes. [aggregate.Orphaned] asks nobody: it waits for
// the next entry.
func (r *Remote) Do(ctx context.Context, _ events.Actor, c aggregate.Command) (ledger.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	switch c := any(c).(type) { // a dispatcher has no other commands
	case aggregate.ClaimEffect:
		return r.claim(ctx, c)
	case aggregate.Abandon:
		return r.ask(ctx, wire.PeerAbandon, c.EffectID, &wire.AbandonRequest{EffectID: c.EffectID, IntentSHA256: c.IntentSHA256, Detail: c.Detail})
	case aggregate.Report:
		return r.ask(ctx, wire.PeerResult, c.EffectID, &wire.ResultRequest{EffectID: c.EffectID, IntentSHA256: c.IntentSHA256, Nonce: c.Nonce,
			Result: events.CanonicalOf(&c.Result), AuditIncomplete: c.AuditIncomplete})
	case aggregate.Orphaned:
		state, err := r.reach(ctx, r.State().Seq()+1)
		return ledger.Outcome{State: state}, err
	}
	return ledger.Outcome{}, wire.Errorf(wire.Unsupported, fmt.Sprintf("%T is not asked of another process", c))
}

// claim is won when the log says so too, under our own nonce (E1).
func (r *Remote) claim(ctx context.Context, c aggregate.ClaimEffect) (ledger.Outcome, error) {
	o, err := r.ask(ctx, wire.PeerClaim, c.EffectID, &wire.ClaimRequest{EffectID: c.EffectID, IntentSHA256: c.IntentSHA256, Dispatcher: c.Dispatcher,
		NonceSHA256: c.NonceSHA256, DeadlineMS: c.DeadlineMS, CredentialSHA256: c.CredentialSHA256})
	if err != nil || !o.Claimed {
		return o, err
	}
	if e := o.State.Effect(c.EffectID); e == nil || e.Claim == nil || e.Claim.NonceSHA256 != c.NonceSHA256 {
		reason := fmt.Sprintf("the claim of effect %s was answered as won, and the log does not have it", c.EffectID)
		r.Distrust(reason)
		return ledger.Outcome{}, wire.Errorf(wire.LedgerUntrusted, reason)
	}
	return o, nil
}

// ask sends one request and waits until what it was answered with is folded here.
func (r *Remote) ask(ctx context.Context, what string, id events.EffectID, request any) (ledger.Outcome, error) {
	r.mu.Lock()
	distrust, of := r.distrust, r.state.Head().LedgerID
	r.mu.Unlock()
	if distrust != "" {
		return ledger.Outcome{}, wire.Errorf(wire.LedgerUntrusted, distrust)
	}
	m, err := r.conn.RequestWithContext(ctx, wire.PeerSubject(of, what), events.CanonicalOf(request))
	if err != nil {
		return ledger.Outcome{}, fmt.Errorf("peer %s: not answered: %w", what, err)
	}
	reply, err := decode[wire.PeerReply](m.Data)
	if err != nil {
		return ledger.Outcome{}, fmt.Errorf("peer %s: the answer does not decode", what)
	}
	if reply.Error != nil {
		return ledger.Outcome{}, reply.Error
	}
	state, err := r.reach(ctx, reply.Seq)
	if err != nil {
		return ledger.Outcome{}, fmt.Errorf("peer %s: answered as of entry %d: %w", what, reply.Seq, err)
	}
	return ledger.Outcome{State: state, Decision: aggregate.Decision{EffectID: id, Claimed: reply.Claimed, Repeat: reply.Repeat, Refusal: reply.Refusal}}, nil
}

// reach waits until an entry is folded.
func (r *Remote) reach(ctx context.Context, seq uint64) (*aggregate.State, error) {
	for {
		r.mu.Lock()
		state, grown := r.state, r.grown
		r.mu.Unlock()
		if state.Seq() >= seq {
			return state, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
