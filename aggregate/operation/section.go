package operation

import (
	"slices"
	"strings"
	"time"

	"github.com/effectd/effectd/events"
)

// section is a mapping that knows its keys.
type section struct {
	*node
	c *compiler
}

// section checks that n is a mapping with no other keys than the named ones.
// Without a mapping it is empty: everything in it is absent.
func (c *compiler) section(n *node, keys ...string) section {
	if n.shape != object {
		c.fault(n, "want a mapping, got %s", n.shape)
		return section{&node{shape: null, line: n.line, column: n.column, key: n.key}, c}
	}
	for _, f := range n.fields {
		if !slices.Contains(keys, f.name) {
			c.faultAt(f.line, f.column, join(n.key, f.name), "unknown key; known here: %s", strings.Join(keys, ", "))
		}
	}
	return section{n, c}
}

// need returns a field that must be there, nil with a fault when it is not.
func (s section) need(name string) *node {
	n := s.get(name)
	if n == nil && s.shape == object {
		s.c.faultAt(s.line, s.column, join(s.key, name), "missing")
	}
	return n
}

// The readers below accept nil for an absent value and answer with the zero
// value for it, and for one with a fault.

func (c *compiler) str(n *node) string {
	if n == nil {
		return ""
	}
	if n.shape != text {
		c.fault(n, "want text, got %s", n.shape)
		return ""
	}
	if n.text == "" {
		c.fault(n, "empty")
	}
	return n.text
}

func (c *compiler) boolean(n *node) bool {
	if n == nil {
		return false
	}
	v, ok := n.value.(bool)
	if !ok {
		c.fault(n, "want true or false, got %s", n.shape)
	}
	return v
}

func (c *compiler) integer(n *node, low, high, absent int64) int64 {
	if n == nil {
		return absent
	}
	v, ok := n.value.(int64)
	switch {
	case !ok || n.shape != integer:
		c.fault(n, "want an integer, got %s", n.shape)
	case v < low || v > high:
		c.fault(n, "want %d to %d", low, high)
	}
	return v
}

func (c *compiler) duration(n *node, low, high, absent time.Duration) time.Duration {
	if n == nil {
		return absent
	}
	if n.shape != text {
		c.fault(n, "want a duration such as 10m, 2s or 24h, got %s", n.shape)
		return absent
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		c.fault(n, "want a duration such as 10m, 2s or 24h")
	case d < low || d > high:
		c.fault(n, "want %s to %s", low, high)
	}
	return d
}

func (c *compiler) token(n *node) string {
	s := c.str(n)
	if s != "" && !events.ValidToken(s) {
		c.fault(n, "want 1 to 64 characters of a-z 0-9 - _")
		return ""
	}
	return s
}

// oneOf reads a word of a closed set.
func (c *compiler) oneOf(n *node, words ...string) string {
	s := c.str(n)
	if s != "" && !slices.Contains(words, s) {
		c.fault(n, "want one of %s", strings.Join(words, ", "))
		return ""
	}
	return s
}

// list returns the items of a list of at most limit items.
func (c *compiler) list(n *node, limit int) []*node {
	if n == nil {
		return nil
	}
	if n.shape != list {
		c.fault(n, "want a list, got %s", n.shape)
		return nil
	}
	if len(n.items) > limit {
		c.fault(n, "more than %d items", limit)
		return nil
	}
	return n.items
}

// names reads a list of distinct words that valid accepts.
func (c *compiler) names(n *node, limit int, valid func(string) bool, want string) []string {
	var out []string
	for _, item := range c.list(n, limit) {
		s := c.str(item)
		switch {
		case s == "":
		case !valid(s):
			c.fault(item, "want %s", want)
		case slices.Contains(out, s):
			c.fault(item, "named twice")
		default:
			out = append(out, s)
		}
	}
	return out
}

// mapFields returns the fields of a mapping of at most limit fields.
func (c *compiler) mapFields(n *node, limit int) []field {
	if n == nil {
		return nil
	}
	if n.shape != object {
		c.fault(n, "want a mapping, got %s", n.shape)
		return nil
	}
	if len(n.fields) > limit {
		c.fault(n, "more than %d keys", limit)
		return nil
	}
	return n.fields
}
