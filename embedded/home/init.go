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
	Policy   string        // the text of policy.cedar
	Now      time.Time     // when it is made
	Tenant   events.Tenant // of the first users, default main
	External bool          // the log will be on an external server
}

// DefaultTenant is the tenant of the users that init makes.
const DefaultTenant events.Tenant = "main"

// firstRoles are the users that init makes; each is named as its role.
var firstRoles = []events.Role{events.RoleProducer, events.RoleApprover, events.RoleOperator, events.RoleAuditor, events.RoleExecutor}

// Init makes a ledger in dir, which need not exist. Once the files are there it
// calls establish, which makes the stream and the anchor; only when that has
// returned nil is the directory a ledger (H1). Until then a crash or an error
// leaves a directory that [Open] refuses with [ErrUnfinished] and that Init goes on
// with (H2). It refuses with [ErrExists] a directory that has a ledger, or files in
// the places it would write.
func Init(dir string, o InitOptions, establish func(*Home) error) (*Home, error) {
	if o.Tenant == "" {
		o.Tenant = DefaultTenant
	}
	h := at(dir, "")
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	lock, err := Acquire(dir)
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	defer func() { _ = lock.Release() }()
	if err := h.begin(o); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	for _, step := range h.initSteps(o, establish) {
		if err := step(); err != nil {
			return nil, fmt.Errorf("init %s: %w", dir, err)
		}
	}
	return h, nil
}

// begin takes up the identity of an unfinished init, or makes sure that nothing is
// in the way and draws one.
func (h *Home) begin(o InitOptions) error {
	if exists(h.identityFile()) {
		return fmt.Errorf("%s: a ledger %w", h.dir, ErrExists)
	}
	if exists(h.unfinishedFile()) {
		if err := h.readIdentity(h.unfinishedFile()); err != nil {
			return err
		}
		if h.identity.External != o.External {
			with := map[bool]string{true: "with", false: "without"}[h.identity.External]
			return fmt.Errorf("%s: %w: it was begun %s --nats; do so again, or name another directory", h.dir, ErrUnfinished, with)
		}
		return nil
	}
	for _, path := range h.initWrites() {
		if exists(path) {
			return fmt.Errorf("%s %w, though %s is not a ledger: move it away, or name another directory", path, ErrExists, h.dir)
		}
	}
	return h.draw(o)
}

// draw makes the identity of a new ledger.
func (h *Home) draw(o InitOptions) error {
	id, err := ulid.New(ulid.Timestamp(o.Now), rand.Reader)
	if err != nil {
		return err
	}
	h.identity = identity{V: events.Format, LedgerID: events.LedgerID(id.String()), Created: events.InstantOf(o.Now), NodeID: nodeID(), External: o.External}
	return nil
}

// nodeID is 40 random bits as a token.
func nodeID() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// initWrites are the places that init fills. The owner may have put contracts
// into operations/ already: that is no place of ours.
func (h *Home) initWrites() []string {
	return []string{h.KeysDir(), h.NATSDir(), h.ProjectionDir(), h.AnchorDir(), h.SpoolDir(), h.UsersFile(), h.PolicyFile(), h.ConfigFile()}
}

// initSteps are durable one by one, in this order; a crash may come between any
// two, and each may be done again. What other steps made stays: a server may be
// configured from it already. What establish made is begun again.
func (h *Home) initSteps(o InitOptions, establish func(*Home) error) []func() error {
	steps := []func() error{
		func() error { return h.writeIdentity(h.unfinishedFile()) },
		func() error { return makeDir(h.KeysDir()) },
		func() error { return makeDir(h.OperationsDir()) },
	}
	stores := []string{h.ProjectionDir(), h.AnchorDir(), h.SpoolDir()}
	if !o.External {
		stores = append(stores, h.NATSDir())
	}
	for _, dir := range stores {
		steps = append(steps, func() error { return errors.Join(os.RemoveAll(dir), makeDir(dir)) })
	}
	for _, role := range firstRoles {
		u := NewUser{Tenant: o.Tenant, Principal: events.Principal(role), Role: role}
		if role == events.RoleExecutor {
			u.Operations = []string{natsserver.AllOperations}
		}
		steps = append(steps, func() error {
			_, _, err := h.AddUser(u)
			if errors.Is(err, ErrUserExists) {
				return nil
			}
			return err
		})
	}
	return append(steps,
		func() error { return writeOnce(h.PolicyFile(), o.Policy) },
		func() error { return writeOnce(h.ConfigFile(), ConfigTemplate) }, // the last file: see OpenBegun
		func() error { return establish(h) },
		func() error { return h.writeIdentity(h.identityFile()) },
		func() error { return removeFile(h.unfinishedFile()) },
	)
}

// writeOnce writes a file that is the owner's from then on.
func writeOnce(path, text string) error {
	if exists(path) {
		return nil
	}
	return writeFile(path, []byte(text), fileMode)
}

func (h *Home) writeIdentity(file string) error {
	text, err := json.Marshal(h.identity)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return writeFile(file, append(text, '\n'), fileMode)
}
