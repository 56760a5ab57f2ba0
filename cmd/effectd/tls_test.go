package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/effectd/effectd/embedded/certtest"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// With TLS the commands of the directory trust its certificate by themselves;
// from elsewhere they are told what to trust.
func TestTLS(t *testing.T) {
	dir, ca := ledgerDir(t), certtest.New(t)
	withCharge(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	ca.Issue(t, dir, "ledger.test", time.Now().Add(30*24*time.Hour))
	writeTo(t, dir, "effectd.yaml", "tls: {cert: server.pem, key: server.key}\n")
	node := serve(t, dir, "--listen", "0.0.0.0:0")
	var here running
	readJSON(t, filepath.Join(dir, "node.json"), &here)
	if !strings.HasPrefix(here.NATSURL, "tls://0.0.0.0:") || here.TLSName != "ledger.test" {
		t.Errorf("%+v", here)
	}
	if strings.Contains(node.errs.String(), "without TLS") {
		t.Error(node.errs)
	}
	do("task", "open", "shop", "-b", "usd_cents=1000", "--holder", "main/producer").want(t, 0)
	e := object[wire.Effect](t, do("submit", "--json", "-t", "shop", "-o", "charge", "--wait", "terminal", `{"account":"a","amount":1}`).want(t, 0))
	if e.Outcome != events.OutcomeSucceeded {
		t.Errorf("%+v", e)
	}
	do("user", "add", "second", "--role", "producer").want(t, 0)
	do("policy", "show").want(t, 0)
	do("ledger", "status", "--tls-ca", certtest.New(t).File).want(t, 4).says(t, "certificate", "--tls-ca")
	elsewhere := []string{"ledger", "status", "--nats", strings.Replace(here.NATSURL, "0.0.0.0", "127.0.0.1", 1), "--nkey", filepath.Join(dir, "keys", "operator.nk")}
	effectd(t, elsewhere...).want(t, 4).says(t, "authority", "→ ", "--tls-ca")
	effectd(t, append(elsewhere, "--tls-ca", ca.File)...).want(t, 0)
	effectd(t, append(elsewhere, "--tls-ca", filepath.Join(dir, "server.key"))...).want(t, 1).says(t, "no certificate to trust", "server.key")

	if r := do("doctor").want(t, 0); !strings.Contains(r.out, "the certificate is for ledger.test, until ") || strings.Contains(r.out, "without TLS") {
		t.Error(r.out)
	}
	if r := do("nats-config").want(t, 0); !strings.Contains(r.out, "tls {\n  cert_file: \""+filepath.Join(dir, "server.pem")+"\"") {
		t.Error(r.out)
	}
	ca.Issue(t, dir, "ledger.test", time.Now().Add(24*time.Hour))
	if r := do("doctor").want(t, 0); !strings.Contains(r.out, "renew it") {
		t.Error(r.out)
	}
	ca.Issue(t, dir, "renewed.test", time.Now().Add(-time.Hour))
	if r := do("doctor").want(t, 1); !strings.Contains(r.out, "it has expired") {
		t.Error(r.out)
	}
	ca.Issue(t, dir, "renewed.test", time.Now().Add(30*24*time.Hour))
	do("policy", "apply").want(t, 0)
	do("ledger", "status").want(t, 0) // under its new name
	if err := os.Chmod(filepath.Join(dir, "server.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	do("doctor").want(t, 1)
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	do("verify").want(t, 0)
	writeTo(t, dir, "server.pem", "damaged")
	effectd(t, "serve", "--data", dir, "--listen", "127.0.0.1:0").want(t, 1).says(t, "tls")
	do("verify").want(t, 0) // needs no listener
}

// A listener that other machines reach without TLS is warned of.
func TestWithoutTLS(t *testing.T) {
	dir := ledgerDir(t)
	node := serve(t, dir, "--listen", "0.0.0.0:0")
	if r := effectd(t, "doctor", "--data", dir).want(t, 0); !strings.Contains(r.out, "warning") || !strings.Contains(r.out, "without TLS") {
		t.Error(r.out)
	}
	if code := node.signal(t, syscall.SIGTERM); code != 0 || !strings.Contains(node.errs.String(), "without TLS") {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	node = serve(t, dir)
	if r := effectd(t, "doctor", "--data", dir).want(t, 0); strings.Contains(r.out, "without TLS") {
		t.Error(r.out)
	}
	if node.signal(t, syscall.SIGTERM); strings.Contains(node.errs.String(), "without TLS") {
		t.Error(node.errs)
	}
}
