package main

import (
	"log/slog"

	"github.com/effectd/effectd/embedded"
)

// rebuildCmd deletes the projection of a stopped node and folds it again.
type rebuildCmd struct{ nodeFlags }

// Run implements the command.
func (c *rebuildCmd) Run(e *env) error {
	bars := newProgress(e.err)
	defer bars.end()
	o, err := c.options(e, slog.New(slog.DiscardHandler), bars)
	if err != nil {
		return err
	}
	if err := embedded.Rebuild(e.ctx, o); err != nil {
		return err
	}
	bars.end()
	e.show(struct {
		Rebuilt bool   `json:"rebuilt"`
		Data    string `json:"data"`
	}{true, c.Data}, func(p *page) { p.line("The projection of " + c.Data + " was made again from the log.") })
	return nil
}
