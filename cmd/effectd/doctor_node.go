package main

import (
	"context"
	"errors"
	"time"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// patience is how long the doctor waits for a node.
const patience = 5 * time.Second

// node asks the running node, or says whether one could start.
func (c *doctorCmd) node(e *env, h *home.Home) []diagnosis {
	t := target{data: c.data}
	who, err := t.identity(events.RoleOperator)
	if errors.Is(err, errNotRunning) {
		return []diagnosis{atRest(h)}
	}
	if err != nil {
		return []diagnosis{fault("node", err.Error(), "")}
	}
	l, err := who.dial()
	if err != nil {
		return []diagnosis{unanswered(h, err)}
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	began := e.now()
	s, err := l.Status(ctx)
	if err != nil {
		return []diagnosis{unanswered(h, err)}
	}
	answered := fine("node", "answers on "+who.url+" in "+duration(e.now().Sub(began)))
	return []diagnosis{answered, clock(s.Time, e.now()), trust(&s), queued(&s.Intake)}
}

// atRest looks whether a process holds the directory without having said so.
func atRest(h *home.Home) diagnosis {
	err := home.Unlocked(h.Dir())
	if errors.Is(err, home.ErrLocked) {
		return warning("node", "a process holds the directory but does not serve: "+err.Error(), "it may be starting; else end that process")
	}
	if err != nil {
		return fault("node", err.Error(), "")
	}
	return warning("node", "none runs", "effectd serve --data "+h.Dir())
}

// unanswered is a node that once said that it runs.
func unanswered(h *home.Home, cause error) diagnosis {
	if d := atRest(h); d.Says == "none runs" {
		d.Says = "none runs; the last one was killed"
		return d
	}
	d := fault("node", "it runs but does not answer: "+cause.Error(), "see its log")
	d.code = exitUnreachable
	return d
}

// clock compares ledger time with this machine's.
func clock(ledger events.Instant, now time.Time) diagnosis {
	const tolerated = 5 * time.Second
	off := ledger.Time().Sub(now)
	if off.Abs() > tolerated {
		return warning("clock", "ledger time is "+duration(off.Abs())+" off this machine's clock", "synchronise the clocks; after a step: effectd ledger confirm-clock")
	}
	return fine("clock", "ledger time agrees with this machine's clock")
}
