package natsserver

import (
	"strings"

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
	requestPrefix  = "effects.requests."
	eventSubjects  = "effects.event.>"
	deniedSubjects = "effects.denied.>"
	sealedSubjects = "effects.payload.>" // of the stream EFFECT_PAYLOADS
	monitorSubject = "$SRV.>"
	jetStreamAPI   = "$JS.API."
	jetStreamAck   = "$JS.ACK."
)

// auditedStreams are the streams that an auditor reads.
var auditedStreams = []string{wire.LogStream, wire.FeedStream, wire.DenialStream}

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
		p.Publish = append(p.Publish, requestPrefix+string(u.Tenant)+"."+string(u.Principal))
	case events.RoleAuditor:
		p.Publish = append(p.Publish, auditorSubjects(AuditConsumer(u.Tenant, u.Principal))...)
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
// on each of [auditedStreams]. No two auditors share a name: a hyphen within the
// tenant is written "=".
func AuditConsumer(t events.Tenant, p events.Principal) string {
	return "audit-" + strings.ReplaceAll(string(t), "-", "=") + "-" + string(p)
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
			jetStreamAPI+"CONSUMER.INFO."+s+"."+consumer,
			jetStreamAPI+"CONSUMER.MSG.NEXT."+s+"."+consumer,
			jetStreamAck+s+"."+consumer+".>",
		)
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
