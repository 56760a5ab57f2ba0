package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// natsServer is the stock server, built once from the version that the embedded
// one has.
var natsServer = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(binary), "nats-server")
	out, err := exec.Command("go", "build", "-o", file, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return file, err
})

// needNATSServer skips a test where the stock server cannot be built.
func needNATSServer(t *testing.T) string {
	t.Helper()
	file, err := natsServer()
	if err != nil {
		t.Skipf("the NATS server cannot be built here: %v", err)
	}
	return file
}

// startNATS runs the stock server in a process of its own, with a configuration
// as effectd prints it, and returns its address.
func startNATS(t *testing.T, config string) (*served, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "effectd.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	const listening = "Listening for client connections on "
	s := startUntil(t, exec.Command("sh", "-c", `exec "$0" "$@" 2>&1`, needNATSServer(t), "-c", file, "-a", "127.0.0.1", "-p", "-1"), listening)
	_, address, _ := strings.Cut(s.first, listening)
	return s, "nats://" + address
}

// A ledger on a server of the owner's, from nothing: each step says what the next
// one is (SPEC 2, 12, 20).
func TestExternal(t *testing.T) {
	needNATSServer(t)
	dir := filepath.Join(t.TempDir(), "data")
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }

	// No server yet; then one that knows another ledger only.
	do("init", "--nats", "nats://127.0.0.1:1").want(t, 1).says(t, "effectd nats-config --data "+dir, "effectd init --data "+dir+" --nats nats://127.0.0.1:1", "replicas: 1 in "+dir)
	config := do("nats-config", "--store", t.TempDir()).want(t, 0).out
	_, foreign := startNATS(t, effectd(t, "nats-config", "--data", ledgerDir(t), "--store", t.TempDir()).want(t, 0).out)
	do("init", "--nats", foreign).want(t, 1).says(t, "Authorization Violation", "effectd nats-config")
	do("serve", "--listen", "127.0.0.1:0").want(t, 1).says(t, "effectd init")

	server, url := startNATS(t, config)
	do("init", "--nats", url).want(t, 1).says(t, "so many copies", "replicas: 1 in "+dir)
	if err := os.WriteFile(filepath.Join(dir, "effectd.yaml"), []byte("replicas: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "keys", "ledger.nk")
	if r := do("init", "--nats", url).want(t, 0); !strings.Contains(r.out, "effectd serve --data "+dir+" --nats "+url+" --nkey "+key) {
		t.Errorf("init: %s", r.out)
	}
	if again := do("nats-config").want(t, 0).out; !strings.Contains(config, again[strings.Index(again, "accounts {"):]) {
		t.Error("the keys are not those of the unfinished init")
	}
	do("init", "--nats", url).want(t, 1).says(t, "exists already")

	service := withCharge(t, dir)
	node := serve(t, dir, "--nats", url, "--nkey", key)
	do("task", "open", "shop", "-b", "usd_cents=1000", "--holder", "main/producer").want(t, 0)
	submitted := do("submit", "--json", "-t", "shop", "-o", "charge", "--wait", "terminal", "--timeout", "20s", `{"account":"alice","amount":100}`)
	if e := object[wire.Effect](t, submitted.want(t, 0)); e.State != wire.StateSettled || e.Outcome != events.OutcomeSucceeded {
		t.Fatalf("%+v", e)
	}
	if n, _ := service.charged("alice"); n != 1 {
		t.Errorf("alice is charged %d times", n)
	}
	do("verify").want(t, 0)
	if r := do("doctor").want(t, 0); strings.Contains(r.out, "fault") || !strings.Contains(r.out, "trusted, dispatching") {
		t.Error(r.out)
	}
	do("user", "add", "second", "--role", "operator").want(t, 1).says(t, "effectd nats-config --data "+dir)
	if r := do("nats-config").want(t, 0); !strings.Contains(r.out, "main/second") {
		t.Error(r.out)
	}
	do("user", "remove", "second").want(t, 0).says(t, "effectd nats-config --data "+dir)
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, node.errs)
	}

	auditor := []string{"verify", "--json", "--nats", url, "--nkey", filepath.Join(dir, "keys", "auditor.nk")}
	before := effectd(t, auditor...).want(t, 0).out
	do("verify").want(t, 1).says(t, "external server", "--nats")
	do("doctor").want(t, 0)
	do("rebuild", "--nats", url, "--nkey", key).want(t, 0)

	// Another ledger is refused there, with the key too, and changes nothing.
	other := filepath.Join(t.TempDir(), "other")
	for range 2 {
		effectd(t, "init", "--data", other, "--nats", url, "--nkey", key).want(t, 1).says(t, "stream exists", "another ledger")
	}
	if after := effectd(t, auditor...).want(t, 0).out; after != before {
		t.Errorf("the log was\n%s\nand is\n%s", before, after)
	}
	server.signal(t, syscall.SIGTERM)
	do("serve", "--nats", url, "--nkey", key).want(t, 1).says(t, "the NATS server does not serve this ledger")
}
