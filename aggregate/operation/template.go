package operation

import (
	"errors"
	"fmt"
	"strings"
)

// piece of a template: literal text, or an expression between ${ and }.
type piece struct {
	literal string
	source  string // of the expression; empty for literal text
}

var errOpen = errors.New("${ without its }")

// splitTemplate takes a template apart. $${ stands for a literal ${. The end of
// an expression is found as CEL reads it: braces nest, and those in strings and
// comments do not count.
func splitTemplate(s string) ([]piece, error) {
	var out []piece
	var literal strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, "$${"):
			literal.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			end := expressionEnd(s[2:])
			if end < 0 {
				return nil, errOpen
			}
			source := strings.TrimSpace(s[2 : 2+end])
			if source == "" {
				return nil, errors.New("empty ${}")
			}
			if literal.Len() > 0 {
				out = append(out, piece{literal: literal.String()})
				literal.Reset()
			}
			out = append(out, piece{source: source})
			s = s[2+end+1:]
		default:
			literal.WriteByte(s[0])
			s = s[1:]
		}
	}
	if literal.Len() > 0 {
		out = append(out, piece{literal: literal.String()})
	}
	return out, nil
}

// expressionEnd is the index of the } that closes the expression s begins with,
// or −1.
func expressionEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			n := stringLength(s[i:], i > 0 && isRaw(s[:i]))
			if n < 0 {
				return -1
			}
			i += n
			continue
		case strings.HasPrefix(s[i:], "//"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return -1
			}
			i += n
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
		i++
	}
	return -1
}

// isRaw reports whether a string that follows before is raw: r"…", rb"…", br"…".
func isRaw(before string) bool {
	i := len(before)
	for i > 0 && strings.IndexByte("rRbB", before[i-1]) >= 0 {
		i--
	}
	if i > 0 && isWord(before[i-1]) { // the tail of an identifier, not a prefix
		return false
	}
	return strings.ContainsAny(before[i:], "rR")
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// stringLength is the length of the CEL string literal that s begins with, or −1.
func stringLength(s string, raw bool) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return -1
}

// template is text with expressions in it, compiled.
type template struct {
	parts   []part
	secrets []string // names, as used
}

type part struct {
	literal string
	program *program // nil for literal text
	escape  func(string) (string, error)
}

// templateAt compiles a template that may see s. The escape of each expression
// is chosen by the literal text before it.
func (c *compiler) templateAt(n *node, l *language, s sight, escape func(before string) func(string) (string, error)) *template {
	source := c.str(n)
	if source == "" {
		return nil
	}
	pieces, err := splitTemplate(source)
	if err != nil {
		c.fault(n, "%s", err)
		return nil
	}
	t := &template{}
	before := ""
	for _, p := range pieces {
		if p.source == "" {
			t.parts = append(t.parts, part{literal: p.literal})
			before += p.literal
			continue
		}
		prog, err := l.compile(p.source, s, givesText...)
		if err != nil {
			c.fault(n, "${%s}: %s", p.source, err)
			continue
		}
		t.parts = append(t.parts, part{program: prog, escape: escape(before)})
		t.secrets = append(t.secrets, prog.secrets...)
	}
	return t
}

// render fills the template; path, if not nil, watches the segments.
func (t *template) render(v *scope, path *segments) (string, error) {
	if len(t.parts) == 1 && t.parts[0].program == nil {
		return t.parts[0].literal, nil
	}
	out := make([]byte, 0, 128)
	for _, p := range t.parts {
		if p.program == nil {
			out = append(out, p.literal...)
			if err := path.literal(out, len(out)-len(p.literal)); err != nil {
				return "", err
			}
			continue
		}
		value, err := p.program.eval(v)
		if err != nil {
			return "", errors.New("an expression cannot be computed")
		}
		s, err := textOf(value)
		if err != nil {
			return "", err
		}
		if s, err = p.escape(s); err != nil {
			return "", err
		}
		out = append(out, s...)
		path.value()
		if len(out) > maxRendered {
			return "", fmt.Errorf("longer than %d bytes", maxRendered)
		}
	}
	return string(out), path.end(out)
}

// maxRendered bounds what a template gives, in bytes.
const maxRendered = 8 << 10
