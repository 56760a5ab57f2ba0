package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answers are encoded as the wire encodes them, in one line.
var oneLine = json.JoinOptions(json.Deterministic(true), jsontext.Multiline(false))

// object prints one wire object on a line (M2).
func (e *env) object(v any) {
	text, err := json.Marshal(v, oneLine)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // a defect of the program
	}
	e.tell("%s", text)
}

// show prints an answer: the wire object, or what table writes for people.
func (e *env) show(v any, table func(*page)) {
	if e.json {
		e.object(v)
		return
	}
	e.page(table)
}

// page prints aligned text on standard output.
func (e *env) page(write func(*page)) {
	p := newPage(e.out)
	write(p)
	p.flush()
}

// tell prints a line of the answer. Faults of the output are kept by [sink].
func (e *env) tell(format string, args ...any) { _, _ = fmt.Fprintf(e.out, format+"\n", args...) }

// note says something to people beside the answer (M3).
func (e *env) note(format string, args ...any) { _, _ = fmt.Fprintf(e.err, format+"\n", args...) }

// sink is standard output: it keeps the first fault, for the exit code.
type sink struct {
	w   io.Writer
	err error
}

// broken reports that nobody gets the answer any more.
func (e *env) broken() bool {
	s, ok := e.out.(*sink)
	return ok && s.err != nil
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// page aligns columns: those of one table, or names and their values.
type page struct {
	w *tabwriter.Writer
}

func newPage(w io.Writer) *page { return &page{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row is one line of a table. Trailing empty cells leave no blanks.
func (p *page) row(cells ...string) {
	for len(cells) > 1 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	for i, c := range cells {
		cells[i] = plain(c)
	}
	_, _ = io.WriteString(p.w, strings.Join(cells, "\t")+"\n")
}

// field is a name and its value; an empty value is left out.
func (p *page) field(name, value string) {
	if value != "" {
		p.row(name, value)
	}
}

// line ends the table before it and prints text alone.
func (p *page) line(text string) {
	p.flush()
	_, _ = io.WriteString(p.w, plain(text)+"\n")
	p.flush()
}

func (p *page) flush() { _ = p.w.Flush() }

// plain keeps text that came from elsewhere from steering the terminal, the
// columns, or the order in which it is read.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
			return '�'
		}
		return r
	}, s)
}
