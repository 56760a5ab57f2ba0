package natsserver

import (
	"encoding/base64"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
)

// gate authenticates every connection against a table that is swapped whole
// (N1, N7). The server's own reload of users races with traffic.
type gate struct {
	table atomic.Pointer[table]

	mu       sync.Mutex // serializes changes of the table
	accounts map[string]*server.Account
	services map[string]*identity
}

// table is immutable once published.
type table map[string]*identity // by public key

type identity struct {
	key         nkeys.KeyPair // public half
	account     *server.Account
	permissions *server.Permissions
	user        events.User // zero: a service
	local       bool        // only over a connection inside the process
}

// Check implements server.Authentication.
func (g *gate) Check(c server.ClientAuthentication) bool {
	t := g.table.Load()
	if t == nil || c.Kind() != server.CLIENT {
		return false
	}
	id, known := (*t)[c.GetOpts().Nkey]
	if !known || !id.signed(c.GetNonce(), c.GetOpts().Sig) {
		return false
	}
	if addr := c.RemoteAddress(); id.local && (addr == nil || addr.Network() != "pipe") {
		return false
	}
	// Permissions first: joining an account can fail and RegisterUser does not
	// say so.
	c.RegisterUser(&server.User{Permissions: id.permissions})
	c.RegisterUser(&server.User{Permissions: id.permissions, Account: id.account})
	return true
}

// signed reports whether sig is the identity's signature over this connection's nonce.
func (id *identity) signed(nonce []byte, sig string) bool {
	if len(nonce) == 0 || sig == "" {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		if raw, err = base64.StdEncoding.DecodeString(sig); err != nil {
			return false
		}
	}
	return id.key.Verify(nonce, raw) == nil
}

// set publishes a new table and returns the one before, nil at first.
func (g *gate) set(users []events.User) (before table, err error) {
	if err := CheckUsers(users); err != nil {
		return nil, err
	}
	next := make(table, len(users)+len(g.services))
	for _, u := range users {
		if g.services[u.PublicKey] != nil {
			return nil, fmt.Errorf("users: %s/%s: public_key is the ledger's own", u.Tenant, u.Principal)
		}
		key, err := nkeys.FromPublicKey(u.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("users: %s/%s: %w", u.Tenant, u.Principal, err)
		}
		next[u.PublicKey] = &identity{key: key, account: g.accounts[UsersAccount], permissions: PermissionsOf(u).enforced(), user: u}
	}
	for pub, id := range g.services {
		next[pub] = id
	}
	if old := g.table.Swap(&next); old != nil {
		before = *old
	}
	return before, nil
}

// SetUsers replaces the principal table. Who is gone or changed is disconnected;
// everybody else notices nothing. It reports every fault at once and then
// changes nothing.
//
// The swap comes before the look at connections: one that was checked against
// the old table has its nkey noted already, and is seen.
func (s *Server) SetUsers(users []events.User) error {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	before, err := s.gate.set(users)
	if err != nil {
		return err
	}
	after := *s.gate.table.Load()
	conns, err := s.nats.Connz(&server.ConnzOptions{Username: true, Limit: math.MaxInt32})
	if err != nil {
		return fmt.Errorf("users: list connections: %w", err)
	}
	for i := range conns.Conns {
		key := conns.Conns[i].AuthorizedUser
		old, was := before[key]
		if now, is := after[key]; was && (!is || !sameUser(old.user, now.user)) {
			// An error means that it is gone already.
			_ = s.nats.DisconnectClientByID(conns.Conns[i].Cid)
		}
	}
	return nil
}
