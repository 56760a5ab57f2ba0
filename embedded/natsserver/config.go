package natsserver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// The accounts. Streams live in the first, users in the second.
const (
	LedgerAccount = "EFFECTD"
	UsersAccount  = "EFFECTD_USERS"
)

// MaxPayload is the largest message in bytes: an entry of 512 KiB with room for
// a reply that carries its effects.
const MaxPayload = 2 << 20

// Layout is what [Config] writes for an external server.
type Layout struct {
	Users    []events.User
	Services map[Service]string // public keys
	StoreDir string             // empty: left for the owner to say
	// Certificate and Key are PEM files on the server's machine; empty: left for the
	// owner to say.
	Certificate, Key string
}

// Config is the configuration of an external server with the accounts, users and
// permissions that the embedded one enforces.
func Config(l Layout) (string, error) {
	if err := CheckUsers(l.Users); err != nil {
		return "", err
	}
	for _, s := range Services() {
		if l.Services[s] == "" {
			return "", fmt.Errorf("nats configuration: no public key of service %s", s)
		}
	}
	members := map[string][]string{}
	for _, s := range Services() {
		a := s.account()
		members[a] = append(members[a], userText("effectd "+string(s), l.Services[s], PermissionsOfService(s)))
	}
	for _, u := range l.Users {
		comment := fmt.Sprintf("%s/%s, %s", u.Tenant, u.Principal, u.Role)
		members[UsersAccount] = append(members[UsersAccount], userText(comment, u.PublicKey, PermissionsOf(u)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# NATS server configuration for effectd.\n# Merge listen and cluster settings of your own.\nmax_payload: %d\n\n", MaxPayload)
	b.WriteString(tlsText(l))
	b.WriteString("jetstream {\n")
	b.WriteString("  # An acknowledged entry must be on disk.\n  sync_interval: always\n")
	if l.StoreDir != "" {
		fmt.Fprintf(&b, "  store_dir: %s\n", strconv.Quote(l.StoreDir))
	} else {
		b.WriteString("  # Without one the streams are in the temporary directory.\n  # store_dir: /var/lib/nats\n")
	}
	b.WriteString("}\n\n")
	b.WriteString(accountsText(members))
	return b.String(), nil
}

// service is one service export of the ledger's account.
type service struct {
	subject string
	stream  bool   // more than one reply
	within  string // how long a reply may take; empty: the server's default of two minutes
}

// exports is all that users reach in the ledger's account. What a user may ask
// of it stands in the user's permissions.
func exports() []service {
	out := []service{
		{subject: "effects.api.>", within: "24h"}, // a reply may wait for an effect's end
		{subject: wire.RequestPrefix + ">"},       // the stream takes what a user may publish there
		{subject: monitorSubject, stream: true},
		{subject: jetStreamAPI + "INFO"},
		{subject: jetStreamAPI + "STREAM.NAMES"},
		{subject: jetStreamAPI + "STREAM.LIST"},
	}
	for _, s := range auditedStreams {
		out = append(out,
			service{subject: jetStreamAPI + "STREAM.INFO." + s},
			service{subject: jetStreamAPI + "STREAM.MSG.GET." + s},
			service{subject: jetStreamAPI + "DIRECT.GET." + s, stream: true},
			service{subject: jetStreamAPI + "DIRECT.GET." + s + ".>"},
			service{subject: jetStreamAPI + "CONSUMER.NAMES." + s},
			service{subject: jetStreamAPI + "CONSUMER.LIST." + s},
		)
		out = append(out, consumers(s)...)
	}
	return append(out, consumers(wire.DenialStream)...)
}

// consumers are the exports for reads through the consumers of a stream.
func consumers(stream string) []service {
	return []service{
		{subject: jetStreamAPI + "CONSUMER.INFO." + stream + ".*"},
		{subject: jetStreamAPI + "CONSUMER.MSG.NEXT." + stream + ".*", stream: true},
		{subject: jetStreamAck + stream + ".*.>"},
	}
}

// tlsText is the block that encrypts the connections of users.
func tlsText(l Layout) string {
	if l.Certificate == "" {
		return "# Without TLS, what users of other machines send can be read and changed.\n# tls { cert_file: \"server.pem\", key_file: \"server.key\" }\n\n"
	}
	return fmt.Sprintf("tls {\n  cert_file: %s\n  key_file: %s\n}\n\n", strconv.Quote(l.Certificate), strconv.Quote(l.Key))
}

// accountsText is the accounts block. The embedded server reads it without users.
func accountsText(members map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    exports: [\n", LedgerAccount)
	for _, e := range exports() {
		fmt.Fprintf(&b, "      {service: %s, accounts: [%s]", strconv.Quote(e.subject), UsersAccount)
		if e.stream {
			b.WriteString(", response_type: stream")
		}
		if e.within != "" {
			fmt.Fprintf(&b, ", threshold: %q", e.within)
		}
		b.WriteString("}\n")
	}
	b.WriteString("    ]\n")
	writeMembers(&b, members[LedgerAccount])
	fmt.Fprintf(&b, "  }\n  %s {\n    imports: [\n", UsersAccount)
	for _, e := range exports() {
		fmt.Fprintf(&b, "      {service: {account: %s, subject: %s}}\n", LedgerAccount, strconv.Quote(e.subject))
	}
	b.WriteString("    ]\n")
	writeMembers(&b, members[UsersAccount])
	b.WriteString("  }\n}\n")
	return b.String()
}

func writeMembers(b *strings.Builder, members []string) {
	if len(members) == 0 {
		return
	}
	b.WriteString("    users: [\n")
	for _, m := range members {
		b.WriteString(m)
	}
	b.WriteString("    ]\n")
}

func userText(comment, publicKey string, p Permissions) string {
	perms := p.enforced()
	var b strings.Builder
	fmt.Fprintf(&b, "      # %s\n      {nkey: %s, permissions: {\n", comment, publicKey)
	for _, side := range []struct {
		name  string
		lists map[string][]string
	}{
		{"publish", map[string][]string{"allow": perms.Publish.Allow, "deny": perms.Publish.Deny}},
		{"subscribe", map[string][]string{"allow": perms.Subscribe.Allow, "deny": perms.Subscribe.Deny}},
	} {
		fmt.Fprintf(&b, "        %s: {", side.name)
		for _, list := range []string{"allow", "deny"} {
			if len(side.lists[list]) > 0 {
				fmt.Fprintf(&b, "%s: [%s] ", list, quoted(side.lists[list]))
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("      }}\n")
	return b.String()
}

func quoted(subjects []string) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}
