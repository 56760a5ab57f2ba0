package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// natsCommand finds the stock client.
func natsCommand(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("nats"); err == nil {
		return path
	}
	path, err := filepath.Abs("../bin/nats")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("the nats command is not installed")
	}
	return path
}

// stock runs the stock client as a user.
func (r *rig) stock(command, who string, args ...string) (string, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	all := append([]string{"--server", r.node.Ready().NATSURL, "--nkey", filepath.Join(r.dir, "keys", who+".nk"),
		"--inbox-prefix", "_INBOX.main." + who, "--timeout", "10s"}, args...)
	cmd := exec.CommandContext(ctx, command, all...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+r.TempDir())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = errors.Join(err, errors.New(errs.String()))
	}
	return string(out), err
}

// A client that knows nothing of effectd submits, reads, and looks around.
func TestStockClient(t *testing.T) {
	t.Parallel()
	command := natsCommand(t)
	s := newService(t)
	r := running(t, s)
	ask := func(who, verb, body string) (e wire.Effect) {
		t.Helper()
		out, err := r.stock(command, who, "req", "--raw", "effects.api.main."+who+"."+verb, body)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), &e); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return e
	}
	e := ask("producer", "effect.submit", strings.TrimSuffix(with(good), "}")+`,"wait":"terminal"}`)
	settledAs(t, e, events.OutcomeSucceeded)
	if again := ask("producer", "effect.get", `{"run_id":"r","causal_id":"c"}`); again.EffectID != e.EffectID {
		t.Fatal(show(again))
	}
	if again := ask("operator", "effect.get", `{"effect_id":"`+string(e.EffectID)+`"}`); again.EffectID != e.EffectID {
		t.Fatal(show(again))
	}
	for name, look := range map[string]struct {
		who   string
		args  []string
		shows []string
	}{
		"a refusal":     {"producer", []string{"req", "effects.api.main.producer.effect.get", `{"effect_id":"x"}`}, []string{"unknown_effect", "no such effect"}},
		"micro info":    {"producer", []string{"micro", "info", "effectd"}, []string{"effectd", "effects.api.*.*.effect.submit"}},
		"micro ls":      {"auditor", []string{"micro", "ls"}, []string{"effectd"}},
		"micro ping":    {"operator", []string{"micro", "ping", "effectd"}, []string{"effectd"}},
		"micro stats":   {"operator", []string{"micro", "stats", "effectd"}, []string{"effect-submit"}},
		"stream get":    {"auditor", []string{"stream", "get", "EFFECTS", "1"}, []string{`"ledger-opened"`, string(r.home().LedgerID())}},
		"stream info":   {"auditor", []string{"stream", "info", "EFFECTS", "--json"}, []string{`"deny_purge": true`, `"effects.log"`}},
		"ledger status": {"producer", []string{"req", "--raw", "effects.api.main.producer.ledger.status", ""}, []string{`"trusted":true`}},
	} {
		out, err := r.stock(command, look.who, look.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range look.shows {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not show %s: %.2000s", name, want, out)
			}
		}
	}
	for who, args := range map[string][]string{
		"producer": {"pub", "effects.log", "forged"}, "operator": {"stream", "purge", "EFFECTS", "--force"}, "auditor": {"stream", "rm", "EFFECTS", "--force"},
	} {
		out, err := r.stock(command, who, append([]string{"--timeout", "300ms"}, args...)...)
		if err == nil && who != "producer" { // a publish tells of what it is denied on standard error at most
			t.Errorf("%s may %s: %s", who, strings.Join(args, " "), out)
		}
	}
	entries := readAll(t, r.log())
	if count(entries, events.TypeSettled, e.EffectID) != 1 || folded(t, entries).EffectCount() != 1 {
		t.Fatal("the log is not what it was")
	}
	s.served(t, 1)
}

// hostile is a connection of a producer that wants more than it may. What the
// server forbids is told on forbidden.
func (r *rig) hostile(who string) (conn *nats.Conn, forbidden chan error) {
	r.Helper()
	forbidden = make(chan error, 1024)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(r.dir, "keys", who+".nk"))
	if err != nil {
		r.Fatal(err)
	}
	conn, err = nats.Connect(r.node.Ready().NATSURL, key, nats.CustomInboxPrefix("_INBOX.main."+who),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { forbidden <- err }))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(conn.Close)
	return conn, forbidden
}

// Nobody reaches the log, or another's replies, by what a NATS client can say:
// a publish, a subscription, or a reply subject (SPEC 12).
func TestNobodyElseWrites(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	e := r.submit("r", "c")
	before := r.last()
	for _, who := range []string{"producer", "operator", "auditor", "approver", "executor"} {
		conn, forbidden := r.hostile(who)
		for _, subject := range []string{"effects.log", "effects.node.x", "effects.event.main.charge.settled", "effects.denied.main.x",
			"effects.api.main.other.effect.submit", "effects.requests.main.other", "$JS.API.STREAM.DELETE.EFFECTS", "$JS.API.STREAM.PURGE.EFFECTS",
			"$JS.API.STREAM.MSG.DELETE.EFFECTS", "$JS.API.STREAM.UPDATE.EFFECTS", "$JS.API.CONSUMER.CREATE.EFFECTS.x", "_INBOX.main.x.y", "_R_.x.y", "$SYS.REQ.USER.INFO2"} {
			if err := conn.Publish(subject, []byte("forged")); err != nil {
				t.Fatal(err)
			}
			if err := take(t, who+" is forbidden to publish on "+subject, forbidden); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s on %s: %v", who, subject, err)
			}
		}
		for _, subject := range []string{"_INBOX.>", "_INBOX.main.>", "_INBOX.main.other.>", "effects.>", "effects.log", "effects.api.>", "_R_.>", ">"} {
			if _, err := conn.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			if err := take(t, who+" is forbidden to subscribe "+subject, forbidden); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s on %s: %v", who, subject, err)
			}
		}
	}
	// A reply subject is chosen by who asks; whatever it is, the answer goes nowhere
	// that matters.
	for _, reply := range []string{"effects.log", "effects.node.x", "$JS.API.STREAM.DELETE.EFFECTS", "_INBOX.main.operator.x", "effects.api.main.operator.task.close"} {
		for who, questions := range map[string]map[string]string{
			"producer": {"effects.api.main.producer.effect.get": `{"effect_id":"` + string(e.EffectID) + `"}`, "effects.api.main.producer.ledger.status": "",
				"effects.api.main.producer.effect.submit": with(good), "$SRV.PING": "", "$SRV.INFO.effectd": ""},
			"auditor": {"$JS.API.DIRECT.GET.EFFECTS": `{"seq":1}`, "$JS.API.STREAM.MSG.GET.EFFECTS": `{"seq":1}`, "$JS.API.STREAM.INFO.EFFECTS": "",
				"$JS.API.CONSUMER.MSG.NEXT.EFFECTS.audit-main-auditor": `{"batch":10,"no_wait":true}`},
		} {
			conn, _ := r.hostile(who)
			for subject, body := range questions {
				if err := conn.PublishRequest(subject, reply, []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
			// Whatever comes of these was asked before this, which is answered.
			if _, err := conn.Request("effects.api.main."+who+".ledger.status", nil, patience); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := r.submit("r", "c")
	if again.EffectID != e.EffectID || r.last() != before {
		t.Fatalf("the log went from entry %d to %d", before, r.last())
	}
	folded(t, readAll(t, r.log()))
	s.served(t, 1)
}

// A user without a key, or with one that is not in the table, gets no connection.
func TestNoAnonymous(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	if _, err := nats.Connect(r.node.Ready().NATSURL); !errors.Is(err, nats.ErrAuthorization) {
		t.Error(err)
	}
	stranger := newRig(t, newService(t))
	key, err := nats.NkeyOptionFromSeed(filepath.Join(stranger.dir, "keys", "operator.nk"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nats.Connect(r.node.Ready().NATSURL, key); !errors.Is(err, nats.ErrAuthorization) {
		t.Error(err)
	}
}
