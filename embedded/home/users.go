package home

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"

	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
)

// The decisions about users that an error leaves to the caller.
var (
	// ErrUnknownUser: no such row.
	ErrUnknownUser = errors.New("unknown user")
	// ErrUserExists: the principal is in the table already.
	ErrUserExists = errors.New("user exists")
	// ErrLastOperator: nobody else could settle, revoke or open a task.
	ErrLastOperator = errors.New("the last operator")
)

const usersHeader = `# The users of this ledger: a proposal that effectd serve loads into the log.
# Kept by effectd user add and effectd user remove.
`

// NewUser is a user to add.
type NewUser struct {
	Tenant     events.Tenant // default main
	Principal  events.Principal
	Role       events.Role
	Operations []string // of an executor
	PublicKey  string   // empty: a fresh key is made and written to keys/
}

type usersFile struct {
	Users []userRow `yaml:"users"`
}

type userRow struct {
	Tenant     string   `yaml:"tenant"`
	Principal  string   `yaml:"principal"`
	Role       string   `yaml:"role"`
	PublicKey  string   `yaml:"public_key"`
	Operations []string `yaml:"operations,omitempty,flow"`
}

// Users reads the table, sorted by tenant and principal.
func (h *Home) Users() ([]events.User, error) {
	text, err := os.ReadFile(h.UsersFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	var file usersFile
	if err := ParseYAML(h.UsersFile(), text, &file); err != nil {
		return nil, err
	}
	users := make([]events.User, len(file.Users))
	for i, r := range file.Users {
		users[i] = events.User{Tenant: events.Tenant(r.Tenant), Principal: events.Principal(r.Principal), Role: events.Role(r.Role),
			PublicKey: r.PublicKey, Operations: r.Operations}
	}
	if err := natsserver.CheckUsers(users); err != nil {
		return nil, fmt.Errorf("%s: %w", h.UsersFile(), err)
	}
	slices.SortFunc(users, compareUsers)
	return users, nil
}

func compareUsers(a, b events.User) int {
	return cmp.Or(strings.Compare(string(a.Tenant), string(b.Tenant)), strings.Compare(string(a.Principal), string(b.Principal)))
}

// AddUser adds a row and, unless a public key is given, makes the key and says
// where it lies. The key is written first: a crash leaves a key that is nobody's
// and that the next AddUser replaces (H6), never a user without a key.
func (h *Home) AddUser(n NewUser) (u events.User, keyFile string, err error) {
	if n.Tenant == "" {
		n.Tenant = DefaultTenant
	}
	u = events.User{Tenant: n.Tenant, Principal: n.Principal, Role: n.Role, PublicKey: n.PublicKey, Operations: n.Operations}
	unlock, err := h.lockKeys()
	if err != nil {
		return u, "", err
	}
	defer unlock()
	users, err := h.Users()
	if err != nil {
		return u, "", err
	}
	if slices.ContainsFunc(users, func(o events.User) bool { return o.Tenant == u.Tenant && o.Principal == u.Principal }) {
		return u, "", fmt.Errorf("%s/%s: %w", u.Tenant, u.Principal, ErrUserExists)
	}
	var seed []byte
	if u.PublicKey == "" {
		if seed, u.PublicKey, err = newSeed(); err != nil {
			return u, "", fmt.Errorf("add user: %w", err)
		}
		defer clear(seed)
	}
	after := append(users, u)
	// Before a name becomes a path.
	if err := natsserver.CheckUsers(after); err != nil {
		return u, "", err
	}
	if seed != nil {
		keyFile = h.freeKeyFile(u, users)
		if err := writeSeed(keyFile, seed); err != nil {
			return u, "", fmt.Errorf("add user: %w", err)
		}
	}
	return u, keyFile, h.writeUsers(after)
}

// RemoveUser takes a row away and deletes its key. The row goes first: from then
// on the key opens nothing. The last operator of all, or of a tenant that has
// other users, stays: [ErrLastOperator].
func (h *Home) RemoveUser(t events.Tenant, p events.Principal) error {
	unlock, err := h.lockKeys()
	if err != nil {
		return err
	}
	defer unlock()
	users, err := h.Users()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(users, func(u events.User) bool { return u.Tenant == t && u.Principal == p })
	if i < 0 {
		return fmt.Errorf("%s/%s: %w", t, p, ErrUnknownUser)
	}
	gone := users[i]
	if gone.Role == events.RoleOperator && !operated(slices.Delete(slices.Clone(users), i, i+1), t) {
		return fmt.Errorf("%s/%s is %w", t, p, ErrLastOperator)
	}
	if err := h.writeUsers(slices.Delete(users, i, i+1)); err != nil {
		return err
	}
	for _, file := range h.keyFiles(t, p) {
		if pub, err := PublicKeyOf(file); err == nil && pub == gone.PublicKey {
			return removeFile(file)
		}
	}
	return nil
}

// operated reports whether an operator is left, and one of the tenant if the
// tenant has users.
func operated(users []events.User, t events.Tenant) bool {
	inTenant := slices.DeleteFunc(slices.Clone(users), func(u events.User) bool { return u.Tenant != t })
	operates := func(u events.User) bool { return u.Role == events.RoleOperator }
	return slices.ContainsFunc(users, operates) && (len(inTenant) == 0 || slices.ContainsFunc(inTenant, operates))
}

func (h *Home) writeUsers(users []events.User) error {
	slices.SortFunc(users, compareUsers)
	file := usersFile{Users: make([]userRow, len(users))}
	for i, u := range users {
		file.Users[i] = userRow{Tenant: string(u.Tenant), Principal: string(u.Principal), Role: string(u.Role), PublicKey: u.PublicKey, Operations: u.Operations}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("users: %w", err)
	}
	return writeFile(h.UsersFile(), append([]byte(usersHeader), text...), fileMode)
}

// freeKeyFile is the first place that holds no other user's key.
func (h *Home) freeKeyFile(u events.User, users []events.User) string {
	files := h.keyFiles(u.Tenant, u.Principal)
	pub, err := PublicKeyOf(files[0])
	if err == nil && slices.ContainsFunc(users, func(o events.User) bool { return o.PublicKey == pub }) {
		return files[1]
	}
	return files[0]
}

// lockKeys holds other processes off the table of users.
func (h *Home) lockKeys() (unlock func(), err error) {
	f, err := flock(h.KeysDir(), os.O_RDONLY, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
