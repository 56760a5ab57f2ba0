package natsserver

import (
	"slices"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// anyRole are the verbs of everybody.
var anyRole = []wire.Verb{wire.OperationList, wire.LedgerStatus}

// verbs is the table of SPEC 6. What a verb does for a principal is decided by
// the ledger; here is only who may ask.
var verbs = map[events.Role][]wire.Verb{
	events.RoleProducer: {
		wire.TaskOpen, wire.TaskCloseVerb, wire.TaskGet, wire.TaskList,
		wire.EffectPrepare, wire.EffectAdmit, wire.EffectSubmit, wire.EffectGet, wire.EffectList, wire.EffectHistory, wire.EffectWithdraw,
		wire.RunCancel, wire.RunFinish, wire.RunGet,
	},
	events.RoleOperator: {
		wire.TaskOpen, wire.TaskCloseVerb, wire.TaskGet, wire.TaskList,
		wire.EffectGet, wire.EffectList, wire.EffectHistory, wire.PermitRevoke, wire.LedgerConfirm,
		wire.EffectReconcile, wire.EffectSettle, wire.EffectAcknowledge, wire.DenialsRead,
	},
	events.RoleApprover: {wire.PermitPending, wire.PermitApprove, wire.PermitDeny, wire.EffectGet, wire.EffectList, wire.EffectHistory},
	events.RoleAuditor:  {wire.EffectGet, wire.EffectList, wire.EffectHistory, wire.TaskGet, wire.TaskList, wire.DenialsRead},
	events.RoleExecutor: {},
}

// Verbs lists what a role may ask, or nothing for an unknown role.
func Verbs(role events.Role) []wire.Verb {
	own, known := verbs[role]
	if !known {
		return nil
	}
	return slices.Concat(own, anyRole)
}
