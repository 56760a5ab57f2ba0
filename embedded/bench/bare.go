package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
	"github.com/effectd/effectd/projector/anchor"
)

// bare is the pipeline without the law: a request becomes three events of one
// entry, the consumer delivers the entry, a claim is recorded and its position
// fsynced in the anchor, a result is recorded, the request is answered.
type bare struct {
	shape      shape
	server     *server
	log        *eventlog.Stream
	anchor     *anchor.Anchor
	service    *endpoint.Service
	deliveries eventlog.Deliveries
	producers  []*client.Client

	queue queue
	last  events.Stored // the writer's
	made  atomic.Int64  // effects
	stop  context.CancelCauseFunc
	ended sync.WaitGroup // the writer and the consumer

	mu      sync.Mutex
	waiting map[events.EffectID]chan struct{} // effects whose request is not answered
}

func openBare(ctx context.Context, dir string, s shape) (*bare, error) {
	b := &bare{shape: s, waiting: map[events.EffectID]chan struct{}{}, queue: newQueue(),
		last: events.Stored{SHA256: events.ZeroDigest}}
	if err := b.open(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("bare pipeline: %w", err), b.close(ctx))
	}
	return b, nil
}

func (b *bare) open(ctx context.Context, dir string) error {
	var err error
	if b.server, err = openServer(ctx, dir); err != nil {
		return err
	}
	js, err := jetstream.New(b.server.ledger)
	if err != nil {
		return err
	}
	if b.log, err = eventlog.Create(ctx, js, eventlog.Config{LedgerID: bareLedger, MaxBytes: 64 << 30}); err != nil {
		return err
	}
	if err := anchor.Create(vfs.Default, filepath.Join(dir, "anchor"), unmarked); err != nil {
		return err
	}
	if b.anchor, err = anchor.Open(vfs.Default, filepath.Join(dir, "anchor")); err != nil {
		return err
	}
	if b.deliveries, err = b.log.Deliveries(ctx, "dispatch", 1); err != nil {
		return err
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	b.stop = stop
	b.ended.Go(func() { b.write(running) })
	b.ended.Go(func() { b.consume(running) })
	if b.service, err = endpoint.New(running, b.server.answer, "0.0.0", slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := b.service.Add(wire.EffectSubmit, b.submit); err != nil {
		return err
	}
	if err := b.server.answer.Flush(); err != nil {
		return err
	}
	b.producers, err = dialProducers(b.server.nats.ClientURL(), b.server.seed)
	return err
}

const bareLedger events.LedgerID = "bare"

// unmarked is the mark of a log without entries.
var unmarked = anchor.Mark{LedgerID: bareLedger, Fingerprint: events.ZeroDigest, SHA256: events.ZeroDigest}

// fail ends the pipeline, and with it the measurement.
func (b *bare) fail(err error) {
	b.stop(err)
	b.queue.fail()
}

// submit serves one request.
func (b *bare) submit(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
	if _, refusal := wire.Decode[wire.SubmitRequest](r.Body); refusal != nil {
		return nil, refusal
	}
	b.made.Add(1)
	effect := events.EffectID(ulid.Make().String())
	settled := make(chan struct{})
	b.mu.Lock()
	b.waiting[effect] = settled
	b.mu.Unlock()
	if !b.queue.do(about(effect, b.shape.submitted)) {
		return nil, ended(ctx)
	}
	select {
	case <-settled:
		return b.shape.reply, nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

func ended(ctx context.Context) *wire.Error {
	return wire.Errorf(wire.LedgerUnavailable, fmt.Sprint("the bare pipeline ended: ", context.Cause(ctx)))
}

// consume dispatches what the entries admit.
func (b *bare) consume(ctx context.Context) {
	for {
		d, err := b.deliveries.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				b.fail(err)
			}
			return
		}
		for i := range d.Events {
			if d.Events[i].Type == events.TypeAdmitted {
				go b.dispatch(d.Events[i].EffectID)
			}
		}
		_ = d.Ack()
	}
}

// dispatch claims, fsyncs the claim's position, records the result and has the
// request answered.
func (b *bare) dispatch(effect events.EffectID) {
	claim := about(effect, b.shape.claimed)
	if !b.queue.do(claim) {
		return
	}
	mark := unmarked
	mark.Seq, mark.SHA256 = claim.entry.Seq, claim.entry.SHA256
	if err := b.anchor.Ensure(context.Background(), mark); err != nil {
		b.fail(err)
		return
	}
	if !b.queue.do(about(effect, b.shape.settled)) {
		return
	}
	b.mu.Lock()
	settled := b.waiting[effect]
	delete(b.waiting, effect)
	b.mu.Unlock()
	close(settled)
}

func (b *bare) clients() []*client.Client { return b.producers }

func (b *bare) used(ctx context.Context) (used, error) {
	s, err := b.log.Status(ctx)
	return used{entries: int64(s.LastSeq), bytes: int64(s.Bytes)}, err
}

// settled checks that nothing is left behind.
func (b *bare) settled(_ context.Context, effects int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left, made := len(b.waiting), b.made.Load(); left > 0 || made != int64(effects) {
		return fmt.Errorf("bare pipeline: %d requests, %d answered, %d left", made, effects, left)
	}
	return nil
}

func (b *bare) close(ctx context.Context) error {
	closeAll(b.producers)
	if b.stop != nil {
		b.stop(nil)
	}
	var faults []error
	if b.service != nil {
		faults = append(faults, b.service.Stop())
	}
	b.ended.Wait()
	if b.deliveries != nil {
		b.deliveries.Stop()
	}
	if b.anchor != nil {
		faults = append(faults, b.anchor.Close())
	}
	if b.server != nil {
		faults = append(faults, b.server.close(ctx))
	}
	return errors.Join(faults...)
}
