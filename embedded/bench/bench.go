package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// side is one of the two pipelines that are compared.
type side interface {
	clients() []*client.Client
	used(ctx context.Context) (used, error)
	// settled checks that exactly so many effects were served, and none is left.
	settled(ctx context.Context, effects int) error
	close(ctx context.Context) error
}

// bench is one run.
type bench struct {
	Options
	shape shape
	done  int // steps
	all   int
}

// Run measures, on scratch directories that it removes.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	b := &bench{Options: o.withDefaults()}
	b.all = 3 + len(b.InFlight)*2*rounds
	result, err := b.run(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("bench: %w", err)
	}
	return result, nil
}

func (b *bench) run(ctx context.Context) (Result, error) {
	first, err := b.raw(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := b.learn(ctx); err != nil {
		return Result{}, err
	}
	var result Result
	for _, n := range b.InFlight {
		row, err := b.row(ctx, n)
		if err != nil {
			return Result{}, err
		}
		result.Rows = append(result.Rows, row)
	}
	last, err := b.raw(ctx)
	if err != nil {
		return Result{}, err
	}
	result.RawPublishPerS = rate(first.published+last.published, first.elapsed+last.elapsed)
	return result, nil
}

// step tells what is measured now.
func (b *bench) step(format string, args ...any) {
	b.Progress(fmt.Sprintf(format, args...), b.done, b.all)
	b.done++
}

// scratched runs f in a scratch directory.
func (b *bench) scratched(f func(dir string) error) error {
	dir, remove, err := b.scratch()
	if err != nil {
		return err
	}
	err = errors.Join(f(dir), remove())
	runtime.GC() // what one round leaves is not the next one's work
	return err
}

// learn has one effect settled.
func (b *bench) learn(ctx context.Context) error {
	b.step("what one effect writes")
	return b.scratched(func(dir string) (err error) {
		r, err := openReal(ctx, dir, b.sent)
		if err != nil {
			return err
		}
		b.shape, err = learn(ctx, r)
		return errors.Join(err, r.close(ctx))
	})
}

// tally is what the rounds of one side add up to.
type tally struct {
	settled  sample
	admitted sample
	used     used
}

// row measures one number of requests in flight: real and bare rounds in the
// order A B B A, so that a steady drift of the machine cancels out.
func (b *bench) row(ctx context.Context, n int) (Row, error) {
	var real, bare tally
	for round := range rounds {
		turns := []func() error{
			func() error { return b.realRound(ctx, n, &real) },
			func() error { return b.bareRound(ctx, n, &bare) },
		}
		if round%2 == 1 {
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return Row{}, err
			}
		}
	}
	row := Row{
		InFlight:             n,
		EffectsPerS:          rate(real.settled.within, real.settled.elapsed),
		BarePerS:             rate(bare.settled.within, bare.settled.elapsed),
		AdmittedMS:           quantilesOf(real.admitted.latencies),
		SettledMS:            quantilesOf(real.settled.latencies),
		EntriesPerEffect:     quotient(float64(real.used.entries), float64(real.settled.all), 4),
		BareEntriesPerEffect: quotient(float64(bare.used.entries), float64(bare.settled.all), 4),
		LogBytesPerEffect:    quotient(float64(real.used.bytes), float64(real.settled.all), 1),
	}
	row.Ratio = quotient(row.EffectsPerS, row.BarePerS, 3)
	return row, nil
}

func (b *bench) realRound(ctx context.Context, n int, t *tally) error {
	b.step("%d in flight: effectd", n)
	return b.scratched(func(dir string) error {
		r, err := openReal(ctx, dir, b.sent)
		if err != nil {
			return err
		}
		return errors.Join(b.realLoads(ctx, r, n, t), r.close(ctx))
	})
}

// realLoads measures settled effects, then admissions alone.
func (b *bench) realLoads(ctx context.Context, r *real, n int, t *tally) error {
	served, err := b.settle(ctx, r, n, t)
	if err != nil {
		return err
	}
	l := load{clients: r.clients(), inFlight: n, wait: wire.WaitAdmitted, name: "admitted", warmUp: b.WarmUp / 4, measured: b.Duration / rounds / 2}
	admitted, err := l.drive(ctx)
	if err != nil {
		return err
	}
	t.admitted.add(admitted)
	return r.settled(ctx, served+admitted.all)
}

func (b *bench) bareRound(ctx context.Context, n int, t *tally) error {
	b.step("%d in flight: bare", n)
	return b.scratched(func(dir string) error {
		p, err := openBare(ctx, dir, b.shape)
		if err != nil {
			return err
		}
		_, err = b.settle(ctx, p, n, t)
		return errors.Join(err, p.close(ctx))
	})
}

// settle measures effects from request to settled. It returns how many there were.
func (b *bench) settle(ctx context.Context, s side, n int, t *tally) (int, error) {
	before, err := s.used(ctx)
	if err != nil {
		return 0, err
	}
	l := load{clients: s.clients(), inFlight: n, wait: wire.WaitTerminal, name: "settled", warmUp: b.WarmUp, measured: b.Duration / rounds}
	sample, err := l.drive(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.settled(ctx, sample.all); err != nil {
		return 0, err
	}
	after, err := s.used(ctx)
	if err != nil {
		return 0, err
	}
	t.settled.add(sample)
	t.used.entries += after.entries - before.entries
	t.used.bytes += after.bytes - before.bytes
	return sample.all, nil
}

// published is a number of durable messages.
type published struct {
	published int
	elapsed   time.Duration
}

// raw publishes 1 KiB at a time, each durable before the next.
func (b *bench) raw(ctx context.Context) (out published, err error) {
	b.step("durable publishes")
	err = b.scratched(func(dir string) error {
		server, err := openServer(ctx, dir)
		if err != nil {
			return err
		}
		out, err = b.publish(ctx, server)
		return errors.Join(err, server.close(ctx))
	})
	return out, err
}

func (b *bench) publish(ctx context.Context, server *server) (published, error) {
	s, err := openStream(ctx, server.ledger)
	if err != nil {
		return published{}, err
	}
	body := make([]byte, 1<<10)
	begin := time.Now().Add(b.WarmUp / 4)
	end := begin.Add(b.Duration / 4)
	var out published
	for now := time.Now(); now.Before(end); now = time.Now() {
		if err := s.append(ctx, body); err != nil {
			return published{}, err
		}
		if !now.Before(begin) {
			out.published++
		}
	}
	out.elapsed = time.Since(begin)
	return out, nil
}
