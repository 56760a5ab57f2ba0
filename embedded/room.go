package embedded

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often disk and log are measured.
const lookEvery = time.Second

// measure keeps the answer of [Node.full] up to date.
func (n *Node) measure(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			n.measureOnce(ctx)
		}
	}
}

func (n *Node) measureOnce(ctx context.Context) {
	reason := n.look(ctx)
	n.fullness.Store(&reason)
}

// full says why no new effect is taken; empty while there is room. What was
// admitted goes on in what is left: that is what the reserve is for.
func (n *Node) full() string {
	if reason := n.fullness.Load(); reason != nil {
		return *reason
	}
	return ""
}

// look compares the disk with its reserve, and the log with its limit less a
// sixteenth, which is kept for the later events of admitted effects.
func (n *Node) look(ctx context.Context) string {
	var disk unix.Statfs_t
	if err := unix.Statfs(n.home.Dir(), &disk); err == nil {
		if int64(disk.Bavail)*disk.Bsize < int64(n.config.DiskReserve) {
			return "the disk is below its reserve"
		}
	}
	status, err := n.log.Status(ctx)
	limit := n.ledger.State().Head().Limits.LogBytes
	if err == nil && limit > 0 && int64(status.Bytes) > limit-limit/16 {
		return "the log is at its maximum size"
	}
	return ""
}
