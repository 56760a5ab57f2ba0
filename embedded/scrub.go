package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/effectd/effectd/events/eventlog"
)

// checkEvery is how often the stream is asked what it is and what it lost.
const checkEvery = 10 * time.Second

// watch looks for what a store does silently: a weaker configuration, lost or
// deleted messages; and, more rarely, reads the whole log again. What it finds
// ends all trust.
func (n *Node) watch(ctx context.Context) error {
	check, scrub := time.NewTicker(checkEvery), time.NewTicker(time.Duration(n.config.ScrubEvery))
	defer check.Stop()
	defer scrub.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-check.C:
			err = n.log.Check(ctx)
		case <-scrub.C:
			err = n.scrub(ctx)
		}
		if errors.Is(err, eventlog.ErrUntrusted) {
			n.ledger.Distrust(err.Error())
			return nil
		}
	}
}

// scrub reads every entry up to the present end: sequence, chain and form are
// checked by the log.
func (n *Node) scrub(ctx context.Context) error {
	end := n.ledger.State().Seq()
	for seq := uint64(1); seq <= end && ctx.Err() == nil; {
		entries, err := n.log.Read(ctx, seq, 64)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return distrust(seq, "the log ends before what was acknowledged")
		}
		seq += uint64(len(entries))
	}
	return ctx.Err()
}
