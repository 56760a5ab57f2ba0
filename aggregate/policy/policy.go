package policy

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/effectd/effectd/events"
)

// The Cedar actions.
const (
	ActionCommit          = "commit"           // have an effect sent without asking anybody
	ActionRequestApproval = "request_approval" // have an effect wait for an approver
	ActionPreview         = "preview"          // read what a contract shows before commitment
	ActionObserve         = "observe"          // read effects of others
	ActionReconcile       = "reconcile"        // start an attempt
	ActionSettle          = "settle"           // state an outcome with evidence
	ActionAcknowledge     = "acknowledge"      // accept the risk of an unknown outcome
)

var actions = []string{ActionCommit, ActionRequestApproval, ActionPreview, ActionObserve, ActionReconcile, ActionSettle, ActionAcknowledge}

// The Cedar entity types.
const (
	typePrincipal = "Principal"
	typeRole      = "Role"
	typeTenant    = "Tenant"
	typeOperation = "Operation"
	typeAction    = "Action"
)

// maxText bounds a policy, in bytes: the text is one record of the log.
const maxText = 48 << 10

// Policy is the owner's policy, parsed. It is immutable and safe for concurrent
// use. A nil *Policy allows nothing.
type Policy struct{ named ordered }

// ordered are the policies in the order of their ids; Cedar's own set is walked
// in random order.
type ordered []namedPolicy

type namedPolicy struct {
	id     cedar.PolicyID
	policy *cedar.Policy
}

func (o ordered) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, p := range o {
			if !yield(p.id, p.policy) {
				return
			}
		}
	}
}

// Operation is what a policy may say of one operation.
type Operation struct {
	Name    events.OperationName
	Exposes []string      // payload fields
	Units   []events.Unit // that it costs
}

// Parse reads a policy; an error is [Faults]. With operations nil it is read as
// the log holds it: every program that knows the same words reads the same law.
// Else it is a proposal, and must name nothing that does not exist (P4).
func Parse(text []byte, operations []Operation) (*Policy, error) {
	if len(text) > maxText {
		return nil, Faults{{Says: fmt.Sprintf("policy longer than %d bytes", maxText)}}
	}
	list, faults := parseCedar(text)
	if faults != nil {
		return nil, faults
	}
	if len(list) == 0 && operations != nil {
		// An editor that has just emptied the file must not end whatever waits.
		return nil, Faults{{Says: "no policy at all: to deny everything, say so with a forbid"}}
	}
	out := &Policy{named: make(ordered, len(list))}
	v := vocabulary{text: string(text), operations: operations}
	for i, p := range list {
		id := cedar.PolicyID(fmt.Sprintf("policy%d", i))
		if name, ok := p.Annotations()["id"]; ok {
			id = cedar.PolicyID(name)
		}
		out.named[i] = namedPolicy{id: id, policy: p}
		v.check(p, endOf(list, i, len(text)))
		if slices.ContainsFunc(out.named[:i], func(other namedPolicy) bool { return other.id == id }) {
			v.faults.add(p.Position().Line, "a second policy with the id %q", id)
		}
		if id == "" || len(id) > events.MaxID {
			v.faults.add(p.Position().Line, "want an @id of 1 to %d bytes", events.MaxID)
		}
	}
	slices.SortFunc(out.named, func(a, b namedPolicy) int { return strings.Compare(string(a.id), string(b.id)) })
	if len(v.faults) > 0 {
		return nil, v.faults.inOrder()
	}
	return out, nil
}

// Line is where the policy of an id begins in the text; 0 if there is none.
func (p *Policy) Line(id string) int {
	for _, n := range p.named {
		if string(n.id) == id {
			return n.policy.Position().Line
		}
	}
	return 0
}

// Len is the number of policies.
func (p *Policy) Len() int { return len(p.named) }

// endOf is where the text of policy i ends.
func endOf(list cedar.PolicyList, i, length int) int {
	if i+1 < len(list) {
		return list[i+1].Position().Offset
	}
	return length
}

// parseCedar gives the library's messages the form of ours.
func parseCedar(text []byte) (list cedar.PolicyList, faults Faults) {
	defer func() {
		if recover() != nil {
			list, faults = nil, Faults{{Says: "malformed policy"}}
		}
	}()
	list, err := cedar.NewPolicyListFromBytes("", text)
	if err == nil {
		return list, nil
	}
	says := strings.TrimPrefix(err.Error(), "parser error: ")
	if rest, ok := strings.CutPrefix(says, "parse error at <input>:"); ok {
		if digits, rest, ok := strings.Cut(rest, ":"); ok {
			if line, err := strconv.Atoi(digits); err == nil {
				return nil, Faults{{line, "column " + rest}}
			}
		}
	}
	return nil, Faults{{Says: says}}
}
