package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
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

// SPEC 20: the layout, and H5.
func TestInitLayout(t *testing.T) {
	h := initHome(t)
	want := map[string]os.FileMode{
		"keys": dirMode, "operations": dirMode, "nats": dirMode, "projection": dirMode, "anchor": dirMode, "spool": dirMode,
		"keys/producer.nk": secretMode, "keys/approver.nk": secretMode, "keys/operator.nk": secretMode, "keys/auditor.nk": secretMode,
		"keys/executor.nk": secretMode, "policy.cedar": fileMode, "effectd.yaml": fileMode, "users.yaml": fileMode,
		"ledger.json": fileMode, "lock": secretMode,
	}
	if got := listing(t, h.Dir()); !reflect.DeepEqual(got, want) {
		t.Errorf("layout\n%v\nwant\n%v", got, want)
	}
	if text, err := os.ReadFile(h.PolicyFile()); err != nil || string(text) != policyText {
		t.Errorf("policy: %q %v", text, err)
	}
	if h.Created() != events.InstantOf(made) || len(h.LedgerID()) != 26 {
		t.Errorf("identity: %v %v", h.LedgerID(), h.Created())
	}
	users, err := h.Users()
	if err != nil || len(users) != 5 {
		t.Fatalf("users: %v %v", users, err)
	}
	for _, u := range users {
		if u.Tenant != "main" || string(u.Principal) != string(u.Role) {
			t.Errorf("user %+v", u)
		}
		file, err := h.KeyFile(u.Tenant, u.Principal)
		if err != nil || file != filepath.Join(h.KeysDir(), string(u.Role)+".nk") {
			t.Errorf("key of %s: %s %v", u.Principal, file, err)
		}
		if (u.Role == events.RoleExecutor) != reflect.DeepEqual(u.Operations, []string{natsserver.AllOperations}) {
			t.Errorf("operations of %s: %v", u.Principal, u.Operations)
		}
	}
	if c, err := h.LoadConfig(); err != nil || !reflect.DeepEqual(c, Config{}.WithDefaults()) {
		t.Errorf("config: %+v %v", c, err)
	}
}

func TestInitRefusals(t *testing.T) {
	h := initHome(t)
	before := listing(t, h.Dir())
	if _, err := Init(h.Dir(), InitOptions{Now: made}, nothing); !errors.Is(err, ErrExists) {
		t.Errorf("a ledger: %v", err)
	}
	if after := listing(t, h.Dir()); !reflect.DeepEqual(before, after) {
		t.Errorf("changed: %v", after)
	}
	// H2: without the identity it still is no unfinished init.
	if err := os.Remove(h.identityFile()); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(h.Dir(), InitOptions{Now: made}, nothing); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("files of somebody: %v", err)
	}
	if _, err := Open(h.Dir(), ""); !errors.Is(err, ErrNotLedger) || !strings.Contains(err.Error(), "run effectd init --data "+h.Dir()) {
		t.Errorf("no ledger: %v", err)
	}
	if _, err := os.Stat(filepath.Join(h.KeysDir(), "producer.nk")); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing"), ""); !errors.Is(err, ErrNotLedger) {
		t.Errorf("no directory: %v", err)
	}
}

// The owner may have put contracts there before.
func TestInitKeepsOperations(t *testing.T) {
	dir := t.TempDir()
	contract := filepath.Join(dir, "operations", "charge.yaml")
	if err := os.MkdirAll(filepath.Dir(contract), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(contract, []byte("name: charge\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fail := errors.New("no stream")
	if _, err := Init(dir, InitOptions{Now: made}, func(*Home) error { return fail }); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	if _, err := Init(dir, InitOptions{Now: made}, nothing); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(contract); err != nil || string(text) != "name: charge\n" {
		t.Errorf("%q %v", text, err)
	}
}

// H1: cut after every step, the directory is no ledger and init begins again;
// after the last but one it is.
func TestInitCutAfterEveryStep(t *testing.T) {
	total := 1
	for cut := 0; cut <= total; cut++ {
		dir := t.TempDir()
		o := InitOptions{Policy: policyText, Now: made, ID: "first", Tenant: DefaultTenant}
		h := at(dir, "")
		h.identity = identity{V: events.Format, LedgerID: o.ID, Created: events.InstantOf(o.Now)}
		marker := filepath.Join(h.NATSDir(), "stream")
		steps := h.initSteps(o, func(h *Home) error { return os.WriteFile(marker, nil, 0o600) })
		total = len(steps)
		for _, step := range steps[:cut] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		_, openErr := Open(dir, "")
		_, initErr := Init(dir, InitOptions{Policy: policyText, Now: made, ID: "second"}, func(h *Home) error {
			if exists(marker) {
				t.Errorf("cut %d: the stream of the unfinished init is still there", cut)
			}
			return nil
		})
		want := events.LedgerID("second")
		switch {
		case cut == 0:
			if !errors.Is(openErr, ErrNotLedger) || initErr != nil {
				t.Errorf("cut %d: %v, %v", cut, openErr, initErr)
			}
		case cut < total-1:
			if !errors.Is(openErr, ErrUnfinished) || initErr != nil {
				t.Errorf("cut %d: %v, %v", cut, openErr, initErr)
			}
		default: // a ledger
			want = "first"
			if openErr != nil || !errors.Is(initErr, ErrExists) {
				t.Errorf("cut %d: %v, %v", cut, openErr, initErr)
			}
		}
		got, err := Open(dir, "")
		if err != nil || got.LedgerID() != want {
			t.Fatalf("cut %d: %v %v, want %s", cut, got, err, want)
		}
		if users, err := got.Users(); err != nil || len(users) != 5 {
			t.Errorf("cut %d: users %v %v", cut, users, err)
		}
	}
}

func TestOperationFiles(t *testing.T) {
	h := initHome(t)
	for _, name := range []string{"b.yml", "a.yaml", "c.json", ".hidden.yaml", "d.yaml~"} {
		if err := os.WriteFile(filepath.Join(h.OperationsDir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(h.OperationsDir(), "e.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	contracts, others, err := h.OperationFiles()
	below := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(h.OperationsDir(), n))
		}
		return out
	}
	if err != nil || !reflect.DeepEqual(contracts, below("a.yaml", "b.yml")) || !reflect.DeepEqual(others, below("c.json", "d.yaml~")) {
		t.Errorf("%v, %v, %v", contracts, others, err)
	}
	if err := os.RemoveAll(h.OperationsDir()); err != nil {
		t.Fatal(err)
	}
	if contracts, others, err := h.OperationFiles(); contracts != nil || others != nil || err != nil {
		t.Errorf("without the directory: %v, %v, %v", contracts, others, err)
	}
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

func TestInitWhileRunning(t *testing.T) {
	dir := t.TempDir()
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, InitOptions{Now: made}, nothing); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	_ = lock.Release()
}
