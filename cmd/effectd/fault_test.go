package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events/wire"
)

// A node that was killed leaves node.json behind: commands say so, verify reads
// the directory at rest, and the next node starts.
func TestKilled(t *testing.T) {
	dir := ledgerDir(t)
	if code := serve(t, dir).signal(t, syscall.SIGKILL); code == 0 {
		t.Fatal("it was not killed")
	}
	if !exists(filepath.Join(dir, "node.json")) {
		t.Fatal("node.json is gone: this test shows nothing")
	}
	effectd(t, "list", "--data", dir).want(t, 4).says(t, "killed", "effectd serve")
	if r := effectd(t, "doctor", "--data", dir).want(t, 0); !strings.Contains(r.out, "killed") {
		t.Error(r.out)
	}
	if r := effectd(t, "user", "add", "later", "--role", "auditor", "--data", dir).want(t, 0); !strings.Contains(r.out, "next effectd serve") {
		t.Error(r.out)
	}
	effectd(t, "verify", "--data", dir).want(t, 0)
	serve(t, dir)
	effectd(t, "ledger", "status", "--as", "later", "--data", dir).want(t, 0)
}

// An untrusted ledger is served for reading, says why, and is exit code 4.
func TestUntrusted(t *testing.T) {
	dir := ledgerDir(t)
	if err := os.RemoveAll(filepath.Join(dir, "anchor")); err != nil {
		t.Fatal(err)
	}
	node := serve(t, dir)
	var ready embedded.Ready
	if err := json.Unmarshal([]byte(node.first), &ready); err != nil || !ready.Ready || ready.Trusted || ready.Reason == "" {
		t.Fatalf("ready line %s: %v", node.first, err)
	}
	s := object[wire.Status](t, effectd(t, "ledger", "status", "--json", "--data", dir).want(t, 4))
	if s.Trusted || s.Reason == "" {
		t.Errorf("status: %+v", s)
	}
	effectd(t, "list", "--data", dir).want(t, 0)
	effectd(t, "task", "open", "x", "--data", dir).want(t, 4).says(t, "ledger_untrusted", "effectd verify")
	if r := effectd(t, "doctor", "--data", dir).want(t, 4); !strings.Contains(r.out, "NOT TRUSTED") {
		t.Error(r.out)
	}
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
}

// theBlock is the one message block of the log of a node at rest.
func theBlock(t *testing.T, dir string) string {
	blocks, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "EFFECTS", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("blocks %v: %v", blocks, err)
	}
	return blocks[0]
}

// flip changes one bit of the entry that holds a text.
func flip(t *testing.T, block, text string) {
	body, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(body, []byte(text))
	if at < 0 {
		t.Fatal("the entry is not there")
	}
	body[at] ^= 1
	if err := os.WriteFile(block, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A log that the server would cut short: verify says that the anchor has seen
// more, leaves the evidence as it is, and rebuild gives up no projection for it.
func TestCutLog(t *testing.T) {
	dir := ledgerDir(t)
	serve(t, dir).signal(t, syscall.SIGTERM)
	block := theBlock(t, dir)
	flip(t, block, "access-changed")
	if err := os.Remove(filepath.Join(filepath.Dir(block), "index.db")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	r := effectd(t, "verify", "--json", "--data", dir).want(t, 4)
	if report := object[audit.Report](t, r); report.First == nil || !strings.Contains(report.First.Message, "the anchor has seen") {
		t.Errorf("report: %s", r.out)
	}
	effectd(t, "rebuild", "--data", dir).want(t, 4).says(t, "the anchor has seen")
	if after, err := os.ReadFile(block); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the store was changed: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "anchor")); err != nil {
		t.Fatal(err)
	}
	effectd(t, "verify", "--data", dir).want(t, 4)
	effectd(t, "doctor", "--data", dir).want(t, 1)
}

// A flipped bit in the store: verify names the position and does not succeed.
func TestDamaged(t *testing.T) {
	dir := ledgerDir(t)
	flip(t, theBlock(t, dir), "access-changed")
	r := effectd(t, "verify", "--json", "--data", dir)
	if r.code == 0 {
		t.Fatalf("verified: %s", r.out)
	}
	if report := object[audit.Report](t, r); report.First == nil || report.First.Position.Seq != 2 {
		t.Errorf("report: %s", r.out)
	}
}
