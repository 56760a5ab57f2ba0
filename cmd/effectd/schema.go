package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/effectd/effectd/events/schema"
)

// schemaCmd prints the JSON Schemas that the code generates.
type schemaCmd struct {
	Name string `arg:"" optional:"" help:"Which one, such as event.prepared or request.effect.submit (default: all, by name)."`
	List bool   `short:"l" help:"Print the names alone."`
}

// Run implements the command.
func (c *schemaCmd) Run(e *env) error {
	all := schema.All()
	names := slices.Sorted(maps.Keys(all))
	switch {
	case c.List && e.json:
		e.object(names)
	case c.List:
		e.tell("%s", strings.Join(names, "\n"))
	case c.Name == "":
		return e.schema(all)
	default:
		one, known := all[c.Name]
		if !known {
			return &usage{"no schema of this name", "effectd schema --list"}
		}
		return e.schema(one)
	}
	return nil
}

// schema prints a schema, for people on many lines.
func (e *env) schema(v any) error {
	if e.json {
		e.object(v)
		return nil
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	e.tell("%s", text)
	return nil
}
