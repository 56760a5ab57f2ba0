package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
