package operation

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/effectd/effectd/events"
)

// dialect is the one JSON Schema version that contracts use.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// keyword says what stands below a schema keyword.
type keyword uint8

const (
	plain       keyword = iota // no schema
	schemaOne                  // a schema
	schemaList                 // a list of schemas
	schemaNamed                // a mapping of names to schemas
)

// keywords of JSON Schema 2020-12. JSON Schema ignores what it does not know; in
// a contract a misspelled keyword would be a check that is not made (O2).
var keywords = map[string]keyword{
	"$schema": plain, "$id": plain, "$ref": plain, "$anchor": plain, "$dynamicRef": plain, "$dynamicAnchor": plain,
	"$comment": plain, "$defs": schemaNamed,
	"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "not": schemaOne, "if": schemaOne, "then": schemaOne,
	"else": schemaOne, "dependentSchemas": schemaNamed, "prefixItems": schemaList, "items": schemaOne, "contains": schemaOne,
	"properties": schemaNamed, "patternProperties": schemaNamed, "additionalProperties": schemaOne, "propertyNames": schemaOne,
	"unevaluatedItems": schemaOne, "unevaluatedProperties": schemaOne,
	"type": plain, "enum": plain, "const": plain, "multipleOf": plain, "maximum": plain, "exclusiveMaximum": plain,
	"minimum": plain, "exclusiveMinimum": plain, "maxLength": plain, "minLength": plain, "pattern": plain, "maxItems": plain,
	"minItems": plain, "uniqueItems": plain, "maxContains": plain, "minContains": plain, "maxProperties": plain,
	"minProperties": plain, "required": plain, "dependentRequired": plain,
	"title": plain, "description": plain, "default": plain, "deprecated": plain, "readOnly": plain, "writeOnly": plain,
	"examples": plain, "format": plain, "contentEncoding": plain, "contentMediaType": plain, "contentSchema": schemaOne,
}

// input compiles the payload schema.
func (c *compiler) input(n *node) (*jsonschema.Schema, events.Raw) {
	if n == nil {
		return nil, nil
	}
	if n.shape != object {
		c.fault(n, "want a JSON Schema, got %s", n.shape)
		return nil, nil
	}
	before := len(c.faults)
	c.keywords(n)
	if len(c.faults) > before {
		return nil, nil
	}
	raw := events.CanonicalOf(n.json())
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		var schema *jsonschema.Schema
		if schema, err = compileSchema(doc); err == nil {
			return schema, raw
		}
	}
	c.schemaFault(n, err)
	return nil, nil
}

func compileSchema(doc any) (*jsonschema.Schema, error) {
	const url = "urn:effectd:input"
	jc := jsonschema.NewCompiler()
	jc.DefaultDraft(jsonschema.Draft2020)
	jc.UseLoader(closed{})
	if err := jc.AddResource(url, doc); err != nil {
		return nil, err
	}
	return jc.Compile(url)
}

// closed loads nothing: a schema is complete in its contract.
type closed struct{}

func (closed) Load(string) (any, error) { return nil, errors.New("a $ref leads out of the contract") }

// keywords walks a schema and reports what JSON Schema would ignore or fetch.
func (c *compiler) keywords(n *node) {
	if n.shape == boolean {
		return
	}
	if n.shape != object {
		c.fault(n, "want a schema, got %s", n.shape)
		return
	}
	for _, f := range n.fields {
		kind, known := keywords[f.name]
		if !known {
			c.faultAt(f.line, f.column, join(n.key, f.name), "unknown JSON Schema keyword")
			continue
		}
		c.keyword(f, kind)
	}
}

func (c *compiler) keyword(f field, kind keyword) {
	v := f.value
	switch kind {
	case schemaOne:
		c.keywords(v)
	case schemaList:
		for _, item := range c.list(v, 1000) {
			c.keywords(item)
		}
	case schemaNamed:
		for _, named := range c.mapFields(v, 1000) {
			c.keywords(named.value)
			if f.name == "patternProperties" {
				c.pattern(named.value, named.name)
			}
		}
	default:
		switch {
		case f.name == "pattern" && v.shape == text:
			c.pattern(v, v.text)
		case f.name == "$schema" && v.text != dialect:
			c.fault(v, "want %s", dialect)
		case (f.name == "$ref" || f.name == "$dynamicRef") && !strings.HasPrefix(v.text, "#"):
			c.fault(v, "want a reference into this schema, such as #/$defs/name")
		}
	}
}

func (c *compiler) pattern(n *node, expr string) {
	if _, err := regexp.Compile(expr); err != nil {
		c.fault(n, "bad regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
}

// schemaFault reports what the metaschema says, each where it stands.
func (c *compiler) schemaFault(n *node, err error) {
	var invalid *jsonschema.SchemaValidationError
	var detail *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &detail) {
		c.fault(n, "bad JSON Schema: %s", err)
		return
	}
	seen := map[*node]bool{}
	for _, leaf := range leaves(detail, nil) {
		at := n.descend(leaf.InstanceLocation)
		if !seen[at] {
			c.fault(at, "bad JSON Schema: %s", complaint(leaf))
		}
		seen[at] = true
	}
}

// descend follows a JSON path as far as it goes.
func (n *node) descend(path []string) *node {
	for _, step := range path {
		next := n.get(step)
		if i, err := strconv.Atoi(step); err == nil && n.shape == list && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// Violation says which field of a payload the schema refuses, and why, without
// its value (O8).
type Violation struct {
	Field   string // JSON pointer below "payload", such as "payload/amount"
	Message string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s", v.Field, v.Message) }

// Validate checks a payload against the schema. The error is a *[Violation].
func (c *Contract) Validate(p Payload) error {
	err := c.schema.Validate(p.value)
	if err == nil {
		return nil
	}
	var detail *jsonschema.ValidationError
	if !errors.As(err, &detail) {
		return &Violation{Field: "payload", Message: "does not match the schema"}
	}
	var found []Violation
	for _, leaf := range leaves(detail, nil) {
		found = append(found, Violation{Field: pointer(leaf.InstanceLocation), Message: complaint(leaf)})
	}
	// The library walks maps in random order; the answer must not vary.
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.Field+"\x00"+a.Message, b.Field+"\x00"+b.Message) })
	return &found[0]
}

func leaves(e *jsonschema.ValidationError, out []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return append(out, e)
	}
	for _, cause := range e.Causes {
		out = leaves(cause, out)
	}
	return out
}

// maxPointer bounds a reported field: names of unknown members are the sender's.
const maxPointer = 256

func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	out := "payload"
	for _, step := range path {
		out += "/" + escape.Replace(step)
	}
	if len(out) > maxPointer {
		out = strings.ToValidUTF8(out[:maxPointer], "") + "…"
	}
	return out
}
