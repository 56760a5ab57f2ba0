package embedded_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/projector/anchor"
)

// Start and Stop leave nothing behind, whatever happened between.
func TestNothingLeaks(t *testing.T) {
	s := newService(t)
	s.answers(lose)
	r := newRig(t, s)
	before := goleak.IgnoreCurrent()
	for i := range 3 {
		r.start()
		if i == 0 {
			r.openTask("shop", 1000)
		}
		unknownFor(t, r.submit("r", "c"), events.ReasonResponseLost)
		r.stop()
	}
	goleak.VerifyNone(t, before)
}

// A start that is refused leaves nothing behind either, and nothing changed.
func TestRefusedStart(t *testing.T) {
	s := newService(t)
	r := running(t, s)
	r.stop()
	good, err := os.ReadFile(filepath.Join(r.dir, "operations", "charge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for name, c := range map[string]struct{ file, text, says string }{
		"a registered version changed": {"operations/charge.yaml", strings.Replace(string(good), "timeout: 10s", "timeout: 9s", 1), "charge"},
		"a contract that is none":      {"operations/other.yaml", "name: other\nversion: 1\nretries: 5\n", "other.yaml:3:1"},
		"a policy that is none":        {"policy.cedar", "permit (principal);", "policy.cedar"},
		"a setting that is none":       {"effectd.yaml", "retries: 5\n", "retries"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(r.dir, c.file)
			old, err := os.ReadFile(file)
			absent := errors.Is(err, os.ErrNotExist)
			r.write(c.file, c.text)
			if _, err := embedded.Start(t.Context(), r.opts); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			if absent {
				r.remove(c.file)
			} else {
				r.write(c.file, string(old))
			}
		})
	}
	goleak.VerifyNone(t, before)
	r.start()
	settledAs(t, r.submit("r", "c"), events.OutcomeSucceeded)
}

// One process per directory, and only on one that init made.
func TestWhereToStart(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	if _, err := embedded.Start(t.Context(), r.opts); !errors.Is(err, home.ErrLocked) {
		t.Fatal(err)
	}
	if _, err := embedded.Init(t.Context(), embedded.InitOptions{Data: r.dir}); err == nil {
		t.Fatal("a second init")
	}
	settledAs(t, r.submit("r", "c"), events.OutcomeSucceeded) // the first one goes on
	empty := filepath.Join(t.TempDir(), "empty")
	_, err := embedded.Start(t.Context(), embedded.Options{Data: empty, Listen: "127.0.0.1:0"})
	if !errors.Is(err, home.ErrNotLedger) || !strings.Contains(err.Error(), "effectd init --data "+empty) {
		t.Fatal(err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("a refused start made the directory")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := newRig(t, newService(t))
	taken.opts.Listen = l.Addr().String()
	if _, err := embedded.Start(t.Context(), taken.opts); err == nil {
		t.Fatal("started on a port that is taken")
	}
	taken.opts.Listen = "127.0.0.1:0"
	taken.start() // the refused start gave the lock back
}

// A stop answers whoever waits for an effect, and does not wait for it.
func TestStopEndsWaits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	o := r.another("operator")
	e, err := r.as("producer").Prepare(t.Context(), charge("r", "c", 5))
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := o.Get(t.Context(), wire.GetRequest{EffectID: e.EffectID, Wait: wire.WaitTerminal, TimeoutMS: 600_000})
		waited <- err
	}()
	eventually(t, "the request is in flight", func() bool { return r.inFlight() == 1 })
	r.stop()
	if err := take(t, "the wait is answered", waited); codeOf(err) != wire.LedgerUnavailable && codeOf(err) != wire.WaitTimeout {
		t.Fatal(err)
	}
}

// A stop leaves the anchor at the end of the log, whatever is recorded while it
// waits (M7).
func TestStopMarksTheEnd(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.opts.ShutdownBudget = 200 * time.Millisecond
	r.start()
	r.openTask("shop", 1000)
	arrived, _ := s.holds()
	e := r.submitAndGo("r", "c")
	take(t, "the send", arrived)
	r.stop()
	entries := r.stored()
	last := entries[len(entries)-1]
	if u, ok := last.Events[0].Data.(events.Unknown); !ok || u.Reason != events.ReasonShutdown {
		t.Fatalf("effect %s: the last entry is not what the stop recorded: %s", e.EffectID, last.Body)
	}
	a, err := anchor.Open(vfs.Default, r.home().AnchorDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if m := a.Load(); m.Seq != last.Seq || m.SHA256 != last.SHA256 {
		t.Fatalf("the anchor is at %d, the log ends at %d", m.Seq, last.Seq)
	}
}

// inFlight is how many requests the service says that it serves, the one that
// asks not among them.
func (r *rig) inFlight() (n int64) {
	r.Helper()
	m, err := r.as("auditor").Conn().Request("$SRV.STATS.effectd", nil, patience)
	if err != nil {
		r.Fatal(err)
	}
	var stats struct {
		Endpoints []struct {
			Data struct {
				InFlight int64 `json:"service_in_flight"`
			} `json:"data"`
		} `json:"endpoints"`
	}
	if err := json.Unmarshal(m.Data, &stats); err != nil || len(stats.Endpoints) == 0 {
		r.Fatalf("%s: %v", m.Data, err)
	}
	return stats.Endpoints[0].Data.InFlight
}

// What the owner adds while the node runs is known after a reload; what is wrong
// changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	r.addUser("second", events.RoleProducer)
	if _, err := client.Dial(r.node.Ready().NATSURL, filepath.Join(r.dir, "keys", "second.nk"), "main", "second"); !errors.Is(err, client.ErrDenied) {
		t.Fatal(err)
	}
	contract := strings.NewReplacer("URL", s.URL, "name: charge", "name: refund").Replace(chargeContract)
	r.write("operations/refund.yaml", contract)
	reload := func() {
		t.Helper()
		if err := r.node.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	second := r.as("second")
	request := taskRequest("second", 100)
	request.Holders = []events.Actor{"main/second"}
	if _, err := r.as("operator").TaskOpen(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	submit := func(operation events.OperationName, causal string) (wire.Effect, error) {
		c := charge("second", causal, 5)
		c.TaskID, c.Operation = "second", operation
		return second.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: c, Wait: wire.WaitTerminal})
	}
	if e, err := submit("refund", "a"); err != nil || e.Outcome != events.OutcomeSucceeded {
		t.Fatal(err, show(e))
	}

	before := r.last()
	r.write("operations/refund.yaml", strings.Replace(contract, "timeout: 10s", "timeout: 9s", 1))
	if err := r.node.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "refund") {
		t.Fatal(err)
	}
	r.write("operations/refund.yaml", contract)
	r.write("policy.cedar", "permit (principal, action, resource")
	if err := r.node.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "policy.cedar") {
		t.Fatal(err)
	}
	if last := r.last(); last != before {
		t.Fatalf("a refused reload wrote entry %d", last)
	}
	if _, err := submit("refund", "b"); err != nil {
		t.Fatal(err)
	}

	r.write("policy.cedar", `permit (principal, action == Action::"commit", resource == Operation::"charge");`)
	reload()
	_, err := submit("refund", "c")
	refusedWith(t, err, wire.PolicyDenied)
	if _, err := submit("charge", "d"); err != nil {
		t.Fatal(err)
	}

	if err := r.home().RemoveUser("main", "second"); err != nil {
		t.Fatal(err)
	}
	reload()
	eventually(t, "who was removed is disconnected", func() bool { return !second.Conn().IsConnected() })
	if _, err := second.Status(t.Context()); err == nil || codeOf(err) != "" {
		t.Fatalf("who was removed is answered: %v", err)
	}
	s.served(t, 3)
}
