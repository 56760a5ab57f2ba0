package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// settings let the ledger hold whatever a load brings.
const settings = `limits:
  effect_records: 100000000
  live_bytes: 1024GiB
  log_bytes: 64GiB
  prepared_per_principal: 1000000
  requests_in_flight: 4096
spool_bytes: 1GiB
`

const (
	taskID   events.TaskID    = "bench"
	producer events.Principal = "producer"
	operator events.Principal = "operator"

	stopBound = 30 * time.Second
	pollEvery = 10 * time.Millisecond
)

// real is a scratch ledger with its node, and the connections of its users.
type real struct {
	node      *embedded.Node
	service   *service
	operator  *client.Client
	producers []*client.Client
}

// openReal makes a ledger in an empty directory and runs its node.
func openReal(ctx context.Context, dir string, sent func(events.EffectID)) (*real, error) {
	r := &real{service: &service{sent: sent}}
	if err := r.open(ctx, filepath.Join(dir, "data")); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch ledger: %w", err), r.close(ctx))
	}
	return r, nil
}

func (r *real) open(ctx context.Context, data string) error {
	if _, err := embedded.Init(ctx, embedded.InitOptions{Data: data}); err != nil {
		return err
	}
	for name, text := range map[string]string{"effectd.yaml": settings, "operations/charge.yaml": contract} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var err error
	r.node, err = embedded.Start(ctx, embedded.Options{Data: data, Listen: "127.0.0.1:0", ShutdownBudget: stopBound,
		Adapters: map[string]dispatcher.Adapter{operation.KindHTTP: r.service}})
	if err != nil {
		return err
	}
	seed := func(who events.Principal) string { return filepath.Join(data, "keys", string(who)+".nk") }
	url := r.node.Ready().NATSURL
	if r.operator, err = client.Dial(url, seed(operator), home.DefaultTenant, operator); err != nil {
		return err
	}
	if r.producers, err = dialProducers(url, seed(producer)); err != nil {
		return err
	}
	_, err = r.operator.TaskOpen(ctx, wire.TaskOpenRequest{TaskID: taskID, Budgets: events.Amounts{"usd_cents": events.MaxAmount, "effects": events.MaxAmount},
		Holders: []events.Actor{events.ActorOf(home.DefaultTenant, producer)}, ExpiresAt: events.InstantOf(time.Now().Add(24 * time.Hour)).String()})
	return err
}

// dialProducers connects the processes of one producer.
func dialProducers(url, seedFile string) ([]*client.Client, error) {
	var out []*client.Client
	for range connections {
		c, err := client.Dial(url, seedFile, home.DefaultTenant, producer)
		if err != nil {
			closeAll(out)
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func closeAll(clients []*client.Client) {
	for _, c := range clients {
		c.Close()
	}
}

// used is how much of the log there is.
type used struct{ entries, bytes int64 }

func (r *real) clients() []*client.Client { return r.producers }

func (r *real) used(ctx context.Context) (used, error) {
	s, err := r.operator.Status(ctx)
	return used{entries: int64(s.Seq), bytes: s.Usage.LogBytes}, err
}

// settled waits until the ledger holds exactly so many effects, all settled, and
// checks that each was sent once (B2).
func (r *real) settled(ctx context.Context, effects int) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, longestReply)
	defer cancel()
	for {
		s, err := r.operator.Status(ctx)
		if err != nil {
			return err
		}
		if s.Effects[wire.StateSettled] == int64(effects) && s.Usage.EffectRecords == int64(effects) {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d effects are settled: %w", s.Effects[wire.StateSettled], effects, context.Cause(ctx))
		}
	}
	if sends := r.service.sends.Load(); sends != int64(effects) {
		return fmt.Errorf("%d effects were sent %d times", effects, sends)
	}
	return nil
}

func (r *real) close(ctx context.Context) error {
	closeAll(r.producers)
	if r.operator != nil {
		r.operator.Close()
	}
	if r.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	return r.node.Stop(ctx)
}
