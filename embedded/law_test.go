package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

const (
	forbidCharges = `permit (principal, action, resource);
@id("no-charges") forbid (principal, action in [Action::"commit", Action::"request_approval"], resource == Operation::"charge");`
	observeOnly = `permit (principal, action == Action::"observe", resource);`
)

func (r *rig) reload() {
	r.Helper()
	if err := r.node.Reload(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// refusesReload checks that a reload is refused with all the words, and writes
// nothing.
func (r *rig) refusesReload(words ...string) {
	r.Helper()
	before := r.last()
	err := r.node.Reload(r.Context())
	if err == nil {
		r.Fatal("reloaded")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.Errorf("%q is missing: %v", w, err)
		}
	}
	if last := r.last(); last != before {
		r.Errorf("a refused reload wrote entry %d", last)
	}
}

// A policy that forbids between the permit and the admission ends the effect: it
// is refused, and nothing was reserved or sent (SPEC 7, 11).
func TestPolicyChangesBeforeAdmission(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	e, err := r.as("producer").Prepare(t.Context(), charge("r", "c", 5))
	if err != nil || e.State != wire.StatePermitted {
		t.Fatal(err, show(e))
	}
	r.write("policy.cedar", forbidCharges)
	r.reload()
	_, err = r.as("producer").Admit(t.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", "c")})
	refusedWith(t, err, wire.PolicyDenied)
	after := r.get(e.EffectID)
	if after.State != wire.StateRefused || after.Reason != events.ReasonPolicyDenied || after.Permit.State != wire.PermitRevoked {
		t.Fatal(show(after))
	}
	// Another policy does not bring it back, and permits a new one.
	r.write("policy.cedar", `permit (principal, action, resource);`)
	r.reload()
	_, err = r.as("producer").Admit(t.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", "c")})
	refusedWith(t, err, wire.PolicyDenied)
	settledAs(t, r.submit("r", "d"), events.OutcomeSucceeded)
	r.account(0, 5, 0)
	s.served(t, 1)
	folded(t, readAll(t, r.log()))
}

// Each changed text is one revision, an unchanged one writes nothing, and a
// restart loads nothing again (SPEC 4, 11).
func TestPolicyRevisions(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	check := func(want int) {
		t.Helper()
		if n := count(readAll(t, r.log()), events.TypePolicyChanged, ""); n != want {
			t.Fatalf("%d events, want %d", n, want)
		}
		eventually(t, "the status says so", func() bool { return r.status().PolicyRevision == int64(want) })
	}
	check(1)
	r.reload()
	check(1)
	r.write("policy.cedar", forbidCharges)
	r.reload()
	check(2)
	before := r.last()
	r.reload()
	if last := r.last(); last != before {
		t.Errorf("an unchanged law wrote entry %d", last)
	}
	r.write("policy.cedar", forbidCharges+"\n")
	r.reload()
	check(3)
	r.restart()
	check(3)
}

// M8: a law with a fault changes nothing, whichever file has it, and every fault is
// named with file and line.
func TestReloadIsWhole(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	r.addUser("second", events.RoleProducer)
	refund := strings.NewReplacer("URL", s.URL, "name: charge", "name: refund").Replace(chargeContract)
	r.write("operations/refund.yaml", refund)
	r.write("policy.cedar", observeOnly+"\n"+`permit (principal, action == Action::"commit", resource == Operation::"refnd")
when { context.payload.amuont > 1 && context.amount > 2 };`)
	r.refusesReload("policy.cedar:2: unknown operation \"refnd\"", "policy.cedar:3: unknown attribute amuont of context.payload", "policy.cedar:3: unknown attribute amount of context")

	for _, emptied := range []string{"", "// @id(\"gone\")\n"} { // as an editor leaves it for a moment
		r.write("policy.cedar", emptied)
		r.refusesReload("no policy at all")
	}
	r.write("policy.cedar", observeOnly)
	first := strings.ReplaceAll(chargeContract, "URL", s.URL)
	r.write("operations/charge.yaml", strings.Replace(first, "timeout: 10s", "timeout: 9s", 1))
	r.refusesReload("operations/charge.yaml: operation charge version 1 is registered with another contract")
	r.write("operations/charge.yaml", first)
	r.write("operations/twice.yaml", strings.Replace(refund, "timeout: 10s", "timeout: 9s", 1))
	r.refusesReload("operations/twice.yaml: operation refund version 1: two files", "operations/refund.yaml")
	r.write("operations/twice.yaml", "name: [")
	r.write("policy.cedar", "permit (")
	r.refusesReload("twice.yaml:1", "policy.cedar:1")
	settledAs(t, r.submit("r", "c"), events.OutcomeSucceeded) // the law is what it was

	r.write("operations/twice.yaml", refund)
	r.write("policy.cedar", observeOnly)
	users, err := os.ReadFile(r.home().UsersFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.home().UsersFile()); err != nil {
		t.Fatal(err)
	}
	r.refusesReload("users.yaml: no operator is left")
	r.write("users.yaml", string(users))
	r.reload()
	_, err = r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "d", 5)})
	refusedWith(t, err, wire.PolicyDenied)

	var said struct {
		Reloads int64  `json:"reloads"`
		Refused string `json:"refused"`
		Policy  int64  `json:"policy_revision"`
		SHA256  string `json:"policy_sha256"`
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "node.json"))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || said.Reloads != 8 || said.Refused != "" || said.Policy != 2 || said.SHA256 != string(events.DigestBytes([]byte(observeOnly))) {
		t.Errorf("node.json: %v %s", err, text)
	}
}
