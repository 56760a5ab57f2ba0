package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/effectd/effectd/events/wire"
)

// Contracts end in .yaml or .yml; what else lies among them is named, and is no
// reason for an exit code.
func TestDoctorNamesStrayFiles(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	at := func(name string) string { return filepath.Join(dir, "operations", name) }
	if err := os.Rename(at("charge.yaml"), at("charge.yml")); err != nil {
		t.Fatal(err)
	}
	doctor := func(code int, says ...string) string {
		t.Helper()
		r := effectd(t, "doctor", "--data", dir).want(t, code)
		for _, words := range says {
			if !strings.Contains(r.out, words) {
				t.Errorf("doctor does not say %q:\n%s", words, r.out)
			}
		}
		return r.out
	}
	if out := doctor(0, "1 contract compiles"); strings.Contains(out, "not read") {
		t.Error(out)
	}
	for _, name := range []string{"refund.json", ".charge.yml.swp"} {
		if err := os.WriteFile(at(name), []byte("name: refund\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := doctor(0, "warning", "1 contract compiles", "not read: "+at("refund.json")+"\n"); strings.Contains(out, ".swp") || strings.Contains(out, at("old")) {
		t.Error(out)
	}
	for _, name := range []string{"refund.yml", "more.yaml"} {
		if err := os.WriteFile(at(name), []byte("name: refund\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doctor(1, "fault", at("refund.yml"), at("more.yaml"))
}

// What serve would refuse, the doctor finds: running and at rest.
func TestDoctorFindsChangedVersion(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	node := serve(t, dir)
	file := filepath.Join(dir, "operations", "charge.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doctor := func(code int, words string) {
		t.Helper()
		if r := effectd(t, "doctor", "--data", dir).want(t, code); !strings.Contains(r.out, words) {
			t.Errorf("doctor does not say %q:\n%s", words, r.out)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := strings.Replace(string(text), "timeout: 2s", "timeout: 3s", 1)
	doctor(0, "no registered contract was changed")
	write(changed)
	doctor(1, file+": operation charge version 1 is registered with another contract")
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	doctor(1, file+": operation charge version 1 is registered with another contract")
	write(string(text))
	doctor(0, "no registered contract was changed")
}

// A queue that is off while the ledger is not trusted needs no other ledger.
func TestDoctorOnQueue(t *testing.T) {
	off := wire.Intake{Reason: "why"}
	if d := queued(&off, false); strings.Contains(d.Do, "init") || d.Verdict != "warning" {
		t.Errorf("%+v", d)
	}
	if d := queued(&off, true); !strings.Contains(d.Do, "init") {
		t.Errorf("%+v", d)
	}
}
