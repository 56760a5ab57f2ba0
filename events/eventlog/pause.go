package eventlog

import (
	"context"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// pause waits before the n-th repetition (from 1), longer each time.
func pause(ctx context.Context, n int) error {
	d := maxPause
	if n < 6 {
		d = firstPause << n
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
