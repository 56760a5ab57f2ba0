package main

// paging says how much of a list to show.
type paging struct {
	Limit  int64  `default:"50" placeholder:"N" help:"Rows a page (default: ${default})."`
	Cursor string `placeholder:"CURSOR" help:"Where the page before ended."`
	All    bool   `help:"Every page."`
}

// each shows the page at the cursor, or with --all every one from there. turn
// shows one and returns the cursor of the next, empty after the last.
func (c *paging) each(e *env, turn func(cursor string) (string, error)) error {
	for cursor := c.Cursor; ; {
		next, err := turn(cursor)
		if err != nil || next == "" {
			return err
		}
		if !c.All {
			e.note("more: --cursor %s, or --all", next)
			return nil
		}
		cursor = next
	}
}
