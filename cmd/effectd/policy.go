package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// policyCmd are the commands about the owner's policy.
type policyCmd struct {
	Show  policyShowCmd  `cmd:"" help:"The policy that decides: the text in the log."`
	Check policyCheckCmd `cmd:"" help:"Check a policy file against the operations, without a node."`
	Test  policyTestCmd  `cmd:"" help:"Ask a policy example questions, and compare the answers."`
	Apply policyApplyCmd `cmd:"" help:"Have the running node load policy.cedar, with operations and users."`
}

// policyShowCmd shows the policy in the log.
type policyShowCmd struct{ target }

// loggedPolicy is a policy-changed event of the log.
type loggedPolicy struct {
	events.PolicyChanged
	Position events.Position `json:"position"`
	Time     events.Instant  `json:"time"`
}

// Run implements the command.
func (c *policyShowCmd) Run(e *env) error {
	log, closeLog, err := c.openLog(e)
	if err != nil {
		return err
	}
	defer closeLog()
	found, err := policyIn(e.ctx, log)
	if err != nil {
		return err
	}
	e.show(found, func(p *page) {
		p.field("revision", number(found.Revision))
		p.field("sha256", string(found.PolicySHA256))
		p.field("position", found.Position.String())
		p.field("since", clockTime(found.Time))
		p.line("")
		for line := range strings.Lines(found.Policy) {
			p.line(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
		}
	})
	return nil
}

// backwards is how many entries are read at once when the newest are wanted.
const backwards = 256

// policyIn finds the newest policy, from the end of the log.
func policyIn(ctx context.Context, log eventlog.Log) (*loggedPolicy, error) {
	last, err := log.Last(ctx)
	if err != nil {
		return nil, err
	}
	for last > 0 {
		first := max(last, backwards) - backwards + 1
		var found *loggedPolicy
		for next := first; next <= last; {
			entries, err := log.Read(ctx, next, int(last-next)+1)
			if err != nil {
				return nil, err
			}
			if len(entries) == 0 {
				return nil, fmt.Errorf("the log ends before entry %d", next)
			}
			for i := range entries {
				if p := policyOf(&entries[i]); p != nil {
					found = p
				}
			}
			next += uint64(len(entries))
		}
		if found != nil {
			return found, nil
		}
		last = first - 1
	}
	return nil, errors.New("the log has no policy")
}

func policyOf(s *events.Stored) (found *loggedPolicy) {
	for i := range s.Events {
		if d, ok := s.Events[i].Data.(events.PolicyChanged); ok {
			found = &loggedPolicy{d, events.Position{Seq: s.Seq, Index: i}, s.Events[i].Time}
		}
	}
	return found
}

// policyFile names a policy of a configuration directory.
type policyFile struct {
	data
	Config string `placeholder:"DIR" type:"path" help:"Directory of operations and policy (default: that of the running node, or the data directory)."`
}

// home finds the directories.
func (c *policyFile) home() (*home.Home, error) {
	h, err := home.Open(c.Data, c.Config)
	if err != nil || c.Config != "" {
		return h, err
	}
	if node, err := runningOn(h); err == nil {
		return home.Open(c.Data, node.Config)
	}
	return h, nil
}

// policyCheckCmd checks a policy as a node would.
type policyCheckCmd struct {
	policyFile
	File string `arg:"" optional:"" type:"existingfile" help:"The policy (default: policy.cedar of the directory)."`
}

// Run implements the command.
func (c *policyCheckCmd) Run(e *env) error {
	h, err := c.home()
	if err != nil {
		return err
	}
	file := or(c.File, h.PolicyFile())
	p, contracts, err := embedded.ReadPolicy(h, file)
	if err != nil {
		return err
	}
	e.show(struct {
		File       string `json:"file"`
		Policies   int    `json:"policies"`
		Operations int    `json:"operations"`
	}{file, p.Len(), len(contracts)}, func(out *page) {
		out.line(file + ": " + count(p.Len(), "policy", "policies") + ", good for " + count(len(contracts), "contract", "contracts"))
	})
	return nil
}

// policyApplyCmd has the running node load the owner's files.
type policyApplyCmd struct{ policyFile }

// Run implements the command.
func (c *policyApplyCmd) Run(e *env) error {
	h, err := c.home()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(h.PolicyFile())
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	digest := events.DigestBytes(text)
	before, _ := runningOn(h)
	node, err := reloaded(e.ctx, h, func(r running) bool { return r.PolicySHA256 == digest })
	known := err == nil
	if errors.Is(err, errNotRunning) {
		_, _, err = embedded.ReadPolicy(h, h.PolicyFile())
	}
	if err != nil {
		return err
	}
	e.show(struct {
		PolicySHA256 events.Digest `json:"policy_sha256"`
		Revision     int64         `json:"revision,omitzero"`
		Changed      bool          `json:"changed"`
		Known        bool          `json:"known"`
	}{digest, node.PolicyRevision, known && node.PolicyRevision != before.PolicyRevision, known}, func(p *page) {
		p.field("policy", h.PolicyFile())
		p.field("sha256", string(digest))
		switch {
		case !known:
			p.field("known", "it is good; from the next effectd serve on")
		case node.PolicyRevision == before.PolicyRevision:
			p.field("revision", number(node.PolicyRevision)+", as before: the text is the same")
		default:
			p.field("revision", number(node.PolicyRevision)+", from now on, for whatever is not sent yet")
		}
	})
	return nil
}
