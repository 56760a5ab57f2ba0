package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// patience is how long the doctor waits for a node.
const patience = 5 * time.Second

// node asks the running node, or says whether one could start.
func (c *doctorCmd) node(e *env, h *home.Home, contracts []*operation.Contract) []diagnosis {
	t := target{data: c.data}
	who, err := t.identity(events.RoleOperator)
	if errors.Is(err, errNotRunning) {
		return c.resting(e, h, contracts, "none runs")
	}
	if err != nil {
		return []diagnosis{fault("node", err.Error(), "")}
	}
	l, err := who.dial()
	if errors.Is(err, errNotRunning) {
		return c.resting(e, h, contracts, "none runs; the last one was killed")
	}
	if err != nil {
		return []diagnosis{unanswered(err)}
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	began := e.now()
	s, err := l.Status(ctx)
	if err != nil {
		return []diagnosis{unanswered(err)}
	}
	answered := fine("node", "answers on "+who.url+" in "+duration(e.now().Sub(began)))
	found := []diagnosis{answered, clock(s.Time, e.now()), trust(&s), queued(&s.Intake, s.Trusted)}
	list, err := l.Operations(ctx)
	if err != nil {
		return append(found, fault("versions", err.Error(), ""))
	}
	registered := map[embedded.OperationVersion]events.Digest{}
	for _, o := range list.Items {
		registered[embedded.OperationVersion{Name: o.Name, Number: o.Version}] = o.Digest
	}
	return append(found, versions(contracts, registered))
}

// resting is a directory without a node, unless a process holds it without having
// said so.
func (c *doctorCmd) resting(e *env, h *home.Home, contracts []*operation.Contract, says string) []diagnosis {
	err := home.Unlocked(h.Dir())
	if errors.Is(err, home.ErrLocked) {
		return []diagnosis{warning("node", "a process holds the directory but does not serve: "+err.Error(), "it may be starting; else end that process")}
	}
	if err != nil {
		return []diagnosis{fault("node", err.Error(), "")}
	}
	found := []diagnosis{warning("node", says, "effectd serve --data "+h.Dir())}
	if len(contracts) == 0 || h.Elsewhere() {
		return found
	}
	registered, err := c.logged(e)
	if err != nil {
		return append(found, warning("versions", "not compared with the log: "+err.Error(), "effectd verify"))
	}
	return append(found, versions(contracts, registered))
}

// logged is what the log of a node at rest has registered. The projection may have
// lost that when a node was killed.
func (c *doctorCmd) logged(e *env) (map[embedded.OperationVersion]events.Digest, error) {
	log, closeLog, err := embedded.OpenLog(e.ctx, embedded.Options{Data: c.Data, Config: c.Config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer closeLog()
	registered := map[embedded.OperationVersion]events.Digest{}
	return registered, readAll(e.ctx, log, func(uint64, uint64) {}, func(s events.Stored) {
		for _, ev := range s.Entry.Events {
			if d, ok := ev.Data.(events.OperationRegistered); ok {
				registered[embedded.OperationVersion{Name: ev.Operation, Number: d.Version}] = d.Digest
			}
		}
	})
}

// versions finds what serve would refuse: a registered version that was edited.
func versions(contracts []*operation.Contract, registered map[embedded.OperationVersion]events.Digest) diagnosis {
	err := embedded.SameVersions(contracts, func(v embedded.OperationVersion) events.Digest { return registered[v] })
	if err != nil {
		return fault("versions", strings.ReplaceAll(err.Error(), "\n", "; "), "serve refuses it: give what changed a new version, or undo the change")
	}
	return fine("versions", "no registered contract was changed")
}

// unanswered is a node that holds the directory and says nothing.
func unanswered(cause error) diagnosis {
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
