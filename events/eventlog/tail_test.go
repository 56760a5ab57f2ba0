package eventlog

import (
	"testing"

	"github.com/effectd/effectd/events"
)

// L5: a consumer leaves out what is missing; the sequences tell.
func TestGapWhileFollowing(t *testing.T) {
	r := streamRig(Config{})(t)
	list := entries(1+3*prefetch, "a", 0)
	var delivered []events.Stored
	following, filled, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- r.log.Tail(testContext(t), 1, events.ZeroDigest, func(e events.Stored) error {
			delivered = append(delivered, e)
			if e.Seq == 1 {
				close(following)
				<-filled
			}
			return nil
		})
	}()
	await(t, "a consumer", func() bool {
		info, err := r.log.(*Stream).info(testContext(t))
		return err == nil && info.State.Consumers == 1
	})
	appendAll(t, r.log, list[:1])
	<-following
	appendAll(t, r.log, list[1:])
	r.remove(2 * prefetch) // not sent ahead yet
	close(filled)
	wantDistrust(t, <-done, 2*prefetch)
	sameEntries(t, delivered, list[:2*prefetch-1])
}
