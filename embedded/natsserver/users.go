package natsserver

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
)

// CheckUsers reports every fault of a principal table at once: tokens, reserved
// names, roles, keys, and what stands in it twice.
func CheckUsers(users []events.User) error {
	var faults []error
	names, keys := map[events.Actor]bool{}, map[string]bool{}
	for i, u := range users {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("user %d (%s/%s): "+format, append([]any{i + 1, u.Tenant, u.Principal}, args...)...))
		}
		if !events.ValidToken(string(u.Tenant)) {
			fault("tenant: want a subject token")
		}
		if !events.ValidToken(string(u.Principal)) || u.Principal == events.SystemPrincipal {
			fault("principal: want a subject token that is not reserved")
		}
		if Verbs(u.Role) == nil {
			fault("role: unknown")
		}
		if !nkeys.IsValidPublicUserKey(u.PublicKey) {
			fault("public_key: want the public key of a user nkey")
		}
		if keys[u.PublicKey] {
			fault("public_key: is another user's too")
		}
		if name := events.ActorOf(u.Tenant, u.Principal); names[name] {
			fault("principal: twice in the table")
		} else {
			names[name] = true
		}
		keys[u.PublicKey] = true
		if len(u.Operations) > 0 && u.Role != events.RoleExecutor {
			fault("operations: only an executor has them")
		}
		for _, op := range u.Operations {
			if op != AllOperations && !events.ValidToken(op) {
				fault("operations: want subject tokens or %q", AllOperations)
			}
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("users: %w", errors.Join(faults...))
	}
	return nil
}

func sameUser(a, b events.User) bool {
	return a.Tenant == b.Tenant && a.Principal == b.Principal && a.Role == b.Role && a.PublicKey == b.PublicKey &&
		slices.Equal(a.Operations, b.Operations)
}
