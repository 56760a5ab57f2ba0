package embedded

import (
	"context"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/effectd/effectd/aggregate/ledger"
)

// lookEvery is how often disk and log are measured.
const lookEvery = time.Second

// measure keeps the answers of [Node.full] and [Node.room] up to date.
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
	reason := ""
	var disk unix.Statfs_t
	if err := unix.Statfs(n.home.Dir(), &disk); err == nil && int64(disk.Bavail)*disk.Bsize < int64(n.config.DiskReserve) {
		reason = "the disk is below its reserve"
	}
	n.fullness.Store(&reason)
	// What is appended while the log is measured counts twice, rather than not.
	appended := n.ledger.Appended()
	status, err := n.log.Status(ctx)
	if err != nil {
		return
	}
	most := status.MaxBytes
	if limit := n.ledger.State().Head().Limits.LogBytes; limit > 0 {
		most = min(most, limit)
	}
	n.logRoom.Store(&ledger.Room{Free: most - int64(status.Bytes), Appended: appended})
}

// full says why no new effect is taken; empty while there is room on the disk.
// What was admitted goes on in what is left: that is what the reserve is for.
func (n *Node) full() string {
	if reason := n.fullness.Load(); reason != nil {
		return *reason
	}
	return ""
}

// room is what the log still takes.
func (n *Node) room() ledger.Room {
	if room := n.logRoom.Load(); room != nil {
		return *room
	}
	return ledger.Room{Free: math.MaxInt64 / 2}
}
