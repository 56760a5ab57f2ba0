package operation

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// How a value is made to fit its place without changing the structure around it
// (O3).

func escapePath(s string) (string, error)  { return url.PathEscape(s), nil }
func escapeQuery(s string) (string, error) { return url.QueryEscape(s), nil }

// escapeLine lets a value stand in a header line; nothing can be escaped there.
func escapeLine(s string) (string, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", errors.New("a control character, which a header cannot hold")
		}
	}
	return s, nil
}

// escapeSegment percent-encodes what could fake structure or deceive a reader:
// the separator, the escape itself, control and invisible formatting characters.
func escapeSegment(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("not valid UTF-8")
	}
	clean := true
	for _, r := range s {
		clean = clean && !deceptive(r)
	}
	if clean {
		return s, nil
	}
	var out strings.Builder
	for _, r := range s {
		if !deceptive(r) {
			out.WriteRune(r)
			continue
		}
		for _, b := range []byte(string(r)) {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String(), nil
}

// deceptive is a fixed list, not a table of the Go release: a resource must
// render the same for every reader of the log (O1).
func deceptive(r rune) bool {
	switch {
	case r == '/', r == '%':
		return true
	case r < ' ', r >= 0x7f && r <= 0xa0, r == 0xad:
		return true
	case r == 0x61c, r == 0x180e, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	default:
		return false
	}
}

// segments watches a path as it is rendered: a segment with a value in it must
// not come out empty, "." or "..". A nil *segments watches nothing.
type segments struct {
	ofURL  bool // a ? ends the path
	start  int  // of the segment in progress
	valued bool // a value stands in it
	ended  bool // past the path
}

func (p *segments) value() {
	if p != nil {
		p.valued = true
	}
}

// literal takes in literal text, which is out[from:].
func (p *segments) literal(out []byte, from int) error {
	if p == nil {
		return nil
	}
	for i := from; i < len(out); i++ {
		query := p.ofURL && out[i] == '?'
		if p.ended || out[i] != '/' && !query {
			continue
		}
		if err := p.close(out[:i]); err != nil {
			return err
		}
		p.start, p.valued, p.ended = i+1, false, query
	}
	return nil
}

func (p *segments) end(out []byte) error {
	if p == nil || p.ended {
		return nil
	}
	return p.close(out)
}

var errSegment = errors.New(`a segment comes out empty, "." or ".."`)

func (p *segments) close(out []byte) error {
	if !p.valued {
		return nil
	}
	segment, err := url.PathUnescape(string(out[p.start:]))
	if err != nil {
		segment = string(out[p.start:])
	}
	if segment == "" || segment == "." || segment == ".." {
		return errSegment
	}
	return nil
}
