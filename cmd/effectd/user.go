package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
)

// userCmd are the commands about principals.
type userCmd struct {
	Add  userAddCmd  `cmd:"" help:"Add a principal and make its key; a running node knows it at once."`
	List userListCmd `cmd:"" help:"The principals of a data directory."`
}

// userAddCmd adds a row to the table of users and makes its key.
type userAddCmd struct {
	data
	Name       string   `arg:"" help:"The principal: a-z 0-9 - _."`
	Role       string   `required:"" enum:"producer,approver,operator,auditor,executor" placeholder:"ROLE" help:"What it may do: ${enum}."`
	Tenant     string   `default:"main" placeholder:"NAME" help:"Its tenant (default: ${default})."`
	Operations []string `placeholder:"NAME" help:"Of an executor: the operations that it serves."`
}

// Run implements the command.
func (c *userAddCmd) Run(e *env) error {
	h, err := home.Open(c.Data, "")
	if err != nil {
		return err
	}
	u, file, err := h.AddUser(home.NewUser{Tenant: events.Tenant(c.Tenant), Principal: events.Principal(c.Name), Role: events.Role(c.Role), Operations: c.Operations})
	if err != nil {
		return err
	}
	known, err := announce(e.ctx, h, u, file)
	if err != nil {
		return err
	}
	e.show(struct {
		events.User
		KeyFile string `json:"key_file"`
		Known   bool   `json:"known"`
	}{u, file, known}, func(p *page) {
		p.field("user", string(events.ActorOf(u.Tenant, u.Principal)))
		p.field("role", string(u.Role))
		p.field("key", file)
		p.field("known", map[bool]string{true: "the running node knows it", false: "from the next effectd serve on"}[known])
	})
	return nil
}

// announced is how long a running node may take to know a new user.
const announced = 10 * time.Second

// announce has the running node load the table, and waits until it lets the new
// user in. False if no node runs.
func announce(ctx context.Context, h *home.Home, u events.User, keyFile string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, announced)
	defer cancel()
	told := false
	for {
		node, err := runningOn(h)
		if err == nil && !told {
			err = hangUp(h, node)
			told = err == nil
		}
		if errors.Is(err, errNotRunning) {
			return false, nil
		}
		if err == nil {
			err = letsIn(ctx, identity{url: node.NATSURL, seedFile: keyFile, tenant: u.Tenant, principal: u.Principal})
		}
		if err == nil {
			return true, nil
		}
		if errors.Is(err, client.ErrDenied) && h.Elsewhere() {
			return false, hint(fmt.Errorf("the user is in the table, but its NATS server does not let it in: %w", err),
				"have that server load the configuration again: effectd nats-config --data %s", h.Dir())
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the user is in the table, but the running node does not let it in: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func letsIn(ctx context.Context, who identity) error {
	c, err := who.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Status(ctx)
	return err
}

// hangUp tells the running node to load its files. Its number is believed only
// when it is that of the process that holds the directory: a number that a dead
// node left behind may be any process by now.
func hangUp(h *home.Home, node running) error {
	lock, err := home.Acquire(h.Dir())
	switch {
	case err == nil:
		return errors.Join(errNotRunning, lock.Release())
	case !errors.Is(err, home.ErrLocked):
		return err
	}
	holder, err := os.ReadFile(filepath.Join(h.Dir(), "lock"))
	if err != nil || strings.TrimSpace(string(holder)) != strconv.Itoa(node.PID) {
		return errors.New("the node is starting")
	}
	if err := syscall.Kill(node.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("tell the node to reload: %w", err)
	}
	return nil
}

// userListCmd lists the principals of a data directory.
type userListCmd struct{ data }

// Run implements the command.
func (c *userListCmd) Run(e *env) error {
	h, err := home.Open(c.Data, "")
	if err != nil {
		return err
	}
	users, err := h.Users()
	if err != nil {
		return err
	}
	if e.json {
		for _, u := range users {
			e.object(u)
		}
		return nil
	}
	e.page(func(p *page) {
		p.row("USER", "ROLE", "PUBLIC KEY", "OPERATIONS")
		for _, u := range users {
			p.row(string(events.ActorOf(u.Tenant, u.Principal)), string(u.Role), u.PublicKey, strings.Join(u.Operations, ", "))
		}
	})
	return nil
}
