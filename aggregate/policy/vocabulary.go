package policy

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/effectd/effectd/events"
)

var roles = []string{string(events.RoleProducer), string(events.RoleApprover), string(events.RoleOperator), string(events.RoleAuditor), string(events.RoleExecutor)}

// vocabulary checks that what policies name exists (P4).
type vocabulary struct {
	text       string
	operations []Operation // nil: a logged text, whose operations and attributes are not looked at
	faults     Faults
}

// passage is one policy and where its text ends.
type passage struct {
	*cedar.Policy
	end int
}

// check looks at everything that a policy names; its text ends at end.
func (v *vocabulary) check(policy *cedar.Policy, end int) {
	p := passage{policy, end}
	tree := (*ast.Policy)(p.AST())
	v.scope(p, "principal", tree.Principal)
	v.scope(p, "action", tree.Action)
	v.scope(p, "resource", tree.Resource)
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			v.names(p, n)
			if v.operations != nil {
				v.comparison(p, n)
				v.attribute(p, n)
			}
			return true
		})
	}
}

// names looks at the entities and types of one node.
func (v *vocabulary) names(p passage, n ast.IsNode) {
	switch n := n.(type) {
	case ast.NodeValue:
		if uid, ok := n.Value.(types.EntityUID); ok {
			v.entity(p, uid)
		}
	case ast.NodeTypeIs:
		v.entityType(p, n.EntityType)
	case ast.NodeTypeIsIn:
		v.entityType(p, n.EntityType)
	default: // names no entity
	}
}

// scope looks at one variable of a policy's head.
func (v *vocabulary) scope(p passage, variable string, scope ast.IsScopeNode) {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		v.entity(p, s.Entity)
		v.kind(p, variable, "==", s.Entity.Type, s.Entity.String())
	case ast.ScopeTypeIn:
		v.entity(p, s.Entity)
		v.kind(p, variable, "in", s.Entity.Type, s.Entity.String())
	case ast.ScopeTypeInSet:
		for _, e := range s.Entities {
			v.entity(p, e)
			v.kind(p, variable, "in", e.Type, e.String())
		}
	case ast.ScopeTypeIs:
		v.entityType(p, s.Type)
		v.kind(p, variable, "is", s.Type, string(s.Type))
	case ast.ScopeTypeIsIn:
		v.entityType(p, s.Type)
		v.kind(p, variable, "is", s.Type, string(s.Type))
		v.entity(p, s.Entity)
		v.kind(p, variable, "in", s.Entity.Type, s.Entity.String())
	case ast.ScopeTypeAll:
	}
}

func (v *vocabulary) entityType(p passage, t types.EntityType) {
	switch t {
	case typePrincipal, typeRole, typeTenant, typeOperation, typeAction:
	default:
		v.faults.add(v.lineOf(p, string(t)), "unknown entity type %s; there are Principal, Role, Tenant, Operation and Action", t)
	}
}

func (v *vocabulary) entity(p passage, uid types.EntityUID) {
	id := string(uid.ID)
	line := v.lineOf(p, uid.String())
	switch uid.Type {
	case typeAction:
		if !slices.Contains(actions, id) {
			v.faults.add(line, "unknown action %q; there are %s", id, strings.Join(actions, ", "))
		}
	case typeRole:
		if !slices.Contains(roles, id) {
			v.faults.add(line, "unknown role %q; there are %s", id, strings.Join(roles, ", "))
		}
	case typeOperation:
		if v.operations != nil && !slices.ContainsFunc(v.operations, func(o Operation) bool { return string(o.Name) == id }) {
			v.faults.add(line, "unknown operation %q", id)
		}
	case typeTenant:
		if !events.ValidToken(id) {
			v.faults.add(line, "no tenant can be named %q", id)
		}
	case typePrincipal:
		tenant, principal, _ := strings.Cut(id, "/")
		if !events.ValidToken(tenant) || !events.ValidToken(principal) {
			v.faults.add(line, "no principal can be named %q; want TENANT/PRINCIPAL", id)
		}
	default:
		v.entityType(p, uid.Type)
	}
}

// lineOf is the line where a policy first has one of the words, the best one first,
// or where the policy begins when it says it in some other way.
func (v *vocabulary) lineOf(p passage, words ...string) int {
	begin := p.Position()
	if begin.Offset > p.end || p.end > len(v.text) {
		return begin.Line
	}
	text := v.text[begin.Offset:p.end]
	for _, w := range words {
		if i := strings.Index(text, w); i >= 0 {
			return begin.Line + strings.Count(text[:i], "\n")
		}
	}
	return begin.Line
}
