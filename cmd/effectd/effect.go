package main

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// effectPage shows one effect: what was asked, where it stands, what is proven.
func effectPage(p *page, x *wire.Effect, now time.Time) {
	p.field("effect", string(x.EffectID))
	p.field("state", stateWords(x))
	if x.Operation != "" {
		p.field("operation", string(x.Operation)+" v"+strconv.FormatInt(x.Version, 10))
	}
	p.field("resource", x.Resource)
	p.field("task", string(x.TaskID))
	p.field("run", string(x.RunID))
	p.field("causal id", string(x.CausalID))
	if x.Principal != "" {
		p.field("asked by", string(events.ActorOf(x.Tenant, x.Principal)))
	}
	p.field("permit", permitWords(x.Permit))
	costFields(p, x)
	proofFields(p, x, now)
	troubleFields(p, x, now)
	p.field("created", when(x.CreatedAt, now))
	p.field("updated", when(x.UpdatedAt, now))
	if x.Receipt == nil && !x.State.Terminal() {
		p.field("expires", when(x.ExpiresAt, now))
	}
	if !x.Position.IsZero() {
		p.field("as of", "position "+x.Position.String())
	}
	if x.Repeat {
		p.field("repeat", "yes: this request created nothing new")
	}
}

func permitWords(permit *wire.Permit) string {
	if permit == nil {
		return ""
	}
	text := string(permit.State)
	switch {
	case permit.Kind == events.AuthorizationPolicy:
		text += ", by policy"
	case permit.Approver != "":
		text += ", by " + string(permit.Approver)
	}
	return text
}

// costFields shows what is charged or, until that is known, what is held.
func costFields(p *page, x *wire.Effect) {
	switch {
	case x.State == wire.StateSettled && x.CostInvalid:
		p.field("cost", amountsText(x.Cost)+" (the maximum: the service named no valid cost)")
	case x.State == wire.StateSettled:
		p.field("cost", amountsText(x.Cost))
	case len(x.Reservation) > 0:
		p.field("holds", amountsText(ownLines(x.TaskID, x.Reservation)))
	default:
		p.field("bound", amountsText(x.MaxCost))
	}
	if len(x.Overrun) > 0 {
		p.field("overrun", amountsText(x.Overrun))
	}
}

func proofFields(p *page, x *wire.Effect, now time.Time) {
	if r := x.Receipt; r != nil {
		p.field("receipt", string(r.ReceiptID)+" at "+r.DurablePosition.String())
	}
	p.field("reference", x.ProviderRef)
	if x.Evidence != nil && x.State != wire.StateUnknown {
		p.field("evidence", evidenceWords(x.Evidence))
	}
	if !x.IdempotencyUntil.IsZero() && x.State == wire.StateUnknown {
		p.field("key valid", when(x.IdempotencyUntil, now))
	}
}

func evidenceWords(e *events.Evidence) string {
	text := e.Source
	if e.Status != 0 {
		text += ", status " + strconv.FormatInt(e.Status, 10)
	}
	if e.Rule != "" {
		text += ", rule " + e.Rule
	}
	if e.Who != "" {
		text += ", by " + string(e.Who)
	}
	text += documentWords(e)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// documentWords is the document that an operator gave as evidence: what it is from,
// who looked, and what to look up there.
func documentWords(e *events.Evidence) string {
	if e.Reference == "" {
		return ""
	}
	var stated struct {
		Source string `json:"source"`
		Who    string `json:"who"`
	}
	_ = json.Unmarshal(e.Named, &stated) // what is no document has neither
	text := ", "
	if stated.Source != "" {
		text += "from " + stated.Source + ": "
	}
	text += e.Reference
	if stated.Who != "" && stated.Who != string(e.Who) {
		text += ", seen by " + stated.Who
	}
	return text
}

// troubleFields shows what a person should look at.
func troubleFields(p *page, x *wire.Effect, now time.Time) {
	if x.Unknown != nil {
		p.field("unknown since", when(x.Unknown.Since, now))
		if x.Unknown.Evidence != nil {
			p.field("seen so far", evidenceWords(x.Unknown.Evidence))
		}
	}
	for _, a := range x.Attempts {
		result := string(a.Result)
		if result == "" {
			result = "running, until " + when(a.Deadline, now)
		}
		p.field("attempt", string(a.Method)+": "+result)
	}
	if a := x.Acknowledged; a != nil {
		p.field("acknowledged", "by "+string(a.By)+": "+a.Reason)
	}
	for _, c := range x.Contradicted {
		p.field("contradicted", string(c.Outcome)+", "+evidenceWords(&c.Evidence))
	}
	if x.AdmitError != nil {
		p.field("not admitted", string(x.AdmitError.Code)+": "+x.AdmitError.Message)
	}
	if x.Late {
		p.field("late", "the result came after the effect was called unknown")
	}
	if x.AuditIncomplete {
		p.field("audit", "incomplete: the result waited while the ledger was away")
	}
}

// effectRows is the table of a page of effects.
func effectRows(p *page, items []wire.Effect, now time.Time) {
	p.row("EFFECT", "STATE", "OPERATION", "RESOURCE", "TASK", "COST", "AGE")
	for i := range items {
		x := &items[i]
		cost := x.Cost
		if x.State != wire.StateSettled {
			cost = x.MaxCost
		}
		operation := ""
		if x.Operation != "" {
			operation = string(x.Operation) + " v" + strconv.FormatInt(x.Version, 10)
		}
		p.row(string(x.EffectID), stateWords(x), operation, x.Resource, string(x.TaskID), amountsText(cost), age(x.CreatedAt, now))
	}
}

// proven is the exit code that an effect stands for, once its end was awaited (M1).
func proven(x *wire.Effect) error {
	switch {
	case x.State == wire.StateUnknown:
		return exitUnknown
	case x.State == wire.StateRefused, x.State == wire.StateSettled && x.Outcome != events.OutcomeSucceeded:
		return exitRefused
	}
	return nil
}
