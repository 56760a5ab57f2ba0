package policy

import (
	"fmt"
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
	operations []events.OperationName // nil: any
	faults     []error
}

func (v *vocabulary) fault(line int, format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...)))
}

// check looks at every entity that a policy names; its text ends at end.
func (v *vocabulary) check(p *cedar.Policy, end int) {
	tree := (*ast.Policy)(p.AST())
	seen := func(uid types.EntityUID) { v.entity(p, end, uid) }
	typed := func(t types.EntityType) { v.entityType(p, t) }
	for _, scope := range []ast.IsScopeNode{tree.Principal, tree.Action, tree.Resource} {
		walkScope(scope, seen, typed)
	}
	for _, c := range tree.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeValue:
				if uid, ok := n.Value.(types.EntityUID); ok {
					seen(uid)
				}
			case ast.NodeTypeIs:
				typed(n.EntityType)
			case ast.NodeTypeIsIn:
				typed(n.EntityType)
			default: // names no entity
			}
			return true
		})
	}
}

func walkScope(scope ast.IsScopeNode, seen func(types.EntityUID), typed func(types.EntityType)) {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		seen(s.Entity)
	case ast.ScopeTypeIn:
		seen(s.Entity)
	case ast.ScopeTypeInSet:
		for _, e := range s.Entities {
			seen(e)
		}
	case ast.ScopeTypeIs:
		typed(s.Type)
	case ast.ScopeTypeIsIn:
		typed(s.Type)
		seen(s.Entity)
	case ast.ScopeTypeAll:
	}
}

func (v *vocabulary) entityType(p *cedar.Policy, t types.EntityType) {
	switch t {
	case typePrincipal, typeRole, typeTenant, typeOperation, typeAction:
	default:
		v.fault(p.Position().Line, "unknown entity type %s; there are Principal, Role, Tenant, Operation and Action", t)
	}
}

func (v *vocabulary) entity(p *cedar.Policy, end int, uid types.EntityUID) {
	id := string(uid.ID)
	line := v.lineOf(p, end, uid)
	switch uid.Type {
	case typeAction:
		if !slices.Contains(actions, id) {
			v.fault(line, "unknown action %q; there are %s", id, strings.Join(actions, ", "))
		}
	case typeRole:
		if !slices.Contains(roles, id) {
			v.fault(line, "unknown role %q; there are %s", id, strings.Join(roles, ", "))
		}
	case typeOperation:
		if v.operations != nil && !slices.Contains(v.operations, events.OperationName(id)) {
			v.fault(line, "unknown operation %q", id)
		}
	case typeTenant:
		if !events.ValidToken(id) {
			v.fault(line, "no tenant can be named %q", id)
		}
	case typePrincipal:
		tenant, principal, _ := strings.Cut(id, "/")
		if !events.ValidToken(tenant) || !events.ValidToken(principal) {
			v.fault(line, "no principal can be named %q; want TENANT/PRINCIPAL", id)
		}
	default:
		v.entityType(p, uid.Type)
	}
}

// lineOf is the line where a policy names an entity, or where the policy begins
// when it is written in some other way.
func (v *vocabulary) lineOf(p *cedar.Policy, end int, uid types.EntityUID) int {
	begin := p.Position()
	if begin.Offset <= end && end <= len(v.text) {
		if i := strings.Index(v.text[begin.Offset:end], uid.String()); i >= 0 {
			return begin.Line + strings.Count(v.text[begin.Offset:begin.Offset+i], "\n")
		}
	}
	return begin.Line
}
