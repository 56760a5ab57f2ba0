package operation

import (
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// adapter gives native JSON values to CEL, with maps in the order of their keys:
// Go walks a map in random order, and a decision must not depend on it (O7).
type adapter struct{}

func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case map[string]any:
		return ordered{types.NewStringInterfaceMap(a, v)}
	case map[string]string:
		return ordered{types.NewStringStringMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	default:
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
}

// ordered is a map that is walked in the order of its keys. It hides the map's
// own Fold, which is not ordered.
type ordered struct{ traits.Mapper }

func (o ordered) Iterator() traits.Iterator {
	keys := make([]ref.Val, 0, o.Size().(types.Int))
	for it := o.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(adapter{}, keys).Iterator()
}

// FindStringKey keeps the fast path of the map for field names.
func (o ordered) FindStringKey(name string) (any, bool) {
	if m, ok := o.Mapper.(interface{ FindStringKey(string) (any, bool) }); ok {
		return m.FindStringKey(name)
	}
	v, ok := o.Find(types.String(name))
	return v, ok
}

func compareKeys(a, b ref.Val) int {
	if c, ok := a.(traits.Comparer); ok && a.Type() == b.Type() {
		if n, ok := c.Compare(b).(types.Int); ok {
			return int(n)
		}
	}
	switch ta, tb := a.Type().TypeName(), b.Type().TypeName(); {
	case ta < tb:
		return -1
	case ta > tb:
		return 1
	default:
		return 0
	}
}

// orderLiterals makes maps written in an expression ordered too.
func orderLiterals(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return orderedLiteral{c}, nil
	}
	return i, nil
}

type orderedLiteral struct {
	interpreter.InterpretableConstructor
}

func (l orderedLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	out := l.InterpretableConstructor.Exec(frame)
	if m, ok := out.(traits.Mapper); ok {
		return ordered{m}
	}
	return out
}

func (l orderedLiteral) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, l.Exec)
}
