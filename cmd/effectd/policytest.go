package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
)

// policyTestCmd asks a policy example questions.
type policyTestCmd struct {
	policyFile
	Policy string `placeholder:"FILE" type:"existingfile" help:"The policy (default: policy.cedar of the directory)."`
	File   string `arg:"" type:"existingfile" help:"The examples: a YAML list of {name, principal, role, operation, payload, action, expect}."`
}

// verdict is what the policy says to an example.
type verdict struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Expect string   `json:"expect"`
	Got    string   `json:"got,omitzero"`
	Fault  string   `json:"fault,omitzero"` // why the question could not be put
	Asked  []asking `json:"asked"`
}

// asking is one action, and the policies that decided about it: none when nothing
// permits it.
type asking struct {
	Action    string     `json:"action"`
	Allow     bool       `json:"allow"`
	DecidedBy []citation `json:"decided_by"`
	Errors    []citation `json:"errors,omitzero"` // policies that could not be evaluated and do not count
}

type citation struct {
	ID   string `json:"id"`
	Line int    `json:"line"`
}

// Run implements the command. An answer that is not the expected one is exit code 1.
func (c *policyTestCmd) Run(e *env) error {
	h, err := c.home()
	if err != nil {
		return err
	}
	var examples []example
	text, err := os.ReadFile(c.File)
	if err == nil {
		err = home.ParseYAML(c.File, text, &examples)
	}
	if err != nil {
		return err
	}
	if len(examples) == 0 {
		return fmt.Errorf("%s: no examples", c.File)
	}
	users, err := h.Users()
	if err != nil {
		return err
	}
	p, contracts, err := embedded.ReadPolicy(h, or(c.Policy, h.PolicyFile()))
	if err != nil {
		return err
	}
	exam := exam{p, contracts, users}
	answers := make([]verdict, len(examples))
	for i, x := range examples {
		answers[i] = exam.answer(x)
	}
	return e.answers(answers)
}

// answers prints what was asked and answered, and how many were not as expected.
func (e *env) answers(all []verdict) error {
	wrong := 0
	out := newPage(e.out)
	for _, a := range all {
		if !a.OK {
			wrong++
		}
		if e.json {
			e.object(a)
			continue
		}
		out.row(map[bool]string{true: "✓", false: "✗"}[a.OK], a.Name, a.words(), a.reasons())
	}
	out.flush()
	if !e.json {
		e.tell("%d of %s as expected", len(all)-wrong, count(len(all), "example", "examples"))
	}
	if wrong > 0 {
		return exitRefused
	}
	return nil
}

func (a *verdict) words() string {
	switch {
	case a.Fault != "":
		return a.Fault
	case a.OK:
		return a.Got
	}
	return a.Got + ", expected " + a.Expect
}

// reasons is "commit: no-charges (line 3); request_approval: ask (line 9)".
func (a *verdict) reasons() string {
	var out []string
	for _, s := range a.Asked {
		by := "nothing permits it"
		if len(s.DecidedBy) > 0 {
			by = map[bool]string{true: "permitted by ", false: "forbidden by "}[s.Allow] + cited(s.DecidedBy)
		}
		out = append(out, s.Action+": "+by)
		if len(s.Errors) > 0 {
			out = append(out, "cannot be evaluated: "+cited(s.Errors))
		}
	}
	return strings.Join(out, "; ")
}

func cited(cs []citation) string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = fmt.Sprintf("%s (line %d)", c.ID, c.Line)
	}
	return strings.Join(out, ", ")
}
