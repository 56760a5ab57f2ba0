package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
)

// The decisions that an error of this package leaves to the caller.
var (
	// ErrNotLedger: the directory holds no ledger.
	ErrNotLedger = errors.New("not a ledger")
	// ErrUnfinished: an init was interrupted here; nothing was served from it.
	ErrUnfinished = errors.New("its init did not finish")
	// ErrExists: the directory holds a ledger or files that init would replace.
	ErrExists = errors.New("exists already")
)

// Home is a data directory that holds a ledger.
type Home struct {
	dir      string
	config   string
	identity identity
}

// identity is ledger.json.
type identity struct {
	V        int             `json:"v"`
	LedgerID events.LedgerID `json:"ledger_id"`
	Created  events.Instant  `json:"created"`
	// NodeID makes the node's name unique: no other data directory, on this host or
	// another, may be taken for an earlier life of this one.
	NodeID string `json:"node_id"`
	// External: the log was made on an external server.
	External bool `json:"external,omitzero"`
}

// Open finds the ledger in a data directory. An empty configuration directory
// means the data directory. It takes no lock.
func Open(dir, configDir string) (*Home, error) {
	h := at(dir, configDir)
	if !exists(h.identityFile()) {
		if exists(h.unfinishedFile()) {
			return nil, fmt.Errorf("%s: %w: run effectd init --data %s again", dir, ErrUnfinished, dir)
		}
		return nil, fmt.Errorf("%s: %w: run effectd init --data %s", dir, ErrNotLedger, dir)
	}
	if err := h.readIdentity(h.identityFile()); err != nil {
		return nil, err
	}
	return h, nil
}

// OpenBegun is [Open] for a directory whose init may be unfinished, if it has made
// all keys: an external server is configured from them before init can finish.
func OpenBegun(dir string) (*Home, error) {
	h, err := Open(dir, "")
	if !errors.Is(err, ErrUnfinished) {
		return h, err
	}
	if h = at(dir, ""); !exists(h.ConfigFile()) {
		return nil, err
	}
	if err := h.readIdentity(h.unfinishedFile()); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Home) readIdentity(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	if err := json.Unmarshal(text, &h.identity, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if h.identity.V != events.Format || h.identity.LedgerID == "" {
		return fmt.Errorf("%s: unknown version or no ledger_id", file)
	}
	return nil
}

func at(dir, configDir string) *Home {
	if configDir == "" {
		configDir = dir
	}
	return &Home{dir: dir, config: configDir}
}

// LedgerID names the ledger.
func (h *Home) LedgerID() events.LedgerID { return h.identity.LedgerID }

// Node names this data directory in the log: the configured name and an id of its
// own.
func (h *Home) Node(c Config) string { return c.Node + "-" + h.identity.NodeID }

// Created is when the ledger was made.
func (h *Home) Created() events.Instant { return h.identity.Created }

// Elsewhere says that the log is on an external server and no store is here.
func (h *Home) Elsewhere() bool { return h.identity.External && !exists(h.NATSDir()) }

// Where things lie in the data directory.
func (h *Home) Dir() string           { return h.dir }
func (h *Home) KeysDir() string       { return filepath.Join(h.dir, "keys") }
func (h *Home) NATSDir() string       { return filepath.Join(h.dir, "nats") }
func (h *Home) ProjectionDir() string { return filepath.Join(h.dir, "projection") }
func (h *Home) AnchorDir() string     { return filepath.Join(h.dir, "anchor") }
func (h *Home) SpoolDir() string      { return filepath.Join(h.dir, "spool") }
func (h *Home) UsersFile() string     { return filepath.Join(h.dir, "users.yaml") }

// Where things lie in the configuration directory.
func (h *Home) ConfigDir() string     { return h.config }
func (h *Home) ConfigFile() string    { return filepath.Join(h.config, "effectd.yaml") }
func (h *Home) PolicyFile() string    { return filepath.Join(h.config, "policy.cedar") }
func (h *Home) OperationsDir() string { return filepath.Join(h.config, "operations") }
func (h *Home) SecretsDir() string    { return filepath.Join(h.config, "secrets") }

func (h *Home) identityFile() string   { return filepath.Join(h.dir, "ledger.json") }
func (h *Home) unfinishedFile() string { return filepath.Join(h.dir, "init-unfinished") }
