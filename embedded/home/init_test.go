package home

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
)

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

// contents is every file below dir, but for those that establish fills.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name := range listing(t, dir) {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && !strings.HasPrefix(name, "nats") && name != "lock" && name != "users.yaml" {
			out[name] = string(text)
		}
	}
	return out
}

// H1, H2: cut after every step, the directory is no ledger, and init goes on with
// what is there; after the last but one it is.
func TestInitCutAfterEveryStep(t *testing.T) {
	total := 1
	for cut := 0; cut <= total; cut++ {
		dir := t.TempDir()
		o := InitOptions{Policy: policyText, Now: made, Tenant: DefaultTenant}
		h := at(dir, "")
		if err := h.begin(o); err != nil {
			t.Fatal(err)
		}
		marker := filepath.Join(h.NATSDir(), "stream")
		steps := h.initSteps(o, func(h *Home) error { return os.WriteFile(marker, nil, 0o600) })
		total = len(steps)
		for _, step := range steps[:cut] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		before := contents(t, dir)
		_, openErr := Open(dir, "")
		begun, begunErr := OpenBegun(dir)
		if begunErr == nil {
			if users, err := begun.Users(); begun.LedgerID() != h.LedgerID() || err != nil || len(users) != 5 {
				t.Errorf("cut %d: begun %s with %d users, %v", cut, begun.LedgerID(), len(users), err)
			}
		} else if cut >= total-3 {
			t.Errorf("cut %d: all keys are made, and it does not open: %v", cut, begunErr)
		}
		_, initErr := Init(dir, o, func(h *Home) error {
			if exists(marker) {
				t.Errorf("cut %d: the stream of the unfinished init is still there", cut)
			}
			return nil
		})
		switch {
		case cut == 0:
			if !errors.Is(openErr, ErrNotLedger) || !errors.Is(begunErr, ErrNotLedger) || initErr != nil {
				t.Errorf("cut %d: %v, %v, %v", cut, openErr, begunErr, initErr)
			}
		case cut < total-1:
			if !errors.Is(openErr, ErrUnfinished) || initErr != nil {
				t.Errorf("cut %d: %v, %v", cut, openErr, initErr)
			}
		default: // a ledger
			if openErr != nil || !errors.Is(initErr, ErrExists) {
				t.Errorf("cut %d: %v, %v", cut, openErr, initErr)
			}
		}
		got, err := Open(dir, "")
		if err != nil || (got.LedgerID() == h.LedgerID()) != (cut > 0) {
			t.Fatalf("cut %d: %v %v, began as %s", cut, got, err, h.LedgerID())
		}
		if users, err := got.Users(); err != nil || len(users) != 5 {
			t.Errorf("cut %d: users %v %v", cut, users, err)
		}
		after := contents(t, dir)
		for name, text := range before {
			if name != "init-unfinished" && after[name] != text {
				t.Errorf("cut %d: %s was %q, is %q", cut, name, text, after[name])
			}
		}
	}
}

// A log on an external server needs no store here, and keeps what it was begun for.
func TestInitExternal(t *testing.T) {
	dir := t.TempDir()
	o := InitOptions{Policy: policyText, Now: made, External: true}
	none := errors.New("no server")
	if _, err := Init(dir, o, func(*Home) error { return none }); !errors.Is(err, none) {
		t.Fatal(err)
	}
	h, err := OpenBegun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.ConfigFile(), []byte("replicas: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, InitOptions{Now: made}, nothing); !errors.Is(err, ErrUnfinished) {
		t.Errorf("as an embedded one: %v", err)
	}
	if _, err := Init(dir, o, nothing); err != nil {
		t.Fatal(err)
	}
	ended, err := Open(dir, "")
	if err != nil || ended.LedgerID() != h.LedgerID() || !ended.Elsewhere() || exists(ended.NATSDir()) {
		t.Errorf("%+v %v", ended, err)
	}
	if c, err := ended.LoadConfig(); err != nil || c.Replicas != 1 {
		t.Errorf("%+v %v", c, err)
	}
	if initHome(t).Elsewhere() {
		t.Error("an embedded log is elsewhere")
	}
	if err := os.Mkdir(ended.NATSDir(), 0o700); err != nil { // the store comes home
		t.Fatal(err)
	}
	if ended.Elsewhere() {
		t.Error("a log with a store here is elsewhere")
	}
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
