package policy

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/effectd/effectd/events"
)

// What a proposal may say of a request. A policy about anything else could not
// mean what its writer thinks: a permit would never permit, and a forbid, far
// worse, never forbid.

var (
	contextNames = []string{"target", "task", "version", "max_cost", "auth", "payload"}
	authNames    = []string{"source", "strength"}
)

// kinds are the entity types that a variable can be compared with.
var kinds = map[string]map[string][]types.EntityType{
	"principal": {"==": {typePrincipal}, "in": {typePrincipal, typeRole, typeTenant}, "is": {typePrincipal}},
	"action":    {"==": {typeAction}, "in": {typeAction}, "is": {typeAction}},
	"resource":  {"==": {typeOperation}, "in": {typeOperation}, "is": {typeOperation}},
}

// kind refuses a comparison that never holds, such as principal == Role::"producer".
func (v *vocabulary) kind(p passage, variable, operator string, t types.EntityType, text string) {
	if v.operations == nil || !slices.Contains([]types.EntityType{typePrincipal, typeRole, typeTenant, typeOperation, typeAction}, t) {
		return
	}
	can := kinds[variable]
	if slices.Contains(can[operator], t) {
		return
	}
	says := variable + " " + operator + " " + text + " never holds"
	if operator == "==" && slices.Contains(can["in"], t) {
		says += "; want " + variable + " in " + text
	}
	v.faults.add(v.lineOf(p, variable+" "+operator+" "+text, text), "%s", says)
}

// comparison looks at a variable that a condition compares with an entity.
func (v *vocabulary) comparison(p passage, n ast.IsNode) {
	switch n := n.(type) {
	case ast.NodeTypeEquals:
		v.compared(p, n.Left, "==", n.Right)
		v.compared(p, n.Right, "==", n.Left)
	case ast.NodeTypeNotEquals:
		v.compared(p, n.Left, "==", n.Right)
		v.compared(p, n.Right, "==", n.Left)
	case ast.NodeTypeIn:
		v.compared(p, n.Left, "in", n.Right)
	case ast.NodeTypeIs:
		v.isOf(p, n)
	case ast.NodeTypeIsIn:
		v.isOf(p, n.NodeTypeIs)
		v.compared(p, n.Left, "in", n.Entity)
	default: // compares no entity
	}
}

func (v *vocabulary) compared(p passage, left ast.IsNode, operator string, right ast.IsNode) {
	variable, ok := left.(ast.NodeTypeVariable)
	if !ok || kinds[string(variable.Name)] == nil {
		return
	}
	switch right := right.(type) {
	case ast.NodeValue:
		if uid, ok := right.Value.(types.EntityUID); ok {
			v.kind(p, string(variable.Name), operator, uid.Type, uid.String())
		}
	case ast.NodeTypeSet:
		for _, e := range right.Elements {
			v.compared(p, left, operator, e)
		}
	default: // not known before the request
	}
}

func (v *vocabulary) isOf(p passage, n ast.NodeTypeIs) {
	if variable, ok := n.Left.(ast.NodeTypeVariable); ok && kinds[string(variable.Name)] != nil {
		v.kind(p, string(variable.Name), "is", n.EntityType, string(n.EntityType))
	}
}

// attribute looks at the last name of a path such as context.payload.amount; the
// names before it are nodes of their own.
func (v *vocabulary) attribute(p passage, n ast.IsNode) {
	var tagged ast.IsNode
	switch n := n.(type) {
	case ast.NodeTypeHas:
		v.named(p, n.StrOpNode)
	case ast.NodeTypeAccess:
		v.named(p, n.StrOpNode)
	case ast.NodeTypeHasTag:
		tagged = n.Left
	case ast.NodeTypeGetTag:
		tagged = n.Left
	default: // names no attribute
	}
	if path, ok := pathOf(tagged); ok {
		v.faults.add(v.lineOf(p, "hasTag", "getTag"), "%s has no tags", strings.Join(path, "."))
	}
}

func (v *vocabulary) named(p passage, n ast.StrOpNode) {
	of, ok := pathOf(n.Arg)
	if !ok {
		return
	}
	owner, name := strings.Join(of, "."), string(n.Value)
	known, decidable := v.members(of)
	if !decidable || slices.Contains(known, name) {
		return
	}
	there := "there are " + strings.Join(known, ", ")
	if len(known) == 0 {
		there = "there are none"
	}
	line := v.lineOf(p, owner+"."+name, owner+" has "+name, owner+`["`+name+`"]`, "."+name, name)
	v.faults.add(line, "unknown attribute %s of %s; %s", name, owner, there)
}

// members are the names that a path can have; not decidable are those of a payload
// or a cost while no operation is there, and those within a payload field.
func (v *vocabulary) members(of []string) (names []string, decidable bool) {
	if of[0] != "context" {
		return nil, true
	}
	switch strings.Join(of[1:], ".") {
	case "":
		return contextNames, true
	case "auth":
		return authNames, true
	case "target", "task", "version":
		return nil, true
	case "payload":
		return union(v.operations, func(o Operation) []string { return o.Exposes }), len(v.operations) > 0
	case "max_cost":
		return union(v.operations, func(o Operation) []string { return texts(o.Units) }), len(v.operations) > 0
	}
	return nil, false
}

func texts(units []events.Unit) []string {
	out := make([]string, len(units))
	for i, u := range units {
		out[i] = string(u)
	}
	return out
}

func union(operations []Operation, of func(Operation) []string) []string {
	var out []string
	for _, o := range operations {
		out = append(out, of(o)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pathOf is a variable and the names after it.
func pathOf(n ast.IsNode) ([]string, bool) {
	switch n := n.(type) {
	case ast.NodeTypeVariable:
		return []string{string(n.Name)}, true
	case ast.NodeTypeAccess:
		path, ok := pathOf(n.Arg)
		return append(path, string(n.Value)), ok
	default:
		return nil, false
	}
}
