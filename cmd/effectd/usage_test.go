package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/effectd/effectd/events/wire"
)

// M1: what makes no sense is exit code 2, with the way out.
func TestUsage(t *testing.T) {
	for name, args := range map[string]string{
		"no command":             "",
		"unknown command":        "frobnicate",
		"unknown flag":           "list --frobnicate",
		"missing flag":           "submit {}",
		"missing argument":       "admit",
		"named twice":            "history x --run-id a --causal-id b",
		"no evidence":            "settle x --outcome failed",
		"half an evidence":       "settle x --outcome failed --source books",
		"bad amount":             "task open x --budget usd=many",
		"bad state":              "list --state lost",
		"bad wait":               "get x --wait long",
		"bad time":               "task open x --expires soon",
		"no effect named":        "get",
		"half an effect":         "get --run-id x",
		"url without key":        "get x --nats nats://127.0.0.1:1",
		"unknown role":           "user add x --role king",
		"unknown event":          "watch --type happened",
		"unknown schema":         "schema event.happened",
		"serve: url without key": "serve --nats nats://127.0.0.1:1",
		"init: key without url":  "init --nkey /dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			r := effectd(t, strings.Fields(args)...).want(t, 2).says(t, "effectd: ", "→ ")
			if r.out != "" {
				t.Errorf("stdout: %s", r.out)
			}
		})
	}
}

// An answer that nobody can read is no success.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	c := exec.Command(binary, "version")
	c.Stdout = full
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"submit", "--help"}, {"task", "open", "--help"}} {
		if r := effectd(t, args...).want(t, 0); !strings.Contains(r.out, "Usage: effectd") || r.err != "" {
			t.Errorf("%v: %s %s", args, r.out, r.err)
		}
	}
}

// Without a ledger every command says how to get one.
func TestWithoutLedger(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"serve"}, {"get", "x"}, {"verify"}, {"rebuild"}, {"user", "list"}, {"nats-config"}, {"ledger", "status"}} {
		effectd(t, append(args, "--data", dir)...).want(t, 1).says(t, "effectd init")
		if reply := object[wire.ErrorReply](t, effectd(t, append(args, "--data", dir, "--json")...).want(t, 1)); reply.Error == nil || reply.Error.Message == "" {
			t.Errorf("%v: no error body", args)
		}
	}
	effectd(t, "doctor", "--data", dir).want(t, 1)
	if exists(dir) {
		t.Error("a command made the directory")
	}
}

// With a ledger and no node, every client command is exit code 4.
func TestWithoutNode(t *testing.T) {
	dir := ledgerDir(t)
	for _, args := range [][]string{{"get", "x"}, {"list"}, {"watch"}, {"ledger", "status"}, {"task", "get", "x"}, {"submit", "-t", "x", "-o", "x", "{}"}} {
		effectd(t, append(args, "--data", dir)...).want(t, 4).says(t, "effectd serve")
	}
	if r := object[wire.ErrorReply](t, effectd(t, "get", "x", "--data", dir, "--json").want(t, 4)); r.Error.Code != wire.LedgerUnavailable {
		t.Errorf("code %s", r.Error.Code)
	}
	effectd(t, "get", "x", "--nats", "nats://127.0.0.1:1", "--nkey", filepath.Join(dir, "keys", "operator.nk")).want(t, 4)
	effectd(t, "submit", "-t", "x", "-o", "x", `{"a":1,"a":2}`, "--data", dir).want(t, 1).says(t, "invalid_payload", "payload")
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	made := object[struct {
		LedgerID string   `json:"ledger_id"`
		Data     string   `json:"data"`
		Keys     []string `json:"keys"`
	}](t, effectd(t, "init", "--data", dir, "--json").want(t, 0))
	if made.LedgerID == "" || made.Data != dir || len(made.Keys) != 5 {
		t.Errorf("made %+v", made)
	}
	effectd(t, "init", "--data", dir).want(t, 1).says(t, "exists already")
	if r := effectd(t, "user", "list", "--data", dir).want(t, 0); strings.Count(r.out, "main/") != 5 {
		t.Errorf("users: %s", r.out)
	}
	if r := effectd(t, "nats-config", "--data", dir).want(t, 0); !strings.Contains(r.out, "EFFECTD_USERS") {
		t.Errorf("configuration: %s", r.out)
	}
	if r := effectd(t, "nats-config", "--stream", "--data", dir).want(t, 0); !strings.Contains(r.out, `"deny_delete": true`) {
		t.Errorf("stream: %s", r.out)
	}
}
