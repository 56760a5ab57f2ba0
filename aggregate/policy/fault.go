package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a policy.
type Fault struct {
	Line int // of the text, from 1; 0: the whole of it
	Says string
}

// Faults is the error of a text that is no policy: everything that is wrong with
// it, in the order of the text.
type Faults []Fault

// Error has one line for every fault.
func (f Faults) Error() string {
	return f.join(func(line int) string { return fmt.Sprintf("line %d: ", line) })
}

// In is the same with the name of the file: "policy.cedar:3: …".
func (f Faults) In(file string) error {
	return inFile(f.join(func(line int) string { return fmt.Sprintf("%s:%d: ", file, line) }))
}

type inFile string

func (e inFile) Error() string { return string(e) }

func (f Faults) join(place func(line int) string) string {
	lines := make([]string, len(f))
	for i, fault := range f {
		if fault.Line > 0 {
			lines[i] = place(fault.Line)
		}
		lines[i] += fault.Says
	}
	return strings.Join(lines, "\n")
}

// add keeps faults apart: what is wrong twice on a line is said once.
func (f *Faults) add(line int, format string, args ...any) {
	if fault := (Fault{line, fmt.Sprintf(format, args...)}); !slices.Contains(*f, fault) {
		*f = append(*f, fault)
	}
}

// inOrder sorts by line.
func (f Faults) inOrder() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int { return a.Line - b.Line })
	return f
}
