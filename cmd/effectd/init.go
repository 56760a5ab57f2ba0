package main

import "github.com/effectd/effectd/embedded"

// initCmd creates the ledger of a data directory, stream included.
type initCmd struct{ data }

// Run implements the command.
func (c *initCmd) Run(e *env) error {
	made, err := embedded.Init(e.ctx, embedded.InitOptions{Data: c.Data})
	if err != nil {
		return err
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
		p.line("Put operations into " + made.Data + "/operations, then: effectd serve --data " + made.Data)
	})
	return nil
}
