package operation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a contract text.
type Fault struct {
	File    string
	Line    int    // from 1
	Column  int    // from 1
	Key     string // such as "adapter.url" or "outcomes[1].when"; empty for the whole file
	Message string
}

func (f Fault) String() string {
	where := fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Key != "" {
		where += f.Key + ": "
	}
	return where + f.Message
}

// Faults is the error of [Compile]: every fault, in the order of the text.
type Faults []Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// compiler collects faults while it reads a document.
type compiler struct {
	file   string
	faults Faults
}

// fault reports what is wrong with a value, unless it could not even be read.
func (c *compiler) fault(n *node, format string, args ...any) {
	if n.bad {
		return
	}
	c.faultAt(n.line, n.column, n.key, format, args...)
}

func (c *compiler) faultAt(line, column int, key, format string, args ...any) {
	c.faults = append(c.faults, Fault{File: c.file, Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...)})
}

// err returns the faults in the order of the text, or nil.
func (c *compiler) err() error {
	if len(c.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(c.faults, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Key, b.Key))
	})
	return c.faults
}
