package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/effectd/effectd/embedded"
)

// nodeFlags say what a node runs on.
type nodeFlags struct {
	data
	Config string `placeholder:"DIR" type:"path" help:"Directory of operations, policy, secrets and settings (default: the data directory)."`
	Anchor string `placeholder:"DIR" type:"path" help:"Directory of the anchor, best on another disk (default: in the data directory)."`
	NATS   string `name:"nats" placeholder:"URL" help:"Use this NATS server instead of the embedded one; needs --nkey."`
	NKey   string `name:"nkey" placeholder:"FILE" type:"existingfile" help:"File with the nkey seed of the ledger on that server."`
}

func (f *nodeFlags) options(e *env, log *slog.Logger, p *progress) (embedded.Options, error) {
	if (f.NATS == "") != (f.NKey == "") {
		return embedded.Options{}, &usage{"--nats and --nkey go together", "effectd nats-config --help"}
	}
	return embedded.Options{Data: f.Data, Config: f.Config, Anchor: f.Anchor, NATSURL: f.NATS, NKeyFile: f.NKey, Logger: log, Progress: p.step}, nil
}

// serveCmd runs the node until a signal, or until it ends by itself.
type serveCmd struct {
	nodeFlags
	Listen  string `default:"127.0.0.1:4222" env:"EFFECTD_LISTEN" placeholder:"HOST:PORT" help:"Where the embedded server listens; port 0 picks a free one (default: ${default})."`
	Console string `enum:"off" default:"off" placeholder:"off" help:"The web console: off."`
	Verbose bool   `short:"v" help:"Log more."`
}

// Run implements the command.
func (c *serveCmd) Run(e *env) error {
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(e.err, &slog.HandlerOptions{Level: level}))
	bars := newProgress(e.err)
	o, err := c.options(e, log, bars)
	if err != nil {
		return err
	}
	o.Listen = c.Listen
	reloads := make(chan os.Signal, 1) // before the start: a hang-up must never end the process
	signal.Notify(reloads, syscall.SIGHUP)
	defer signal.Stop(reloads)

	node, err := embedded.Start(e.ctx, o)
	bars.end()
	if err != nil && e.ctx.Err() != nil {
		log.Info("stopped while starting; nothing is half done")
		return nil
	}
	if err != nil {
		return err
	}
	if c.NATS == "" && embedded.Exposed(node.Ready().NATSURL) {
		log.Warn("users of other machines connect without TLS: what they send can be read and changed on the way; set tls in effectd.yaml")
	}
	e.ready(node.Ready())
	for {
		select {
		case <-reloads:
			if err := node.Reload(e.ctx); err != nil {
				log.Error("reload refused; what was loaded before stays", "err", err)
			} else {
				log.Info("reloaded")
			}
		case <-node.Done():
			if err := node.Err(); err != nil {
				return fmt.Errorf("the node ended by itself: %w", err)
			}
			return nil
		case <-e.ctx.Done():
			log.Info("stopping; once more to stop at once")
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			return node.Stop(context.WithoutCancel(e.ctx))
		}
	}
}

// ready prints the one line that says where the node serves.
func (e *env) ready(r embedded.Ready) {
	if e.json {
		e.object(r)
		return
	}
	text := fmt.Sprintf("effectd serves ledger %s on %s", r.LedgerID, r.NATSURL)
	if !r.Trusted {
		text += ", reads only: untrusted: " + plain(r.Reason)
	}
	e.tell("%s", text)
}
