package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// Config of a [Remote]. Zero values mean the defaults.
type Config struct {
	// Timeout is how long a decision may take, until the own fold shows it (15 s):
	// longer than the writer takes, so that its answer is heard.
	Timeout time.Duration
	Logger  *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// asker is a connection that never sends later what it could not send at once
// (nats.ReconnectBufSize(-1)).
type asker interface {
	RequestWithContext(ctx context.Context, subject string, body []byte) (*nats.Msg, error)
}

// tailer is the log as a fold needs it.
type tailer interface {
	Last(ctx context.Context) (uint64, error)
	Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error
}

// Remote is the ledger for a dispatcher in another process than the writer's. It is
// safe for concurrent use; Run is called once.
type Remote struct {
	cfg   Config
	conn  asker
	log   tailer
	fold  *fold
	fault atomic.Pointer[wire.Error] // why nothing is asked any more
}

// NewRemote returns a Remote that starts from a state folded from the log.
func NewRemote(cfg Config, conn asker, log tailer, state *aggregate.State) *Remote {
	return &Remote{cfg: cfg.withDefaults(), conn: conn, log: log, fold: newFold(state)}
}

// Run folds the log until ctx ends; then it returns nil.
func (r *Remote) Run(ctx context.Context) error {
	head := r.State().Head()
	err := r.log.Tail(ctx, head.Seq+1, head.SHA256, r.fold.apply)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	if errors.Is(err, eventlog.ErrUntrusted) {
		r.Distrust(err.Error())
	}
	return fmt.Errorf("peer: %w", err)
}

// State is the own fold of the log. Read only.
func (r *Remote) State() *aggregate.State { return r.fold.now() }

// Distrust stops all asking for good; the first reason stays.
func (r *Remote) Distrust(reason string) {
	if r.fault.CompareAndSwap(nil, wire.Errorf(wire.LedgerUntrusted, reason)) {
		r.cfg.Logger.Error("the ledger is not trusted: nothing is claimed here any more", "reason", reason)
	}
}

// Distrusted is the reason for which nothing is asked; empty while trusted.
func (r *Remote) Distrusted() string {
	if f := r.fault.Load(); f != nil {
		return f.Message
	}
	return ""
}

// Do has the writer decide a command of a dispatcher, as [ledger.Ledger.Do] does
// within its process. Orphaned without an effect asks nothing: it waits until the
// state is as far as the log. An error says that the fate of the command may be
// open.
func (r *Remote) Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error) {
	if f := r.fault.Load(); f != nil {
		return ledger.Outcome{}, f
	}
	if who != events.SystemActor {
		return ledger.Outcome{}, wire.Errorf(wire.Forbidden, "a peer asks for the ledger itself alone")
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	id := r.State().Head().LedgerID
	switch c := c.(type) {
	case aggregate.ClaimEffect:
		return r.claim(ctx, id, c)
	case aggregate.Report:
		return r.ask(ctx, wire.NodeSubject(id, wire.NodeResult), events.CanonicalOf(resultRequest(id, c)))
	case aggregate.Abandon:
		return r.ask(ctx, wire.NodeSubject(id, wire.NodeAbandon), events.CanonicalOf(abandonRequest(id, c)))
	case aggregate.Orphaned:
		if c.EffectID == "" {
			return r.catchUp(ctx)
		}
	default:
	}
	return ledger.Outcome{}, wire.Errorf(wire.Unsupported, "a peer cannot ask this")
}

// claim tells a claim as won only if the own fold shows it under this nonce (R3).
func (r *Remote) claim(ctx context.Context, id events.LedgerID, c aggregate.ClaimEffect) (ledger.Outcome, error) {
	o, err := r.ask(ctx, wire.NodeSubject(id, wire.NodeClaim), events.CanonicalOf(claimRequest(id, c)))
	if err != nil || !o.Claimed {
		return o, err
	}
	e := o.State.Effect(c.EffectID)
	if e == nil || e.Claim == nil || e.Claim.NonceSHA256 != c.NonceSHA256 {
		return ledger.Outcome{}, r.distrusts("a claim was answered as won that is not in the log")
	}
	return o, nil
}

// ask has a command decided, and waits until the own fold holds the decision.
func (r *Remote) ask(ctx context.Context, subject string, body []byte) (ledger.Outcome, error) {
	m, err := r.conn.RequestWithContext(ctx, subject, body)
	if errors.Is(err, nats.ErrNoResponders) {
		return ledger.Outcome{}, wire.Errorf(wire.LedgerUnavailable, "no process of the ledger decides now; nothing was written")
	}
	if err != nil {
		return ledger.Outcome{}, unanswered("the writer has not answered")
	}
	reply, err := replyOf(m)
	if err != nil {
		return ledger.Outcome{}, err
	}
	state, sha, err := r.fold.reach(ctx, reply.Seq)
	switch {
	case err != nil:
		return ledger.Outcome{}, unanswered("the log has not shown the decision in time")
	case sha == "":
		return ledger.Outcome{}, unanswered("the decision is too long ago to be compared with the log")
	case sha != reply.SHA256:
		return ledger.Outcome{}, r.distrusts(fmt.Sprintf("entry %d is another one for the writer than in the log", reply.Seq))
	}
	return ledger.Outcome{State: state, At: reply.At, Decision: aggregate.Decision{Refusal: reply.Refusal, EffectID: reply.EffectID,
		Repeat: reply.Repeat, Claimed: reply.Claimed}}, nil
}

// replyOf reads what the writer answered; the error is what it could not do, or
// that it said nothing that proves a decision (R4).
func replyOf(m *nats.Msg) (wire.DecisionReply, error) {
	if m.Header.Get(wire.HeaderError) == "" {
		reply, fault := wire.Decode[wire.DecisionReply](m.Data)
		if fault != nil {
			return reply, unanswered("the writer's answer is none")
		}
		return reply, nil
	}
	refused, fault := wire.Decode[wire.ErrorReply](m.Data)
	if fault != nil || refused.Error == nil {
		return wire.DecisionReply{}, unanswered("the writer's answer is none")
	}
	return wire.DecisionReply{}, refused.Error
}

// catchUp waits until the state is as far as the log.
func (r *Remote) catchUp(ctx context.Context) (ledger.Outcome, error) {
	last, err := r.log.Last(ctx)
	if err != nil {
		return ledger.Outcome{}, fmt.Errorf("peer: %w", err)
	}
	state, _, err := r.fold.reach(ctx, last)
	if err != nil {
		return ledger.Outcome{}, unanswered("the log has not been read in time")
	}
	return ledger.Outcome{State: state, At: state.Head().Time, Decision: aggregate.Decision{Repeat: true}}, nil
}

func (r *Remote) distrusts(reason string) error {
	r.Distrust(reason)
	return r.fault.Load()
}

func unanswered(why string) *wire.Error { return wire.Errorf(wire.CommitUnknown, why) }
