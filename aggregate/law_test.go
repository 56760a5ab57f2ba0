package aggregate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func refused(t *testing.T, d aggregate.Decision, want wire.Code) {
	t.Helper()
	if d.Refusal == nil || d.Refusal.Code != want {
		t.Errorf("%+v, want %s", d.Refusal, want)
	}
}

func done(t *testing.T, d aggregate.Decision) aggregate.Decision {
	t.Helper()
	if d.Refusal != nil {
		t.Fatal(d.Refusal)
	}
	return d
}

func charge(causal string) aggregate.Prepare {
	return rehearsal.Submit(rehearsal.Producer, "charge", plain, "run", events.CausalID(causal))
}

// TestLimits: at a limit new effects are refused and nothing live goes (SPEC 14, 12).
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*events.Limits)
		want wire.Code
	}{
		{"records", func(l *events.Limits) { l.EffectRecords = 2 }, wire.CapacityExhausted},
		{"live bytes", func(l *events.Limits) { l.LiveBytes = 12_000 }, wire.CapacityExhausted},
		{"quota", func(l *events.Limits) { l.PreparedPerPrincipal = 2 }, wire.QuotaExceeded},
		{"record size", func(l *events.Limits) { l.RecordBytes = 1000 }, wire.RecordTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			limits := rehearsal.Limits
			c.set(&limits)
			w := rehearsal.NewLimited(limits)
			var last aggregate.Decision
			for i := range 8 {
				cmd := charge(fmt.Sprint(i))
				cmd.Admit = false
				if last = w.Do(cmd); last.Refusal != nil {
					break
				}
			}
			refused(t, last, c.want)
			if len(last.Events) > 0 {
				t.Error("a refused request left events")
			}
			w.State.EachEffect(func(e *aggregate.Effect) bool {
				if e.State != wire.StatePermitted {
					t.Errorf("a live effect became %s", e.State)
				}
				return true
			})
		})
	}
}

// TestQuotaCountsPrincipalsApart: one principal cannot starve the others.
func TestQuotaCountsPrincipalsApart(t *testing.T) {
	limits := rehearsal.Limits
	limits.PreparedPerPrincipal = 1
	w := rehearsal.NewLimited(limits)
	hold := func(c aggregate.Caller, causal string) aggregate.Decision {
		return w.Do(rehearsal.Prepare(c, "charge", plain, events.RunID(c.Principal), events.CausalID(causal)))
	}
	first := done(t, hold(rehearsal.Producer, "1"))
	refused(t, hold(rehearsal.Producer, "2"), wire.QuotaExceeded)
	done(t, hold(rehearsal.Other, "1"))
	done(t, w.Do(w.Admit(rehearsal.Producer, first.EffectID))) // admitted effects do not count
	done(t, hold(rehearsal.Producer, "3"))
}

// TestRecordsAreBounded: what a principal says is bounded wherever it is recorded.
func TestRecordsAreBounded(t *testing.T) {
	w := rehearsal.New()
	long := strings.Repeat("x", aggregate.MaxReason+1)
	e := done(t, w.Do(rehearsal.Prepare(rehearsal.Producer, "charge", plain, "run", "1"))).EffectID
	for _, c := range []aggregate.Command{
		aggregate.CloseTask{Caller: rehearsal.Operator, TaskID: "t", Reason: long},
		aggregate.CancelRun{Caller: rehearsal.Producer, RunID: "run", Reason: long},
		aggregate.Withdraw{Caller: rehearsal.Producer, EffectID: e, Reason: long},
		aggregate.Revoke{Caller: rehearsal.Operator, EffectID: e, Reason: long},
	} {
		refused(t, w.Do(c), wire.InvalidRequest)
	}
	task := w.OpenTask(rehearsal.Operator, "crowded", "", nil)
	for i := range 2000 {
		task.Request.Holders = append(task.Request.Holders, events.Actor(fmt.Sprintf("main/%050d", i)))
	}
	refused(t, w.Do(task), wire.RecordTooLarge)
	big := rehearsal.Prepare(rehearsal.Producer, "note", `{"account":"`+strings.Repeat("x", 65_000)+`"}`, "run", "2")
	refused(t, w.Do(big), wire.RecordTooLarge)
}

// TestApprovalFitsARecord: what waits for an approval can be approved.
func TestApprovalFitsARecord(t *testing.T) {
	w := rehearsal.New()
	for n := 50_000; n < 64_000; n += 500 {
		payload := fmt.Sprintf(`{"account":"b","amount":1,"memo":%q}`, strings.Repeat("x", n))
		d := w.Do(rehearsal.Prepare(rehearsal.Producer, "wire", payload, "run", events.CausalID(fmt.Sprint(n))))
		if d.Refusal != nil {
			refused(t, d, wire.RecordTooLarge)
			continue
		}
		for _, b := range done(t, w.Do(w.Approve(rehearsal.Approver, d.EffectID))).Encoded {
			if int64(len(b)) > rehearsal.Limits.RecordBytes {
				t.Fatalf("an approval of %d bytes", len(b))
			}
		}
	}
}

// TestDeepReservationFitsARecord: an admission with many lines is measured first.
func TestDeepReservationFitsARecord(t *testing.T) {
	limits := rehearsal.Limits
	limits.RecordBytes = 12_000
	w := rehearsal.NewLimited(limits)
	parent := events.TaskID("t")
	for i := range aggregate.MaxTaskDepth - 1 {
		id := events.TaskID(fmt.Sprintf("%d-%s", i, strings.Repeat("deep", 50)))
		done(t, w.Do(w.OpenTask(rehearsal.Producer, id, parent, events.Amounts{"usd_cents": 1000})))
		parent = id
	}
	refused(t, w.Do(w.OpenTask(rehearsal.Producer, "deeper", parent, nil)), wire.InvalidRequest)
	cmd := charge("1")
	cmd.Request.TaskID = parent
	d := w.Do(cmd)
	refused(t, d, wire.RecordTooLarge)
	if e := w.State.Effect(d.EffectID); e == nil || e.State != wire.StatePermitted {
		t.Error("a refused admission leaves the effect permitted")
	}
}

// TestPermitEndsWithTheEarliest of all that bounds it (SPEC 11).
func TestPermitEndsWithTheEarliest(t *testing.T) {
	w := rehearsal.New()
	text := strings.ReplaceAll(rehearsal.Charge(1).Text, "retention: 24h", "retention: 90s")
	contract := rehearsal.Contract(strings.Replace(text, "version: 1", "version: 2", 1))
	done(t, w.Do(aggregate.RegisterOperation{Contract: contract}))
	permitted := func(cmd aggregate.Prepare) time.Duration {
		e := w.State.Effect(done(t, w.Do(cmd)).EffectID)
		return e.Permit.ExpiresAt.Sub(e.CreatedAt)
	}
	cmd := charge("1")
	if got := permitted(cmd); got != 90*time.Second {
		t.Errorf("the service forgets the key after 90 s, the permit lives %s", got)
	}
	cmd = charge("2")
	cmd.Request.Version = 1
	if got := permitted(cmd); got != 300*time.Second {
		t.Errorf("the permit lives %s, want 300 s", got)
	}
	seen := rehearsal.Contract(strings.NewReplacer("version: 1", "version: 3", "from: precondition.etag}", "from: precondition.etag, validity: 20s}").Replace(rehearsal.Charge(1).Text))
	done(t, w.Do(aggregate.RegisterOperation{Contract: seen}))
	cmd = charge("4")
	cmd.Request.Version, cmd.Request.Precondition = 3, events.Raw(`{"etag":"x"}`)
	if got := permitted(cmd); got != 20*time.Second {
		t.Errorf("what the producer saw is worth 20 s, the permit lives %s", got)
	}
	cmd = charge("5")
	cmd.Request.Version = 3
	if got := permitted(cmd); got != 300*time.Second {
		t.Errorf("without a precondition the permit lives %s, want 300 s", got)
	}
	cmd = charge("3")
	cmd.Request.Version, cmd.ExpiresAt = 1, w.At.Add(10*time.Second)
	if got := permitted(cmd); got > 10*time.Second {
		t.Errorf("the binding lives 10 s, the permit %s", got)
	}
}

// TestRefusalErrors: every reason of refused has its code (SPEC 7).
func TestRefusalErrors(t *testing.T) {
	for reason, code := range map[events.Reason]wire.Code{
		events.ReasonPolicyDenied: wire.PolicyDenied, events.ReasonApprovalDenied: wire.PolicyDenied, events.ReasonExpired: wire.Expired,
		events.ReasonWithdrawn: wire.Revoked, events.ReasonRevoked: wire.Revoked, events.ReasonTaskClosed: wire.TaskClosed,
		events.ReasonRunCancelled: wire.RunCancelled, events.ReasonOperationRetired: wire.OperationRetired,
		events.ReasonContextMismatch: wire.EffectContextMismatch,
	} {
		if got := aggregate.RefusalError(reason); got.Code != code {
			t.Errorf("%s: %s, want %s", reason, got.Code, code)
		}
	}
}

// TestReadsAreScoped: what is not yours does not exist (SPEC 12).
func TestReadsAreScoped(t *testing.T) {
	w := rehearsal.New()
	id := done(t, w.Do(charge("1"))).EffectID
	e, task := w.State.Effect(id), w.State.Task("main", "t")
	for _, c := range []struct {
		who          aggregate.Caller
		effect, task bool
	}{
		{rehearsal.Producer, true, true}, {rehearsal.Other, false, true}, {rehearsal.Operator, true, true}, {rehearsal.Auditor, true, true},
		{rehearsal.Approver, true, false}, {rehearsal.Stranger, false, false}, {rehearsal.Foreman, false, false},
		{aggregate.Caller{Tenant: "main", Principal: "nobody"}, false, false},
	} {
		if got := w.State.MaySee(c.who, e); got != c.effect {
			t.Errorf("%s sees the effect: %v", c.who.Actor(), got)
		}
		if got := w.State.MaySeeTask(c.who, task); got != c.task {
			t.Errorf("%s sees the task: %v", c.who.Actor(), got)
		}
	}
	done(t, w.Do(aggregate.ChangePolicy{Text: `permit(principal, action == Action::"commit", resource);`}))
	if w.State.MaySee(rehearsal.Auditor, e) {
		t.Error("an auditor needs the action observe")
	}
	if w.State.MaySee(rehearsal.Producer, nil) || w.State.MaySeeTask(rehearsal.Producer, nil) {
		t.Error("nothing can be seen where there is nothing")
	}
}

// TestAccessTable: a table that could not say who is who is refused.
func TestAccessTable(t *testing.T) {
	w := rehearsal.New()
	row := events.User{Tenant: "main", Principal: "new", Role: events.RoleProducer}
	for name, bad := range map[string]func(*events.User){
		"system tenant": func(u *events.User) { u.Tenant = events.SystemTenant }, "system principal": func(u *events.User) { u.Principal = events.SystemPrincipal },
		"no token": func(u *events.User) { u.Principal = "a.b" }, "no role": func(u *events.User) { u.Role = "owner" },
		"twice": func(u *events.User) { u.Principal = "producer" },
	} {
		u := row
		bad(&u)
		d := w.Do(aggregate.ChangeAccess{Users: append(rehearsal.Users(), u)})
		if refused(t, d, wire.InvalidRequest); len(d.Events) > 0 {
			t.Error(name, "left events")
		}
	}
	done(t, w.Do(aggregate.ChangeAccess{Users: append(rehearsal.Users(), row)}))
}

// TestLedgerIsOneLedger: neither another log nor another store is taken over.
func TestLedgerIsOneLedger(t *testing.T) {
	w := rehearsal.New()
	open := w.Takeover().(aggregate.OpenLedger)
	foreign, moved := open, open
	foreign.LedgerID, moved.Fingerprint = "01K0000000000000000000ELSE", events.ZeroDigest
	refused(t, w.Do(foreign), wire.LedgerUntrusted)
	refused(t, w.Do(moved), wire.LedgerUntrusted)
	done(t, w.Do(open))
	changed := rehearsal.Contract(strings.Replace(rehearsal.Charge(1).Text, "Charge a card", "Charge any card", 1))
	refused(t, w.Do(aggregate.RegisterOperation{Contract: changed}), wire.InvalidRequest)
}

// TestRevisionsAndDigests: the law in the log is numbered and digested.
func TestRevisionsAndDigests(t *testing.T) {
	w := rehearsal.New()
	text, digest, revision := w.State.Policy()
	if text != rehearsal.Policy || digest != events.DigestBytes([]byte(text)) || revision != 1 {
		t.Errorf("policy revision %d, digest %s", revision, digest)
	}
	done(t, w.Do(aggregate.ChangePolicy{Text: rehearsal.DenyAll}))
	if _, digest, revision := w.State.Policy(); revision != 2 || digest != events.DigestBytes([]byte(rehearsal.DenyAll)) {
		t.Errorf("policy revision %d, digest %s", revision, digest)
	}
	if n := len(w.State.Users()); n != len(rehearsal.Users()) {
		t.Errorf("%d users", n)
	}
	for _, o := range w.State.Operations() {
		if o.Contract.Digest != rehearsal.Contract(o.Contract.Text).Digest {
			t.Errorf("operation %s has another digest than its text", o.Contract.Name)
		}
	}
}

// TestSecretsAreScrubbed wherever a service may have echoed them.
func TestSecretsAreScrubbed(t *testing.T) {
	r := aggregate.Result{ProviderRef: "id-s3cret", Evidence: events.Evidence{Detail: "sent s3cret", Named: events.Raw(`{"token":"s3cret","q":"a\"b"}`)}}
	got := r.Scrubbed([]string{"s3cret", `a"b`, ""})
	for _, text := range []string{got.ProviderRef, got.Evidence.Detail, string(got.Evidence.Named)} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, `a\"b`) {
			t.Errorf("a secret is left in %s", text)
		}
	}
	if _, err := events.Canonicalize(got.Evidence.Named); err != nil {
		t.Error(err)
	}
	if broken := r.Scrubbed([]string{`"q"`}); strings.Contains(string(broken.Evidence.Named), "a\\\"b") && !strings.Contains(string(broken.Evidence.Named), `"q"`) {
		t.Errorf("half of a form is kept: %s", broken.Evidence.Named)
	}
}
