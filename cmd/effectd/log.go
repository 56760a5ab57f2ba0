package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// poll is how often a reader that may not make consumers looks for new entries.
const poll = 200 * time.Millisecond

// liveLog opens the log that a server serves, for an auditor.
func (i identity) liveLog(ctx context.Context) (eventlog.Log, func(), error) {
	c, err := i.dial()
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(c.Conn())
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	log, err := eventlog.Attach(ctx, js, eventlog.Config{Poll: poll})
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("open the log as %s: %w", events.ActorOf(i.tenant, i.principal), err)
	}
	return log, c.Close, nil
}

// openLog opens the log wherever it is: on the named server, of the running node,
// or of a data directory that nobody holds.
func (t *target) openLog(e *env) (eventlog.Log, func(), error) {
	log, closeLog, err := t.runningLog(e)
	if errors.Is(err, errNotRunning) {
		return embedded.OpenLog(e.ctx, embedded.Options{Data: t.Data, Logger: slog.New(slog.DiscardHandler)})
	}
	return log, closeLog, err
}

func (t *target) runningLog(e *env) (eventlog.Log, func(), error) {
	who, err := t.identity(events.RoleAuditor)
	if err != nil {
		return nil, nil, err
	}
	return who.liveLog(e.ctx)
}

// readAll hands out every entry in order, and tells how far it is. A log that
// cannot be trusted is a *eventlog.Distrust, after what is good before it.
func readAll(ctx context.Context, log eventlog.Log, step func(done, total uint64), use func(events.Stored)) error {
	last, err := log.Last(ctx)
	if err != nil {
		return err
	}
	for next := uint64(1); ; {
		entries, err := log.Read(ctx, next, 0)
		for _, s := range entries {
			use(s)
			next = s.Seq + 1
		}
		if err != nil || len(entries) == 0 {
			return err
		}
		step(next-1, max(last, next-1))
	}
}
