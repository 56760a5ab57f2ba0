package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

type object = map[string]any

const token = `^[a-z0-9_-]{1,64}$`

// known are the types whose text is not the one that their kind suggests.
var known = map[reflect.Type]object{
	reflect.TypeFor[events.Raw]():      {},
	reflect.TypeFor[events.Data]():     {},
	reflect.TypeFor[events.Digest]():   {"type": "string", "pattern": `^[0-9a-f]{64}$`},
	reflect.TypeFor[events.Position](): {"type": "string", "pattern": `^[0-9]+\.[0-9]+$`},
	reflect.TypeFor[events.Instant](): {"type": "string", "format": "date-time",
		"pattern": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$`},
	reflect.TypeFor[events.Amounts](): {"type": "object", "propertyNames": object{"pattern": token},
		"additionalProperties": object{"type": "integer", "minimum": 0, "maximum": events.MaxAmount}},
	reflect.TypeFor[events.OperationName]():  {"type": "string", "pattern": token},
	reflect.TypeFor[events.IdempotencyKey](): {"type": "string", "pattern": `^ek_[0-9a-f]{64}$`},
	reflect.TypeFor[events.ReceiptID]():      {"type": "string", "pattern": `^rc_[0-9a-f]{64}$`},

	reflect.TypeFor[events.OnPermit]():      enum(events.OnPermitHold, events.OnPermitAdmit),
	reflect.TypeFor[events.Outcome]():       enum(events.OutcomeSucceeded, events.OutcomeFailed, events.OutcomePartial, events.OutcomeNoEffect),
	reflect.TypeFor[events.Means]():         enum(events.MeansAccepted, events.MeansCompleted),
	reflect.TypeFor[events.Method]():        enum(events.MethodQuery, events.MethodResubmitSameKey),
	reflect.TypeFor[events.AttemptResult](): enum(events.AttemptConclusive, events.AttemptInconclusive, events.AttemptSuperseded),
	reflect.TypeFor[events.Role]():          enum(events.RoleProducer, events.RoleApprover, events.RoleOperator, events.RoleAuditor, events.RoleExecutor),
	reflect.TypeFor[events.RunOutcome](): enum(events.RunSucceeded, events.RunRejected, events.RunApplicationFailed,
		events.RunExecutionFailed, events.RunOutcomeCancelled),
	reflect.TypeFor[wire.State](): enum(wire.States()...),
	reflect.TypeFor[wire.PermitState](): enum(wire.PermitPendingState, wire.PermitIssued, wire.PermitConsumed,
		wire.PermitRevoked, wire.PermitExpired, wire.PermitRefused),
	reflect.TypeFor[wire.Code](): enum(codes()...),
}

func enum[S ~string](words ...S) object { return object{"type": "string", "enum": words} }

func codes() []wire.Code {
	var out []wire.Code
	for c := range wire.Codes() {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// schemaOf describes what the encoder writes for a type.
func schemaOf(t reflect.Type) object {
	if s, ok := known[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "minimum": -events.MaxAmount, "maximum": events.MaxAmount}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0, "maximum": events.MaxAmount}
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		return structSchema(t, schemaOf)
	}
	panic("schema: no schema for " + t.String())
}

// closed is schemaOf for what may have no unknown members, at any depth.
func closed(t reflect.Type) object {
	if _, ok := known[t]; ok {
		return schemaOf(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return closed(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": closed(t.Elem())}
	case reflect.Struct:
		s := structSchema(t, closed)
		s["additionalProperties"] = false
		return s
	}
	return schemaOf(t)
}

func structSchema(t reflect.Type, of func(reflect.Type) object) object {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			inner := of(f.Type)
			for name, s := range inner["properties"].(object) {
				properties[name] = s
			}
			required = append(required, inner["required"].([]string)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = of(f.Type)
		if name == "v" {
			properties[name] = object{"const": events.Format}
		}
		if options == "" {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}
