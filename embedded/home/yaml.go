package home

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// ParseYAML reads one strict document. An error names file, line and column.
func ParseYAML(file string, text []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	err := dec.Decode(into)
	if err == nil {
		if err = dec.Decode(new(any)); err == nil {
			return fmt.Errorf("%s: more than one document", file)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		p := at.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", file, p.Line, p.Column, at.GetMessage())
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Duration is written with a unit: 300s, 5m, 24h.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	v, err := time.ParseDuration(scalar(node))
	if err != nil {
		return valueError(node, "want a duration such as 30s, 5m or 24h")
	}
	*d = Duration(v)
	return nil
}

// Size is a number of bytes, plain or in KiB, MiB or GiB.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", kib}, {"MiB", mib}, {"GiB", gib}, {"", 1}}

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	text := scalar(node)
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 63)
		if err != nil || n > (1<<62)/u.bytes || n < -(1<<62)/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return valueError(node, "want bytes such as 65536, 64KiB, 64MiB or 1GiB")
}

func scalar(node ast.Node) string {
	if s, ok := node.(ast.ScalarNode); ok {
		return fmt.Sprint(s.GetValue())
	}
	return ""
}

func valueError(node ast.Node, message string) error {
	return &yaml.SyntaxError{Message: message, Token: node.GetToken()}
}
