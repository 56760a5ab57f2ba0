package wire

import (
	"strings"

	"github.com/effectd/effectd/events"
)

// Streams and subjects (SPEC 4, 6, 12).
const (
	LogStream     = "EFFECTS"
	LogSubject    = "effects.log"
	RequestStream = "EFFECT_REQUESTS"
	FeedStream    = "EFFECT_FEED"
	DenialStream  = "EFFECT_DENIALS"
	APIPrefix     = "effects.api."
	RequestPrefix = "effects.requests."
	DeniedPrefix  = "effects.denied."
	NodePrefix    = "effects.node."
	ServiceName   = "effectd"
	InboxPrefix   = "_INBOX."
	// CrossAccountPrefix begins the server's own name for the reply subject of a
	// request from another account.
	CrossAccountPrefix = "_R_."
	HeaderErrorCode    = "Nats-Service-Error-Code"
	HeaderError        = "Nats-Service-Error"
)

// APISubject is where a principal sends a command.
func APISubject(t events.Tenant, p events.Principal, v Verb) string {
	return APIPrefix + string(t) + "." + string(p) + "." + string(v)
}

// APIPattern is the subject on which a verb of every principal is served.
func APIPattern(v Verb) string { return APIPrefix + "*.*." + string(v) }

// RequestsSubject is where a principal puts requests into the intake.
func RequestsSubject(t events.Tenant, p events.Principal) string {
	return RequestPrefix + string(t) + "." + string(p)
}

// DeniedSubject is where denials of a tenant with a code are kept.
func DeniedSubject(t events.Tenant, c Code) string { return DeniedPrefix + string(t) + "." + string(c) }

// NameOf is a part of a consumer's name that no two principals share: a hyphen
// within the tenant is written "=".
func NameOf(t events.Tenant, p events.Principal) string {
	return strings.ReplaceAll(string(t), "-", "=") + "-" + string(p)
}

// Inbox is the prefix of the inboxes of one principal, for
// nats.CustomInboxPrefix and --inbox-prefix.
func Inbox(t events.Tenant, p events.Principal) string {
	return InboxPrefix + string(t) + "." + string(p)
}

// CallerOf reads tenant and principal from a command's subject. The NATS server
// enforced who may publish there; a body is never believed about identity.
func CallerOf(subject string) (events.Tenant, events.Principal, bool) {
	rest, ok := strings.CutPrefix(subject, APIPrefix)
	if !ok {
		return "", "", false
	}
	parts := strings.Split(rest, ".")
	if len(parts) != 4 || !events.ValidToken(parts[0]) || !events.ValidToken(parts[1]) {
		return "", "", false
	}
	return events.Tenant(parts[0]), events.Principal(parts[1]), true
}
