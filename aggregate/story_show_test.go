package aggregate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// tell prints a decision: its events, one a line, then the answer.
func (s *story) tell(d aggregate.Decision) string {
	if name := s.first(); d.EffectID != "" && s.names[name] == "" {
		s.names[name] = d.EffectID
	}
	var b strings.Builder
	for i := range d.Events {
		fmt.Fprintf(&b, "%s\n", strings.TrimSpace(string(d.Events[i].Type)+" "+s.named(d.Events[i].EffectID)+describe(&d.Events[i])))
		if c, ok := d.Events[i].Data.(events.Collected); ok {
			for _, id := range c.Effects {
				fmt.Fprintf(&b, "  %s\n", s.named(id))
			}
		}
	}
	switch {
	case d.Refusal != nil && d.Refusal.Field != "":
		fmt.Fprintf(&b, "! %s (%s): %s\n", d.Refusal.Code, d.Refusal.Field, d.Refusal.Message)
	case d.Refusal != nil:
		fmt.Fprintf(&b, "! %s: %s\n", d.Refusal.Code, d.Refusal.Message)
	case d.Repeat:
		b.WriteString("= known\n")
	case len(d.Events) == 0:
		b.WriteString(". nothing\n")
	}
	return b.String()
}

// named is the story's name of an effect.
func (s *story) named(id events.EffectID) string {
	for name, known := range s.names {
		if known == id {
			return name
		}
	}
	return string(id)
}

func describe(ev *events.Event) string {
	switch d := ev.Data.(type) {
	case events.TaskOpened:
		return fmt.Sprintf("%s parent=%q %s exposure=%s holders=%v until=%s", ev.TaskID, d.Parent, amounts(d.Budgets), amounts(d.Exposure), d.Holders, since(d.ExpiresAt))
	case events.Prepared:
		return fmt.Sprintf(": %s/%d %s max=%s until=%s then=%s", d.Binding.Operation, d.Binding.OperationVersion, d.Binding.Resource, amounts(d.Binding.MaxCost), since(d.Binding.ExpiresAt), d.OnPermit)
	case events.Permitted:
		return fmt.Sprintf(": by %s %s until=%s", d.Permit.Authorization.Kind, d.Permit.Authorization.Approver, since(d.Permit.ExpiresAt))
	case events.Refused:
		return fmt.Sprintf(": %s %s", d.Reason, d.By)
	case events.Admitted:
		var lines []string
		for _, l := range d.Reservation {
			lines = append(lines, fmt.Sprintf("%s:%d %s", l.TaskID, l.Amount, l.Unit))
		}
		return ": " + strings.Join(lines, ", ")
	case events.Dispatched:
		if d.IdempotencyUntil == 0 {
			return fmt.Sprintf(": %dms", d.DeadlineMS)
		}
		return fmt.Sprintf(": %dms key until=%s", d.DeadlineMS, since(d.IdempotencyUntil))
	case events.Settled:
		return fmt.Sprintf(": %s (%s) cost=%s%s", d.Outcome, d.Reason, amounts(d.Cost), flags(d.Overrun, d.CostInvalid, d.Late, d.AuditIncomplete))
	case events.Unknown:
		return fmt.Sprintf(": %s send_ended=%v", d.Reason, d.SendEnded)
	case events.ReconcileStarted:
		return fmt.Sprintf(": %s until=%s", d.Method, since(d.Deadline))
	case events.ReconcileEnded:
		return fmt.Sprintf(": %s", d.Result)
	case events.Contradicted:
		return fmt.Sprintf(": %s extra=%s", d.Outcome, amounts(d.Cost))
	case events.RunFinished:
		return fmt.Sprintf("%s: %s", ev.RunID, d.Outcome)
	case events.PolicyChanged:
		return fmt.Sprintf("revision=%d", d.Revision)
	case events.AccessChanged:
		return fmt.Sprintf("revision=%d", d.Revision)
	case events.OperationRegistered:
		return fmt.Sprintf("%s/%d", ev.Operation, d.Version)
	case events.OperationRetired:
		return fmt.Sprintf("%s/%d", ev.Operation, d.Version)
	case events.TaskClosed:
		return string(ev.TaskID)
	case events.RunCancelled:
		return string(ev.RunID)
	}
	return ""
}

func flags(overrun events.Amounts, invalid, late, incomplete bool) string {
	out := ""
	if len(overrun) > 0 {
		out += " overrun=" + amounts(overrun)
	}
	if invalid {
		out += " cost_invalid"
	}
	if late {
		out += " late"
	}
	if incomplete {
		out += " audit_incomplete"
	}
	return out
}

func amounts(a events.Amounts) string {
	var parts []string
	for _, u := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, fmt.Sprintf("%d %s", a[u], u))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// showEffect prints what a reader is shown of an effect.
func (s *story) showEffect() string {
	e := s.State.Effect(s.id())
	if e == nil {
		c := s.State.CausalOf(s.id())
		if c == nil {
			return "no effect"
		}
		v := s.State.CollectedView(c)
		return fmt.Sprintf("collected: state=%s outcome=%s", v.State, v.Outcome)
	}
	v := s.State.View(e, s.At)
	out := fmt.Sprintf("state=%s permit=%s", v.State, v.Permit.State)
	for _, p := range [][2]string{{"outcome", string(v.Outcome)}, {"reason", string(v.Reason)}} {
		if p[1] != "" {
			out += " " + p[0] + "=" + p[1]
		}
	}
	if v.AdmitError != nil {
		out += " admit_error=" + string(v.AdmitError.Code)
	}
	if v.Cost != nil {
		out += " cost=" + amounts(v.Cost)
	}
	out += flags(v.Overrun, v.CostInvalid, v.Late, v.AuditIncomplete)
	if v.Unknown != nil {
		out += fmt.Sprintf(" unknown=%s since=%s", v.Unknown.Reason, since(v.Unknown.Since))
	}
	for _, a := range v.Attempts {
		out += fmt.Sprintf(" attempt=%s:%s", a.Method, a.Result)
	}
	if v.Acknowledged != nil {
		out += " acknowledged"
	}
	for _, c := range v.Contradicted {
		out += fmt.Sprintf(" contradicted=%s", c.Outcome)
	}
	return out
}

// showTask prints the budgets of a task.
func (s *story) showTask() string {
	t := s.State.Task("main", events.TaskID(s.first()))
	if t == nil {
		return "no task"
	}
	v := s.State.TaskView(t)
	var b strings.Builder
	if v.Closed != nil {
		b.WriteString("closed\n")
	}
	for _, u := range slices.Sorted(maps.Keys(v.Budgets)) {
		a := v.Budgets[u]
		if a == (wire.Budget{Max: a.Max, Available: a.Max}) && s.first() == "t" {
			continue // untouched
		}
		fmt.Fprintf(&b, "%s: max=%d reserved=%d (unknown %d) spent=%d available=%d\n", u, a.Max, a.Reserved, a.Unknown, a.Spent, a.Available)
	}
	return b.String()
}

func (s *story) showRun() string {
	r := s.State.Run("main", events.RunID(s.first()))
	if r == nil {
		return "no run"
	}
	v := s.State.RunView(r, s.At)
	out := fmt.Sprintf("of %s outcome=%q cancelled=%v", v.Principal, v.Outcome, v.Cancelled)
	for _, state := range wire.States() {
		if n := v.Effects[state]; n > 0 {
			out += fmt.Sprintf(" %s=%d", state, n)
		}
	}
	return out
}
