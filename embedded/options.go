package embedded

import (
	"log/slog"
	"time"

	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/embedded/home"
)

// Options is how a node is run. Zero means default.
type Options struct {
	Data     string // the data directory
	Config   string // operations/, policy.cedar, secrets/, users; default: Data
	Anchor   string // directory of the anchor; default: below Data
	Listen   string // HOST:PORT of the embedded server; default 127.0.0.1:4222, port 0 picks a free one
	NATSURL  string // an external server instead of the embedded one
	NKeyFile string // the seed of the ledger's user on the external server
	Logger   *slog.Logger
	// Adapters replace or add adapters by kind.
	Adapters map[string]dispatcher.Adapter
	// Progress is told of long work: what, and how much of it is done.
	Progress func(what string, done, total uint64)
	// ShutdownBudget is what running sends get on a stop; default 30 s.
	ShutdownBudget time.Duration
}

func (o Options) withDefaults() Options {
	if o.Config == "" {
		o.Config = o.Data
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:4222"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	return o
}

// anchorDir is where the anchor lies.
func (o Options) anchorDir(h *home.Home) string {
	if o.Anchor != "" {
		return o.Anchor
	}
	return h.AnchorDir()
}

// Ready is what a node says when it serves.
type Ready struct {
	Ready      bool   `json:"ready"`
	Trusted    bool   `json:"trusted"`
	Reason     string `json:"reason,omitzero"` // why it is not trusted, and where
	NATSURL    string `json:"nats_url"`
	ConsoleURL string `json:"console_url"` // empty: this program has no console
	LedgerID   string `json:"ledger_id"`
	Data       string `json:"data"`
}
