package operation

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/effectd/effectd/events"
)

// Exec pins the program of kind exec.
type Exec struct {
	Argv   []string // literal; Argv[0] is absolute. The payload is on stdin
	SHA256 events.Digest
}

// Precondition says how the state that the producer saw is passed on.
type Precondition struct {
	Header   string        // kind http
	Validity time.Duration // of what the producer saw: a binding that relies on it lives no longer; 0: no bound

	from *program
}

// Idempotency is what the service promises for equal keys.
type Idempotency struct {
	Header             string // kind http
	Scope              string
	Retention          time.Duration
	Concurrent         bool
	MismatchRejected   bool
	coversResubmission bool
}

// expression compiles a CEL expression written as text, or as a bare number or
// boolean.
func (c *compiler) expression(n *node, l *language, s sight, results ...types.Kind) *program {
	if n == nil {
		return nil
	}
	if n.shape == null || n.shape == list || n.shape == object {
		c.fault(n, "want a CEL expression, got %s", n.shape)
		return nil
	}
	p, err := l.compile(n.text, s, results...)
	if err != nil {
		c.fault(n, "%s", err)
		return nil
	}
	return p
}

// adapter reads the adapter and what depends on its kind.
func (c *compiler) adapter(out *Contract, s section, l *language) {
	n := s.need("adapter")
	if n == nil {
		return
	}
	if n.shape == object {
		out.Kind = c.oneOf(c.need(n, "kind"), KindHTTP, KindNATS, KindExec, KindFile)
	}
	var headers headerNames
	switch out.Kind {
	case KindHTTP:
		out.send = c.httpSend(n, l, out.Exposes, &headers)
	case KindNATS:
		c.section(n, "kind")
	case KindExec:
		out.Exec = c.exec(n)
	case KindFile:
		out.file = c.fileWrite(n, l, out.Exposes)
	default:
		c.section(n, "kind", "method", "url", "headers", "body", "argv", "sha256", "root", "path", "content", "mode")
	}
	out.Precondition = c.precondition(out.Kind, s.get("precondition"), l, &headers)
	out.Idempotency = c.idempotency(out.Kind, s.get("idempotency"), &headers)
	if out.Kind == KindFile && s.get("outcomes") != nil {
		c.fault(s.get("outcomes"), "kind file proves its outcome itself")
	}
}

func (c *compiler) need(n *node, name string) *node { return section{n, c}.need(name) }

func (c *compiler) exec(n *node) *Exec {
	s := c.section(n, "kind", "argv", "sha256")
	out := &Exec{}
	argv := s.need("argv")
	for _, item := range c.list(argv, maxNames) {
		if item.shape != text {
			c.fault(item, "want text, got %s", item.shape)
		}
		if strings.Contains(item.text, "${") {
			c.fault(item, "arguments are literal; the payload is on stdin")
		}
		out.Argv = append(out.Argv, item.text)
	}
	if argv != nil && (len(out.Argv) == 0 || !path.IsAbs(out.Argv[0])) {
		c.fault(argv, "want the absolute path of the executable first")
	}
	out.SHA256 = events.Digest(c.str(s.need("sha256")))
	if sum := s.get("sha256"); out.SHA256 != "" && !isDigest(string(out.SHA256)) {
		c.fault(sum, "want 64 lower-case hexadecimal characters")
	}
	return out
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func isDigest(s string) bool { return hexDigest.MatchString(s) }

func (c *compiler) precondition(kind string, n *node, l *language, taken *headerNames) *Precondition {
	if n == nil {
		return nil
	}
	keys := []string{"from", "validity"}
	switch kind {
	case KindHTTP, "":
		keys = append(keys, "header")
	case KindNATS, KindExec:
		c.fault(n, "kind %s has no precondition", kind)
		return nil
	}
	s := c.section(n, keys...)
	out := &Precondition{Validity: c.duration(s.get("validity"), time.Second, maxExpires, 0)}
	if kind == KindHTTP {
		out.Header = c.headerName(s.need("header"), taken)
	}
	out.from = c.expression(s.need("from"), l, seePrecondition, types.StringKind)
	return out
}

func (c *compiler) idempotency(kind string, n *node, taken *headerNames) *Idempotency {
	if n == nil {
		return nil
	}
	keys := []string{"scope", "retention", "concurrent", "mismatch_rejected"}
	switch kind {
	case KindHTTP, "":
		keys = append(keys, "header")
	case KindFile:
		c.fault(n, "kind file has no idempotency; it has a precondition")
		return nil
	}
	s := c.section(n, keys...)
	out := &Idempotency{
		Retention:        c.duration(s.get("retention"), time.Second, maxRetention, 0),
		Concurrent:       c.boolean(s.get("concurrent")),
		MismatchRejected: c.boolean(s.get("mismatch_rejected")),
	}
	if scope := s.get("scope"); scope != nil {
		out.Scope = c.str(scope)
	}
	if kind == KindHTTP {
		out.Header = "Idempotency-Key"
		if header := s.get("header"); header != nil {
			out.Header = c.headerName(header, taken)
		} else if s.shape == object {
			taken.take(out.Header)
		}
	}
	out.coversResubmission = out.Scope != "" && out.Retention > 0 && out.Concurrent && out.MismatchRejected
	return out
}

// fileWrite is the compiled adapter of kind file.
type fileWrite struct {
	root    string
	path    *template
	content *program // nil: the payload
	mode    uint32
}

func (c *compiler) fileWrite(n *node, l *language, exposes []string) *fileWrite {
	s := c.section(n, "kind", "root", "path", "content", "mode")
	out := &fileWrite{root: c.str(s.need("root")), mode: defaultMode}
	if root := s.get("root"); out.root != "" && (!path.IsAbs(out.root) || path.Clean(out.root) != out.root || out.root == "/") {
		c.fault(root, "want a clean absolute path of a directory")
	}
	if n := s.need("path"); n != nil {
		out.path = c.target(n, l, seeInTarget, exposes, segmentEscape)
		if out.path != nil && !localPath(out.path.sample()) {
			c.fault(n, `want a relative path without empty, "." or ".." segments`)
		}
	}
	out.content = c.expression(s.get("content"), l, seeInContent, givesJSON...)
	if n := s.get("mode"); n != nil {
		mode, err := strconv.ParseUint(n.text, 8, 32)
		if err != nil || mode > 0o777 || !slices.Contains([]shape{text, integer}, n.shape) {
			c.fault(n, "want octal permission bits such as 0644")
		}
		out.mode = uint32(mode)
	}
	return out
}

const defaultMode = 0o644

// localPath reports whether p stays below any root it is joined to.
func localPath(p string) bool {
	for segment := range strings.SplitSeq(p, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > 255 {
			return false
		}
	}
	return !strings.Contains(p, "\x00")
}
