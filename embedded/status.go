package embedded

import (
	"context"
	"time"

	"github.com/effectd/effectd/projector"
)

// Acknowledged is the last entry that callers of this node were told of; none
// while the log is not trusted, since nothing new is.
func (n *Node) Acknowledged() uint64 {
	if n.ledger.Distrusted() != "" {
		return 0
	}
	return n.ledger.State().Seq()
}

// Distrust ends all writing: a reader found the log unfit.
func (n *Node) Distrust(reason string) { n.ledger.Distrust(reason) }

// Standing is what the projection cannot know of its node.
func (n *Node) Standing() projector.Standing {
	reason := n.ledger.Distrusted()
	_, clock := n.ledger.Now()
	s := projector.Standing{Trusted: reason == "", Reason: reason, ClockTrusted: clock, Dispatching: reason == "" && n.dispatcher.Active(),
		Node: n.home.Node(n.config), Program: Program}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s.Intake = n.intakeStatus(ctx)
	if n.log == nil {
		return s
	}
	if status, err := n.log.Status(ctx); err == nil {
		s.LogBytes = int64(status.Bytes)
	}
	return s
}
