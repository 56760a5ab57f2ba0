package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// unreadable is the finding about an entry that the log itself cannot vouch for.
const unreadable audit.Code = "ledger_untrusted"

// verifyCmd recomputes the whole log: of a running node or a server, or of a data
// directory that nobody holds, its last node killed or not.
type verifyCmd struct {
	target
	Anchor string `placeholder:"DIR" type:"path" help:"Directory of the anchor (default: in the data directory)."`
}

// Run implements the command.
func (c *verifyCmd) Run(e *env) error {
	log, closeLog, err := c.openLog(e)
	if err != nil {
		return err
	}
	defer closeLog()
	bars := newProgress(e.err)
	defer bars.end()
	report, err := auditLog(e.ctx, log, func(done, total uint64) { bars.step("verify", done, total) })
	bars.end()
	if err == nil && c.NATS == "" {
		err = embedded.CheckAnchor(e.ctx, embedded.Options{Data: c.Data, Anchor: c.Anchor}, log)
	}
	var distrust *eventlog.Distrust
	if err != nil && !errors.As(err, &distrust) {
		return err
	}
	if distrust != nil && report.First == nil {
		report.First = &audit.Finding{Code: unreadable, Position: events.Position{Seq: distrust.Seq}, Message: distrust.Reason}
	}
	e.show(report, func(p *page) { reportPage(p, &report) })
	switch {
	case distrust != nil:
		return exitUnreachable
	case report.First != nil:
		return exitRefused
	}
	return nil
}

// auditLog checks every entry. What the log itself cannot vouch for is a
// *eventlog.Distrust, with the report of what is before it.
func auditLog(ctx context.Context, log eventlog.Log, step func(done, total uint64)) (audit.Report, error) {
	a := audit.New()
	err := readAll(ctx, log, step, a.Entry)
	return a.Report(), err
}

// violations counts what every rule found.
func violations(r audit.Report) (n int64) {
	for _, rule := range r.Rules {
		n += rule.Violations
	}
	return n
}

// applied counts the rules that had something to check.
func applied(r audit.Report) (n int) {
	for _, rule := range r.Rules {
		if rule.Checked > 0 {
			n++
		}
	}
	return n
}

// reportPage shows what was checked, and the first thing that is wrong.
func reportPage(p *page, r *audit.Report) {
	p.row("RULE", "CHECKED", "RESULT")
	for _, rule := range r.Rules {
		p.row(rule.Name, number(rule.Checked), ruleWords(rule))
	}
	p.line("")
	p.line(count(r.Entries, "entry", "entries") + ", " + count(r.Events, "event", "events") + ", digest of the state " + string(r.Digest))
	if r.Open > 0 {
		p.line(count(r.Open, "intent has", "intents have") + " no result yet")
	}
	if r.First != nil {
		p.line("First violation: " + findingWords(r.First))
		return
	}
	p.line("Every rule holds.")
}

func ruleWords(r audit.Rule) string {
	switch {
	case r.Violations > 0:
		text := count(r.Violations, "violation", "violations")
		if r.First != nil {
			text += ", first " + findingWords(r.First)
		}
		return text
	case r.Checked == 0:
		return "nothing to check"
	}
	return "holds"
}

func findingWords(f *audit.Finding) string {
	return fmt.Sprintf("%s at %s: %s", f.Code, f.Position, f.Message)
}
