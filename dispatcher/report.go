package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// report makes a result durable: in the log, or, while the ledger does not take
// it, in the spool (D5). Bookkeeping is never cancelled.
func (d *Dispatcher) report(e *aggregate.Effect, nonce string, r aggregate.Result) {
	report := aggregate.Report{EffectID: e.ID, IntentSHA256: e.IntentSHA256(), Nonce: nonce, Result: r}
	err := d.record(context.Background(), report)
	if err == nil {
		return
	}
	d.cfg.Logger.Warn("the ledger does not take a result: it is spooled", "effect_id", e.ID, "error", err)
	refused := errors.Is(err, errRefused)
	record := spool.Record{EffectID: e.ID, IntentSHA256: report.IntentSHA256, Nonce: nonce, Result: events.CanonicalOf(r)}
	if current := d.ledger.State().Effect(e.ID); current != nil && current.Claim != nil {
		record.Claim = current.Claim.Position
	}
	if err := d.spool.Put(record); err != nil {
		// Neither log nor spool: the claim stays without a report and becomes unknown.
		d.cfg.Logger.Error("a result is in neither log nor spool", "effect_id", e.ID, "error", err)
		return
	}
	if refused {
		return // asking again would be refused again: it is kept for an operator
	}
	d.sends.Add(1)
	go func() {
		defer d.sends.Done()
		for d.active.Load() {
			if d.pause(d.life, d.cfg.Retry) != nil {
				return
			}
			if err := d.replay(d.life, record); err == nil || errors.Is(err, errRefused) {
				return
			}
		}
	}()
}

// errRefused: the law does not know the claim of a result, so that the log has
// lost it. The result is evidence all the same: its file is kept.
var errRefused = errors.New("the ledger knows no such claim")

// record appends a report.
func (d *Dispatcher) record(ctx context.Context, r aggregate.Report) error {
	o, err := d.ledger.Do(ctx, events.SystemActor, r)
	if err != nil {
		return err
	}
	if o.Refusal == nil {
		return nil
	}
	d.cfg.Logger.Error("a result was refused", "effect_id", r.EffectID, "code", o.Refusal.Code, "message", o.Refusal.Message)
	switch o.Refusal.Code {
	case wire.UnknownEffect, wire.Forbidden:
		return errRefused
	}
	return o.Refusal // not decided, as with a clock that is not trusted: it may be taken later
}

// Replay reports what an earlier life of the node left in the spool. It fails if
// the ledger does not take one: then nothing may be ended as lost yet. A record
// that cannot be read, or whose claim the log does not have, holds up no other, and
// its file is kept.
func (d *Dispatcher) Replay(ctx context.Context) error {
	records, damaged, err := d.spool.All()
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, fault := range damaged {
		d.cfg.Logger.Error("a spooled result is damaged and is kept aside", "file", fault.Name, "reason", fault.Reason)
	}
	for _, r := range records {
		if err := d.replay(ctx, r); err != nil && !errors.Is(err, errRefused) {
			return err
		}
	}
	return nil
}

// replay reports one spooled result, and forgets it once it is recorded.
func (d *Dispatcher) replay(ctx context.Context, r spool.Record) error {
	var result aggregate.Result
	if err := json.Unmarshal(r.Result, &result, json.RejectUnknownMembers(true)); err != nil {
		d.cfg.Logger.Error("a spooled result does not decode and is kept aside", "effect_id", r.EffectID, "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := d.record(ctx, aggregate.Report{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Nonce: r.Nonce, Result: result, AuditIncomplete: true}); err != nil {
		return err
	}
	return d.spool.Remove(r.EffectID)
}
