package home

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
)

// InitOptions is what a new ledger begins with.
type InitOptions struct {
	Policy string          // the text of policy.cedar
	Now    time.Time       // when it is made
	ID     events.LedgerID // empty: a fresh ULID
	Tenant events.Tenant   // of the first users, default main
}

// DefaultTenant is the tenant of the users that init makes.
const DefaultTenant events.Tenant = "main"

// firstRoles are the users that init makes; each is named as its role.
var firstRoles = []events.Role{events.RoleProducer, events.RoleApprover, events.RoleOperator, events.RoleAuditor, events.RoleExecutor}

// Init makes a ledger in dir, which need not exist. Once the files are there it
// calls establish, which makes the stream and the anchor; only when that has
// returned nil is the directory a ledger (H1). Until then a crash or an error
// leaves a directory that [Open] refuses with [ErrUnfinished] and that Init
// clears and begins again. It refuses with [ErrExists] a directory that has a
// ledger, or files in the places it would write.
func Init(dir string, o InitOptions, establish func(*Home) error) (*Home, error) {
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	if o.ID == "" {
		id, err := ulid.New(ulid.Timestamp(o.Now), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("init %s: %w", dir, err)
		}
		o.ID = events.LedgerID(id.String())
	}
	h := at(dir, "")
	h.identity = identity{V: events.Format, LedgerID: o.ID, Created: events.InstantOf(o.Now), NodeID: nodeID()}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	lock, err := Acquire(dir)
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	defer func() { _ = lock.Release() }()
	if err := h.vacant(); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	for _, step := range h.initSteps(o, establish) {
		if err := step(); err != nil {
			return nil, fmt.Errorf("init %s: %w", dir, err)
		}
	}
	return h, nil
}

// nodeID is 40 random bits as a token.
func nodeID() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// vacant makes sure that init may write, and clears what an unfinished init left (H2).
func (h *Home) vacant() error {
	if exists(h.identityFile()) {
		return fmt.Errorf("%s: a ledger %w", h.dir, ErrExists)
	}
	unfinished := exists(h.unfinishedFile())
	for _, path := range h.initWrites() {
		if !exists(path) {
			continue
		}
		if !unfinished {
			return fmt.Errorf("%s %w, though %s is not a ledger: move it away, or name another directory", path, ErrExists, h.dir)
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return syncDir(h.dir)
}

// initWrites are the places that init fills. The owner may have put contracts
// into operations/ already: that is no place of ours.
func (h *Home) initWrites() []string {
	return []string{h.KeysDir(), h.NATSDir(), h.ProjectionDir(), h.AnchorDir(), h.SpoolDir(), h.UsersFile(), h.PolicyFile(), h.ConfigFile()}
}

// initSteps are durable one by one, in this order; a crash may come between any two.
func (h *Home) initSteps(o InitOptions, establish func(*Home) error) []func() error {
	steps := []func() error{
		func() error {
			return writeFile(h.unfinishedFile(), []byte("effectd init is running or was interrupted\n"), fileMode)
		},
	}
	for _, dir := range []string{h.KeysDir(), h.OperationsDir(), h.NATSDir(), h.ProjectionDir(), h.AnchorDir(), h.SpoolDir()} {
		steps = append(steps, func() error { return makeDir(dir) })
	}
	for _, role := range firstRoles {
		u := NewUser{Tenant: o.Tenant, Principal: events.Principal(role), Role: role}
		if role == events.RoleExecutor {
			u.Operations = []string{natsserver.AllOperations}
		}
		steps = append(steps, func() error { _, _, err := h.AddUser(u); return err })
	}
	return append(steps,
		func() error { return writeFile(h.PolicyFile(), []byte(o.Policy), fileMode) },
		func() error { return writeFile(h.ConfigFile(), []byte(ConfigTemplate), fileMode) },
		func() error { return establish(h) },
		h.writeIdentity,
		func() error { return removeFile(h.unfinishedFile()) },
	)
}

func (h *Home) writeIdentity() error {
	text, err := json.Marshal(h.identity)
	if err != nil {
		return errors.Join(errors.New("ledger.json"), err)
	}
	return writeFile(h.identityFile(), append(text, '\n'), fileMode)
}
