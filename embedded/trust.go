package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/projector"
	"github.com/effectd/effectd/projector/anchor"
)

// openProjection opens the projection of a ledger; one that is damaged, of another
// format or of another ledger is dropped, and folded again from the log.
func openProjection(dir string, of events.LedgerID, log *slog.Logger, now func() events.Instant) (*projector.Projection, error) {
	opts := projector.Options{Now: now, Logger: log}
	p, err := projector.Open(dir, opts)
	if err == nil {
		if head := p.State().Head(); head.Seq > 0 && head.LedgerID != of {
			err = errors.Join(projector.ErrRebuild, errors.New("it is of another ledger"), p.Close())
		}
	}
	if !errors.Is(err, projector.ErrRebuild) {
		return p, err
	}
	log.Warn("the projection is rebuilt", "reason", err)
	if err := projector.Reset(dir, opts); err != nil {
		return nil, err
	}
	return projector.Open(dir, opts)
}

// openAnchor reads what is known of the log outside of it.
func (n *Node) openAnchor() (anchor.Mark, error) {
	a, err := anchor.Open(vfs.Default, n.opts.anchorDir(n.home))
	if err != nil {
		return anchor.Mark{}, distrust(0, "anchor: "+err.Error())
	}
	n.anchor = a
	mark := a.Load()
	if mark.LedgerID != n.home.LedgerID() {
		return mark, distrust(0, "the anchor belongs to another ledger")
	}
	return mark, nil
}

func distrust(seq uint64, reason string) error { return &eventlog.Distrust{Reason: reason, Seq: seq} }

// known adds to the loss of a whole stream what is known to have been in it.
func known(err error, mark anchor.Mark) error {
	var d *eventlog.Distrust
	if mark.Seq == 0 || !errors.As(err, &d) {
		return err
	}
	return distrust(d.Seq, fmt.Sprintf("%s; the anchor has seen entry %d", d.Reason, mark.Seq))
}

// checkHistory compares the log with what anchor and projection know of it.
func (n *Node) checkHistory(ctx context.Context, mark anchor.Mark) error {
	status, err := n.log.Status(ctx)
	if err != nil {
		return err
	}
	if got := status.Fingerprint(n.home.LedgerID()); got != mark.Fingerprint {
		return distrust(0, "the stream has another fingerprint than the anchor: it was made anew")
	}
	if err := checkMark(ctx, n.log, status.LastSeq, "the anchor", mark.Seq, mark.SHA256); err != nil {
		return err
	}
	head := n.projection.State().Head()
	return checkMark(ctx, n.log, status.LastSeq, "the projection", head.Seq, head.SHA256)
}

// checkMark compares a log that ends at last with what somebody remembers of it.
func checkMark(ctx context.Context, log eventlog.Log, last uint64, who string, seq uint64, sha events.Digest) error {
	if last < seq {
		return distrust(last+1, fmt.Sprintf("the log ends at %d, %s has seen %d", last, who, seq))
	}
	if seq == 0 {
		return nil
	}
	entries, err := log.Read(ctx, seq, 1)
	if err != nil {
		return err
	}
	if len(entries) == 0 || entries[0].SHA256 != sha {
		return distrust(seq, "it is not the one that "+who+" has seen")
	}
	return nil
}

// marker fsyncs a claim's position in the anchor before the send (M4).
type marker struct{ n *Node }

func (m marker) Mark(ctx context.Context, seq uint64, sha events.Digest) error {
	return m.n.mark(ctx, seq, sha)
}

func (n *Node) mark(ctx context.Context, seq uint64, sha events.Digest) error {
	return n.anchor.Ensure(ctx, anchor.Mark{LedgerID: n.home.LedgerID(), Fingerprint: n.ledger.State().Head().Fingerprint,
		Seq: seq, SHA256: sha, Time: events.InstantOf(time.Now())})
}

// keepAnchor marks the end of the log every second.
func (n *Node) keepAnchor(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		n.markEnd(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// markEnd marks the end of the log that can be trusted.
func (n *Node) markEnd(ctx context.Context) {
	if n.ledger.Distrusted() != "" {
		return
	}
	head := n.ledger.State().Head()
	// Not cancelled by a stop: that would look like an anchor that cannot be written.
	if err := n.mark(context.WithoutCancel(ctx), head.Seq, head.SHA256); err != nil {
		n.ledger.Distrust("the anchor cannot be written: " + err.Error())
	}
}
