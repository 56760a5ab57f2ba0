package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

const (
	maxNoted = 1024                  // denials of endpoints that wait to be stored
	paced    = 10 * time.Millisecond // between two of them: each costs the log's disk an fsync
)

// Denials keeps what was denied. It is safe for concurrent use; Run is called
// once.
type Denials struct {
	js      jetstream.JetStream
	now     func() events.Instant
	off     string // why none is kept
	noted   chan wire.Denial
	dropped atomic.Uint64
}

// NewDenials attaches to the stream of denials, if there is one that is fit.
func NewDenials(ctx context.Context, js jetstream.JetStream, c Config, now func() events.Instant, log *slog.Logger) *Denials {
	return &Denials{js: js, now: now, off: attach(ctx, js, c.DenialStream(), log), noted: make(chan wire.Denial, maxNoted)}
}

// Off says why no denial is kept; empty if they are.
func (d *Denials) Off() string { return d.off }

// Dropped is how many denials of endpoints could not be kept.
func (d *Denials) Dropped() uint64 { return d.dropped.Load() }

// telling are the codes of a denied command that matter beyond its caller: of
// identity, authority, and of what is another's.
var telling = []wire.Code{wire.Forbidden, wire.PolicyDenied, wire.SelfApproval, wire.ApprovalInvalid, wire.EffectContextMismatch,
	wire.BindingMismatch, wire.UnknownEffect, wire.UnknownTask, wire.UnknownRun}

// Noting serves a command, and notes it when it is denied and the log does not
// tell of that. The reply does not wait for it (I7).
func (d *Denials) Noting(serve endpoint.Serve) endpoint.Serve {
	return func(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
		reply, refusal := serve(ctx, r)
		if refusal != nil && slices.Contains(telling, refusal.Code) && !logged(refusal) {
			denial := d.of(aggregate.Caller{Tenant: r.Caller.Tenant, Principal: r.Caller.Principal}, r.Verb, refusal)
			var asked about
			_ = json.Unmarshal(r.Body, &asked) // what is no request names nothing
			asked.tell(&denial)
			select {
			case d.noted <- denial:
			default:
				d.dropped.Add(1)
			}
		}
		return reply, refusal
	}
}

// about are the ids that a request may carry.
type about struct {
	RunID    *events.RunID    `json:"run_id"`
	CausalID *events.CausalID `json:"causal_id"`
}

// tell completes a denial with the ids that were sent: only if they are some.
func (a about) tell(d *wire.Denial) {
	if a.RunID != nil && wire.CheckID("run_id", *a.RunID) == nil {
		d.RunID = *a.RunID
	}
	if a.CausalID != nil && wire.CheckID("causal_id", *a.CausalID) == nil {
		d.CausalID = *a.CausalID
	}
}

// logged reports whether the denial ended an effect: the log has it as refused.
func logged(refusal *wire.Error) bool {
	return refusal.Effect != nil && refusal.Effect.State == wire.StateRefused
}

func (d *Denials) of(c aggregate.Caller, verb wire.Verb, refusal *wire.Error) wire.Denial {
	out := wire.Denial{V: events.Format, Time: d.now(), Tenant: c.Tenant, Principal: c.Principal, Verb: verb,
		Code: refusal.Code, Field: refusal.Field, Message: refusal.Message}
	if refusal.Effect != nil {
		out.EffectID = refusal.Effect.EffectID
	}
	return out
}

// Run stores what endpoints noted, until ctx ends.
func (d *Denials) Run(ctx context.Context) {
	pace := time.NewTicker(paced)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-d.noted:
			if err := d.put(ctx, n); err != nil {
				d.dropped.Add(1)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

// put stores a denial and returns when it is durable.
func (d *Denials) put(ctx context.Context, n wire.Denial) error {
	if d.off != "" {
		return errors.New(d.off)
	}
	// Whatever a request made of a message: a denial that cannot be written would
	// hold its line for ever.
	body, err := json.Marshal(n, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("denial: %w", err)
	}
	var opts []jetstream.PublishOpt
	if n.RequestSeq != 0 { // the request may come again before its ack is known
		opts = append(opts, jetstream.WithMsgID("request-"+strconv.FormatUint(n.RequestSeq, 10)))
	}
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	_, err = d.js.Publish(ctx, wire.DeniedSubject(n.Tenant, n.Code), body, opts...)
	return err
}
