package natsserver

import (
	"github.com/nats-io/nats-server/v2/server"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// AllOperations in the operations of an executor stands for every operation of
// its tenant.
const AllOperations = "*"

// Subjects that the wire package has no name for.
const (
	execPrefix     = "effects.exec."
	eventSubjects  = "effects.event.>"
	deniedSubjects = wire.DeniedPrefix + ">"
	sealedSubjects = "effects.payload.>" // of the stream EFFECT_PAYLOADS
	monitorSubject = "$SRV.>"
	jetStreamAPI   = "$JS.API."
	jetStreamAck   = "$JS.ACK."
)

// auditedStreams are the streams that an auditor reads, of every tenant.
var auditedStreams = []string{wire.LogStream, wire.FeedStream}

// Permissions are the subjects that a connection may use; everything else is
// refused. A subscription "subject queue" is allowed only in a queue group.
type Permissions struct {
	Publish   []string
	Subscribe []string
}

// PermissionsOf is what a user may do on the wire (SPEC 6, 12). A user of an
// unknown role may do nothing.
func PermissionsOf(u events.User) Permissions {
	allowed := Verbs(u.Role)
	if len(allowed) == 0 {
		return Permissions{}
	}
	p := Permissions{
		Publish:   []string{monitorSubject},
		Subscribe: []string{wire.Inbox(u.Tenant, u.Principal) + ".>"},
	}
	for _, v := range allowed {
		p.Publish = append(p.Publish, wire.APISubject(u.Tenant, u.Principal, v))
	}
	switch u.Role {
	case events.RoleProducer:
		p.Publish = append(p.Publish, wire.RequestsSubject(u.Tenant, u.Principal))
	case events.RoleOperator:
		p.Publish = append(p.Publish, consumerReads(wire.DenialStream, DenialConsumer(u.Tenant, u.Principal))...)
	case events.RoleAuditor:
		p.Publish = append(p.Publish, auditorSubjects(AuditConsumer(u.Tenant, u.Principal))...)
		p.Publish = append(p.Publish, consumerReads(wire.DenialStream, DenialConsumer(u.Tenant, u.Principal))...)
	case events.RoleExecutor:
		p.Publish = append(p.Publish, serviceInbox(Dispatch)+".>")
		for _, op := range u.Operations {
			// Two plain subscribers would both execute: in a queue group only.
			p.Subscribe = append(p.Subscribe, execPrefix+string(u.Tenant)+"."+op+" >")
		}
	}
	return p
}

// AuditConsumer names the durable consumer that effectd creates for an auditor
// on each of [auditedStreams].
func AuditConsumer(t events.Tenant, p events.Principal) string {
	return "audit-" + wire.NameOf(t, p)
}

// DenialConsumer names the durable consumer that effectd creates for an operator
// or auditor on the denials. It shows those of the user's tenant alone, which is
// why nothing else reads that stream.
func DenialConsumer(t events.Tenant, p events.Principal) string {
	return "denials-" + wire.NameOf(t, p)
}

// consumerReads are the reads through one consumer.
func consumerReads(stream, consumer string) []string {
	return []string{
		jetStreamAPI + "CONSUMER.INFO." + stream + "." + consumer,
		jetStreamAPI + "CONSUMER.MSG.NEXT." + stream + "." + consumer,
		jetStreamAck + stream + "." + consumer + ".>",
	}
}

// auditorSubjects are reads alone: no request that creates, changes or deletes.
func auditorSubjects(consumer string) []string {
	out := []string{jetStreamAPI + "INFO", jetStreamAPI + "STREAM.NAMES", jetStreamAPI + "STREAM.LIST"}
	for _, s := range auditedStreams {
		out = append(out,
			jetStreamAPI+"STREAM.INFO."+s,
			jetStreamAPI+"STREAM.MSG.GET."+s,
			jetStreamAPI+"DIRECT.GET."+s,
			jetStreamAPI+"DIRECT.GET."+s+".>",
			jetStreamAPI+"CONSUMER.NAMES."+s,
			jetStreamAPI+"CONSUMER.LIST."+s,
		)
		out = append(out, consumerReads(s, consumer)...)
	}
	return out
}

// enforced is the form that the server enforces. An empty list is written so
// that it allows nothing: the server reads an empty subscribe list as "all".
func (p Permissions) enforced() *server.Permissions {
	out := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append([]string{}, p.Publish...)},
		Subscribe: &server.SubjectPermission{Allow: append([]string{}, p.Subscribe...)},
	}
	if len(p.Publish) == 0 {
		out.Publish.Deny = []string{">"}
	}
	if len(p.Subscribe) == 0 {
		out.Subscribe.Deny = []string{">"}
	}
	return out
}
