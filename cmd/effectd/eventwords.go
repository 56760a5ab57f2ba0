package main

import (
	"strconv"
	"strings"

	"github.com/effectd/effectd/events"
)

// eventWords says in a few words what an event adds to its type.
func eventWords(ev *events.Event) string {
	switch d := ev.Data.(type) {
	case events.Prepared:
		return string(ev.Operation) + " → " + d.Binding.Resource + bound(d.Binding.MaxCost)
	case events.Permitted:
		return permittedWords(d.Permit.Authorization)
	case events.Refused:
		return joined(string(d.Reason), d.Detail)
	case events.Admitted:
		return "holds " + amountsText(ownLines(ev.TaskID, d.Reservation))
	case events.Dispatched:
		return "claimed by " + d.Dispatcher.Node + ", to be sent once"
	case events.Settled:
		return joined(string(d.Outcome)+cost(d.Cost), string(d.Reason), statusWords(d.Evidence.Status)) + documentWords(&d.Evidence)
	case events.Unknown:
		return string(d.Reason)
	case events.ReconcileStarted:
		return string(d.Method) + " by " + string(d.AuthorizedBy)
	case events.ReconcileEnded:
		return string(d.Result)
	case events.Acknowledged:
		return joined("by "+string(d.By), d.Reason)
	case events.Contradicted:
		return string(d.Outcome)
	default:
		return lawWords(ev)
	}
}

// lawWords is eventWords of what concerns no single effect.
func lawWords(ev *events.Event) string {
	switch d := ev.Data.(type) {
	case events.LedgerOpened:
		return "by " + joined(d.Node, d.Program)
	case events.LedgerRecovered:
		return "from " + d.From + ", last good " + d.LastGood.String()
	case events.OperationRegistered:
		return string(ev.Operation) + " v" + number(d.Version)
	case events.OperationRetired:
		return string(ev.Operation) + " v" + number(d.Version)
	case events.PolicyChanged:
		return "revision " + number(d.Revision)
	case events.AccessChanged:
		return joined("revision "+number(d.Revision), count(len(d.Users), "principal", "principals"))
	case events.TaskOpened:
		return amountsText(d.Budgets)
	case events.TaskClosed:
		return d.Reason
	case events.RunFinished:
		return string(d.Outcome)
	case events.RunCancelled:
		return d.Reason
	case events.Collected:
		return count(len(d.Effects), "effect", "effects")
	default:
		return ""
	}
}

func permittedWords(a events.Authorization) string {
	if a.Kind == events.AuthorizationPolicy {
		return "by policy revision " + number(a.PolicyRevision)
	}
	return "by " + string(a.Approver)
}

func ownLines(task events.TaskID, lines []events.ReservationLine) events.Amounts {
	out := events.Amounts{}
	for _, l := range lines {
		if l.TaskID == task {
			out[l.Unit] = l.Amount
		}
	}
	return out
}

func bound(a events.Amounts) string {
	if len(a) == 0 {
		return ""
	}
	return ", at most " + amountsText(a)
}

func cost(a events.Amounts) string {
	if len(a) == 0 {
		return ""
	}
	return ", cost " + amountsText(a)
}

func statusWords(status int64) string {
	if status == 0 {
		return ""
	}
	return "status " + strconv.FormatInt(status, 10)
}

// joined puts commas between what is not empty.
func joined(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}
