package main

import (
	"errors"
	"fmt"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events/eventlog"
)

// initCmd creates the ledger of a data directory, stream included.
type initCmd struct {
	data
	NATS string `name:"nats" placeholder:"URL" help:"Make the log on this NATS server instead of the embedded one."`
	NKey string `name:"nkey" placeholder:"FILE" type:"existingfile" help:"With --nats: file with the nkey seed of the ledger there (default: keys/ledger.nk of the data directory, made when it is missing)."`
}

// Validate wants a key only for an external server; kong calls it.
func (c *initCmd) Validate() error {
	if c.NATS == "" && c.NKey != "" {
		return &usage{"--nkey goes with --nats", "effectd init --help"}
	}
	return nil
}

// Run implements the command.
func (c *initCmd) Run(e *env) error {
	made, err := embedded.Init(e.ctx, embedded.InitOptions{Data: c.Data, NATSURL: c.NATS, NKeyFile: c.NKey})
	if err != nil {
		return c.hint(err)
	}
	e.show(made, func(p *page) {
		p.field("ledger", made.LedgerID)
		p.field("directory", made.Data)
		for i, key := range made.Keys {
			name := ""
			if i == 0 {
				name = "keys"
			}
			p.row(name, key)
		}
		p.line("")
		serve := "effectd serve --data " + made.Data
		if c.NATS != "" {
			serve += " --nats " + c.NATS + " --nkey " + made.NKeyFile
		}
		p.line("Put operations into " + made.Data + "/operations, then: " + serve)
	})
	return nil
}

// hint says how an external server is made ready for the ledger.
func (c *initCmd) hint(err error) error {
	if c.NATS == "" {
		return err
	}
	key := ""
	if c.NKey != "" {
		key = " --nkey " + c.NKey
	}
	again := fmt.Sprintf("effectd init --data %s --nats %s%s", c.Data, c.NATS, key)
	replicas := fmt.Sprintf("replicas: 1 in %s/effectd.yaml", c.Data)
	switch {
	case errors.Is(err, embedded.ErrServer), errors.Is(err, eventlog.ErrUnavailable):
		return hint(err, `the keys are made, and stay; have the server know them, and run the same again:
      effectd nats-config --data %s%s --store STREAMS-DIR > effectd.conf
      nats-server -c effectd.conf
      %s
    a server that is no cluster keeps one copy of the log: first set %s`, c.Data, key, again, replicas)
	case errors.Is(err, embedded.ErrReplicas):
		return hint(err, `use a cluster of at least as many servers; or, if one copy is enough, set %s; then run the same again:
      %s`, replicas, again)
	case errors.Is(err, eventlog.ErrExists):
		return hint(err, "another ledger is on that account of the server, or was: use an account or a server of its own; nothing was changed")
	}
	return err
}
