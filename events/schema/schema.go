package schema

import (
	"reflect"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// requests holds the body of every verb.
var requests = map[wire.Verb]reflect.Type{
	wire.TaskOpen:          reflect.TypeFor[wire.TaskOpenRequest](),
	wire.TaskCloseVerb:     reflect.TypeFor[wire.TaskCloseRequest](),
	wire.TaskGet:           reflect.TypeFor[wire.TaskGetRequest](),
	wire.TaskList:          reflect.TypeFor[wire.TaskListRequest](),
	wire.EffectPrepare:     reflect.TypeFor[wire.PrepareRequest](),
	wire.EffectAdmit:       reflect.TypeFor[wire.AdmitRequest](),
	wire.EffectSubmit:      reflect.TypeFor[wire.SubmitRequest](),
	wire.EffectGet:         reflect.TypeFor[wire.GetRequest](),
	wire.EffectList:        reflect.TypeFor[wire.ListRequest](),
	wire.EffectWithdraw:    reflect.TypeFor[wire.EffectReasonRequest](),
	wire.PermitPending:     reflect.TypeFor[wire.PendingRequest](),
	wire.PermitApprove:     reflect.TypeFor[wire.ApprovalRequest](),
	wire.PermitDeny:        reflect.TypeFor[wire.ApprovalRequest](),
	wire.PermitRevoke:      reflect.TypeFor[wire.EffectReasonRequest](),
	wire.EffectReconcile:   reflect.TypeFor[wire.ReconcileRequest](),
	wire.EffectSettle:      reflect.TypeFor[wire.SettleRequest](),
	wire.EffectAcknowledge: reflect.TypeFor[wire.EffectReasonRequest](),
	wire.RunCancel:         reflect.TypeFor[wire.RunRequest](),
	wire.RunFinish:         reflect.TypeFor[wire.RunRequest](),
	wire.RunGet:            reflect.TypeFor[wire.RunRequest](),
	wire.EffectHistory:     reflect.TypeFor[wire.HistoryRequest](),
	wire.LedgerConfirm:     reflect.TypeFor[wire.EmptyRequest](),
	wire.OperationList:     reflect.TypeFor[wire.EmptyRequest](),
	wire.DenialsRead:       reflect.TypeFor[wire.DenialListRequest](),
	wire.LedgerStatus:      reflect.TypeFor[wire.EmptyRequest](),
}

// required are members that a verb needs though others of its type do not.
var required = map[wire.Verb][]string{
	wire.EffectPrepare: {"causal_id", "run_id"},
	wire.EffectSubmit:  {"causal_id", "run_id"},
	wire.RunFinish:     {"outcome"},
}

var replies = map[string]reflect.Type{
	"effect":               reflect.TypeFor[wire.Effect](),
	"effect.list":          reflect.TypeFor[wire.List[wire.Effect]](),
	"error":                reflect.TypeFor[wire.ErrorReply](),
	"denial.list":          reflect.TypeFor[wire.List[wire.Denial]](),
	"ledger.status":        reflect.TypeFor[wire.Status](),
	"ledger.confirm-clock": reflect.TypeFor[wire.ClockReply](),
	"effect.history":       reflect.TypeFor[wire.History](),
	"operation.list":       reflect.TypeFor[wire.List[wire.Operation]](),
	"permit.pending":       reflect.TypeFor[wire.PendingList](),
	"run":                  reflect.TypeFor[wire.Run](),
	"task":                 reflect.TypeFor[wire.Task](),
	"task.list":            reflect.TypeFor[wire.List[wire.Task]](),
}

// All returns every schema by name, in canonical form: "entry",
// "event.<type>" with its envelope, "request.<verb>" and "reply.<what>".
func All() map[string]events.Raw {
	out := map[string]events.Raw{}
	add := func(name string, s object) {
		s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		s["$id"] = "urn:effectd:" + name + ":v1"
		out[name] = events.CanonicalOf(s)
	}
	var oneOf []object
	for _, d := range events.Types() {
		oneOf = append(oneOf, eventSchema(d))
		add("event."+string(d.Type()), eventSchema(d))
	}
	entry := closed(reflect.TypeFor[events.Entry]())
	entry["properties"].(object)["events"] = object{"type": "array", "minItems": 1, "items": object{"oneOf": oneOf}}
	add("entry", entry)
	for verb, t := range requests {
		s := closed(t)
		s["required"] = append(s["required"].([]string), required[verb]...)
		add("request."+string(verb), s)
	}
	for name, t := range replies {
		add("reply."+name, schemaOf(t))
	}
	return out
}

func eventSchema(d events.Data) object {
	s := closed(reflect.TypeFor[events.Event]())
	properties := s["properties"].(object)
	properties["type"] = object{"const": d.Type()}
	properties["data"] = closed(reflect.TypeOf(d))
	return s
}
