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

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
	"github.com/effectd/effectd/projector/anchor"
)

// bare is the pipeline without the law: a request becomes three records of one
// entry, the consumer delivers the entry, a claim is recorded and its position
// fsynced in the anchor, a result is recorded, the request is answered.
type bare struct {
	shape     shape
	server    *server
	stream    *stream
	anchor    *anchor.Anchor
	service   *endpoint.Service
	messages  jetstream.MessagesContext
	producers []*client.Client

	queue  queue
	effect atomic.Uint64
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup // the writer and the consumer

	mu      sync.Mutex
	waiting map[uint64]chan struct{} // effects whose request is not answered
}

func openBare(ctx context.Context, dir string, s shape) (*bare, error) {
	b := &bare{shape: s, waiting: map[uint64]chan struct{}{}, queue: newQueue()}
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
	if b.stream, err = openStream(ctx, b.server.ledger); err != nil {
		return err
	}
	if err := anchor.Create(vfs.Default, filepath.Join(dir, "anchor"), unmarked); err != nil {
		return err
	}
	if b.anchor, err = anchor.Open(vfs.Default, filepath.Join(dir, "anchor")); err != nil {
		return err
	}
	consumer, err := b.stream.js.CreateConsumer(ctx, wire.LogStream, eventlog.ConsumerConfig("dispatch", 1))
	if err != nil {
		return err
	}
	if b.messages, err = consumer.Messages(jetstream.PullMaxMessages(128)); err != nil {
		return err
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	b.stop = stop
	b.ended.Go(func() { b.write(running) })
	b.ended.Go(b.consume)
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

// unmarked is the mark of a log without entries.
var unmarked = anchor.Mark{LedgerID: "bare", Fingerprint: events.ZeroDigest, SHA256: events.ZeroDigest}

// fail ends the pipeline, and with it the measurement.
func (b *bare) fail(err error) {
	b.stop(err)
	b.queue.fail()
}

// submit serves one request.
func (b *bare) submit(ctx context.Context, _ endpoint.Request) (any, *wire.Error) {
	effect := b.effect.Add(1)
	settled := make(chan struct{})
	b.mu.Lock()
	b.waiting[effect] = settled
	b.mu.Unlock()
	records := make([][]byte, 0, len(b.shape.submitted))
	for i, text := range b.shape.submitted {
		k := filler
		if i == len(b.shape.submitted)-1 {
			k = admit
		}
		records = append(records, record(k, effect, text))
	}
	if !b.queue.do(&command{records: records, done: make(chan uint64, 1)}) {
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
func (b *bare) consume() {
	for {
		m, err := b.messages.Next()
		if err != nil {
			return
		}
		err = eachRecord(m.Data(), len(b.shape.envelope), func(k kind, effect uint64) {
			if k == admit {
				go b.dispatch(effect)
			}
		})
		if err != nil {
			b.fail(err)
			return
		}
		_ = m.Ack()
	}
}

// dispatch claims, fsyncs the claim's position, records the result and has the
// request answered.
func (b *bare) dispatch(effect uint64) {
	claimed := &command{records: [][]byte{record(claim, effect, b.shape.claimed)}, done: make(chan uint64, 1)}
	if !b.queue.do(claimed) {
		return
	}
	mark := unmarked
	mark.Seq = claimed.seq
	if err := b.anchor.Ensure(context.Background(), mark); err != nil {
		b.fail(err)
		return
	}
	if !b.queue.do(&command{records: [][]byte{record(settle, effect, b.shape.result)}, done: make(chan uint64, 1)}) {
		return
	}
	b.mu.Lock()
	settled := b.waiting[effect]
	delete(b.waiting, effect)
	b.mu.Unlock()
	close(settled)
}

func (b *bare) clients() []*client.Client { return b.producers }

func (b *bare) used(ctx context.Context) (used, error) { return b.stream.used(ctx) }

// settled checks that nothing is left behind.
func (b *bare) settled(_ context.Context, effects int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left, made := len(b.waiting), b.effect.Load(); left > 0 || made != uint64(effects) {
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
	if b.messages != nil {
		b.messages.Stop()
	}
	b.ended.Wait()
	if b.anchor != nil {
		faults = append(faults, b.anchor.Close())
	}
	if b.server != nil {
		faults = append(faults, b.server.close(ctx))
	}
	return errors.Join(faults...)
}
