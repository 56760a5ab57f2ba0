package audit

import (
	"strings"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// Audit reads one log, in order. It is not safe for concurrent use.
type Audit struct {
	report Report
	state  *aggregate.State // before the event that is being checked
	head   head
	law    law
	books  books
	runs   map[runKey]*run
	lives  map[events.EffectID]*life

	at  events.Position // of the event that is being checked
	now events.Instant  // its entry's time
}

// New returns an audit that expects entry 1.
func New() *Audit {
	a := &Audit{state: aggregate.New(), head: newHead(), law: newLaw(), books: books{},
		runs: map[runKey]*run{}, lives: map[events.EffectID]*life{}}
	a.report.Rules = make([]Rule, ruleCount)
	for i := range a.report.Rules {
		a.report.Rules[i].Name = ruleNames[i]
	}
	return a
}

// Report says what was found so far. State is the fold of all entries; it
// changes with the next one.
func (a *Audit) Report() Report {
	r := a.report
	r.Rules = append([]Rule(nil), a.report.Rules...)
	r.State, r.Digest = a.state, a.state.Digest()
	for _, l := range a.lives {
		if l.admitted && l.stage != settled {
			r.Open++
		}
	}
	return r
}

// Body checks the stored bytes of the next entry. Bytes that no writer writes
// are a finding, and the audit goes on behind them.
func (a *Audit) Body(body []byte) {
	e, err := events.Open(body)
	if err == nil {
		a.Entry(e)
		return
	}
	a.at = events.Position{Seq: a.head.seq + 1}
	a.report.Entries++
	code := CorruptEntry
	if strings.Contains(err.Error(), "version") {
		code = UnknownVersion
	}
	a.check(ruleLedger, false, code, err.Error())
	a.head.seq, a.head.sha256 = a.head.seq+1, events.DigestBytes(body)
}

// Entry checks the next entry.
func (a *Audit) Entry(stored events.Stored) {
	e := &stored
	a.report.Entries++
	a.now = e.Time
	a.at = events.Position{Seq: e.Seq}
	a.chain(e)
	for i := range e.Events {
		ev := &e.Events[i]
		a.report.Events++
		a.at = events.Position{Seq: e.Seq, Index: i}
		a.envelope(e, ev)
		a.event(ev)
		a.state.ApplyEvent(e, i)
	}
	a.state.Seal(e.Seq, e.SHA256, e.Time)
	a.state.ClearTouched()
	a.compare(e)
}

// event checks one event and keeps what later ones build on.
func (a *Audit) event(ev *events.Event) {
	switch d := ev.Data.(type) {
	case events.LedgerOpened, events.LedgerRecovered, events.OperationRegistered, events.OperationRetired, events.PolicyChanged, events.AccessChanged:
		a.lawful(ev)
	case events.TaskOpened:
		a.taskOpened(ev, d)
	case events.TaskClosed:
		a.taskClosed(ev)
	case events.RunCancelled:
		a.runCancelled(ev, d)
	case events.RunFinished:
		a.runFinished(ev, d)
	case events.Collected:
		a.collected(d)
	case events.Prepared:
		a.prepared(ev, d)
	default:
		a.effect(ev)
	}
}

// check counts one check of a rule, and keeps what it finds. It reports whether
// all is well.
func (a *Audit) check(r ruleID, ok bool, code Code, message string) bool {
	rule := &a.report.Rules[r]
	rule.Checked++
	if ok {
		return true
	}
	rule.Violations++
	f := &Finding{Code: code, Position: a.at, Message: message}
	if rule.First == nil {
		rule.First = f
	}
	if a.report.First == nil {
		a.report.First = f
	}
	return false
}
