package projector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/oklog/ulid/v2"
)

const contractText = `
name: %s
version: 1
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer, minimum: 1}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
expires: 10m
timeout: 2s
adapter: {kind: http, method: POST, url: "http://127.0.0.1:1/charges"}
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: response.status == 200, outcome: succeeded, means: completed}
reconcile:
  query: {method: GET, url: "http://127.0.0.1:1/charges?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200, outcome: succeeded}
`

// Operation charge is committed by policy, pay waits for an approval; auditors
// may not observe pay.
const policyText = `
permit (principal in Role::"producer", action == Action::"commit", resource == Operation::"charge");
permit (principal in Role::"producer", action == Action::"request_approval", resource == Operation::"pay");
permit (principal in Role::"operator", action, resource);
permit (principal in Role::"auditor", action == Action::"observe", resource == Operation::"charge");
`

var (
	producer = aggregate.Caller{Tenant: "main", Principal: "producer"}
	rival    = aggregate.Caller{Tenant: "main", Principal: "rival"}
	operator = aggregate.Caller{Tenant: "main", Principal: "operator"}
	auditor  = aggregate.Caller{Tenant: "main", Principal: "auditor"}
	approver = aggregate.Caller{Tenant: "main", Principal: "approver"}
	second   = aggregate.Caller{Tenant: "main", Principal: "second"} // another approver
	executor = aggregate.Caller{Tenant: "main", Principal: "executor"}
	stranger = aggregate.Caller{Tenant: "main", Principal: "stranger"} // in no table
	foreign  = aggregate.Caller{Tenant: "other", Principal: "producer"}
	overseer = aggregate.Caller{Tenant: "other", Principal: "operator"}
	judge    = aggregate.Caller{Tenant: "other", Principal: "approver"}
)

var dispatcher = events.Dispatcher{Node: "n1", Incarnation: "01WRITER"}

// world is a ledger without a clock: it decides, and keeps the log.
type world struct {
	tb      testing.TB
	state   *aggregate.State
	log     *eventlog.Memory
	entries []events.Stored
	at      events.Instant
	ids     uint64
}

// newWorld opens a ledger with its law and one task of each tenant.
func newWorld(tb testing.TB) *world {
	w := &world{tb: tb, state: aggregate.New(), log: eventlog.NewMemory("01LEDGER", time.Unix(1, 0)),
		at: events.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	users := []events.User{}
	for _, u := range []struct {
		c aggregate.Caller
		r events.Role
	}{{producer, events.RoleProducer}, {rival, events.RoleProducer}, {operator, events.RoleOperator}, {auditor, events.RoleAuditor},
		{executor, events.RoleExecutor}, {approver, events.RoleApprover}, {second, events.RoleApprover}, {judge, events.RoleApprover}, {foreign, events.RoleProducer}, {overseer, events.RoleOperator}} {
		users = append(users, events.User{Tenant: u.c.Tenant, Principal: u.c.Principal, PublicKey: "U" + string(u.c.Actor()), Role: u.r})
	}
	w.must(aggregate.OpenLedger{LedgerID: "01LEDGER", Writer: "01WRITER", Node: "n1", Program: "test", Fingerprint: events.ZeroDigest,
		Limits: events.Limits{EffectRecords: 100_000, LiveBytes: 1 << 30, RecordBytes: 64 << 10, PermitTTLMS: 300_000, PreparedPerPrincipal: 100_000}})
	w.must(aggregate.ChangeAccess{Users: users}, aggregate.ChangePolicy{Text: policyText}, w.register("charge"), w.register("pay"))
	w.must(w.openTask("root", 100*time.Hour), aggregate.OpenTask{Caller: overseer, ExpiresAt: w.at.Add(time.Hour),
		Request: wire.TaskOpenRequest{TaskID: "root", Budgets: events.Amounts{"usd_cents": 1000}, Holders: []events.Actor{foreign.Actor()}}})
	return w
}

func (w *world) register(name string) aggregate.Command {
	c, err := operation.Compile(name, fmt.Appendf(nil, contractText, name))
	if err != nil {
		w.tb.Fatal(err)
	}
	return aggregate.RegisterOperation{Contract: c}
}

func (w *world) openTask(id events.TaskID, life time.Duration) aggregate.Command {
	return aggregate.OpenTask{Caller: operator, ExpiresAt: w.at.Add(life), Request: wire.TaskOpenRequest{TaskID: id,
		Budgets: events.Amounts{"usd_cents": 100_000, "effects": 100_000}, Holders: []events.Actor{producer.Actor(), rival.Actor()}}}
}

// prepare asks for a fresh effect.
func (w *world) prepare(c aggregate.Caller, op events.OperationName, task events.TaskID, run events.RunID, admit bool) aggregate.Command {
	w.ids++
	causal := events.CausalID(fmt.Sprintf("c%d", w.ids))
	raw := events.Raw(`{"account":"a1","amount":5}`)
	payload, err := operation.ParsePayload(raw)
	if err != nil {
		w.tb.Fatal(err)
	}
	r := wire.PrepareRequest{TaskID: task, Operation: op, Payload: raw, SealedContext: wire.SealedContext{RunID: &run, CausalID: &causal}}
	return aggregate.Prepare{Caller: c, Request: r, RequestSHA256: r.Digest(), Payload: payload, Admit: admit}
}

func (w *world) claim(id events.EffectID) aggregate.Command {
	return aggregate.ClaimEffect{EffectID: id, IntentSHA256: w.state.Effect(id).IntentSHA256(), Dispatcher: dispatcher,
		NonceSHA256: aggregate.DigestNonce("nonce"), DeadlineMS: 2000}
}

func (w *world) report(id events.EffectID, o events.Outcome) aggregate.Command {
	return aggregate.Report{EffectID: id, IntentSHA256: w.state.Effect(id).IntentSHA256(), Nonce: "nonce",
		Result: aggregate.Result{Outcome: o, Reason: events.ReasonClassified, Evidence: events.Evidence{Source: "adapter", Detail: string(o), At: w.at}}}
}

// do decides commands and appends what they lead to as one entry.
func (w *world) do(commands ...aggregate.Command) []aggregate.Decision {
	w.tb.Helper()
	branch := w.state.Branch()
	head := branch.Head()
	entry := events.Entry{V: events.Format, LedgerID: "01LEDGER", Seq: head.Seq + 1, Prev: head.SHA256, Time: w.at, Writer: "01WRITER"}
	var encoded [][]byte
	var out []aggregate.Decision
	for _, c := range commands {
		d := branch.Decide(c, aggregate.Input{At: w.at, ID: w.id(), Seq: entry.Seq, Index: len(entry.Events)})
		entry.Events, encoded = append(entry.Events, d.Events...), append(encoded, d.Encoded...)
		out = append(out, d)
	}
	if len(encoded) == 0 {
		return out
	}
	stored := events.SealEncoded(entry, encoded)
	if err := w.log.Append(context.Background(), stored); err != nil {
		w.tb.Fatal(err)
	}
	branch.Seal(stored.Seq, stored.SHA256, w.at)
	branch.ClearTouched()
	w.state = branch
	w.entries = append(w.entries, stored)
	w.at = w.at.Add(time.Millisecond)
	return out
}

// id is where the ids of one decision start: in order, and the same every time.
func (w *world) id() ulid.ULID {
	w.ids++
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(w.at.Time()))
	for i := range 8 {
		id[6+i] = byte(w.ids >> (8 * (7 - i)))
	}
	return id
}

// must is [world.do] for commands that are not refused.
func (w *world) must(commands ...aggregate.Command) []aggregate.Decision {
	w.tb.Helper()
	out := w.do(commands...)
	for i, d := range out {
		if d.Refusal != nil {
			w.tb.Fatalf("%T: %v", commands[i], d.Refusal)
		}
	}
	return out
}

// admitted makes an effect that is admitted.
func (w *world) admitted() events.EffectID {
	w.tb.Helper()
	return w.must(w.prepare(producer, "charge", "root", "r1", true))[0].EffectID
}

// settled makes an effect that has succeeded.
func (w *world) settled() events.EffectID {
	w.tb.Helper()
	id := w.admitted()
	w.must(w.claim(id))
	w.must(w.report(id, events.OutcomeSucceeded))
	return id
}

// fold is the state after the first n entries, from nothing.
func (w *world) fold(n uint64) *aggregate.State {
	s := aggregate.New()
	for i := range w.entries[:n] {
		s.Apply(&w.entries[i])
	}
	return s
}
