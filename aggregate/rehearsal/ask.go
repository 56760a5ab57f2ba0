package rehearsal

import (
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// OpenTask opens a task that lives a day.
func (w *World) OpenTask(c aggregate.Caller, id, parent events.TaskID, budgets events.Amounts, holders ...aggregate.Caller) aggregate.OpenTask {
	cmd := aggregate.OpenTask{Caller: c, ExpiresAt: Start.Add(24 * time.Hour),
		Request: wire.TaskOpenRequest{TaskID: id, Parent: parent, Budgets: budgets}}
	for _, h := range holders {
		cmd.Request.Holders = append(cmd.Request.Holders, h.Actor())
	}
	return cmd
}

// Sealed is a context with a run and a causal id only.
func Sealed(run events.RunID, causal events.CausalID) wire.SealedContext {
	return wire.SealedContext{RunID: &run, CausalID: &causal}
}

// Prepare asks for an effect on the task "t".
func Prepare(c aggregate.Caller, o events.OperationName, payload string, run events.RunID, causal events.CausalID) aggregate.Prepare {
	return PrepareAs(c, wire.PrepareRequest{TaskID: "t", Operation: o, Payload: events.Raw(payload), SealedContext: Sealed(run, causal)})
}

// Submit is [Prepare] that admits.
func Submit(c aggregate.Caller, o events.OperationName, payload string, run events.RunID, causal events.CausalID) aggregate.Prepare {
	cmd := Prepare(c, o, payload, run, causal)
	cmd.Admit = true
	return cmd
}

// PrepareAs makes the command of a request as an endpoint does.
func PrepareAs(c aggregate.Caller, r wire.PrepareRequest) aggregate.Prepare {
	raw, err := events.Canonicalize(r.Payload)
	if err != nil {
		panic(err)
	}
	r.Payload = raw
	if r.Precondition != nil {
		if r.Precondition, err = events.Canonicalize(r.Precondition); err != nil {
			panic(err)
		}
	}
	parsed, err := operation.ParsePayload(raw)
	if err != nil {
		panic(err)
	}
	cmd := aggregate.Prepare{Caller: c, Request: r, RequestSHA256: r.Digest(), Payload: parsed}
	if r.ExpiresAt != "" {
		if cmd.ExpiresAt, err = events.ParseInstant(r.ExpiresAt); err != nil {
			panic(err)
		}
	}
	return cmd
}

// Admit repeats the sealed context of an effect as its producer does.
func (w *World) Admit(c aggregate.Caller, id events.EffectID) aggregate.Admit {
	r := wire.AdmitRequest{EffectID: id}
	if e := w.State.Effect(id); e != nil {
		ctx := e.Prepared.Context
		r.BindingDigest, r.SealedContext = e.Prepared.BindingDigest, Sealed(ctx.RunID, ctx.CausalID)
		for _, f := range []struct {
			sealed string
			to     **string
		}{{ctx.Service, &r.Service}, {ctx.Session, &r.Session}, {ctx.Process, &r.Process}, {ctx.HostBinding, &r.HostBinding}} {
			if f.sealed != "" {
				*f.to = &f.sealed
			}
		}
	}
	return aggregate.Admit{Caller: c, Request: r}
}

// statement is the text of an approval statement, made from the contract of the
// ledger alone and not by the code that checks it.
func (w *World) statement(c aggregate.Caller, id events.EffectID, decision string) map[string]any {
	text := map[string]any{"v": 1, "ledger_id": LedgerID, "effect_id": id, "decision": decision, "approver": c.Actor(), "issued_at": w.At}
	if e := w.State.Effect(id); e != nil {
		b := e.Prepared.Binding
		text["binding_digest"], text["operation"], text["resource"] = e.Prepared.BindingDigest, b.Operation, b.Resource
		text["max_cost"], text["expires_at"] = b.MaxCost, b.ExpiresAt
	}
	return text
}

// Signed is a statement about an effect, signed. Changes are made to the
// statement before it is signed.
func (w *World) Signed(c aggregate.Caller, id events.EffectID, decision string, changes ...func(map[string]any)) policy.Signed {
	statement := w.statement(c, id, decision)
	for _, change := range changes {
		change(statement)
	}
	text := string(events.CanonicalOf(statement))
	signature, public := sign(c, text)
	return policy.Signed{Statement: text, Signature: signature, PublicKey: public}
}

// Approve signs that an effect may be admitted.
func (w *World) Approve(c aggregate.Caller, id events.EffectID) aggregate.Approve {
	return aggregate.Approve{Caller: c, EffectID: id, Signed: w.Signed(c, id, "approve")}
}

// Deny signs that it may not.
func (w *World) Deny(c aggregate.Caller, id events.EffectID) aggregate.Deny {
	return aggregate.Deny{Caller: c, EffectID: id, Signed: w.Signed(c, id, "deny")}
}

// Nonce is the secret of the claim on an effect.
func Nonce(id events.EffectID) string { return "nonce of " + string(id) }

// intent is the intent of an effect, or nothing.
func (w *World) intent(id events.EffectID) events.Digest {
	if e := w.State.Effect(id); e != nil {
		return e.IntentSHA256()
	}
	return ""
}

// Claim asks for the one right to send.
func (w *World) Claim(id events.EffectID) aggregate.ClaimEffect {
	return aggregate.ClaimEffect{EffectID: id, IntentSHA256: w.intent(id), NonceSHA256: aggregate.DigestNonce(Nonce(id)), DeadlineMS: 2000,
		Dispatcher: w.Dispatcher(), CredentialSHA256: events.DigestBytes([]byte("credential"))}
}

// Dispatcher is this life of the node.
func (w *World) Dispatcher() events.Dispatcher {
	return events.Dispatcher{Node: Node, Incarnation: w.Life}
}

// Abandon finds an effect unsendable.
func (w *World) Abandon(id events.EffectID) aggregate.Abandon {
	return aggregate.Abandon{EffectID: id, IntentSHA256: w.intent(id), Detail: "a secret is missing"}
}

// Report says what the claimed send proved; no outcome says that it timed out.
func (w *World) Report(id events.EffectID, o events.Outcome, cost events.Amounts) aggregate.Report {
	r := aggregate.Result{Outcome: o, Reason: events.ReasonClassified, Cost: cost, Evidence: events.Evidence{Source: "adapter", At: w.At, Status: 200}}
	if o == events.OutcomeUnknown {
		r.Reason = events.ReasonTimeout
	}
	return aggregate.Report{EffectID: id, IntentSHA256: w.intent(id), Nonce: Nonce(id), Result: r}
}

// Start authorizes an attempt on an unknown effect.
func (w *World) Start(c aggregate.Caller, id events.EffectID, m events.Method) aggregate.StartAttempt {
	return aggregate.StartAttempt{Caller: c, EffectID: id, Method: m, Dispatcher: w.Dispatcher(),
		CredentialSHA256: events.DigestBytes([]byte("credential"))}
}

// End says what the last attempt proved.
func (w *World) End(id events.EffectID, o events.Outcome, notFound bool) aggregate.EndAttempt {
	end := aggregate.EndAttempt{EffectID: id, NotFound: notFound, Result: aggregate.Result{Outcome: o, Reason: events.ReasonReconciled,
		Evidence: events.Evidence{Source: "query", At: w.At, Status: 200}}}
	if e := w.State.Effect(id); e != nil && len(e.Attempts) > 0 {
		end.AttemptID = e.Attempts[len(e.Attempts)-1].AttemptID
	}
	return end
}

// Settle states the outcome of an unknown effect, signed, with evidence.
func (w *World) Settle(c aggregate.Caller, id events.EffectID, o events.Outcome) aggregate.SettleByOperator {
	document := events.CanonicalOf(map[string]any{"who": c.Actor(), "source": "the service's books", "reference": "ticket 7"})
	cmd := aggregate.SettleByOperator{Caller: c, EffectID: id, Outcome: o, Evidence: events.Evidence{Named: document, Reference: "ticket 7"}}
	text := map[string]any{"v": 1, "ledger_id": LedgerID, "effect_id": id, "outcome": o,
		"evidence_sha256": events.DigestBytes(document), "operator": c.Actor(), "issued_at": w.At}
	if e := w.State.Effect(id); e != nil {
		text["binding_digest"] = e.Prepared.BindingDigest
	}
	statement := string(events.CanonicalOf(text))
	signature, public := sign(c, statement)
	cmd.Signed = &policy.Signed{Statement: statement, Signature: signature, PublicKey: public}
	return cmd
}
