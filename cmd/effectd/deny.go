package main

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// denyCmd signs that an effect may not be sent: it ends.
type denyCmd struct{ signing }

// Run implements the command.
func (c *denyCmd) Run(e *env) error {
	return c.decide(e, policy.DecisionDeny, func(p wire.Pending) string { return p.DenyStatement }, (*client.Client).Deny)
}
