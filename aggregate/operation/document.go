package operation

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/effectd/effectd/events"
)

// Bounds of a contract text.
const (
	maxText  = 48 << 10 // bytes; the text is one record of the log
	maxDepth = 48       // nesting of mappings and lists
)

// shape is the JSON type of a node.
type shape uint8

const (
	null shape = iota
	text
	integer
	double
	boolean
	list
	object
)

var shapeWords = [...]string{null: "nothing", text: "text", integer: "an integer", double: "a number", boolean: "true or false", list: "a list", object: "a mapping"}

func (s shape) String() string { return shapeWords[s] }

// node is one value of the document with its place. A mapping stands where its
// key does, so that what is missing from it is reported there.
type node struct {
	shape        shape
	line, column int
	key          string // path from the root
	text         string // of a scalar: text as written, quotes and escapes resolved
	value        any    // of a scalar: its JSON value
	items        []*node
	fields       []field // in the order of the text
	bad          bool    // reported already
}

type field struct {
	name         string
	line, column int
	value        *node
}

// get returns the value of a field, nil when it is absent.
func (n *node) get(name string) *node {
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// json is the value as JSON encodes it.
func (n *node) json() any {
	switch n.shape {
	case list:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.json()
		}
		return out
	case object:
		out := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			out[f.name] = f.value.json()
		}
		return out
	default:
		return n.value
	}
}

// parse reads the one document of a text; nil when it cannot be read at all.
func (c *compiler) parse(source []byte) *node {
	switch {
	case len(source) > maxText:
		c.faultAt(1, 1, "", "longer than %d bytes", maxText)
		return nil
	case !utf8.Valid(source), strings.ContainsRune(string(source), 0):
		c.faultAt(1, 1, "", "not valid UTF-8 text")
		return nil
	}
	file, err := parseYAML(source)
	if err != nil {
		line, column := 1, 1
		message := "malformed YAML"
		var at yaml.Error
		if errors.As(err, &at) {
			message = at.GetMessage()
			if tk := at.GetToken(); tk != nil && tk.Position != nil {
				line, column = tk.Position.Line, tk.Position.Column
			}
		}
		c.faultAt(line, column, "", "%s", message)
		return nil
	}
	return c.document(file)
}

// parseYAML turns a panic of the YAML library into an error: texts are input.
func parseYAML(source []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, fmt.Errorf("malformed YAML")
		}
	}()
	return parser.ParseBytes(source, 0, parser.AllowDuplicateMapKey())
}

func (c *compiler) document(file *ast.File) *node {
	var root *node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if root != nil {
			line, column := place(doc.Body)
			c.faultAt(line, column, "", "a second document; one contract per file")
			return nil
		}
		root = c.node(doc.Body, "", 0)
	}
	if root == nil {
		c.faultAt(1, 1, "", "no contract in the file")
		return nil
	}
	if root.shape != object {
		c.fault(root, "want a mapping, got %s", root.shape)
		return nil
	}
	root.line, root.column = 1, 1
	return root
}

func place(n ast.Node) (line, column int) {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line, tk.Position.Column
	}
	return 1, 1
}

func (c *compiler) node(n ast.Node, key string, depth int) *node {
	if n == nil {
		return &node{line: 1, column: 1, key: key}
	}
	line, column := place(n)
	out := &node{line: line, column: column, key: key}
	if depth > maxDepth {
		c.unreadable(out, fmt.Sprintf("nested deeper than %d", maxDepth))
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		c.mapping(out, n.Values, depth)
	case *ast.MappingValueNode:
		c.mapping(out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out.shape = list
		for i, item := range n.Values {
			out.items = append(out.items, c.node(item, fmt.Sprintf("%s[%d]", key, i), depth+1))
		}
	default:
		c.scalar(out, n)
	}
	return out
}

func (c *compiler) mapping(out *node, values []*ast.MappingValueNode, depth int) {
	out.shape = object
	for i, v := range values {
		line, column := place(v.Key)
		if i == 0 {
			out.line, out.column = line, column
		}
		name, ok := v.Key.(*ast.StringNode)
		if !ok {
			c.faultAt(line, column, out.key, "a key is not text; put it in quotes (anchors, merges and complex keys are not used)")
			continue
		}
		if out.get(name.Value) != nil {
			c.faultAt(line, column, join(out.key, name.Value), "duplicate key")
			continue
		}
		child := c.node(v.Value, join(out.key, name.Value), depth+1)
		if child.shape == object || child.shape == list || child.shape == null {
			child.line, child.column = line, column
		}
		out.fields = append(out.fields, field{name: name.Value, line: line, column: column, value: child})
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (c *compiler) scalar(out *node, n ast.Node) {
	switch n := n.(type) {
	case *ast.NullNode:
		out.shape = null
	case *ast.StringNode:
		out.shape, out.text, out.value = text, n.Value, n.Value
	case *ast.LiteralNode:
		out.shape, out.text, out.value = text, n.Value.Value, n.Value.Value
	case *ast.BoolNode:
		out.shape, out.text, out.value = boolean, n.Token.Value, n.Value
	case *ast.IntegerNode:
		out.shape, out.text = integer, n.Token.Value
		v, ok := exactInteger(n.Value)
		if !ok {
			c.unreadable(out, "integer beyond ±(2^53−1)")
		}
		out.value = v
	case *ast.FloatNode:
		out.shape, out.text, out.value = double, n.Token.Value, n.Value
		if math.IsInf(n.Value, 0) || math.Abs(n.Value) > float64(events.MaxAmount) {
			c.unreadable(out, "number beyond ±(2^53−1)")
		}
	default:
		c.unreadable(out, "anchors, aliases, tags and special numbers are not used in contracts")
	}
}

// unreadable reports a value that has no meaning; nothing more is said of it.
func (c *compiler) unreadable(n *node, message string) {
	c.fault(n, "%s", message)
	n.bad = true
}

func exactInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, v >= -events.MaxAmount
	case uint64:
		return int64(v), v <= uint64(events.MaxAmount)
	default:
		return 0, false
	}
}
