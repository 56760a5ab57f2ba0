package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

const policyText = "// policy\n"

func nothing(*Home) error { return nil }

func initHome(t *testing.T) *Home {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Init(dir, InitOptions{Policy: policyText, Now: made}, nothing); err != nil {
		t.Fatal(err)
	}
	h, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// listing is every path below dir with its mode.
func listing(t *testing.T, dir string) map[string]os.FileMode {
	t.Helper()
	out := map[string]os.FileMode{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		out[rel] = info.Mode().Perm()
		if !d.IsDir() && out[rel] != secretMode {
			out[rel] = fileMode // as the umask has it
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpenRefusesAStrangeIdentity(t *testing.T) {
	h := initHome(t)
	for _, text := range []string{"", "{", `{"v":2,"ledger_id":"x","created":"2026-01-02T03:04:05Z"}`, `{"v":1,"ledger_id":"","created":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"ledger_id":"x","created":"2026-01-02T03:04:05Z","more":1}`} {
		if err := os.WriteFile(h.identityFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(h.Dir(), ""); err == nil {
			t.Errorf("%q opened", text)
		}
	}
}

func TestConfigDirectory(t *testing.T) {
	h := initHome(t)
	other, err := Open(h.Dir(), "/etc/effectd")
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		other.ConfigFile(): "/etc/effectd/effectd.yaml", other.PolicyFile(): "/etc/effectd/policy.cedar",
		other.OperationsDir(): "/etc/effectd/operations", other.SecretsDir(): "/etc/effectd/secrets",
		other.UsersFile(): filepath.Join(h.Dir(), "users.yaml"), other.NATSDir(): filepath.Join(h.Dir(), "nats"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// H3: a second lock fails, in this process and in another; it is free again when
// the holder lets go or dies.
func TestLock(t *testing.T) {
	if dir := os.Getenv("LOCK_DIR"); dir != "" { // the other process
		if _, err := Acquire(dir); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		fmt.Println("locked")
		select {}
	}
	dir := t.TempDir()
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("again: %v", err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	child := exec.CommandContext(bounded, os.Args[0], "-test.run=^TestLock$")
	child.Env = append(os.Environ(), "LOCK_DIR="+dir)
	if out, err := child.Output(); err == nil || !strings.Contains(string(out), ErrLocked.Error()) {
		t.Errorf("another process: %s %v", out, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	child = exec.CommandContext(bounded, os.Args[0], "-test.run=^TestLock$")
	child.Env = append(os.Environ(), "LOCK_DIR="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 6)
	if _, err := out.Read(said); err != nil || string(said) != "locked" {
		t.Fatalf("child: %q %v", said, err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("while another holds it: %v", err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	lock, err = Acquire(dir)
	if err != nil {
		t.Fatalf("after the holder died: %v", err)
	}
	_ = lock.Release()
}
