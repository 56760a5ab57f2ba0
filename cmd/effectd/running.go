package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// errNotRunning: no node has said that it runs on the data directory.
var errNotRunning = errors.New("no node runs on this directory")

// running is node.json: what a node leaves in its data directory while it serves.
type running struct {
	NATSURL  string `json:"nats_url"`
	PID      int    `json:"pid"`
	LedgerID string `json:"ledger_id"`
	Config   string `json:"config"`
	External bool   `json:"external"`
	TLSCA    string `json:"tls_ca"`
	TLSCert  string `json:"tls_cert"`
	TLSName  string `json:"tls_name"`

	Reloads        int64         `json:"reloads"`
	Refused        string        `json:"refused"`
	UsersSHA256    events.Digest `json:"users_sha256"`
	PolicySHA256   events.Digest `json:"policy_sha256"`
	PolicyRevision int64         `json:"policy_revision"`
}

// runningOn reads what the node of a data directory says.
func runningOn(h *home.Home) (running, error) {
	var r running
	text, err := os.ReadFile(filepath.Join(h.Dir(), "node.json"))
	if errors.Is(err, os.ErrNotExist) {
		return r, hint(fmt.Errorf("%s: %w", h.Dir(), errNotRunning), "start one: effectd serve --data %s", h.Dir())
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("node.json: %w", err)
	}
	return r, nil
}

// local is a user of the data directory, on the node that runs there.
func (t *target) local(role events.Role) (identity, error) {
	h, err := home.Open(t.Data, "")
	if err != nil {
		return identity{}, err
	}
	u, err := userNamed(h, or(t.As, string(role)), t.Tenant)
	if err != nil {
		return identity{}, err
	}
	file, err := h.KeyFile(u.Tenant, u.Principal)
	if err != nil {
		return identity{}, err
	}
	node, err := runningOn(h)
	if err != nil {
		return identity{}, err
	}
	trust, err := node.trust()
	return identity{url: node.NATSURL, seedFile: file, tenant: u.Tenant, principal: u.Principal, dir: h.Dir(), trust: trust}, err
}

// trust is how to know the node's server: by its own certificate, or as the node
// does; nil without TLS.
func (r running) trust() (*tls.Config, error) {
	switch {
	case r.TLSCert != "":
		return home.Trust([]byte(r.TLSCert), r.TLSName)
	case r.TLSCA != "":
		return home.TrustFile(r.TLSCA)
	}
	return nil, nil
}

// userNamed finds a principal by name, or else the only one of a role.
func userNamed(h *home.Home, name, tenant string) (events.User, error) {
	users, err := h.Users()
	if err != nil {
		return events.User{}, err
	}
	of := func(match func(events.User) bool) []events.User {
		return slices.DeleteFunc(slices.Clone(users), func(u events.User) bool {
			return tenant != "" && string(u.Tenant) != tenant || !match(u)
		})
	}
	found := of(func(u events.User) bool { return string(u.Principal) == name })
	if len(found) == 0 {
		found = of(func(u events.User) bool { return string(u.Role) == name })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return events.User{}, &usage{"no user " + name + " in " + h.Dir(), "effectd user list --data " + h.Dir()}
	}
	return events.User{}, &usage{"more than one user is meant by " + name, "name one: --as NAME --tenant NAME"}
}
