package aggregate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// TestStories plays whole stories. Each command prints the events it leads to and
// its refusal; "effect", "task" and "run" print what a reader is shown.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{World: rehearsal.New(), names: map[string]events.EffectID{}, t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.d = d
			out := s.play()
			for _, fault := range s.State.Check() {
				t.Fatalf("%s: after %s: %v", d.Pos, d.Cmd, fault)
			}
			return out
		})
	})
}

// story is a world in which effects have names.
type story struct {
	*rehearsal.World
	names map[string]events.EffectID
	last  aggregate.Report
	d     *datadriven.TestData
	t     *testing.T
}

func (s *story) play() string {
	switch s.d.Cmd {
	case "tick":
		wait, err := time.ParseDuration(s.first())
		if err != nil {
			s.t.Fatal(err)
		}
		s.Tick(wait)
		return "now " + since(s.At)
	case "until": // so that the next command is decided exactly then
		s.At = s.effect().ExpiresAt() - events.Instant(time.Millisecond)
		return "now " + since(s.At)
	case "effect":
		return s.showEffect()
	case "task":
		return s.showTask()
	case "run":
		return s.showRun()
	}
	return s.tell(s.Do(s.command()))
}

// command reads the command of a line.
func (s *story) command() aggregate.Command {
	for _, read := range []func() aggregate.Command{s.producing, s.deciding, s.dispatching, s.overseeing, s.governing} {
		if c := read(); c != nil {
			return c
		}
	}
	s.t.Fatalf("%s: no command %q", s.d.Pos, s.d.Cmd)
	return nil
}

func (s *story) producing() aggregate.Command {
	switch s.d.Cmd {
	case "prepare", "submit":
		return s.request(s.d.Cmd == "submit")
	case "admit":
		cmd := s.Admit(s.by(rehearsal.Producer), s.id())
		s.text("service", &cmd.Request.Service)
		s.text("session", &cmd.Request.Session)
		if s.has("other-digest") {
			cmd.Request.BindingDigest = events.ZeroDigest
		}
		return cmd
	case "withdraw":
		return aggregate.Withdraw{Caller: s.by(rehearsal.Producer), EffectID: s.id()}
	case "cancel-run":
		return aggregate.CancelRun{Caller: s.by(rehearsal.Producer), RunID: events.RunID(s.first())}
	case "finish-run":
		return aggregate.FinishRun{Caller: s.by(rehearsal.Producer), RunID: events.RunID(s.first()), Outcome: events.RunOutcome(s.arg("outcome", ""))}
	}
	return nil
}

func (s *story) request(admit bool) aggregate.Command {
	account, amount := s.arg("account", "a"), s.arg("amount", "100")
	name := s.first()
	r := wire.PrepareRequest{TaskID: events.TaskID(s.arg("task", "t")), Operation: events.OperationName(s.arg("op", "charge")),
		Payload: events.Raw(fmt.Sprintf(`{"account":%q,"amount":%s}`, account, amount)), Version: s.number("version", 0),
		SealedContext: rehearsal.Sealed(events.RunID(s.arg("run", "run")), events.CausalID(s.arg("causal", name)))}
	if wait := s.arg("expires", ""); wait != "" {
		r.ExpiresAt = rehearsal.Start.Add(s.duration(wait)).String()
	}
	if s.has("max_cost") {
		r.MaxCost = events.Amounts{"usd_cents": s.number("max_cost", 0)}
	}
	s.text("service", &r.Service)
	cmd := rehearsal.PrepareAs(s.by(rehearsal.Producer), r)
	cmd.Admit = admit
	return cmd
}

func (s *story) deciding() aggregate.Command {
	tamper := func(statement map[string]any) {
		if field := s.arg("tamper", ""); field != "" {
			statement[field] = map[string]any{"max_cost": events.Amounts{"usd_cents": 1}, "v": 2, "expires_at": s.At, "issued_at": s.At.Add(time.Hour)}[field]
			if statement[field] == nil {
				statement[field] = "other"
			}
		}
	}
	c := s.by(rehearsal.Approver)
	switch s.d.Cmd {
	case "approve":
		cmd := aggregate.Approve{Caller: c, EffectID: s.id(), Signed: s.Signed(c, s.id(), s.arg("decision", "approve"), tamper)}
		if s.has("again") { // the very same statement
			p := s.effect().Permit
			cmd.Signed.Statement, cmd.Signed.Signature, cmd.Signed.PublicKey = p.Statement, p.Signature, p.PublicKey
		}
		return cmd
	case "deny":
		return aggregate.Deny{Caller: c, EffectID: s.id(), Signed: s.Signed(c, s.id(), s.arg("decision", "deny"), tamper)}
	}
	return nil
}

func (s *story) dispatching() aggregate.Command {
	switch s.d.Cmd {
	case "claim":
		return s.Claim(s.id())
	case "abandon":
		return s.Abandon(s.id())
	case "report":
		if s.has("again") { // delivered twice
			return s.last
		}
		cmd := s.Report(s.id(), events.Outcome(s.arg("outcome", "")), s.cost())
		cmd.AuditIncomplete = s.has("spooled")
		if s.has("forged") {
			cmd.Nonce = "guessed"
		}
		s.last = cmd
		return cmd
	case "reconcile-end":
		cmd := s.End(s.id(), events.Outcome(s.arg("outcome", "")), s.has("not-found"))
		cmd.Result.Cost = s.cost()
		return cmd
	case "sweep":
		return aggregate.Sweep{Limit: int(s.number("limit", 100)), Recheck: s.has("recheck")}
	case "orphaned":
		return aggregate.Orphaned{EffectID: s.id()}
	case "collect":
		return aggregate.Collect{Limit: int(s.number("limit", 100))}
	}
	return nil
}

func (s *story) overseeing() aggregate.Command {
	c := s.by(rehearsal.Operator)
	switch s.d.Cmd {
	case "reconcile-start":
		cmd := s.Start(c, s.id(), events.Method(s.arg("method", "")))
		cmd.DeadlineMS = s.number("deadline_ms", 0)
		if s.has("other-credential") {
			cmd.CredentialSHA256 = events.ZeroDigest
		}
		return cmd
	case "settle":
		cmd := s.Settle(c, s.id(), events.Outcome(s.arg("outcome", "")))
		if s.has("unsigned") {
			cmd.Signed = nil
		}
		if s.has("other-evidence") {
			cmd.Evidence.Named = events.Raw(`{"reference":"ticket 8"}`)
		}
		return cmd
	case "acknowledge":
		return aggregate.Acknowledge{Caller: c, EffectID: s.id(), Reason: "accepted"}
	case "revoke":
		return aggregate.Revoke{Caller: c, EffectID: s.id(), Reason: "no longer"}
	case "open-task":
		return s.open(c)
	case "close-task":
		return aggregate.CloseTask{Caller: c, TaskID: events.TaskID(s.first())}
	}
	return nil
}

func (s *story) open(c aggregate.Caller) aggregate.Command {
	budgets := events.Amounts{"usd_cents": s.number("usd_cents", 1000)}
	for _, u := range []events.Unit{"effects", "wires", "bytes"} {
		if s.has(string(u)) {
			budgets[u] = s.number(string(u), 0)
		}
	}
	cmd := s.OpenTask(c, events.TaskID(s.first()), events.TaskID(s.arg("parent", "")), budgets)
	for _, a := range s.d.CmdArgs {
		if a.Key == "holders" {
			for _, h := range a.Vals {
				cmd.Request.Holders = append(cmd.Request.Holders, events.Actor("main/"+h))
			}
		}
	}
	if s.has("exposure") {
		cmd.Request.Exposure = events.Amounts{"usd_cents": s.number("exposure", 0)}
	}
	if wait := s.arg("expires", ""); wait != "" {
		cmd.ExpiresAt = rehearsal.Start.Add(s.duration(wait))
	}
	return cmd
}

func (s *story) governing() aggregate.Command {
	switch s.d.Cmd {
	case "policy":
		return aggregate.ChangePolicy{Text: map[string]string{"default": rehearsal.Policy, "deny": rehearsal.DenyAll, "approve": rehearsal.ApproveAll,
			"broken": "permit("}[s.first()]}
	case "dismiss": // a principal loses its access
		users := []events.User{}
		for _, u := range rehearsal.Users() {
			if string(u.Principal) != s.first() {
				users = append(users, u)
			}
		}
		return aggregate.ChangeAccess{Users: users}
	case "access":
		return aggregate.ChangeAccess{Users: rehearsal.Users()}
	case "register":
		return aggregate.RegisterOperation{Contract: rehearsal.Charge(s.number("version", 1))}
	case "retire":
		return aggregate.RetireOperation{Name: events.OperationName(s.first()), Version: s.number("version", 1)}
	case "restart":
		return s.Takeover()
	}
	return nil
}

// first is the name that follows the command.
func (s *story) first() string {
	if len(s.d.CmdArgs) == 0 || len(s.d.CmdArgs[0].Vals) > 0 {
		return ""
	}
	return s.d.CmdArgs[0].Key
}

func (s *story) id() events.EffectID {
	if id, ok := s.names[s.first()]; ok {
		return id
	}
	return "01K000000000000000000NEVER"
}

func (s *story) effect() *aggregate.Effect {
	e := s.State.Effect(s.id())
	if e == nil {
		s.t.Fatalf("%s: no effect %q", s.d.Pos, s.first())
	}
	return e
}

func (s *story) has(key string) bool { return s.d.HasArg(key) }

func (s *story) arg(key, otherwise string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == key && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return otherwise
}

func (s *story) text(key string, to **string) {
	if s.has(key) {
		v := s.arg(key, "")
		*to = &v
	}
}

func (s *story) number(key string, otherwise int64) int64 {
	text := s.arg(key, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// cost is what a service states, if it does: cost=60, or cost=60 unit=bytes.
func (s *story) cost() events.Amounts {
	if !s.has("cost") {
		return nil
	}
	return events.Amounts{events.Unit(s.arg("unit", "usd_cents")): s.number("cost", 0)}
}

// by is who asks: a principal of tenant main, or "tenant/principal".
func (s *story) by(otherwise aggregate.Caller) aggregate.Caller {
	name := s.arg("by", "")
	if name == "" {
		return otherwise
	}
	tenant, principal, ok := strings.Cut(name, "/")
	if !ok {
		tenant, principal = "main", name
	}
	return aggregate.Caller{Tenant: events.Tenant(tenant), Principal: events.Principal(principal)}
}

func since(at events.Instant) string {
	return "+" + at.Sub(rehearsal.Start).Round(time.Second).String()
}
