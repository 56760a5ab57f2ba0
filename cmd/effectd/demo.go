package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
)

// demoCmd tells what effectd guarantees by doing it: a real node, a real payment
// service, the real client over TCP. Everything it claims it checks (M4).
type demoCmd struct {
	Keep bool `help:"Keep the data directory and say where it is."`
}

// Run implements the command.
func (c *demoCmd) Run(e *env) (err error) {
	dir, err := os.MkdirTemp("", "effectd-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if !c.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	s := &story{env: e, data: filepath.Join(dir, "data")}
	defer func() { err = errors.Join(err, s.close()) }()
	began := e.now()
	if err := s.open(); err != nil {
		return err
	}
	for _, chapter := range []func() error{s.charges, s.repeats, s.changes, s.crowds, s.loses, s.restarts, s.reconciles, s.verifies} {
		if err := chapter(); err != nil {
			return s.failed(err)
		}
	}
	s.end(e.now().Sub(began), c.Keep)
	return nil
}

// story is one run of the demo: the node, the service and who speaks to them.
type story struct {
	*env
	data    string
	service *payments
	node    *embedded.Node

	producer, operator *client.Client

	chapter int
	claims  int // checked and true
	first   wanted
	lost    wanted
}

// open starts the service, creates the ledger and starts its node.
func (s *story) open() error {
	const token = "demo"
	var err error
	if s.service, err = openPayments(token); err != nil {
		return err
	}
	made, err := embedded.Init(s.ctx, embedded.InitOptions{Data: s.data})
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"operations/charge.yaml": contract(s.service.url), "secrets/EFFECTD_DEMO_TOKEN": token} {
		file := filepath.Join(s.data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	if err := s.start(); err != nil {
		return err
	}
	s.say("effectd demo: a ledger, a payment service, and what can go wrong between them\n")
	s.page(func(p *page) {
		p.row("  the service", s.service.url+" (real HTTP; its book is what really happened)")
		p.row("  the ledger", made.LedgerID+" at "+s.node.Ready().NATSURL)
		p.row("  the operation", "charge v1: costs its amount in usd_cents, is sent once under an idempotency key")
		p.row("  a life", "prepared (bound exactly) → permitted (one-use authority) → admitted (budget held)")
		p.row("", "→ dispatched (claimed, then sent once) → settled (proven), or unknown (held)")
	})
	return s.openTasks()
}

// start runs the node and connects the users.
func (s *story) start() error {
	var err error
	s.node, err = embedded.Start(s.ctx, embedded.Options{Data: s.data, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), ShutdownBudget: 2 * time.Second})
	if err != nil {
		return err
	}
	if s.producer, err = s.connect(events.RoleProducer); err != nil {
		return err
	}
	s.operator, err = s.connect(events.RoleOperator)
	return err
}

// identity is the user that init made for a role.
func (s *story) identity(role events.Role) (identity, error) {
	h, err := home.Open(s.data, "")
	if err != nil {
		return identity{}, err
	}
	file, err := h.KeyFile(home.DefaultTenant, events.Principal(role))
	return identity{url: s.node.Ready().NATSURL, seedFile: file, tenant: home.DefaultTenant, principal: events.Principal(role)}, err
}

func (s *story) connect(role events.Role) (*client.Client, error) {
	who, err := s.identity(role)
	if err != nil {
		return nil, err
	}
	return who.dial()
}

// stopBound is what a stop of the demo's node or service may take.
const stopBound = 15 * time.Second

// stop ends the node and its connections.
func (s *story) stop() error {
	for _, c := range []**client.Client{&s.producer, &s.operator} {
		if *c != nil {
			(*c).Close()
			*c = nil
		}
	}
	if s.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stopBound)
	defer cancel()
	err := s.node.Stop(ctx)
	s.node = nil
	return err
}

func (s *story) close() error {
	err := s.stop()
	if s.service != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stopBound)
		defer cancel()
		err = errors.Join(err, s.service.close(ctx))
	}
	return err
}
