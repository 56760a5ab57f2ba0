package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
)

// userCmd are the commands about principals.
type userCmd struct {
	Add    userAddCmd    `cmd:"" help:"Add a principal and make its key; a running node knows it at once."`
	Remove userRemoveCmd `cmd:"" help:"Remove a principal and its key; a running node refuses it at once."`
	List   userListCmd   `cmd:"" help:"The principals of a data directory."`
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
	node, known, err := reloadedUsers(e.ctx, h)
	if err != nil {
		return hint(err, "the user is in %s; correct what is wrong and reload the node: effectd policy apply", h.UsersFile())
	}
	if node.External {
		if err := letsIn(h, u); err != nil {
			return err
		}
	}
	e.show(struct {
		events.User
		KeyFile string `json:"key_file"`
		Known   bool   `json:"known"`
	}{u, file, known}, func(p *page) {
		p.field("user", string(events.ActorOf(u.Tenant, u.Principal)))
		p.field("role", string(u.Role))
		p.field("key", file)
		p.field("known", knownWords(known))
	})
	return nil
}

func knownWords(known bool) string {
	if known {
		return "the running node knows it"
	}
	return "from the next effectd serve on"
}

// letsIn connects as a user that the node knows, where a server of the owner's lets
// people in.
func letsIn(h *home.Home, u events.User) error {
	t := target{data: data{h.Dir()}, As: string(u.Principal), Tenant: string(u.Tenant)}
	who, err := t.identity(u.Role)
	if err != nil {
		return err
	}
	c, err := who.dial()
	if err == nil {
		c.Close()
	}
	if errors.Is(err, client.ErrDenied) {
		return hint(fmt.Errorf("the node knows the user, but its NATS server does not let it in: %w", err),
			"have that server load the configuration again: effectd nats-config --data %s", h.Dir())
	}
	return err
}

// userRemoveCmd takes a principal out of the table.
type userRemoveCmd struct {
	data
	Name   string `arg:"" help:"The principal."`
	Tenant string `default:"main" placeholder:"NAME" help:"Its tenant (default: ${default})."`
}

// Run implements the command.
func (c *userRemoveCmd) Run(e *env) error {
	h, err := home.Open(c.Data, "")
	if err != nil {
		return err
	}
	who := events.ActorOf(events.Tenant(c.Tenant), events.Principal(c.Name))
	err = h.RemoveUser(events.Tenant(c.Tenant), events.Principal(c.Name))
	switch {
	case errors.Is(err, home.ErrUnknownUser):
		return hint(err, "see who there is: effectd user list")
	case errors.Is(err, home.ErrLastOperator):
		return hint(err, "add another one first: effectd user add --role operator --tenant %s NAME", c.Tenant)
	case err != nil:
		return err
	}
	node, known, err := reloadedUsers(e.ctx, h)
	if err != nil {
		return hint(err, "the user is out of %s, but the node still lets it in: correct what is wrong and reload it: effectd policy apply", h.UsersFile())
	}
	if node.External {
		e.note("The ledger refuses it. Its NATS server still lets it in until it loads the configuration again: effectd nats-config --data %s", h.Dir())
	}
	e.show(struct {
		Removed events.Actor `json:"removed"`
		Known   bool         `json:"known"`
	}{who, known}, func(p *page) {
		p.field("removed", string(who))
		p.field("known", map[bool]string{true: "the running node refuses its key; what it asked for stays", false: "from the next effectd serve on"}[known])
	})
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
