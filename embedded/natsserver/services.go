package natsserver

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Service is a connection of effectd itself. Each has a key, permissions and an
// inbox of its own.
type Service string

// The services.
const (
	// Ledger writes the log and reads streams. It reads no user's subject.
	Ledger Service = "ledger"
	// Answer serves the users' requests. It publishes replies alone.
	Answer Service = "answer"
	// Dispatch asks executors, and is all that they can answer.
	Dispatch Service = "dispatch"
)

// Services lists every service.
func Services() []Service { return []Service{Ledger, Answer, Dispatch} }

// PermissionsOfService is what a service may do on the wire.
func PermissionsOfService(s Service) Permissions {
	own := serviceInbox(s) + ".>"
	switch s {
	case Ledger:
		return Permissions{
			Publish: []string{wire.LogSubject, eventSubjects, deniedSubjects, sealedSubjects, wire.NodePrefix + ">",
				jetStreamAPI + ">", jetStreamAck + ">", own},
			Subscribe: []string{wire.NodePrefix + ">", own},
		}
	case Answer:
		// "_R_." is the server's name for a reply into another account.
		return Permissions{
			Publish:   []string{"_R_.>", wire.InboxPrefix + ">"},
			Subscribe: []string{wire.APIPrefix + ">", monitorSubject, own},
		}
	case Dispatch:
		return Permissions{Publish: []string{execPrefix + ">"}, Subscribe: []string{own}}
	}
	return Permissions{}
}

// account is where a service lives. Executors answer inside the users' account.
func (s Service) account() string {
	if s == Dispatch {
		return UsersAccount
	}
	return LedgerAccount
}

func serviceInbox(s Service) string { return wire.Inbox(events.SystemTenant, events.Principal(s)) }

// ServiceKeys are the keys of the services, all derived from the user seed of
// [Ledger], so that an owner keeps one key file. The caller wipes the seed.
func ServiceKeys(seed []byte) (map[Service]nkeys.KeyPair, error) {
	prefix, raw, err := nkeys.DecodeSeed(seed)
	if err != nil || prefix != nkeys.PrefixByteUser {
		return nil, fmt.Errorf("service keys: want the seed of a user nkey")
	}
	defer clear(raw)
	keys := make(map[Service]nkeys.KeyPair)
	for _, s := range Services() {
		secret := raw
		if s != Ledger {
			if secret, err = hkdf.Key(sha256.New, raw, nil, "effectd service "+string(s), len(raw)); err != nil {
				return nil, fmt.Errorf("service keys: %w", err)
			}
		}
		if keys[s], err = nkeys.FromRawSeed(nkeys.PrefixByteUser, secret); err != nil {
			return nil, fmt.Errorf("service keys: %w", err)
		}
	}
	return keys, nil
}

// ServicePublicKeys are the public keys of [ServiceKeys], as [Config] wants them.
func ServicePublicKeys(keys map[Service]nkeys.KeyPair) (map[Service]string, error) {
	out := make(map[Service]string, len(keys))
	for s, k := range keys {
		pub, err := k.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", s, err)
		}
		out[s] = pub
	}
	return out, nil
}
