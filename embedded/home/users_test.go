package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/effectd/effectd/events"
)

func TestAddAndRemoveUser(t *testing.T) {
	h := initHome(t)
	u, file, err := h.AddUser(NewUser{Principal: "alice", Role: events.RoleProducer})
	if err != nil {
		t.Fatal(err)
	}
	if file != filepath.Join(h.KeysDir(), "alice.nk") {
		t.Errorf("key file %s", file)
	}
	if pub, err := PublicKeyOf(file); err != nil || pub != u.PublicKey {
		t.Errorf("key: %s %v, want %s", pub, err, u.PublicKey)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != secretMode {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
	if _, _, err := h.AddUser(NewUser{Principal: "alice", Role: events.RoleAuditor}); !errors.Is(err, ErrUserExists) {
		t.Errorf("again: %v", err)
	}
	if pub, err := PublicKeyOf(file); err != nil || pub != u.PublicKey {
		t.Error("a refused user changed the key")
	}
	// The same name in another tenant has a key of its own.
	v, other, err := h.AddUser(NewUser{Tenant: "acme", Principal: "alice", Role: events.RoleProducer})
	if err != nil || other != filepath.Join(h.KeysDir(), "acme.alice.nk") || v.PublicKey == u.PublicKey {
		t.Errorf("other tenant: %s %v", other, err)
	}
	for tenant, want := range map[events.Tenant]string{"main": file, "acme": other} {
		if got, err := h.KeyFile(tenant, "alice"); err != nil || got != want {
			t.Errorf("key file in %s: %s %v", tenant, got, err)
		}
	}
	users, err := h.Users()
	if err != nil || len(users) != 7 || !slices.IsSortedFunc(users, compareUsers) || users[0].Tenant != "acme" {
		t.Errorf("users: %v %v", users, err)
	}
	if err := h.RemoveUser("main", "alice"); err != nil {
		t.Fatal(err)
	}
	if exists(file) || !exists(other) {
		t.Error("the wrong key is gone")
	}
	if err := h.RemoveUser("main", "alice"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("again: %v", err)
	}
	if _, err := h.KeyFile("main", "alice"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("key of nobody: %v", err)
	}
	// H6
	w, _, err := h.AddUser(NewUser{Principal: "alice", Role: events.RoleProducer})
	if err != nil || w.PublicKey == u.PublicKey {
		t.Errorf("the old key is back: %v", err)
	}
}

// H6: a key that is nobody's, left by a crash or a removed user, is replaced.
func TestOrphanKeyIsReplaced(t *testing.T) {
	h := initHome(t)
	seed, pub, err := newSeed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.KeysDir(), "bob.nk")
	if err := writeSeed(file, seed); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".tmp", nil, 0o644); err != nil { // of a crash
		t.Fatal(err)
	}
	u, got, err := h.AddUser(NewUser{Principal: "bob", Role: events.RoleProducer})
	if err != nil || got != file || u.PublicKey == pub {
		t.Errorf("%v %s %v", u, got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != secretMode {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
}

func TestUserWithItsOwnKey(t *testing.T) {
	h := initHome(t)
	_, pub, err := newSeed()
	if err != nil {
		t.Fatal(err)
	}
	u, file, err := h.AddUser(NewUser{Principal: "bob", Role: events.RoleExecutor, Operations: []string{"charge", "refund"}, PublicKey: pub})
	if err != nil || file != "" || u.PublicKey != pub || exists(filepath.Join(h.KeysDir(), "bob.nk")) {
		t.Fatalf("%v %q %v", u, file, err)
	}
	users, err := h.Users()
	if err != nil || !slices.ContainsFunc(users, func(o events.User) bool {
		return o.Principal == "bob" && slices.Equal(o.Operations, []string{"charge", "refund"})
	}) {
		t.Errorf("%v %v", users, err)
	}
	if err := h.RemoveUser("main", "bob"); err != nil {
		t.Error(err)
	}
}

func TestBadUsers(t *testing.T) {
	h := initHome(t)
	before := listing(t, h.Dir())
	for _, u := range []NewUser{
		{Principal: "ledger", Role: events.RoleProducer}, {Tenant: "_", Principal: "x", Role: events.RoleProducer}, {Principal: "../x", Role: events.RoleProducer},
		{Principal: "A", Role: events.RoleProducer}, {Principal: "", Role: events.RoleProducer}, {Principal: "x", Role: "root"}, {Principal: "x"},
		{Principal: "x", Role: events.RoleProducer, Operations: []string{"charge"}}, {Principal: "x", Role: events.RoleProducer, PublicKey: "UX"},
	} {
		if _, _, err := h.AddUser(u); err == nil {
			t.Errorf("%+v accepted", u)
		}
	}
	if after := listing(t, h.Dir()); len(after) != len(before) {
		t.Errorf("left behind: %v", after)
	}
	for name, text := range map[string]string{
		"unknown key":  "users:\n  - {tenant: main, principal: a, rule: producer, public_key: x}\n",
		"reserved":     "users:\n  - {tenant: main, principal: ledger, role: producer, public_key: x}\n",
		"wrong kind":   "users: 3\n",
		"two of a key": "users: []\nusers: []\n",
	} {
		if err := os.WriteFile(h.UsersFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Users(); err == nil || !strings.Contains(err.Error(), h.UsersFile()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Concurrent changes lose nobody.
func TestUsersAreSerialized(t *testing.T) {
	h := initHome(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, _, err := h.AddUser(NewUser{Principal: events.Principal(fmt.Sprint("u", i)), Role: events.RoleProducer}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if users, err := h.Users(); err != nil || len(users) != 13 {
		t.Errorf("%d users, %v", len(users), err)
	}
}

// H5: a bad key file is named, its content is not.
func TestLoadKey(t *testing.T) {
	h := initHome(t)
	file := filepath.Join(t.TempDir(), "key")
	for _, text := range []string{"", "SUSECRET", "SAAMHU4H2P4BR4VJJOA5MCPNQ3LYXKMLEMMVS4DD7OCXRQLNTQCVOGXTSA\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadKey(file)
		if err == nil || !strings.Contains(err.Error(), file) || text != "" && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	first, err := h.LedgerKeyFile()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := PublicKeyOf(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.LedgerKeyFile()
	if err != nil || second != first {
		t.Fatal(second, err)
	}
	if again, err := PublicKeyOf(second); err != nil || again != pub {
		t.Error("the ledger's key changed")
	}
}

// The last operator stays: of all, and of a tenant that has other users.
func TestLastOperator(t *testing.T) {
	h := initHome(t)
	remove := func(tenant events.Tenant, name events.Principal, want error) {
		t.Helper()
		if err := h.RemoveUser(tenant, name); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("remove %s/%s: %v, want %v", tenant, name, err, want)
		}
	}
	add := func(tenant events.Tenant, name events.Principal, role events.Role) {
		t.Helper()
		if _, _, err := h.AddUser(NewUser{Tenant: tenant, Principal: name, Role: role}); err != nil {
			t.Fatal(err)
		}
	}
	remove("main", "operator", ErrLastOperator)
	add("other", "boss", events.RoleOperator)
	remove("main", "operator", ErrLastOperator) // main has a producer
	add("main", "second", events.RoleOperator)
	remove("main", "operator", nil)
	remove("main", "second", ErrLastOperator)
	add("other", "worker", events.RoleProducer)
	remove("other", "boss", ErrLastOperator)
	remove("other", "worker", nil)
	remove("other", "boss", nil) // and with it the tenant
	if file, err := h.KeyFile("main", "second"); err != nil || !exists(file) {
		t.Error(file, err)
	}
}
