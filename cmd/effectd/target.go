package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
)

// defaultData is the data directory when none is named.
const defaultData = "effectd-data"

// data names the data directory of a command.
type data struct {
	Data string `env:"EFFECTD_DATA" default:"${data}" placeholder:"DIR" type:"path" help:"Data directory (default: ./${default})."`
}

// target says which ledger to ask, and as whom.
type target struct {
	data
	As        string `placeholder:"NAME" help:"Act as this user of the data directory (default: the role that the command needs)."`
	NATS      string `name:"nats" placeholder:"URL" help:"Ask the ledger on this NATS server instead; needs --nkey."`
	NKey      string `name:"nkey" placeholder:"FILE" type:"existingfile" help:"File with the nkey seed to connect with."`
	TLSCA     string `name:"tls-ca" placeholder:"FILE" type:"existingfile" help:"Trust the server's certificate when it leads to one in this PEM file (default: the running node's own, or what the system trusts)."`
	Tenant    string `placeholder:"NAME" help:"With --nkey: tenant of the user (default: main)."`
	Principal string `placeholder:"NAME" help:"With --nkey: name of the user (default: the file's name)."`
}

// identity is who connects where, with which key.
type identity struct {
	url       string
	seedFile  string
	tenant    events.Tenant
	principal events.Principal
	dir       string      // data directory of the node that said where it is; empty if nobody did
	trust     *tls.Config // nil: what the system trusts, if the server wants TLS
}

// identity resolves the flags; role is who the command is for.
func (t *target) identity(role events.Role) (identity, error) {
	who, err := t.resolve(role)
	if err == nil && t.TLSCA != "" {
		who.trust, err = home.TrustFile(t.TLSCA)
	}
	return who, err
}

func (t *target) resolve(role events.Role) (identity, error) {
	if t.NATS == "" && t.NKey == "" {
		return t.local(role)
	}
	if t.NATS == "" || t.NKey == "" {
		return identity{}, &usage{"--nats and --nkey go together", "or name a data directory: --data DIR --as ROLE"}
	}
	name := strings.TrimSuffix(filepath.Base(t.NKey), filepath.Ext(t.NKey))
	return identity{url: t.NATS, seedFile: t.NKey, tenant: events.Tenant(or(t.Tenant, "main")), principal: events.Principal(or(t.Principal, name))}, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// call runs f with a connection to the ledger, as the user that the flags name
// or else as role.
func (t *target) call(e *env, role events.Role, f func(context.Context, *client.Client) error) error {
	return t.callAs(e, role, func(_ identity, l *client.Client) error { return f(e.ctx, l) })
}

// callAs is [target.call] for who also signs.
func (t *target) callAs(e *env, role events.Role, f func(identity, *client.Client) error) error {
	who, err := t.identity(role)
	if err != nil {
		return err
	}
	c, err := who.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	return t.allowed(role, f(who, c))
}

// allowed says who may do what the NATS server denied: the command is for role.
func (t *target) allowed(role events.Role, err error) error {
	if !errors.Is(err, client.ErrDenied) || t.As == "" && t.NKey == "" {
		return err
	}
	if t.NKey != "" {
		return hint(err, "act as somebody whose role is %s; --tenant and --principal must name the user of the key", role)
	}
	return hint(err, "act as somebody whose role is %s: --as %s", role, role)
}

// dial connects. errNotRunning if nobody listens and nobody holds the directory:
// the kernel takes the lock from a killed node, while its process number may stay,
// or be another's.
func (i identity) dial() (*client.Client, error) {
	var secure []nats.Option
	if i.trust != nil {
		secure = append(secure, nats.Secure(i.trust))
	}
	c, err := client.Dial(i.url, i.seedFile, i.tenant, i.principal, secure...)
	switch {
	case err == nil:
		return c, nil
	case i.dir != "" && home.Unlocked(i.dir) == nil:
		return nil, hint(fmt.Errorf("%w: the last one was killed", errNotRunning), "start it again: effectd serve")
	}
	return nil, fmt.Errorf("%s as %s: %w", i.url, events.ActorOf(i.tenant, i.principal), err)
}

// changed marks the missing answer to a request that changes something.
func changed(err error) error {
	if errors.Is(err, client.ErrNoAnswer) {
		return fmt.Errorf("%w: %w", errMayBeDone, err)
	}
	return err
}
