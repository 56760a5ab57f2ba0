package main

import (
	"encoding/json" // the types of the stream are written for it
	"fmt"
	"strings"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events/eventlog"
)

// natsConfigCmd prints what an external server needs to enforce what the embedded
// one does.
type natsConfigCmd struct {
	data
	NKey   string `name:"nkey" placeholder:"FILE" type:"existingfile" help:"The ledger's own seed (default: keys/ledger.nk of the data directory, made when it is missing)."`
	Store  string `placeholder:"DIR" help:"Directory of the server's streams; without one the server keeps them in the temporary directory."`
	Stream bool   `help:"Print the definition of the log's stream instead, which init makes, or finds made from this."`
}

// Run implements the command.
func (c *natsConfigCmd) Run(e *env) error {
	h, err := home.OpenBegun(c.Data)
	if err != nil {
		return err
	}
	if c.Stream {
		return c.stream(e, h)
	}
	text, err := c.server(h)
	if err != nil {
		return err
	}
	if e.json {
		e.object(struct {
			Config string `json:"config"`
		}{text})
		return nil
	}
	e.tell("%s", strings.TrimSuffix(text, "\n"))
	return nil
}

// server is the configuration of accounts, users and permissions.
func (c *natsConfigCmd) server(h *home.Home) (string, error) {
	file := c.NKey
	if file == "" {
		var err error
		if file, err = h.LedgerKeyFile(); err != nil {
			return "", err
		}
	}
	return h.ServerConfig(file, c.Store)
}

func (c *natsConfigCmd) stream(e *env, h *home.Home) error {
	cfg, err := h.LoadConfig()
	if err != nil {
		return err
	}
	log := eventlog.Config{LedgerID: h.LedgerID(), Replicas: cfg.Replicas, MaxBytes: int64(cfg.Limits.LogBytes)}
	text, err := json.MarshalIndent(log.StreamConfig(), "", "  ")
	if err != nil {
		return fmt.Errorf("stream definition: %w", err)
	}
	e.tell("%s", text)
	return nil
}
