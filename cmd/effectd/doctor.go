package main

import (
	"github.com/effectd/effectd/events/wire"
)

// doctorCmd looks at everything a node needs, and says what to do.
type doctorCmd struct {
	data
	Config string `placeholder:"DIR" type:"path" help:"Directory of operations, policy, secrets and settings (default: the data directory)."`
	Anchor string `placeholder:"DIR" type:"path" help:"Directory of the anchor (default: in the data directory)."`
}

// diagnosis is what one check found.
type diagnosis struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"` // ok, warning or fault
	Says    string `json:"says"`
	Do      string `json:"do,omitzero"`
	code    exit
}

func fine(check, says string) diagnosis { return diagnosis{Check: check, Verdict: "ok", Says: says} }

func warning(check, says, do string) diagnosis {
	return diagnosis{Check: check, Verdict: "warning", Says: says, Do: do}
}

func fault(check, says, do string) diagnosis {
	return diagnosis{Check: check, Verdict: "fault", Says: says, Do: do, code: exitRefused}
}

// Run implements the command. The exit code is that of the worst finding.
func (c *doctorCmd) Run(e *env) error {
	worst := exitDone
	found := newPage(e.out)
	for _, d := range c.examine(e) {
		worst = max(worst, d.code)
		if e.json {
			e.object(d)
			continue
		}
		found.row(d.Verdict, d.Check, d.Says)
		if d.Do != "" {
			found.row("", "", "→ "+d.Do)
		}
	}
	found.flush()
	if worst != exitDone {
		return worst
	}
	return nil
}

// examine runs every check that makes sense, in order.
func (c *doctorCmd) examine(e *env) []diagnosis {
	h, d := c.directory()
	if h == nil {
		return []diagnosis{d}
	}
	all := []diagnosis{d}
	cfg, d := configuration(h)
	all = append(all, d, keys(h), users(h), c.store(h), disk(h, cfg))
	all = append(all, encryption(h, cfg.TLS, e.now())...)
	contracts, found := operations(h)
	all = append(append(all, found...), owner(h))
	all = append(all, secretsOf(h, contracts)...)
	return append(all, c.node(e, h, contracts)...)
}

// trust judges what a running node says of itself.
func trust(s *wire.Status) diagnosis {
	switch {
	case !s.Trusted:
		d := fault("ledger", "NOT TRUSTED: "+s.Reason, "nothing is written or sent: effectd verify says where; repair the store from a replica, backup or export")
		d.code = exitUnreachable
		return d
	case !s.ClockTrusted:
		d := fault("ledger", "the clock stepped: nothing is written", "check the machine's clock, then: effectd ledger confirm-clock")
		d.code = exitUnreachable
		return d
	case !s.Dispatching:
		return warning("ledger", "trusted, but it dispatches nothing", "see the node's log")
	}
	return fine("ledger", "trusted, dispatching, at position "+s.Position.String())
}

// queued judges the queue of requests of a running node.
func queued(i *wire.Intake, trusted bool) diagnosis {
	switch {
	case i.Serving:
		return fine("intake", intakeWords(i))
	case !trusted:
		return warning("intake", intakeWords(i), "what waits there waits until the ledger is trusted again")
	}
	return warning("intake", intakeWords(i), "effects can be asked for by request and reply; a queue needs a ledger made by this program's init")
}
