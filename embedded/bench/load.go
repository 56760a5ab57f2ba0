package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// load is requests kept open in a closed loop: who has its reply asks again.
type load struct {
	clients  []*client.Client
	inFlight int
	wait     string
	name     string // begins the run ids: no two loads of a ledger share them
	warmUp   time.Duration
	measured time.Duration
}

// sample is what a load measured.
type sample struct {
	all       int // requests, those of the warm-up and of the end too
	within    int // that ended within the measured time
	elapsed   time.Duration
	latencies []time.Duration // of those within
}

func (s *sample) add(o sample) {
	s.all += o.all
	s.within += o.within
	s.elapsed += o.elapsed
	s.latencies = append(s.latencies, o.latencies...)
}

// drive runs the load. When it returns nothing is in flight. The first reply that
// is not what it should be ends it.
func (l load) drive(ctx context.Context) (sample, error) {
	begin := time.Now().Add(l.warmUp)
	end := begin.Add(l.measured)
	var mu sync.Mutex
	total := sample{elapsed: l.measured}
	group, ctx := errgroup.WithContext(ctx)
	for i := range l.inFlight {
		group.Go(func() error {
			own, err := l.work(ctx, i, begin, end)
			mu.Lock()
			defer mu.Unlock()
			total.add(own)
			return err
		})
	}
	err := group.Wait()
	return total, err
}

// work is one request after another until the end.
func (l load) work(ctx context.Context, worker int, begin, end time.Time) (sample, error) {
	c := l.clients[worker%len(l.clients)]
	var s sample
	for n := 0; ; n++ {
		sent := time.Now()
		if !sent.Before(end) {
			return s, nil
		}
		effect, err := c.Submit(ctx, l.request(worker, n))
		if err == nil {
			err = l.check(&effect)
		}
		if err != nil {
			return s, fmt.Errorf("%d in flight: %w", l.inFlight, err)
		}
		s.all++
		if got := time.Now(); !got.Before(begin) && got.Before(end) {
			s.within++
			s.latencies = append(s.latencies, got.Sub(sent))
		}
	}
}

// effectsPerRun is how many effects one invocation asks for.
const effectsPerRun = 10

// request is one charge; runs of a few effects each, as invocations are.
func (l load) request(worker, n int) wire.SubmitRequest {
	run := events.RunID(fmt.Sprintf("%s-%d-%d", l.name, worker, n/effectsPerRun))
	step := events.CausalID(fmt.Sprintf("step-%d", n%effectsPerRun))
	return wire.SubmitRequest{
		PrepareRequest: wire.PrepareRequest{TaskID: taskID, Operation: "charge", Payload: payload,
			SealedContext: wire.SealedContext{RunID: &run, CausalID: &step}},
		Wait: l.wait, TimeoutMS: longestReply.Milliseconds(),
	}
}

// longestReply is when a load gives up on one reply.
const longestReply = time.Minute

var payload = events.CanonicalOf(struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	Memo    string `json:"memo"`
}{"acct-7f3a91", amount, "invoice 2024-118, second part"})

const amount = 5

var errReply = errors.New("the reply is not what was asked for")

// check is what a reply must say (B2).
func (l load) check(e *wire.Effect) error {
	switch {
	case e.EffectID == "" || e.Repeat || e.Receipt == nil:
		return fmt.Errorf("%w: no new effect with a receipt", errReply)
	case l.wait == wire.WaitTerminal && (e.State != wire.StateSettled || e.Outcome != events.OutcomeSucceeded):
		return fmt.Errorf("%w: the effect is %s %s", errReply, e.State, e.Outcome)
	}
	return nil
}
