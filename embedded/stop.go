package embedded

import (
	"context"
	"errors"
	"os"
)

// Ready says how the node serves.
func (n *Node) Ready() Ready {
	reason := n.ledger.Distrusted()
	return Ready{Ready: true, Trusted: reason == "", Reason: reason, NATSURL: n.link.url, LedgerID: string(n.home.LedgerID()), Data: n.home.Dir()}
}

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node ended by itself; nil after a stop. Valid once Done is closed.
func (n *Node) Err() error { return n.err }

// Stop ends the node: the intake, then what is being dispatched, then the writer
// (M6). It returns when everything is on disk, or when ctx ends.
func (n *Node) Stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- n.service.Stop() }()
	n.endWaits()
	err := <-stopped
	n.stopping()
	select {
	case <-n.done:
	case <-ctx.Done():
		err = errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(err, n.err, n.release(ctx))
}

// release gives back everything that Start took, the lock last.
func (n *Node) release(ctx context.Context) error {
	var faults []error
	if n.projection != nil {
		faults = append(faults, n.projection.Close())
	}
	if n.anchor != nil {
		faults = append(faults, n.anchor.Close())
	}
	if n.link != nil {
		faults = append(faults, n.link.close(context.WithoutCancel(ctx)))
	}
	if n.copied != "" {
		faults = append(faults, os.RemoveAll(n.copied))
	}
	if n.home != nil && n.lock != nil {
		faults = append(faults, n.unannounce(), n.lock.Release())
	}
	return errors.Join(faults...)
}
